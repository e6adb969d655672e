{# What the scripts of both reports begin with, each within a function of its own. #}
  const root = document.documentElement;
  const themes = [...document.querySelectorAll("[data-theme-set]")];
  for (const button of themes) {
    button.addEventListener("click", () => {
      if (button.dataset.themeSet === "auto") delete root.dataset.theme;
      else root.dataset.theme = button.dataset.themeSet;
      for (const other of themes) other.setAttribute("aria-pressed", String(other === button));
    });
  }
  // What is folded away is printed too.
  const folded = new Set();
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("main details:not([open])")) { folded.add(one); one.open = true; }
  });
  window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; folded.clear(); });
