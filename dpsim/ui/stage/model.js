// The stage's model: from the payload to "what is where at this moment". Pure functions, no DOM.
//
// A position is a number along the list of beats: 4 is at rest on beat 4, 3.5 on the way to it. The first part
// of the way (ARRIVE) covers the time to the beat's moment, the rest holds the finished picture.

const ARRIVE = 0.72;

// An origin's row: title, sentence, what is computed and how in turns, who is in it, beat, what it is made of.
const [TITLE, SAYS, LINES, INSIDE, BEAT, PARTS] = [0, 1, 2, 3, 4, 5];

function prepare(data) {
  const moments = data.beats.map((beat) => beat.moment);
  const index = new Map(data.beats.map((beat, i) => [beat.id, i]));
  const steps = data.steps.map((step, number) => prepareStep(data, step, number));
  return { data, moments, index, steps, last: data.beats.length - 1 };
}

function prepareStep(data, step, number) {
  const time = (i) => data.times[i];
  const lanes = data.ranks.map(() => []);
  const { spans } = data;
  spans.step.forEach((s, i) => {
    if (s !== number) return;
    const span = { kind: spans.kinds[spans.kind[i]], start: time(spans.start[i]), end: time(spans.end[i]) };
    lanes[spans.rank[i]].push(span);
  });
  const updates = [];
  const flights = [];
  const wholes = []; // all-reduces whose messages nobody saw, by rank
  step.groups.forEach((group, g) => {
    group.half = Math.max(1, ...group.round) / 2;
    group.ready.forEach((at, rank) => {
      group.sizes.forEach((size, chunk) => {
        if (!size) return;
        const inside = data.numbers ? oneHot(rank, data.world) : [1, String(rank)];
        const [text, origin] = [group.brought?.[rank][chunk], group.own?.[rank] + chunk];
        updates.push({ at, g, rank, chunk, text, inside, origin, beat: group.own_beats?.[rank] });
      });
    });
    (group.added_up ?? []).forEach(({ rank, at, chunks }, i) => {
      chunks.forEach((text, chunk) => {
        const origin = group.kept[i] + chunk;
        if (group.sizes[chunk]) updates.push({ at, g, rank, chunk, text, inside: oneHot(rank, data.world), origin });
      });
    });
    let flight = null;
    group.round.forEach((round, i) => {
      const [source, rank, chunk] = [group.source[i], group.rank[i], group.chunk[i]];
      const end = time(group.end[i]);
      const [inside, beat, origin] = [data.who[group.inside[i]], group.beats[round], group.made + i];
      updates.push({ at: end, g, rank, chunk, text: group.now?.[i], inside, origin, beat });
      if (source < 0) {
        wholes.push({ g, round, source: rank, rank, chunk, start: time(group.start[i]), end });
        return;
      }
      if (flight && flight.round === round && flight.source === source && flight.rank === rank) {
        if (flight.chunks.includes(chunk)) flight.twice = true;
        else flight.chunks.push(chunk);
        return;
      }
      flight = { g, round, source, rank, chunks: [chunk], start: time(group.start[i]), end };
      flight.text = group.came?.[i];
      flight.sum = group.sums?.[i];
      flight.inside = data.who[group.came_from?.[i]];
      flight.origin = data.origins.rows[origin]?.[PARTS].at(-1); // what came is what the source held
      flights.push(flight);
    });
  });
  updates.sort((a, b) => a.at - b.at);
  const gradient = step.groups.filter((group) => !group.count && group.round.length);
  const entry = Math.min(...gradient.map((group) => time(Math.min(...group.start))), Infinity);
  const lastArrival = Math.max(...step.arrivals);
  const overlaps = step.arrivals.some((arrival) => entry < arrival - 1e-12);
  const countedAt = Math.min(...lanes.map((lane) => lane.find(({ kind }) => kind === "forward")?.start ?? 0));
  const barrier = Math.max(...lanes.flat().filter((span) => span.kind === "barrier").map((span) => span.end));
  // Somebody is idle in the all-reduce where the messages of a rank do not fill it.
  const busy = flights.filter((flight) => flight.end > lastArrival).reduce((sum, f) => sum + 2 * (f.end - f.start), 0);
  const idles = !wholes.length && busy < 2 * lanes.length * (barrier - lastArrival) * 0.999;
  const ghost = ghostOf(data, number);
  return { ...step, ghost, number, lanes, updates, flights, wholes, lastArrival, barrier, idles, overlaps, countedAt };
}

