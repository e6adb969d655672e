(() => {
  "use strict";
  const all = (selector) => [...document.querySelectorAll(selector)];
  const linked = all("[data-m]");
  const keysOf = (element) => element.dataset.m.split(" ");

  // Everything about the same finding or device is highlighted together.
  const light = (element) => {
    const keys = new Set(element ? keysOf(element) : []);
    for (const other of linked) other.classList.toggle("lit", keysOf(other).some((key) => keys.has(key)));
    document.body.classList.toggle("linking", all("svg .mark.lit").length > 0);
  };
  const nearest = (event) => event.target.closest?.("[data-m]") ?? null;
  document.addEventListener("pointerover", (event) => light(nearest(event)));
  document.addEventListener("focusin", (event) => light(nearest(event)));
  document.addEventListener("focusout", () => light(null));
  document.documentElement.addEventListener("pointerleave", () => light(null));

  const layers = all("input[data-layer]");
  const apply = (name, shown) => {
    for (const mark of all("svg .mark")) if (mark.dataset.layer === name) mark.classList.toggle("off", !shown);
  };
  for (const input of layers) input.addEventListener("change", () => apply(input.dataset.layer, input.checked));
  for (const group of all("input[data-group]")) {
    const kind = group.dataset.group + "/";
    group.addEventListener("change", () => {
      for (const input of layers) if (input.dataset.layer.startsWith(kind)) input.checked = group.checked;
      for (const mark of all("svg .mark")) {
        if (mark.dataset.layer.startsWith(kind)) mark.classList.toggle("off", !group.checked);
      }
    });
  }

  const viewer = document.querySelector(".viewer");
  for (const input of all("input[data-window]")) {
    input.addEventListener("input", () => {
      viewer.style.setProperty(input.dataset.window, input.type === "checkbox" ? Number(input.checked) : input.value);
    });
  }

  for (const button of all(".enlarge")) {
    button.addEventListener("click", () => {
      const large = button.closest("figure").classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.textContent = large ? "Reduce" : "Enlarge";
    });
  }
})();
