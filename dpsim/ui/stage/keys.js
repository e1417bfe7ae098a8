// The keys: heard only while the stage has the focus, and in front of a class also while nothing has it.

function makeKeys(stage, { keys, stops, tips, presenter, ask, hush, presenting }) {
  // Whether the key was for the number or term that has the focus.
  function onStop(target, key) {
    const number = target.closest?.("[data-origin]");
    if (!number && !target.matches?.(".term")) return false;
    if (AHEAD[key]) (number?.arrow ?? ((way) => stops.move(target, way)))(key);
    else if (number && (key === "Enter" || key === " ")) ask(number);
    else return false;
    return true;
  }

  function onKey(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const elsewhere = target.tagName === "SELECT" || (target.tagName === "BUTTON" && key === " ");
    const used =
      presenter.key(key) ||
      (key === "Escape" && (tips.hide() || hush())) ||
      onStop(target, key) ||
      (keys[key] && !elsewhere && (keys[key](), true));
    if (!used) return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The focus may have fallen to the page: a remote works without a click.
  const onPage = (event) => presenting() && event.target === document.body && onKey(event);
  stage.onkeydown = onKey;
  document.addEventListener("keydown", onPage);
  return () => document.removeEventListener("keydown", onPage);
}
