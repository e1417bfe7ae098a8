// The presenter's view: large, stepped by a remote, and blank while everybody should look at the speaker.

const BLANKS = [".", "b", "B"]; // a presenter remote's own button sends the first
const LIFTS = [...BLANKS, "Escape", "PageDown", "PageUp", "ArrowRight", "ArrowLeft", "Home", "End", " ", "Enter"];

function makePresenter(root) {
  const [stage, blank, announced] = [".stage", ".blank", ".announced"].map((name) => root.querySelector(name));
  const blanked = () => blank.matches(":popover-open");

  function lift() {
    if (!blanked()) return;
    blank.hidePopover();
    announced.textContent = "The stage is back.";
  }
  blank.onclick = lift;

  return {
    use(present) {
      stage.classList.toggle("present", present);
      if (!present) lift();
    },
    // The screen below the stage's upper edge is all its own.
    measure() {
      const above = stage.getBoundingClientRect().top;
      if (above >= 0) stage.style.setProperty("--above", `${above}px`);
    },
    // Whether the key was for the blank screen.
    key(key) {
      if (!stage.classList.contains("present")) return false;
      if (blanked()) {
        if (LIFTS.includes(key)) lift();
        return LIFTS.includes(key);
      }
      if (!BLANKS.includes(key)) return false;
      blank.showPopover();
      announced.textContent = "The screen is blank. Press . or b again, Escape or a step key to bring the stage back.";
      return true;
    },
  };
}

// What a pixel of the usual size is now: the presenter's view is larger.
function unitOf(root) {
  return parseFloat(getComputedStyle(root.querySelector(".stage")).fontSize) / 14;
}
