(() => {
  "use strict";
  // With hidden answers the page is a test: a step appears after the answer to the step before was revealed, because
  // the steps that follow show which answer was right.
  const steps = [...document.querySelectorAll(".step")];
  const toggle = document.getElementById("keys");

  const unlock = () => {
    const open = steps.findIndex((step) => !step.classList.contains("revealed"));
    steps.forEach((step, place) => step.classList.toggle("locked", open >= 0 && place > open));
    document.body.classList.toggle("done", open < 0);
  };

  const hide = (hidden) => {
    document.body.classList.toggle("hiding", hidden);
    toggle.setAttribute("aria-pressed", String(hidden));
    for (const step of steps) {
      step.classList.remove("revealed");
      step.querySelector(".outcome").textContent = "";
      for (const input of step.querySelectorAll("input")) input.checked = input.disabled = false;
    }
    unlock();
  };

  const outcome = (inputs) => {
    if (!inputs.some((input) => input.checked)) return "";
    const right = inputs.every((input) => input.checked === input.hasAttribute("data-right"));
    return right ? "Your answer is right." : "Your answer is wrong.";
  };

  for (const step of steps) {
    step.querySelector(".show-key").addEventListener("click", () => {
      const inputs = [...step.querySelectorAll("input")];
      step.classList.add("revealed");
      step.querySelector(".outcome").textContent = outcome(inputs);
      for (const input of inputs) input.disabled = true;
      unlock();
      const next = steps.find((other) => !other.classList.contains("revealed"));
      next?.querySelector("input, .show-key")?.focus({ preventScroll: true });
    });
  }
  toggle.addEventListener("click", () => hide(!document.body.classList.contains("hiding")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "k" && !event.ctrlKey && !event.metaKey && !event.altKey) toggle.click();
  });
})();
