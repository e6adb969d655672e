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
  const marks = document.getElementById("marks");
  marks?.addEventListener("click", () => {
    const hidden = document.body.classList.toggle("no-marks");
    marks.setAttribute("aria-pressed", String(!hidden));
  });
})();
