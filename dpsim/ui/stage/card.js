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

// A row of tokens, or a bar where there are many; `ask(node, valid, i)` says of each where it comes from.
function strip(marks, ask = () => {}) {
  const row = element("div", "strip");
  const [valid, all] = marks.includes("/") ? marks.split("/").map(Number) : [0, 0];
  const parts = all ? [[valid, "valid"], [all - valid, "masked"]].filter(([share]) => share) : [...marks].map((mark) => [1, mark === "1" ? "valid" : "masked"]);
  parts.forEach(([share, kind], i) => {
    const part = element("i", kind);
    if (all) part.style.flex = share;
    ask(part, kind, all ? null : i);
    row.append(part);
  });
  return row;
}

// A token of a sequence that a rank has in a micro-batch (or a bar of such tokens) says what it weighs.
function askToken(data, node, kind, rank, k, of, told) {
  const name = `${kind} ${of === null ? "tokens" : `token ${of + 1}`}${told}`;
  fromWhere(node, kind === "valid" ? data.ranks[rank].weights.at(k) : data.origins.masked, name);
  node.setAttribute("aria-label", name);
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
  fromWhere(cell, update ? update.origin : -1);
  cell.className = ["cell", !update && "empty", whole && "whole", texts.length > 1 && "several", small && "small"]
    .filter(Boolean)
    .join(" ");
}

function makeBatch(data, centre) {
  centre.replaceChildren(explain(element("span", "label"), "global batch"));
  const rows = element("div", "rows");
  const dealt = new Map(); // sequence -> where it went, [rank, micro-batch], several times where a sampler repeats it
  data.ranks.forEach((rank, r) =>
    rank.sequences.forEach((cell, k) => cell.forEach((s) => dealt.set(s, [...(dealt.get(s) ?? []), [r, k]]))),
  );
  const most = data.world > 4 ? 8 : 12;
  const made = data.batch.slice(0, most).map((marks, s) => {
    const [[owner, k], ...again] = dealt.get(s) ?? [[0, 0]];
    const told = ` of sequence ${s}${again.length ? `, also dealt to rank ${again.map(([r]) => r).join(", ")}` : ""}`;
    const line = element("div", "", s);
    line.append(strip(marks, (node, kind, i) => askToken(data, node, kind, owner, k, i, told)));
    rows.append(line);
    return { line, owner };
  });
  centre.append(rows);
  const more = data.batch.length - most;
  if (more > 0) centre.append(element("span", "label", `and ${more} more sequences`));
  centre.append(element("b"));
  return made;
}

function makeCard(data, rank, r) {
  const node = element("article", "card");
  const words = (label, text) => (data.world > 4 && r ? ((label.textContent = text), label) : explain(label, text));
  const header = element("header");
  header.append(words(element("b"), `rank ${r}`), fromWhere(element("span", "", rank.says), rank.count));
  const places = rank.sequences.flatMap((cell, k) => cell.flatMap((s) => [...data.batch[s]].map((_, i) => [k, s, i])));
  const marks = rank.sequences.flat().map((s) => data.batch[s]);
  const long = marks.some((m) => m.includes("/")) || marks.join("").length > 24;
  const all = rank.tokens ? (long ? `${rank.valid}/${rank.tokens}` : marks.join("")) : "";
  const tokens = strip(all, (token, kind, n) => {
    const [k, s, i] = n === null ? [-1, null, null] : places[n];
    askToken(data, token, kind, r, k, i, s === null ? ` of rank ${r}` : ` of sequence ${s}`);
  });
  const progress = element("div", "progress");
  progress.append(element("i"));
  const line = element("div", "line");
  const [label, status] = [element("span", "", "parameters"), element("span", "status")];
  line.append(label, status);
  const numbers = element("div", "numbers");
  const chunks = element("div", "line chunks");
  const total = element("span");
  chunks.append(words(element("span"), `${data.travels}, by chunk`), total);
  const body = element("div");
  const shownValues = data.steps[0].before.map(() => numbers.appendChild(element("span")));
  if (data.steps[0].hidden) numbers.append(element("span", "more", `+${data.steps[0].hidden}`));
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
    if (phase === "hang") [word, way] = ["wait", 1];
    progress.firstChild.style.transform = `scaleX(${word ? way.toFixed(3) : 0})`;
    const done = time >= (step.done?.[own] ?? step.end);
    const known = time >= step.countedAt ? step.total : "";
    const key = `${word} ${done} ${scattered} ${known}`;
    if (key === shown) return;
    shown = key;
    status.textContent = { wait: "waits", "": "" }[word] ?? word;
    progress.classList.toggle("wait", word === "wait");
    tokens.classList.toggle("absent", !scattered);
    total.textContent = known;
    fromWhere(total, known ? step.origins.total : -1);
    const { before, after, origins } = step.own?.[own] ?? step; // a replica's own where they differ
    const rows = done ? origins.after : origins.before;
    (done ? after : before).forEach((text, i) => {
      const was = done && (step.ghost?.own?.[own] ?? step.ghost)?.after?.[i];
      shownValues[i].replaceChildren(text, ...(was && was !== text ? [element("s", "was", was)] : []));
      fromWhere(shownValues[i], rows[i]);
    });
    numbers.classList.toggle("new", done && after.join() !== before.join());
  }
  return { node, fill, show };
}
