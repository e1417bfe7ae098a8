// The field for up to 16 ranks: a card for every rank on a ring, the batch in the middle, chunks that fly.

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

// A row of segments, one per rank, coloured where the rank has contributed (and striped where it did twice).
function stripes(inside, dark) {
  const width = 100 / inside.length;
  const stops = [];
  [...inside].forEach((times, rank) => {
    if (times === "0") return;
    const [from, to] = [rank * width, (rank + 1) * width];
    const gap = inside.length > 8 ? 0 : 1;
    stops.push(`transparent ${from}%`, `${rankColour(rank, dark)} ${from}% calc(${to}% - ${gap}px)`);
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

function fillChunk(cell, update, dark) {
  const texts = update ? update.text : ["·"];
  cell.replaceChildren(...texts.map((text) => element("b", "", text)));
  const bar = element("span", "stripes");
  if (update) bar.style.backgroundImage = stripes(update.inside, dark);
  cell.append(bar);
  cell.classList.toggle("empty", !update);
  cell.classList.toggle("whole", Boolean(update) && [...update.inside].every((times) => times === "1"));
  cell.classList.toggle("several", texts.length > 1);
  cell.classList.toggle("small", texts.some((text) => text.length > 4));
}

// Where the cards stand: [x, y] of every card's centre as fractions, by the number of ranks.
function slots(world, columns, plus) {
  if (columns) {
    return Array.from({ length: world }, (_, rank) => {
      const row = Math.floor(rank / columns);
      const place = row % 2 ? columns - 1 - (rank % columns) : rank % columns; // a snake keeps neighbours close
      return [columns === 1 ? 0.5 : place / (columns - 1), row];
    });
  }
  if (world === 1) return [[0.5, 0.5]];
  if (world === 2) return [[0, 0.5], [1, 0.5]];
  if (world === 3) return [[0.5, 0], [1, 1], [0, 1]];
  if (world === 4 && plus) return [[0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5]];
  const side = world === 4 ? 1 : world <= 8 ? 2 : world <= 12 ? 3 : 4; // the rim of a grid, walked clockwise
  const rim = [];
  for (let i = 0; i < side; i++) rim.push([i / side, 0]);
  for (let i = 0; i < side; i++) rim.push([1, i / side]);
  for (let i = 0; i < side; i++) rim.push([1 - i / side, 1]);
  for (let i = 0; i < side; i++) rim.push([0, 1 - i / side]);
  return Array.from({ length: world }, (_, rank) => rim[Math.round((rank * rim.length) / world)]);
}

function makeCards(root, model) {
  const { data } = model;
  const field = root.querySelector(".field");
  const [centre, tiles, wires] = [".centre", ".tiles", ".wires"].map((name) => field.querySelector(name));
  field.querySelector(".matrix").hidden = true;
  field.classList.toggle("medium", data.world > 4);
  field.classList.toggle("compact", data.world > 8);
  centre.hidden = tiles.hidden = false;
  field.querySelectorAll(".card").forEach((card) => card.remove());
  const cards = data.ranks.map((rank, r) => makeCard(data, rank, r));
  field.append(...cards.map((card) => card.node));
  const batchRows = makeBatch(data, centre);
  let [state, shownStep, boxes, dark, cells, narrow] = [null, null, [], false, new Map(), false];
  const live = new Map(); // flight -> tile

  function rebuild(step) {
    shownStep = step;
    state = cellState(step);
    cells = new Map();
    cards.forEach((card, r) => card.fill(step, r, cells));
    tiles.replaceChildren();
    wires.replaceChildren();
    live.clear();
  }

  function layout(width) {
    narrow = width < 560;
    const world = data.world;
    const card = narrow
      ? Math.min(320, (width - 10) / Math.min(2, world) - 3)
      : { 1: 320, 2: width * 0.34, 3: width * 0.36, 4: width * 0.335 }[world] ||
        width / (world <= 8 ? 3 : world <= 12 ? 4 : 5) - (world <= 8 ? 36 : 16);
    cards.forEach(({ node }) => (node.style.width = `${card}px`));
    if (!shownStep) return;
    cards.forEach(({ node }) => (node.style.height = ""));
    const tall = Math.max(...cards.map(({ node }) => node.offsetHeight));
    // A cross looks most like a ring, if its arms are short and nothing has to pass through its middle.
    const plus = tall < 185 && data.collective === "ring";
    const places = slots(world, narrow ? Math.min(2, world) : 0, plus);
    const middle = { width: narrow ? width : width - 2 * card - 70 };
    centre.style.width = `${Math.max(120, Math.min(240, middle.width))}px`;
    const top = narrow ? centre.offsetHeight + 14 : 0;
    const rows = new Set(places.map(([, y]) => y)).size;
    const gap = narrow ? 18 : rows === 2 ? 66 : world === 4 ? 2 : world <= 8 ? 40 : 16;
    const height = narrow
      ? top + rows * (tall + gap)
      : Math.max(rows * tall + (rows - 1) * gap, centre.offsetHeight + 20);
    boxes = places.map(([x, y]) => ({
      x: card / 2 + x * (width - card),
      y: narrow ? top + y * (tall + gap) + tall / 2 : tall / 2 + y * (height - tall),
      w: card,
      h: tall,
    }));
    if (world === 1) boxes[0].x = narrow ? width / 2 : width - card / 2 - 20;
    cards.forEach(({ node }, r) => {
      node.style.height = `${tall}px`;
      node.style.left = `${boxes[r].x - card / 2}px`;
      node.style.top = `${boxes[r].y - tall / 2}px`;
    });
    field.style.height = `${height}px`;
    const centreX = world === 1 && !narrow ? 140 : width / 2;
    centre.style.left = `${centreX - centre.offsetWidth / 2}px`;
    centre.style.top = narrow ? "0" : `${(world === 3 ? height - tall / 2 : height / 2) - centre.offsetHeight / 2}px`;
  }

  function colour(isDark) {
    dark = isDark;
    cards.forEach(({ node }, r) => node.style.setProperty("--rank", rankColour(r, dark)));
    if (shownStep) rebuild(shownStep);
  }

  function draw(position, resting) {
    const i = beatAt(model, position);
    const beat = data.beats[i];
    const step = model.steps[beat.step];
    if (step !== shownStep) {
      rebuild(step);
      layout(field.clientWidth);
    }
    const time = timeAt(model, position);
    state.advance(time, (update) => {
      if (update) paint(update);
      else cells.forEach((cell) => fillChunk(cell, null, dark));
    });
    const scattered = beat.phase !== "start" && !(beat.phase === "scatter" && !resting && time < model.moments[i]);
    batchRows.forEach((row) => {
      row.line.style.setProperty("--owner", scattered ? rankColour(row.owner, dark) : "var(--muted)");
    });
    cards.forEach((card, r) => card.show(step, r, time, scattered));
    const moving = beat.phase === "reduce" || beat.phase === "gather";
    const known = time >= step.countedAt ? step.total : "";
    centre.lastChild.textContent = moving ? beat.title : known;
    centre.classList.toggle("behind", moving && data.collective !== "ring" && !narrow);
    drawFlights(step, i, time, resting);
  }

  function paint(update) {
    const cell = cells.get(cellKey(update.g, update.rank, update.chunk));
    if (cell) fillChunk(cell, update, dark);
  }

  function drawFlights(step, i, time, resting) {
    const beat = data.beats[i];
    const before = i ? model.moments[i - 1] : -Infinity;
    const moving = beat.phase === "reduce" || beat.phase === "gather";
    const settled = resting || time >= model.moments[i];
    const shown = new Set();
    const marked = new Set();
    step.flights.forEach((flight) => {
      const inAir = flight.start <= time && time < flight.end && !settled;
      const recent = moving && flight.end > before && flight.end <= model.moments[i] && flight.end <= time + 1e-15;
      if (recent) flight.chunks.forEach((chunk) => marked.add(cellKey(flight.g, flight.rank, chunk)));
      if (!inAir && !(recent && settled && !step.groups[flight.g].count)) return;
      shown.add(flight);
      place(flight, inAir ? (time - flight.start) / (flight.end - flight.start) : null);
    });
    if (beat.phase === "scatter" && !settled) {
      step.lanes.forEach((lane, rank) => {
        const span = lane.find(({ kind }) => kind === "scatter");
        if (!span || span.end <= span.start || time >= span.end) return;
        const deal = dealOf(rank);
        shown.add(deal);
        place(deal, (time - span.start) / (span.end - span.start));
      });
    }
    live.forEach((tile, flight) => {
      if (shown.has(flight)) return;
      tile.node.remove();
      tile.wire?.remove();
      live.delete(flight);
    });
    const [rank, , bucket, chunk] = beat.focus || [];
    cells.forEach((cell, key) => {
      cell.classList.toggle("moved", marked.has(key));
      const g = step.groups.findIndex((group) => group.bucket === bucket && !group.count);
      cell.classList.toggle("focus", moving && settled && marked.has(key) && key === cellKey(g, rank, chunk));
    });
  }

  const deals = new Map();
  function dealOf(rank) {
    if (!deals.has(rank)) deals.set(rank, { deal: true, rank, source: -1 });
    return deals.get(rank);
  }

  // A flight's path runs from edge to edge of its two cards; at rest the tile stands in the middle of it.
  function place(flight, way) {
    let tile = live.get(flight);
    if (!tile) {
      tile = flight.deal ? dealTile(flight) : makeTile(flight);
      live.set(flight, tile);
      tiles.append(tile.node);
      if (tile.wire) wires.append(tile.wire);
    }
    const target = boxes[flight.rank];
    const origin = flight.deal
      ? { x: centre.offsetLeft + centre.offsetWidth / 2, y: centre.offsetTop + centre.offsetHeight / 2, w: 90, h: 60 }
      : boxes[flight.source];
    const [a, b] = anchors(origin, target, { x: field.clientWidth / 2, y: field.clientHeight / 2 });
    if (tile.wire) tile.draw(a, b);
    const paired = !flight.deal && answered(flight);
    const stop = paired ? 0.3 : 0.5;
    const p = way === null ? stop : ease(way);
    tile.node.classList.toggle("flying", way !== null);
    tile.node.hidden = narrow && way === null; // no room beside the cards: the wire and the marked cell stay
    const [x, y] = [a.x + (b.x - a.x) * p, a.y + (b.y - a.y) * p];
    const { w, h } = tile;
    tile.node.style.transform = `translate(${(x - w / 2).toFixed(1)}px, ${(y - h / 2).toFixed(1)}px)`;
  }

  function answered(flight) {
    return shownStep.flights.some(
      (other) => other.g === flight.g && other.round === flight.round && other.source === flight.rank && other.rank === flight.source,
    );
  }

  function makeTile(flight) {
    const node = element("div", "tile");
    const group = shownStep.groups[flight.g];
    const several = flight.chunks.length > 1 || flight.text.length > 2;
    const texts = several ? [flight.text[0], "…"] : flight.text;
    texts.forEach((text) => node.append(element("b", "", text)));
    const bar = element("span", "stripes");
    bar.style.cssText = "position: static";
    bar.style.backgroundImage = stripes(flight.inside, dark);
    node.append(bar);
    const [first, last] = [flight.chunks[0], flight.chunks[flight.chunks.length - 1]];
    const name = first === last ? `chunk ${first}` : `chunks ${first}–${last}`;
    node.append(element("span", "", group.count ? "count" : group.chunks === 1 ? "vector" : name));
    const size = data.world > 4 ? [42, 34] : [52, 44];
    return { node, w: size[0], h: size[1], ...wire() };
  }

  function dealTile({ rank }) {
    const node = element("div", "tile deal");
    const first = data.ranks[rank].sequences.flat()[0];
    const row = strip(first === undefined ? "" : data.batch[first]);
    row.style.setProperty("--owner", rankColour(rank, dark));
    node.append(row);
    return { node, w: 84, h: 26 };
  }

  return { layout, draw, colour };
}

function ease(way) {
  return way < 0.5 ? 2 * way * way : 1 - 2 * (1 - way) * (1 - way);
}

// The two side midpoints between which a message travels: near each other, facing each other, and rather on
// the outside of the ring than through its middle.
function anchors(from, to, middle) {
  let best = null;
  for (const [ax, ay] of SIDES) {
    const a = { x: from.x + ax * (from.w / 2 + 5), y: from.y + ay * (from.h / 2 + 5) };
    for (const [bx, by] of SIDES) {
      const b = { x: to.x + bx * (to.w / 2 + 5), y: to.y + by * (to.h / 2 + 5) };
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const facing = (ax * dx + ay * dy > 0 ? 0 : 2000) + (bx * dx + by * dy < 0 ? 0 : 2000);
      const outside = Math.hypot((a.x + b.x) / 2 - middle.x, (a.y + b.y) / 2 - middle.y);
      const cost = Math.hypot(dx, dy) + facing - 0.3 * outside;
      if (!best || cost < best.cost) best = { cost, a, b };
    }
  }
  return [best.a, best.b];
}
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1]];

function wire() {
  const space = "http://www.w3.org/2000/svg";
  const group = document.createElementNS(space, "g");
  const [line, head] = ["line", "path"].map((tag) => group.appendChild(document.createElementNS(space, tag)));
  let last = "";
  const draw = (a, b) => {
    const key = `${a.x} ${a.y} ${b.x} ${b.y}`;
    if (key === last) return;
    last = key;
    line.setAttribute("x1", a.x);
    line.setAttribute("y1", a.y);
    line.setAttribute("x2", b.x);
    line.setAttribute("y2", b.y);
    const turn = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
    head.setAttribute("d", "M0 0 L-9 -4.5 L-9 4.5 Z");
    head.setAttribute("transform", `translate(${b.x} ${b.y}) rotate(${turn})`);
  };
  return { wire: group, draw };
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
  header.append(element("b", "", `rank ${r}`), element("span", "", `${rank.valid} valid of ${rank.tokens} tokens`));
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
  chunks.append(element("span", "", "gradient, by chunk"), total);
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
        const made = group.sizes.map((size) => {
          const cell = element("div", "cell");
          fillChunk(cell, null, false);
          if (size) box.append(cell);
          return cell;
        });
        box.title = step.buckets.length > 1 ? `bucket of ${step.buckets[group.bucket]}` : "";
        rows.set(group.bucket, made);
        body.append(box);
      }
      rows.get(group.bucket).forEach((cell, chunk) => cells.set(cellKey(g, own, chunk), cell));
    });
    shown = "";
  }

  let shown = "";
  function show(step, own, time, scattered) {
    const [word, way] = scattered || time > step.start ? statusAt(step, own, time) : ["", 0];
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
