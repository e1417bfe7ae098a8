// The words of the stage: terms marked where they stand in a text, the arithmetic, the ways compared, the pills.

let termPattern = null;
let termForms = new Map();

// From now on mark the terms of these data: {name: [what it means, written form, …]}.
function useTerms(terms) {
  termForms = new Map();
  for (const [name, [, ...forms]] of Object.entries(terms)) for (const form of forms) termForms.set(form.toLowerCase(), name);
  const longestFirst = [...termForms.keys()].sort((a, b) => b.length - a.length);
  const written = longestFirst.map((form) => form.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|");
  termPattern = new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${written || "$."})(?![\\p{L}\\p{N}_-])`, "giu");
}

// Put `text` into `node` with every term marked at its first occurrence, as dpsim.glossary.terms_in finds them.
function explain(node, text) {
  const seen = new Set();
  const pieces = [];
  let place = 0;
  for (const match of text.matchAll(termPattern)) {
    const name = termForms.get(match[0].toLowerCase());
    if (seen.has(name)) continue;
    seen.add(name);
    const word = element("abbr", "term", match[0]);
    word.dataset.term = name;
    word.tabIndex = -1;
    pieces.push(text.slice(place, match.index), word);
    place = match.index + match[0].length;
  }
  node.replaceChildren(...pieces, text.slice(place));
  return node;
}

// An element is a number that says where it comes from (a row of the origins), or, with -1, no longer.
function fromWhere(node, row, told = "") {
  if (node.dataset.origin === String(row)) return node;
  if (row >= 0) {
    node.dataset.origin = row;
    node.dataset.told = told; // what was asked about, where the origin itself does not say
    node.setAttribute("role", "button");
    if (!node.hasAttribute("tabindex")) node.tabIndex = -1; // the one that Tab comes to stays so
  } else {
    delete node.dataset.origin;
    node.removeAttribute("role");
    node.removeAttribute("tabindex");
  }
  return node;
}

function showMath(root, beat) {
  const crowded = beat.math.length > 2 || beat.math.some((line) => line.length > 60);
  const lines = beat.math.slice(0, 4).flatMap((line) => {
    const [where, expression] = line.includes(": ") ? [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)] : ["", line];
    if (!where && !line.includes("=")) return [explain(element("span", "label"), line)];
    const code = element("code", crowded ? "long" : "", expression);
    return where ? [explain(element("span", "label"), where), code] : [code];
  });
  root.querySelector(".math").replaceChildren(...(lines.length ? lines : [element("span", "label", "nothing to add up in this beat")]));
}

function showComparison(root, step) {
  const before = step.ghost?.compare;
  root.querySelector(".compare").replaceChildren(
    ...step.compare.map((line, i) => {
      const row = element("div", line.ours ? "ours" : "");
      const name = element("div", "name");
      const error = element("span", "label");
      const was = before?.find((earlier) => earlier.name === line.name)?.error;
      if (was !== undefined && was !== line.error && was) error.append(element("s", "was", was), " ");
      error.append(fromWhere(element("span", "", line.error), line.error ? step.origins.compare[i] : -1));
      name.append(explain(element("b"), line.name), error);
      row.append(name);
      const codes = [["", line.hand], ["vector", `g = ${line.gradient}`]].filter(([, text]) => text);
      row.append(...codes.map(([kind, text]) => fromWhere(element("code", kind, text), step.origins.compare[i])));
      return row;
    }),
  );
}

// The ranks as pills, filled with their colour where they are in it.
function showPills(pills, inside, dark) {
  pills.replaceChildren(
    ...[...inside].map((times, r) => {
      const pill = element("span", "", times > "1" ? `${r} ×${times}` : r);
      if (times !== "0") {
        pill.style.background = pill.style.borderColor = rankColour(r, dark);
        // Black on it or white, whichever stands out more: equal at a luminance of 0.18.
        pill.style.color = luminance(rankColour(r, dark)) > 0.18 ? "#000000" : "#ffffff";
      }
      return pill;
    }),
  );
}

// Red, green and blue, 0 to 255, of "#rrggbb" or "rgb(…)".
function channels(colour) {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  if (hex) return hex.slice(1).map((h) => parseInt(h, 16));
  return (colour.match(/[\d.]+/g) ?? [0, 0, 0]).slice(0, 3).map(Number);
}

function luminance(colour) {
  const [r, g, b] = channels(colour).map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
