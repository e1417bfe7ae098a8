// The parts of the field: colours, strips of tokens, cells, the batch, one rank's card, and the wires between.

// Okabe and Ito's colours for eight ranks, then the same hues again, darker or lighter. [light, dark] themes.
const COLOURS = [
  ["#0072b2", "#4aa3d9"], ["#e69f00", "#f2b84b"], ["#009e73", "#3dbf99"], ["#cc79a7", "#dba0c3"],
  ["#56b4e9", "#8fd0f5"], ["#d55e00", "#f08a44"], ["#b8a800", "#f0e442"], ["#6b6f7b", "#b3b8c4"],
  ["#004b75", "#2b7fb3"], ["#9a6a00", "#c98f1f"], ["#00664a", "#23926f"], ["#8f4470", "#b8719a"],
  ["#2a87bd", "#5fb0dd"], ["#8f3f00", "#c96524"], ["#756b00", "#c4ba2f"], ["#43464f", "#8a8f9c"],
];

function rankColour(rank, dark) {
  return COLOURS[rank % COLOURS.length][dark ? 1 : 0];
}

// A row of slots, one per rank, coloured where the rank has contributed (and split where it did twice).
const madeStripes = new Map();
function stripes(inside, dark) {
  const key = `${inside}${dark}`;
  if (!madeStripes.has(key)) madeStripes.set(key, makeStripes(inside, dark));
  return madeStripes.get(key);
}

function makeStripes(inside, dark) {
  const width = 100 / inside.length;
  const stops = [];
  [...inside].forEach((times, rank) => {
    const [from, to] = [rank * width, (rank + 1) * width];
    const gap = inside.length > 8 ? 0 : 1;
    stops.push(`transparent ${from}%`, `${times === "0" ? "var(--slot)" : rankColour(rank, dark)} ${from}% calc(${to}% - ${gap}px)`);
    stops.push(`transparent calc(${to}% - ${gap}px)`);
    if (times > "1") stops.splice(-1, 0, `transparent ${from + width * 0.4}% ${from + width * 0.6}%`);
  });
  return stops.length ? `linear-gradient(90deg, ${stops.join(", ")})` : "none";
}

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function strip(marks, className = "strip") {
  const row = element("div", className);
  const [valid, all] = marks.includes("/") ? marks.split("/").map(Number) : [0, 0];
  if (all) {
    for (const [share, kind] of [[valid, "valid"], [all - valid, "masked"]]) {
      if (!share) continue;
      const bar = element("i", kind);
      bar.style.flex = share;
      row.append(bar);
    }
  } else {
    for (const mark of marks) row.append(element("i", mark === "1" ? "valid" : "masked"));
  }
  return row;
}

// Fill a cell, keeping the elements it has: hundreds of them may change within one frame.
function fillChunk(cell, update, dark, lines = 1) {
  const texts = update ? update.text : Array.from({ length: lines }, (_, i) => (i ? "\u00a0" : "·"));
  if (cell.entries?.length !== texts.length) {
    cell.entries = texts.map(() => element("b"));
    cell.bar = element("span", "stripes");
    cell.replaceChildren(...cell.entries, cell.bar);
  }
  texts.forEach((text, i) => (cell.entries[i].textContent = text));
  cell.bar.style.backgroundImage = update ? stripes(update.inside, dark) : "";
  const whole = Boolean(update) && !/[^1]/.test(update.inside);
  const small = texts.some((text) => text.length > 4);
  cell.className = ["cell", !update && "empty", whole && "whole", texts.length > 1 && "several", small && "small"]
    .filter(Boolean)
    .join(" ");
}

function makeBatch(data, centre) {
  centre.replaceChildren(element("span", "label", "global batch"));
  const rows = element("div", "rows");
  const owner = new Map();
  data.ranks.forEach((rank, r) => rank.sequences.flat().forEach((s) => owner.has(s) || owner.set(s, r)));
  const most = data.world > 4 ? 8 : 12;
  const made = data.batch.slice(0, most).map((marks, s) => {
    const line = element("div", "", s);
    line.append(strip(marks));
    rows.append(line);
    return { line, owner: owner.get(s) ?? 0 };
  });
  centre.append(rows);
  const more = data.batch.length - most;
  if (more > 0) centre.append(element("span", "label", `and ${more} more sequences`));
  centre.append(element("b"));
  return made;
}

function makeCard(data, rank, r) {
  const node = element("article", "card");
  const header = element("header");
  header.append(element("b", "", `rank ${r}`), element("span", "", rank.says));
  const marks = rank.sequences.flat().map((s) => data.batch[s]);
  const long = marks.some((m) => m.includes("/")) || marks.join("").length > 24;
  const tokens = strip(rank.tokens ? (long ? `${rank.valid}/${rank.tokens}` : marks.join("")) : "");
  const progress = element("div", "progress");
  progress.append(element("i"));
  const line = element("div", "line");
  const [label, status] = [element("span", "", "parameters"), element("span", "status")];
  line.append(label, status);
  const numbers = element("div", "numbers");
  const chunks = element("div", "line chunks");
  const total = element("span");
  chunks.append(element("span", "", `${data.travels}, by chunk`), total);
  const body = element("div");
  node.append(header, tokens, progress, line, numbers, chunks, body);

  // The cells of one step: the buckets' chunks, and the count as a text of its own.
  function fill(step, own, cells) {
    body.replaceChildren();
    const rows = new Map();
    step.groups.forEach((group, g) => {
      if (group.count) return;
      if (!rows.has(group.bucket)) {
        const box = element("div", "bucket");
        const most = data.world > 8 ? 4 : group.chunks > 4 ? 4 : group.chunks;
        box.style.setProperty("--columns", most);
        box.classList.toggle("wide", group.chunks === 1);
        const texts = [group.brought.flat(2), group.now.flat()].flat();
        box.classList.toggle("long", texts.some((text) => text.length > 4));
        const made = group.sizes.map((size, chunk) => {
          const cell = element("div", "cell");
          cell.lines = group.brought[own][chunk]?.length || 1;
          fillChunk(cell, null, false, cell.lines);
          if (size) box.append(cell);
          return cell;
        });
        if (step.buckets.length > 1) {
          box.classList.add("named");
          box.title = `bucket of ${step.buckets[group.bucket]}`;
          box.prepend(element("span", "label", step.buckets[group.bucket]));
        }
        rows.set(group.bucket, made);
        body.append(box);
      }
      rows.get(group.bucket).forEach((cell, chunk) => cells.set(cellKey(g, own, chunk), cell));
    });
    shown = "";
  }

  let shown = "";
  function show(step, own, time, scattered, phase) {
    let [word, way] = scattered || time > step.start ? statusAt(step, own, time) : ["", 0];
    if (word === "all-reduce" && way >= 1 && (phase === "barrier" || phase === "optimizer")) word = "barrier";
    progress.firstChild.style.transform = `scaleX(${word ? way.toFixed(3) : 0})`;
    const done = time >= step.end;
    const known = time >= step.countedAt ? step.total : "";
    const key = `${word} ${done} ${scattered} ${known}`;
    if (key === shown) return;
    shown = key;
    status.textContent = { wait: "waits", "": "" }[word] ?? word;
    progress.classList.toggle("wait", word === "wait");
    tokens.classList.toggle("absent", !scattered);
    total.textContent = known;
    const values = done ? step.after : step.before;
    numbers.replaceChildren(...values.map((text) => element("span", "", text)));
    if (step.hidden) numbers.append(element("span", "more", `+${step.hidden}`));
    numbers.classList.toggle("new", done && step.after.join() !== step.before.join());
  }
  return { node, fill, show };
}
