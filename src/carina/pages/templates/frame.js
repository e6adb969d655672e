(() => {
  "use strict";
  const root = document.documentElement;
  const buttons = [...document.querySelectorAll("[data-theme-set]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      if (button.dataset.themeSet === "auto") delete root.dataset.theme;
      else root.dataset.theme = button.dataset.themeSet;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    });
  }
})();
