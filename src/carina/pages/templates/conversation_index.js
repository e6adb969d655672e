(() => {
  "use strict";
  const buttons = [...document.querySelectorAll("[data-filter]")];
  const items = [...document.querySelectorAll("[data-f]")].map((element) => ({
    element,
    tokens: new Set(element.dataset.f.split(" ")),
    id: element.dataset.id.toLowerCase(),
  }));
  const rows = items.filter((item) => item.element.matches("tr"));
  const search = document.getElementById("search");
  const count = document.getElementById("count");

  // A conversation must match every pressed filter.
  const applyFilters = () => {
    const wanted = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((b) => b.dataset.filter);
    const part = search.value.trim().toLowerCase();
    for (const item of items) {
      item.element.hidden = !(wanted.every((token) => item.tokens.has(token)) && item.id.includes(part));
    }
    const shown = rows.filter((item) => !item.element.hidden).length;
    count.textContent = wanted.length || part ? `${shown} of ${rows.length} match` : "";
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      applyFilters();
    });
  }
  search.addEventListener("input", applyFilters);
})();
