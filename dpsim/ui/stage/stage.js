// The controller: playback, keys, and the text beside the picture. It tells Python only when playback stops.

const stages = new WeakMap();

function createStage(root, report) {
  const find = (name) => root.querySelector(name);
  const stage = find(".stage");
  const range = find(".scrub input");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  let [data, model, views] = [null, null, []];
  let [position, goal, looping, frame, previous] = [0, null, null, 0, 0]; // looping: a beat of the phase
  let [said, width, walking] = [-1, 0, false];

  // `goal` is where playback is heading: null when it rests.
  function seek(to, done = true) {
    if (to !== null) position = Math.max(0, Math.min(model.last, to));
    goal = null;
    if (done) {
      position = beatAt(model, position);
      commit();
    }
    draw();
  }

  function commit() {
    const { id } = data.beats[position];
    report(id);
    const url = new URL(window.location.href);
    if (url.searchParams.get("beat") === id || !/^https?:$/.test(url.protocol)) return;
    if (position) url.searchParams.set("beat", id);
    else url.searchParams.delete("beat");
    window.history.replaceState(window.history.state, "", url);
  }

  function play() {
    if (goal === model.last || looping !== null) return seek(null);
    if (position >= model.last) position = 0;
    run(model.last);
  }

  function toggle() {
    if (goal !== null) seek(null);
    else if (still.matches) step(1);
    else play();
  }

  function run(to, onFoot = false) {
    goal = to;
    walking = onFoot;
    previous = 0;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(tick);
    draw();
  }

  // A step on is walked, a step back jumps; a second press before the first has arrived skips to its end.
  function step(by) {
    const from = goal === null ? position : walking ? goal : beatAt(model, position);
    const to = Math.max(0, Math.min(model.last, Math.round(from) + by));
    if (by < 0 || still.matches || goal !== null || to === position) return seek(to);
    run(to, true);
  }

  function tick(now) {
    if (goal === null || !root.isConnected) return;
    const seconds = previous ? Math.min(0.1, (now - previous) / 1000) : 0;
    previous = now;
    const beat = model.last > 60 ? 0.6 : 2.4; // seconds: time to read the sentence
    const speed = Number(find(".speed").value) * (walking ? 2 : 1);
    position = Math.min(goal, position + (seconds * speed) / beat);
    if (looping !== null) {
      const [first, last] = phaseAround(model, looping);
      if (position >= last) position = Math.max(0, first - 1);
    } else if (position >= goal) {
      goal = null;
      commit();
    }
    draw();
    if (goal !== null) frame = requestAnimationFrame(tick);
  }

  function draw() {
    const resting = goal === null;
    const i = beatAt(model, position);
    views.forEach((view) => view.draw(position, resting && position === i));
    range.value = position;
    find(".ticks").style.setProperty("--done", model.last ? position / model.last : 1);
    find(".play span").textContent = resting ? "Play" : "Pause";
    find(".play path").setAttribute("d", resting ? "m4 2 10 6-10 6z" : "M3 2h3.5v12H3z M9.5 2H13v12H9.5z");
    find(".loop").setAttribute("aria-pressed", String(looping !== null));
    if (said !== i) tell(i);
  }

  function tell(i) {
    said = i;
    const beat = data.beats[i];
    find(".say h2").textContent = beat.title;
    find(".sentence").textContent = beat.say;
    find(".hint").textContent = i ? "" : "Press Play to watch it happen, or step through it with the arrow keys.";
    find(".where").textContent = `beat ${i + 1} of ${model.last + 1}`;
    range.setAttribute("aria-valuetext", `beat ${i + 1} of ${model.last + 1}: ${beat.title}`);
    find(".back").disabled = i === 0;
    find(".forth").disabled = i === model.last;
    let past = true;
    [...find(".phases").children].forEach((chip, n) => {
      const now = data.phases[n].key === beat.phase;
      past &&= !now;
      chip.className = now ? "now" : past ? "past" : "";
      chip.setAttribute("aria-current", now ? "step" : "false");
    });
    tellMath(beat);
    tellComparison(data.steps[beat.step].compare);
  }

  function tellMath(beat) {
    const crowded = beat.math.length > 2 || beat.math.some((line) => line.length > 60);
    const lines = beat.math.slice(0, 4).flatMap((line) => {
      const [where, expression] = line.includes(": ") ? [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)] : ["", line];
      if (!where && !line.includes("=")) return [element("span", "label", line)];
      const code = element("code", crowded ? "long" : "", expression);
      return where ? [element("span", "label", where), code] : [code];
    });
    find(".math").replaceChildren(...(lines.length ? lines : [element("span", "label", "nothing to add up in this beat")]));
    const pills = find(".pills");
    const [rank, , bucket, chunk] = beat.focus ?? [];
    const step = model.steps[beat.step];
    const group = step.groups.findIndex((g) => g.bucket === bucket && !g.count);
    const update = beat.focus && step.updates.findLast((u) => u.g === group && u.rank === rank && u.chunk === chunk && u.at <= beat.moment + 1e-15);
    find(".who").hidden = !update || !data.numbers;
    if (!update || !data.numbers) return;
    pills.replaceChildren(
      ...[...update.inside].map((times, r) => {
        const pill = element("span", "", times > "1" ? `${r} ×${times}` : r);
        if (times !== "0") {
          pill.style.background = pill.style.borderColor = rankColour(r, isDark());
          // Black on it or white, whichever stands out more: equal at a luminance of 0.18.
          pill.style.color = luminance(rankColour(r, isDark())) > 0.18 ? "#000000" : "#ffffff";
        }
        return pill;
      }),
    );
  }

  function tellComparison(lines) {
    find(".compare").replaceChildren(
      ...lines.map((line) => {
        const row = element("div", line.ours ? "ours" : "");
        const name = element("div", "name");
        name.append(element("b", "", line.name), element("span", "label", line.error));
        row.append(name);
        if (line.hand) row.append(element("code", "", line.hand));
        row.append(element("code", "vector", `g = ${line.gradient}`));
        return row;
      }),
    );
  }

  const isDark = () => stage.hasAttribute("data-dark");

  function recolour() {
    const style = getComputedStyle(stage);
    const dark = luminance(style.color) > 0.5;
    stage.toggleAttribute("data-dark", dark);
    const colours = { ink: style.color, paper: style.getPropertyValue("--st-background-color").trim() || (dark ? "#0e1117" : "#ffffff") };
    views.forEach((view) => view.colour(dark, colours));
    said = -1; // the words are coloured too
  }

  function resize() {
    const now = stage.clientWidth;
    if (!model || !now || now === width) return;
    width = now;
    views.forEach((view, n) => view.layout(find(n ? ".lanes" : ".field").clientWidth));
    draw();
  }

  function set(next) {
    if (data?.id !== next.id) {
      cancelAnimationFrame(frame);
      data = next;
      model = prepare(data);
      goal = null;
      looping = null;
      position = model.index.get(data.first) ?? 0;
      said = -1;
      width = 0;
      find(".tiles").replaceChildren();
      find(".wires").replaceChildren();
      views = [(data.numbers ? makeCards : makeMatrix)(root, model), makeTimeline(root, model, seek)];
      build();
      views.forEach((view, n) => view.layout(find(n ? ".lanes" : ".field").clientWidth));
      draw();
      // The keys work at once, unless someone is busy elsewhere on the page.
      if (document.activeElement === document.body) stage.focus({ preventScroll: true });
    }
    recolour();
    width = 0;
    resize();
  }

  function build() {
    find(".source").textContent = data.source;
    stage.dataset.source = data.source;
    range.max = model.last;
    find(".phases").replaceChildren(
      ...data.phases.map(({ key, label }) => {
        const chip = element("button", "", label);
        chip.onclick = () => {
          const now = data.beats[beatAt(model, position)].step;
          const target = data.beats.findIndex((beat) => beat.phase === key && beat.step === now);
          seek(target < 0 ? data.beats.findIndex((beat) => beat.phase === key) : target);
        };
        return chip;
      }),
    );
    find(".ticks").replaceChildren(
      ...(model.last <= 60 ? data.beats : []).map((_, i) => {
        const tick = element("i");
        tick.style.left = `${model.last ? (100 * i) / model.last : 0}%`;
        return tick;
      }),
    );
  }

  find(".play").onclick = toggle;
  find(".back").onclick = () => step(-1);
  find(".forth").onclick = () => step(1);
  find(".loop").onclick = () => {
    looping = looping === null ? beatAt(model, position) : null;
    if (looping !== null && !still.matches) {
      position = Math.max(0, phaseAround(model, looping)[0] - 1);
      run(model.last);
    } else seek(null);
  };
  find(".link").onclick = async (event) => {
    const url = new URL(window.location.href);
    url.searchParams.set("beat", data.beats[beatAt(model, position)].id);
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(url.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "It is in the address bar";
    }
    setTimeout(() => (button.textContent = "Copy link"), 2000);
  };
  range.oninput = () => seek(Number(range.value), false);
  range.onchange = () => seek(Math.round(Number(range.value)));

  const keys = {
    " ": toggle,
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageDown: () => step(1),
    PageUp: () => step(-1),
    Home: () => seek(0),
    End: () => seek(model.last),
  };
  stage.onkeydown = (event) => {
    const target = event.target;
    const onButton = target.tagName === "BUTTON" && event.key === " ";
    if (!keys[event.key] || target.tagName === "SELECT" || onButton || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  const relayout = () => {
    width = 0;
    resize();
  };
  document.fonts?.ready.then(relayout); // a font that arrives late changes the height of every card
  const watcher = new ResizeObserver(resize);
  watcher.observe(stage);
  return {
    set,
    stop() {
      goal = null;
      cancelAnimationFrame(frame);
      watcher.disconnect();
    },
  };
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

export default function ({ data, parentElement, setStateValue }) {
  let stage = stages.get(parentElement);
  if (!stage) {
    stage = createStage(parentElement, (id) => stage.report(id));
    stages.set(parentElement, stage);
  }
  stage.report = (id) => setStateValue("beat", id);
  stage.set(data);
  return () => {
    stage.stop();
    stages.delete(parentElement);
  };
}
