// The editor holds the marks while somebody clicks, and hands all of them over at once: a quick second click must
// not be undone by the answer to the first. Only another epoch (an undo, a link, another preset) overrules it.

const editors = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".rows");
  const known = editors.get(parentElement);
  const told = JSON.stringify(data.rows);
  const waiting = known && known.epoch === data.epoch && known.waiting && known.waiting !== told;
  if (waiting) return;
  const marks = data.rows.map((row) => [...row]);
  const state = { epoch: data.epoch, waiting: null };
  editors.set(parentElement, state);
  const focused = parentElement.activeElement?.dataset?.place ?? box.getRootNode().activeElement?.dataset?.place;
  box.replaceChildren(
    ...marks.map((row, s) => {
      const line = document.createElement("div");
      const name = document.createElement("span");
      name.textContent = s;
      line.append(name);
      row.forEach((_, t) => line.append(token(s, t)));
      return line;
    }),
  );
  if (focused) box.querySelector(`[data-place="${focused}"]`)?.focus();

  function token(s, t) {
    const button = document.createElement("button");
    button.dataset.place = `${s}.${t}`;
    const show = () => {
      const valid = marks[s][t] === "1";
      button.setAttribute("aria-pressed", String(valid));
      button.setAttribute("aria-label", `sequence ${s}, token ${t}: ${valid ? "valid" : "masked"}`);
    };
    show();
    button.onclick = () => {
      marks[s][t] = marks[s][t] === "1" ? "0" : "1";
      show();
      const rows = marks.map((row) => row.join(""));
      editors.get(parentElement).waiting = JSON.stringify(rows);
      setStateValue("rows", rows);
    };
    return button;
  }

  return () => editors.delete(parentElement);
}
