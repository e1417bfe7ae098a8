// The page: takes files and text, and shows what was found. Whatever it shows of a certificate is text.

const byId = (id) => document.getElementById(id);
const MEANING = {
  valid: "The issuer has signed exactly what stands below.",
  "not valid": "Do not rely on it: a check failed.",
  "not verified": "Nothing was found to be wrong, but whether the issuer has signed it could not be checked.",
};
const TITLE = { valid: "Valid", "not valid": "Not valid", "not verified": "Not verified" };
const given = { certificate: null, list: null }; // each { name, text }
let turns = 0; // of looking at something: only the last one shows what it found

function element(tag, words, ...parts) {
  const made = document.createElement(tag);
  made.className = words;
  made.append(...parts);
  return made;
}

function isList(text) {
  try {
    const { type } = fromJson("payload", fromBase64url("payload", text.split(".")[1]));
    return JSON.stringify(type) === JSON.stringify(RULES.listTypes);
  } catch {
    return false;
  }
}

// Look at files, or at text as if it were one: { name, bytes() }.
async function take(files) {
  const turn = ++turns;
  const wrong = [];
  for (const file of files) {
    try {
      check(file.size <= RULES.mostBytes, "It", `must have at most ${RULES.mostBytes} bytes`);
      const text = await tokenIn(await file.bytes());
      if (turn !== turns) return;
      given[isList(text) ? "list" : "certificate"] = { name: file.name, text };
    } catch (error) {
      given.certificate = null;
      wrong.push(`${file.name} was not checked. ${error instanceof InputError ? error.message : "It could not be read."}`);
    }
  }
  const found = given.certificate && (await verify(given.certificate.text, DID, given.list?.text ?? null, now()));
  if (turn === turns) show(found, wrong);
}

const now = () => Date.now() / 1000;

function show(found, wrong) {
  byId("problem").textContent = wrong.join(" ");
  const kept = given.list ? `Status list: ${given.list.name}.` : "";
  byId("given").textContent = given.certificate ? `Certificate: ${given.certificate.name}. ${kept}` : kept;
  byId("result").hidden = !found;
  if (!found) return;
  const outcome = outcomeOf(found.checks);
  byId("result").dataset.outcome = outcome;
  byId("outcome").textContent = TITLE[outcome];
  const open = found.checks.filter((check) => check.outcome === "not checked").map((check) => check.name);
  const rest = outcome === "valid" && open.length ? ` Not checked: ${open.join(", ")}.` : "";
  byId("meaning").textContent = MEANING[outcome] + rest;
  byId("says").hidden = !found.facts;
  byId("facts").replaceChildren(...(found.facts ? told(found.facts, found.kid) : []));
  byId("proves").textContent = found.facts?.name ? RULES.named : RULES.nameless;
  byId("checks").replaceChildren(...found.checks.map(row));
  byId("outcome").focus();
}

function told(facts, kid) {
  const { right, of, required } = facts;
  const lines = [
    ["Passed", facts.title],
    ["Name", facts.name || "none"],
    ["Score", `${right} of ${of} (${Math.floor((100 * right) / of)} %); ${required} were required`],
    ["Passed on", time(facts.awarded)],
    ["Issued on", time(facts.issued)],
    ...(facts.until === null ? [] : [["Valid until", time(facts.until)]]),
    ["Issued by", facts.issuer],
    ["Issuer’s address", facts.issuerUrl],
    ["Certificate", facts.id],
    ["Key", kid],
  ];
  return lines.map(([name, value]) => {
    const said = element("dd", "", value);
    said.dir = "auto";
    return element("div", "", element("dt", "", name), said);
  });
}

function row({ name, outcome, said }) {
  const head = element("p", "check", element("b", "", name), " ", element("span", "found", outcome));
  const made = element("li", "", head, element("p", "said", said));
  made.dataset.found = outcome;
  return made;
}

const asFile = (file) => ({
  name: file.name,
  size: file.size,
  bytes: async () => new Uint8Array(await file.arrayBuffer()),
});
const asText = (text) => {
  const bytes = new TextEncoder().encode(text);
  return { name: "The pasted text", size: bytes.length, bytes: async () => bytes };
};

function takeFrom(transfer) {
  const files = [...transfer.files];
  const text = transfer.getData("text");
  if (files.length) take(files.map(asFile));
  else if (text) take([asText(text)]);
}

byId("file").addEventListener("click", ({ target }) => (target.value = "")); // the same file may be chosen again
byId("file").addEventListener("change", ({ target }) => take([...target.files].map(asFile)));
byId("check").addEventListener("click", () => take([asText(byId("text").value)]));
byId("again").addEventListener("click", () => {
  turns++;
  given.certificate = given.list = null;
  byId("text").value = byId("file").value = "";
  show(null, []);
  byId("file").focus();
});
document.addEventListener("paste", (event) => {
  if (event.target === byId("text") && !event.clipboardData.files.length) return;
  event.preventDefault();
  takeFrom(event.clipboardData);
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", name === "dragover");
    if (name === "drop") takeFrom(event.dataTransfer);
  });
}
byId("issuer").textContent = DID.id;
byId("take").hidden = false;
