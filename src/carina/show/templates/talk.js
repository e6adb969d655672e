(() => {
  "use strict";
  const large = document.getElementById("large");
  const frame = large.querySelector("div");

  // A copy of the film, boxes included: whatever is hidden beside the text is not in the copy either.
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      frame.replaceChildren(button.querySelector("svg").cloneNode(true));
      large.showModal();
    });
  }
  large.addEventListener("click", () => large.close());

  // The next question comes into view when an answer has been looked at.
  for (const button of document.querySelectorAll(".show-key")) {
    button.addEventListener("click", () => {
      document.querySelector(".step:not(.told):not(.ahead)")?.scrollIntoView({ block: "nearest" });
    });
  }
})();
