(() => {
  "use strict";
  // Folded tables are printed too.
  const folded = new Set();
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("main details:not([open])")) { folded.add(one); one.open = true; }
  });
  window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; folded.clear(); });
})();
