// The field for up to 16 ranks: a card for every rank on a ring, the batch in the middle, chunks that fly.

function makeCards(root, model) {
  const { data } = model;
  const field = root.querySelector(".field");
  const [centre, tiles, wires] = [".centre", ".tiles", ".wires"].map((name) => field.querySelector(name));
  field.querySelector(".matrix").hidden = true;
  field.classList.toggle("medium", data.world > 4);
  field.classList.toggle("compact", data.world > 8);
  // Room for what the parameters were before a change.
  field.classList.toggle("changed", model.steps.some(({ ghost, after }) => ghost?.after?.some((was, i) => was !== after[i])));
  centre.hidden = tiles.hidden = false;
  field.querySelectorAll(".card").forEach((card) => card.remove());
  const cards = data.ranks.map((rank, r) => makeCard(data, rank, r));
  field.append(...cards.map((card) => card.node));
  const batchRows = makeBatch(data, centre);
  let [state, shownStep, boxes, dark, cells, narrow] = [null, null, [], false, new Map(), false];
  let crowded = false; // messages pass through the batch in the middle
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
    const unit = unitOf(root);
    narrow = width < 560 * unit;
    const world = data.world;
    const card = narrow
      ? Math.min(320, (width - 10) / Math.min(2, world) - 3)
      : { 1: 320, 2: width * 0.34, 3: width * 0.36, 4: width * 0.32 }[world] ||
        width / (world <= 8 ? 3 : 4) - (world <= 8 ? 36 : 30) * unit;
    cards.forEach(({ node }) => (node.style.width = `${card}px`));
    if (!shownStep) return;
    cards.forEach(({ node }) => (node.style.height = ""));
    const tall = Math.max(...cards.map(({ node }) => node.offsetHeight));
    // A cross looks most like a ring, if its arms are short and nothing has to pass through its middle.
    const plus = tall < 200 * unit && centre.offsetHeight < tall && data.collective === "ring";
    const places = slots(world, narrow ? Math.min(2, world) : 0, plus);
    crowded = !narrow && (data.collective !== "ring" || (world === 4 && !plus && centre.offsetHeight > tall));
    const middle = { width: narrow ? width : width - 2 * card - 70 * unit };
    centre.classList.toggle("none", world > 8 && !narrow); // the cards fill the field
    centre.style.width = `${Math.max(120 * unit, Math.min(240 * unit, middle.width))}px`;
    const top = narrow ? centre.offsetHeight + 14 : 0;
    const rows = new Set(places.map(([, y]) => y)).size;
    const gap = unit * (narrow ? 18 : rows === 2 ? 72 : world === 4 ? -16 : world <= 8 ? 40 : 36); // the arms of the cross interlock
    const height = narrow
      ? top + rows * (tall + gap)
      : world === 2
        ? Math.max(tall, centre.offsetHeight + tall / 2 + 44) // the messages pass below the batch
        : Math.max(rows * tall + (rows - 1) * gap, centre.offsetHeight + 20);
    boxes = places.map(([x, y]) => ({
      x: card / 2 + x * (width - card),
      y: narrow ? top + y * (tall + gap) + tall / 2 : world === 2 ? height - tall / 2 : tall / 2 + y * (height - tall),
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
    centre.style.top = narrow ? "0" : `${world === 2 ? 0 : (world === 3 ? height - tall / 2 : height / 2) - centre.offsetHeight / 2}px`;
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
      else cells.forEach((cell) => fillChunk(cell, null, dark, cell.lines));
    });
    const scattered = beat.phase !== "start" && !(beat.phase === "scatter" && !resting && time < model.moments[i]);
    batchRows.forEach((row) => {
      row.line.style.setProperty("--owner", scattered ? rankColour(row.owner, dark) : "var(--muted)");
    });
    cards.forEach((card, r) => card.show(step, r, time, scattered, beat.phase));
    const moving = beat.phase === "reduce" || beat.phase === "gather";
    const known = time >= step.countedAt ? step.total : "";
    centre.lastChild.textContent = moving ? beat.title : known;
    fromWhere(centre.lastChild, known && !moving ? step.origins.total : -1);
    centre.classList.toggle("behind", moving && crowded);
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
    const sums = new Map();
    const ended = ({ end }) => moving && end > before && end <= model.moments[i] && end <= time + 1e-15;
    step.wholes.filter(ended).forEach(({ g, rank, chunk }) => marked.add(cellKey(g, rank, chunk)));
    step.flights.forEach((flight) => {
      const inAir = flight.start <= time && time < flight.end && !settled;
      const recent = ended(flight);
      if (recent) flight.chunks.forEach((chunk) => marked.add(cellKey(flight.g, flight.rank, chunk)));
      if (recent && flight.sum) sums.set(cellKey(flight.g, flight.rank, flight.chunks[0]), flight.sum);
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
      showSum(cell, settled && marked.has(key) ? sums.get(key) : "");
      const g = step.groups.findIndex((group) => group.bucket === bucket && !group.count);
      cell.classList.toggle("focus", moving && settled && marked.has(key) && key === cellKey(g, rank, chunk));
    });
  }

  // Above the number that a cell holds now, the sum that it came from.
  function showSum(cell, sum) {
    const shownSum = cell.firstChild?.tagName === "SMALL" ? cell.firstChild : null;
    if ((shownSum?.textContent ?? "") === (sum ?? "")) return;
    shownSum?.remove();
    if (sum) cell.prepend(element("small", sum.length > 6 ? "long" : "", sum));
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
      [tile.w, tile.h] = [tile.node.offsetWidth, tile.node.offsetHeight];
      if (tile.wire) wires.append(tile.wire);
    }
    const target = boxes[flight.rank];
    const middle = { x: field.clientWidth / 2, y: field.clientHeight / 2 };
    const batch = centre.offsetWidth
      ? { x: centre.offsetLeft + centre.offsetWidth / 2, y: centre.offsetTop + centre.offsetHeight / 2 }
      : middle;
    const [a, b] = anchors(flight.deal ? { ...batch, w: 90, h: 60 } : boxes[flight.source], target, middle);
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
    bar.style.backgroundImage = stripes(flight.inside, dark);
    node.append(bar);
    const [first, last] = [flight.chunks[0], flight.chunks[flight.chunks.length - 1]];
    const name = first === last ? `chunk ${first}` : `chunks ${first}–${last}`;
    const what = group.count ? "count" : group.chunks === 1 ? "vector" : name;
    node.append(element("span", "", flight.twice ? `${what} ×2` : what));
    fromWhere(node, flight.origin, `on its way from rank ${flight.source} to rank ${flight.rank}`);
    return { node, ...wire() };
  }

  function dealTile({ rank }) {
    const node = element("div", "tile deal");
    const first = data.ranks[rank].sequences.flat()[0];
    const row = strip(first === undefined ? "" : data.batch[first]);
    row.style.setProperty("--owner", rankColour(rank, dark));
    node.append(row);
    return { node };
  }

  return { layout, draw, colour };
}
