// The editor holds the marks while somebody clicks, and hands all of them over at once: a quick second click must
// not be undone by the answer to the first, so what comes is ignored until the server has heard the last click.
// The buttons stay as long as the batch has the same shape: one that is replaced between press and release would
// lose the click.

const editors = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const known = editors.get(parentElement);
  if (known) known.send = setStateValue;
  if (known?.waiting && known.waiting !== JSON.stringify(data.heard)) return;
  const marks = data.rows.map((row) => [...row]);
  const same = known && marks.length === known.marks.length && marks.every((r, s) => r.length === known.marks[s].length);
  if (same) {
    Object.assign(known, { waiting: null, marks });
    known.shows.forEach((show) => show());
    return;
  }
  const editor = { waiting: null, marks, send: setStateValue, shows: [] };
  editors.set(parentElement, editor);
  parentElement.querySelector(".rows").replaceChildren(...marks.map((row, s) => line(editor, s, row.length)));
  return () => editors.delete(parentElement);
}

function line(editor, s, length) {
  const box = document.createElement("div");
  const name = document.createElement("span");
  name.textContent = s;
  box.append(name, ...Array.from({ length }, (_, t) => token(editor, s, t)));
  return box;
}

function token(editor, s, t) {
  const button = document.createElement("button");
  const show = () => {
    const valid = editor.marks[s][t] === "1";
    button.setAttribute("aria-pressed", String(valid));
    button.setAttribute("aria-label", `sequence ${s}, token ${t}: ${valid ? "valid" : "masked"}`);
  };
  editor.shows.push(show);
  show();
  button.onclick = () => {
    editor.marks[s][t] = editor.marks[s][t] === "1" ? "0" : "1";
    show();
    const rows = editor.marks.map((row) => row.join(""));
    editor.waiting = JSON.stringify(rows);
    editor.send("rows", rows);
  };
  return button;
}
