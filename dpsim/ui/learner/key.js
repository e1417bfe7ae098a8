// The browser's part: it holds the key that the answers are kept under, in its local storage and nowhere else. It
// makes one only when Python wishes it, since not every visitor leaves something to keep. What is found is told
// where Python does not know it yet, so a page that has nothing new to say causes no rerun.

const NAME = "dpsim.key";
const IS_KEY = /^[0-9a-f]{32}$/;
const mounted = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const here = mounted.get(parentElement) ?? {};
  Object.assign(here, { data, send: setStateValue });
  if (here.turn !== data.turn) {
    here.turn = data.turn;
    here.failed = !done(data);
  }
  atRest(here);
  if (mounted.has(parentElement)) return;
  mounted.set(parentElement, here);
  // Another tab deleted everything, or took another key; `key` is null where all of the storage was cleared.
  const changed = (event) => [NAME, null].includes(event.key) && atRest(here);
  addEventListener("storage", changed);
  return () => {
    clearTimeout(here.waits);
    removeEventListener("storage", changed);
    mounted.delete(parentElement);
  };
}

// Do what Python wishes; whether it could be done. To do it twice does no harm.
function done({ wish, key }) {
  try {
    if (wish === "forget") localStorage.removeItem(NAME);
    if (wish === "set") localStorage.setItem(NAME, key);
    if (wish === "make" && !found()) localStorage.setItem(NAME, random());
    return true;
  } catch {
    return false;
  }
}

// Tell it when the page's run has ended. Streamlit drops what a run has still to send if a fragment asks to run
// in the very moment in which it ends: on a busy server the foot of the page would be missing.
function atRest(here) {
  clearTimeout(here.waits);
  const state = document.querySelector("[data-test-script-state]")?.dataset.testScriptState;
  if (state === undefined || state === "notRunning") tell(here);
  else here.waits = setTimeout(() => atRest(here), 50);
}

function tell(here) {
  const { turn, wish, key, blocked } = here.data;
  const said = { turn, key: "", blocked: here.failed };
  try {
    said.key = found();
  } catch {
    said.blocked = true;
  }
  if (wish || said.key !== key || said.blocked !== blocked) here.send("said", said);
}

function found() {
  const key = localStorage.getItem(NAME) ?? "";
  return IS_KEY.test(key) ? key : "";
}

function random() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
