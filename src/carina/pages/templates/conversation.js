(() => {
  "use strict";
  const large = document.getElementById("large");
  const frame = large.querySelector("div");

  // A copy of the image with its boxes. Boxes of a hidden answer key are not in the copy either.
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      frame.replaceChildren(button.querySelector("svg").cloneNode(true));
      large.showModal();
    });
  }
  large.addEventListener("click", () => large.close());

  // The next question scrolls into view after an answer is revealed.
  for (const button of document.querySelectorAll(".show-key")) {
    button.addEventListener("click", () => {
      document.querySelector(".step:not(.revealed):not(.locked)")?.scrollIntoView({ block: "nearest" });
    });
  }
})();