// How a step was before a change; what belongs to a rank only where there were as many ranks.
function ghostOf({ ghost, world }, number) {
  const step = ghost?.steps[number];
  return step && (ghost.world === world ? step : { ...step, arrivals: null, after: null, own: null });
}

function oneHot(rank, world) {
  return "0".repeat(rank) + "1" + "0".repeat(world - rank - 1);
}

// The beat a position belongs to, and the simulated time it stands for.
function beatAt(model, position) {
  return Math.min(model.last, Math.ceil(position - 1e-9));
}

function timeAt(model, position) {
  const i = beatAt(model, position);
  const moment = model.moments[i];
  if (i === 0) return moment;
  const way = Math.min(1, (position - (i - 1)) / ARRIVE);
  const before = Math.min(model.moments[i - 1], moment);
  return way >= 1 ? moment : before + way * (moment - before);
}

// The position at which a time of a step is shown: the inverse, for dragging the timeline's playhead.
function positionAt(model, step, time) {
  const { beats } = model.data;
  let first = beats.findIndex((beat) => beat.step === step);
  for (let i = first; i <= model.last && beats[i].step === step; i++) {
    if (model.moments[i] < time) continue;
    if (i === first) return i;
    const before = model.moments[i - 1];
    const width = model.moments[i] - before;
    return i - 1 + (width > 0 ? Math.max(1e-6, (ARRIVE * (time - before)) / width) : 1);
  }
  first = beats.findLastIndex((beat) => beat.step === step);
  return first;
}

// The beats of the phase around beat i: [first, last]. Looping plays from one before the first.
function phaseAround(model, i) {
  const { beats } = model.data;
  const same = (j) => beats[j]?.phase === beats[i].phase && beats[j].step === beats[i].step;
  let [low, high] = [i, i];
  while (same(low - 1)) low--;
  while (same(high + 1)) high++;
  return [low, high];
}

// Cells that hold something at `time`, kept up to date with as little work as possible. `changed` gets the
// updates that have just come into force; after a jump back everything is told again.
function cellState(step) {
  let done = 0;
  let cells = new Map();
  return {
    cells,
    advance(time, changed) {
      const { updates } = step;
      if (done && updates[done - 1].at > time + 1e-15) {
        done = 0;
        cells.clear();
        changed(null);
      }
      while (done < updates.length && updates[done].at <= time + 1e-15) {
        const update = updates[done++];
        cells.set(cellKey(update.g, update.rank, update.chunk), update);
        changed(update);
      }
    },
  };
}

function cellKey(g, rank, chunk) {
  return (g * 4096 + rank) * 4096 + chunk;
}

// The beat of new data to stand on after `old` (a beat) was shown: the same, or the next best.
function placeOf(model, old) {
  const { beats, first } = model.data;
  const find = (test) => beats.findIndex(test);
  const tries = [
    () => model.index.get(old?.id) ?? -1,
    () => find((beat) => beat.step === old?.step && beat.phase === old?.phase),
    () => find((beat) => beat.phase === old?.phase),
  ];
  for (const attempt of old ? tries : []) if (attempt() >= 0) return attempt();
  return model.index.get(first) ?? 0;
}

// What a rank is doing, or has just done: [word, how far, 0 to 1].
function statusAt(step, rank, time) {
  const lane = step.lanes[rank];
  for (const span of lane) {
    if (span.kind !== "barrier" && span.start < time && time <= span.end) {
      return [span.kind, (time - span.start) / (span.end - span.start)];
    }
  }
  const arrival = step.arrivals[rank];
  const { barrier } = step;
  if (step.hangs && time > arrival) return ["wait", 1]; // for ever
  if (step.done && time > arrival) return ["optimizer", 1]; // it waits for nobody
  if (time > barrier) return ["barrier", 1];
  if (time > arrival && time <= step.lastArrival) return ["wait", (time - arrival) / (step.lastArrival - arrival)];
  if (time > arrival) return ["all-reduce", (time - step.lastArrival) / (barrier - step.lastArrival || 1)];
  if (time > step.start && time <= step.countedAt) return ["count", 1];
  const past = lane.filter((span) => span.end <= time + 1e-15);
  return past.length ? [past[past.length - 1].kind, 1] : ["", 0];
}
