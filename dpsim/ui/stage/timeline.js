// The timeline: one lane a rank, drawn once a step on a canvas, with a playhead that can be dragged.

// Phases are told apart by lightness and texture, never by hue: [name, share of ink].
const SHADES = { scatter: 0.1, count: 0.28, forward: 0.18, backward: 0.34, reduce: 0.76, gather: 0.54, optimizer: 1 };

// A share of ink on paper, opaque, so that pieces that lie on each other look like one.
function mixed({ ink, paper }, share) {
  const [a, b] = [channels(ink), channels(paper)];
  return `rgb(${a.map((v, i) => Math.round(v * share + b[i] * (1 - share))).join(" ")})`;
}

function makeTimeline(root, model, seek) {
  const { data } = model;
  const box = root.querySelector(".lanes");
  const canvas = box.querySelector("canvas");
  const playhead = box.querySelector(".playhead");
  const legend = root.querySelector(".legend");
  const labels = Object.fromEntries(data.phases.map(({ key, label }) => [key, label.toLowerCase()]));
  let [shown, width, height, colours] = [null, 0, 0, { ink: "#000", paper: "#fff", dark: false }];
  let [unit, gutter, all] = [1, 22, 300]; // of a pixel at the usual size; the height of all lanes

  const laneHeight = () => Math.max(data.present ? 2 : 4, Math.min(30 * unit, Math.floor(all / data.world)));
  const gap = () => (laneHeight() > 12 ? Math.min(12 * unit, laneHeight() * 0.4) : laneHeight() > 7 ? 3 : 1);

  function layout(available) {
    unit = unitOf(root);
    gutter = (data.world > 16 ? 26 : 22) * unit;
    all = (data.present ? 100 : 300) * unit;
    width = available;
    height = data.world * (laneHeight() + gap()) + 22 * unit;
    const scale = Math.min(2, window.devicePixelRatio || 1);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    playhead.style.height = `${height - 20 * unit}px`;
    canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    if (shown) paint();
  }

  // One scale for now and before: lengths compare.
  const lasts = (step) => step.end - step.start;
  const long = () => Math.max(lasts(shown), shown.ghost ? lasts(shown.ghost) : 0) || 1;
  const x = (time) => gutter + ((time - shown.start) / long()) * (width - gutter - 2);

  function paint() {
    const context = canvas.getContext("2d");
    const tall = laneHeight();
    const top = (rank) => rank * (tall + gap());
    context.clearRect(0, 0, width, height);
    const hatch = hatching(context);
    const block = (rank, from, to, shade, part = [0, 1]) => {
      const [a, b] = [x(from), x(to)];
      context.fillStyle = shade === "hatch" ? hatch : mixed(colours, shade);
      const inset = b - a > 3 ? 1 : 0;
      context.fillRect(a, top(rank) + part[0] * tall, Math.max(0.6, b - a - inset), (part[1] - part[0]) * tall);
    };
    const [work, talk] = shown.overlaps ? [[0, 0.56], [0.6, 1]] : [[0, 1], [0, 1]];
    data.ranks.forEach((_, rank) => {
      for (const span of shown.lanes[rank]) {
        if (span.end <= span.start) continue;
        if (span.kind !== "barrier") block(rank, span.start, span.end, SHADES[span.kind], work);
      }
      const idle = (talk[0] + talk[1]) / 2;
      const thin = Math.max(0.04, 0.8 / tall);
      const waited = !shown.hangs && !shown.done; // else for ever, or not at all
      if (waited) block(rank, shown.lastArrival, shown.barrier, SHADES.scatter * 2.5, [idle - thin, idle + thin]);
      if (shown.hangs) block(rank, shown.arrivals[rank], shown.end, "hatch", work);
      if (waited && shown.arrivals[rank] < shown.lastArrival) block(rank, shown.arrivals[rank], shown.lastArrival, "hatch", work);
      if (tall >= 12 || rank % Math.ceil(12 / tall) === 0) {
        context.fillStyle = colours.ink;
        context.font = `600 ${Math.min(13 * unit, tall + 3)}px system-ui, sans-serif`;
        context.textBaseline = "middle";
        context.fillText(rank, (tall >= 12 ? 8 : 6) * unit, top(rank) + tall / 2);
      }
      if (data.numbers) {
        context.fillStyle = rankColour(rank, colours.dark);
        context.fillRect(0, top(rank), 4 * unit, tall);
      }
    });
    [...shown.flights, ...shown.wholes].forEach((flight) => {
      const group = shown.groups[flight.g];
      const adds = flight.round < group.half;
      const shade = group.count ? SHADES.count : adds ? SHADES.reduce : SHADES.gather;
      for (const rank of [flight.source, flight.rank]) block(rank, flight.start, flight.end, shade, talk);
    });
    paintGhost(context, top, tall);
    context.font = `${(data.present ? 12 : 11) * unit}px system-ui, sans-serif`;
    context.globalAlpha = 0.75;
    context.fillStyle = colours.ink;
    context.textBaseline = "alphabetic";
    shown.ticks.forEach(([at, text], i) => {
      const place = x(shown.start + at);
      context.textAlign = i === 0 ? "left" : place > width - 30 * unit ? "right" : "center";
      context.fillRect(place, height - 19 * unit, 1, 4);
      context.fillText(text, Math.min(place, width), height - 4);
    });
    context.globalAlpha = 1;
    context.textAlign = "left";
    canvas.setAttribute("aria-label", `Timeline of ${data.world} ranks, ${shown.summary}`);
  }

  // How it was before a change: hollow up to each rank's arrival, and a line at the end of the step.
  function paintGhost(context, top, tall) {
    const { ghost } = shown;
    if (!ghost) return;
    const at = (time) => x(shown.start + time - ghost.start);
    context.save();
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.setLineDash([5, 3]);
    const out = Math.min(3, gap() / 2 - 0.5);
    ghost.arrivals?.forEach((arrival, rank) => {
      context.strokeRect(gutter, top(rank) - out, at(arrival) - gutter, tall + 2 * out);
    });
    context.beginPath();
    context.moveTo(at(ghost.end) - 0.75, 0);
    context.lineTo(at(ghost.end) - 0.75, height - 20 * unit);
    context.stroke();
    context.restore();
  }

  function hatching(context) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colours.ink;
    pen.globalAlpha = 0.6;
    pen.lineWidth = 1.1;
    pen.beginPath();
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift, 6);
      pen.lineTo(shift + 6, 0);
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  function paintLegend() {
    const has = (kind) => shown.lanes.some((lane) => lane.some((span) => span.kind === kind));
    const sends = (count) => [...shown.flights, ...shown.wholes].some((flight) => shown.groups[flight.g].count === count);
    const talking = { count: true, reduce: true, gather: true };
    const kinds = Object.keys(SHADES).filter((kind) => kind in labels && (talking[kind] ? sends(kind === "count") : has(kind)));
    const entries = kinds.map((kind) => {
      const entry = element("span", "", "");
      const swatch = element("i");
      swatch.style.background = mixed(colours, SHADES[kind]);
      entry.append(swatch, explain(element("span"), labels[kind]));
      return entry;
    });
    const wait = element("span");
    wait.append(element("i", "hatch"), explain(element("span"), shown.hangs ? "waits for ever" : "waits for the last rank"));
    const idle = element("span");
    const line = element("i", "thin");
    line.style.background = mixed(colours, SHADES.scatter * 2.5);
    idle.append(line, explain(element("span"), "idle in the all-reduce"));
    const before = element("span", "before");
    before.append(element("i"), `before the change: ${shown.ghost?.summary}`);
    const more = [...(shown.groups.length && shown.idles ? [idle] : []), ...(shown.ghost ? [before] : [])];
    legend.replaceChildren(...entries, ...(shown.done ? [] : [wait]), ...more);
  }

  function colour(dark, found) {
    colours = { ...found, dark };
    if (!shown) return;
    paint();
    paintLegend();
  }

  function draw(position) {
    const i = beatAt(model, position);
    const step = model.steps[data.beats[i].step];
    if (step !== shown) {
      shown = step;
      paint();
      paintLegend();
      const summary = root.querySelector(".summary");
      const which = data.steps.length > 1 ? `step ${step.number + 1} of ${data.steps.length} · ` : "";
      summary.textContent = which + step.summary;
      fromWhere(summary, step.origins.summary);
      explain(root.querySelector(".late"), step.late);
    }
    playhead.style.transform = `translateX(${x(timeAt(model, position)).toFixed(1)}px)`;
  }

  const drag = (event) => {
    const share = (event.clientX - box.getBoundingClientRect().left - gutter) / (width - gutter - 2);
    const time = shown.start + Math.min(lasts(shown), Math.max(0, share) * long());
    seek(positionAt(model, shown.number, time), false);
  };
  box.onpointerdown = (event) => {
    if (event.button) return;
    box.setPointerCapture(event.pointerId);
    box.onpointermove = drag;
    drag(event);
  };
  box.onpointerup = box.onpointercancel = () => {
    if (box.onpointermove) seek(null, true);
    box.onpointermove = null;
  };
  return { layout, draw, colour };
}
