(() => {
  "use strict";
  const buttons = [...document.querySelectorAll("[data-filter]")];
  const studies = [...document.querySelectorAll(".study")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const wanted = button.dataset.filter;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const study of studies) study.hidden = wanted !== "" && !study.dataset.f.split(" ").includes(wanted);
    });
  }
  for (const layer of document.querySelectorAll(".layer")) {
    layer.addEventListener("click", () => {
      const hidden = document.body.classList.toggle("no-" + layer.dataset.layer);
      layer.setAttribute("aria-pressed", String(!hidden));
    });
  }
})();
