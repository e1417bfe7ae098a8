// The field above 16 ranks, on a canvas: the ranks on a circle with the messages between them, and a matrix of
// ranks by chunks, fuller the more ranks are in a chunk. No numbers: nobody could read them.

function makeMatrix(root, model) {
  const { data } = model;
  const field = root.querySelector(".field");
  const canvas = field.querySelector(".matrix");
  field.querySelectorAll(".card").forEach((card) => card.remove());
  field.querySelector(".centre").hidden = field.querySelector(".tiles").hidden = true;
  field.querySelector(".wires").replaceChildren();
  canvas.hidden = false;
  const about =
    `${data.world} ranks on a ring, and a matrix of ranks by chunks: the fuller a cell, the more ranks are in it. ` +
    "The arrow keys choose a cell, Enter says who is in it.";
  canvas.setAttribute("aria-label", about);
  fromWhere(canvas, 0);
  const context = canvas.getContext("2d");
  let [shownStep, state, columns, dirty] = [null, null, null, true];
  let [width, height, scale, ink, paper, unit] = [0, 0, 1, "#000", "#fff", 1];
  let [cursor, position] = [[0, 0], 0]; // the cell that the arrow keys have chosen, [column, rank]
  const cellsLayer = document.createElement("canvas");

  function rebuild(step) {
    shownStep = step;
    state = cellState(step);
    columns = new Map(); // group -> first column
    const byBucket = new Map();
    let next = 0;
    step.groups.forEach((group, g) => {
      if (group.count) return;
      if (!byBucket.has(group.bucket)) {
        byBucket.set(group.bucket, next);
        next += group.sizes.filter(Boolean).length; // a chunk without elements has no column
      }
      columns.set(g, byBucket.get(group.bucket));
    });
    columns.total = Math.max(1, next);
    dirty = true;
  }

  function layout(available) {
    const stacked = available < 620;
    unit = unitOf(root);
    const side = stacked ? available : Math.min(available / 2 - 20, 460 * unit);
    width = available;
    height = stacked ? side * 2 + 64 : side + 56;
    scale = Math.min(2, window.devicePixelRatio || 1);
    for (const [c, w, h] of [[canvas, width, height], [cellsLayer, side, side]]) {
      c.width = Math.round(w * scale);
      c.height = Math.round(h * scale);
    }
    canvas.style.height = `${height}px`;
    field.style.height = `${height}px`;
    geometry = {
      circle: { x: side / 2, y: side / 2 + 24, r: side / 2 - 14 },
      matrix: stacked ? { x: 34, y: side + 60, w: side - 40, h: side - 40 } : { x: side + 66, y: 24, w: side - 32, h: side - 2 },
    };
    if (shownStep) rebuild(shownStep);
  }
  let geometry = null;

  function colour(_, colours) {
    ({ ink, paper } = colours);
    if (shownStep) rebuild(shownStep);
  }

  function draw(to) {
    position = to;
    const i = beatAt(model, position);
    const beat = data.beats[i];
    const step = model.steps[beat.step];
    if (step !== shownStep) rebuild(step);
    const time = timeAt(model, position);
    const layer = cellsLayer.getContext("2d");
    const wipe = () => layer.clearRect(0, 0, cellsLayer.width, cellsLayer.height);
    if (dirty) wipe();
    dirty = false;
    state.advance(time, (update) => (update ? paint(layer, update) : wipe()));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    drawCircle(step, time);
    drawMatrix();
  }

  function paint(layer, update) {
    if (!columns.has(update.g)) return;
    const w = cellsLayer.width / columns.total;
    const h = cellsLayer.height / data.world;
    const x = (columns.get(update.g) + update.chunk) * w;
    const y = update.rank * h;
    const share = update.inside[0] / data.world;
    const gap = w > 4 && h > 4 ? 1 : 0;
    layer.clearRect(x, y, w, h);
    layer.globalAlpha = 0.1 + 0.9 * share;
    layer.fillStyle = ink;
    layer.fillRect(x, y, w - gap, h - gap);
    layer.globalAlpha = 1;
    if (share === 1 && w > 3 && h > 3) {
      // complete: told by shape too
      layer.fillStyle = paper;
      layer.fillRect(x + (w - gap) / 2 - 1, y + (h - gap) / 2 - 1, 2, 2);
    }
  }

  function point(rank) {
    const angle = (rank / data.world) * 2 * Math.PI - Math.PI / 2;
    const { x, y, r } = geometry.circle;
    return [x + r * Math.cos(angle), y + r * Math.sin(angle)];
  }

  function drawCircle(step, time) {
    const size = Math.max(2.5, Math.min(6, 190 / data.world));
    context.fillStyle = ink;
    context.font = `${12 * unit}px system-ui, sans-serif`;
    context.textAlign = "center";
    const { x, y } = geometry.circle;
    context.fillText(`${data.world} ranks`, x, 12);
    for (let rank = 0; rank < data.world; rank++) {
      const [px, py] = point(rank);
      const [word, way] = statusAt(step, rank, time);
      context.beginPath();
      context.arc(px, py, size, 0, 2 * Math.PI);
      context.globalAlpha = word === "wait" ? 0.25 : word === "forward" || word === "backward" ? 0.35 + 0.65 * way : 1;
      context.fill();
      context.globalAlpha = 1;
      if (rank % Math.ceil(data.world / 16) === 0) {
        const out = 0.9;
        context.fillText(rank, x + (px - x) * out, y + (py - y) * out + 4);
      }
    }
    context.fillStyle = context.strokeStyle = accent(root);
    for (const flight of step.flights) {
      if (!(flight.start <= time && time < flight.end)) continue;
      const [a, b] = [point(flight.source), point(flight.rank)];
      const way = (time - flight.start) / (flight.end - flight.start);
      context.globalAlpha = 0.35;
      context.beginPath();
      context.moveTo(...a);
      context.lineTo(...b);
      context.stroke();
      context.globalAlpha = 1;
      context.beginPath();
      context.arc(a[0] + (b[0] - a[0]) * way, a[1] + (b[1] - a[1]) * way, size * 0.8, 0, 2 * Math.PI);
      context.fill();
    }
  }

  function drawMatrix() {
    const { x, y, w, h } = geometry.matrix;
    context.strokeStyle = context.fillStyle = ink;
    context.globalAlpha = 0.25;
    context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
    context.globalAlpha = 1;
    context.drawImage(cellsLayer, x, y, w, h);
    if (canvas.matches(":focus-visible, .asked")) {
      const [cw, ch] = [w / columns.total, h / data.world];
      context.strokeStyle = accent(root);
      context.lineWidth = 2;
      context.strokeRect(x + cursor[0] * cw - 1, y + cursor[1] * ch - 1, cw + 2, ch + 2);
      context.lineWidth = 1;
    }
    context.textAlign = "left";
    context.font = `${11 * unit}px system-ui, sans-serif`;
    context.fillText("chunk →  fuller: more ranks in it, dot: complete", x, y - 8);
    context.textAlign = "right";
    for (const rank of [0, data.world - 1]) context.fillText(rank, x - 6, y + ((rank + 0.5) / data.world) * h + 4);
    context.textAlign = "center";
    context.save();
    context.translate(x - 12, y + h / 2);
    context.rotate(-Math.PI / 2);
    context.fillText("rank", 0, 0);
    context.restore();
  }

  // The words of a cell: who is in that chunk there, and since which beat.
  function ask([column, rank]) {
    const updates = [...columns].flatMap(([g, first]) => state.cells.get(cellKey(g, rank, column - first)) ?? []);
    const update = updates.sort((a, b) => a.at - b.at).at(-1);
    const several = shownStep.buckets.length > 1 && update;
    const [bucket, chunk] = update ? [shownStep.groups[update.g].bucket, update.chunk] : [0, column];
    const [count, which] = update?.inside ?? [0, ""];
    const says = {
      0: "Nothing yet: this rank has no gradient here.",
      1: `Only rank ${which} is in it: its own gradient.`,
      [data.world]: `Finished: all ${data.world} ranks are in it.`,
    };
    const title = `${several ? `Bucket ${bucket + 1}, chunk` : "Chunk"} ${chunk} on rank ${rank}`;
    const words = says[count] ?? `${count} of ${data.world} ranks are in it: ${which}.`;
    canvas.setAttribute("aria-label", `${title}: ${words}`);
    return { title, says: words, pairs: [], inside: "", beat: update?.beat ?? -1, parts: [] };
  }

  canvas.onclick = ({ clientX, clientY }) => {
    const box = canvas.getBoundingClientRect();
    const { x, y, w, h } = geometry.matrix;
    const across = (((clientX - box.left) * width) / box.width - x) / w;
    const down = (((clientY - box.top) * height) / box.height - y) / h;
    const hit = Math.min(across, down) >= 0 && Math.max(across, down) < 1;
    if (hit) cursor = [Math.floor(across * columns.total), Math.floor(down * data.world)];
    canvas.askedFor = hit ? ask(cursor) : null;
  };
  canvas.arrow = (key) => {
    const [dx, dy] = AHEAD[key];
    const within = (at, count) => Math.max(0, Math.min(count - 1, at));
    cursor = [within(cursor[0] + dx, columns.total), within(cursor[1] + dy, data.world)];
    canvas.askedFor = ask(cursor);
    draw(position);
  };
  canvas.onfocus = () => (canvas.askedFor = ask(cursor)) && draw(position);
  canvas.onblur = () => draw(position);
  return { layout, draw, colour };
}

function accent(root) {
  return getComputedStyle(root.querySelector(".stage")).getPropertyValue("--accent").trim() || "#d9363e";
}
