(() => {
  "use strict";
  const buttons = [...document.querySelectorAll("[data-filter]")];
  const held = [...document.querySelectorAll("[data-f]")].map((element) => ({
    element,
    tokens: new Set(element.dataset.f.split(" ")),
    id: element.dataset.id.toLowerCase(),
  }));
  const rows = held.filter((item) => item.element.matches("tr"));
  const find = document.getElementById("find");
  const left = document.getElementById("left");

  // What is pressed must all hold.
  const narrow = () => {
    const wanted = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((b) => b.dataset.filter);
    const part = find.value.trim().toLowerCase();
    for (const item of held) {
      item.element.hidden = !(wanted.every((token) => item.tokens.has(token)) && item.id.includes(part));
    }
    const shown = rows.filter((item) => !item.element.hidden).length;
    left.textContent = wanted.length || part ? `${shown} of ${rows.length} left` : "";
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      narrow();
    });
  }
  find.addEventListener("input", narrow);
})();
