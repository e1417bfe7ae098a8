// The controller: playback, keys, and the text beside the picture. It tells Python only when playback stops.

const stages = new WeakMap();

function createStage(root, report) {
  const find = (name) => root.querySelector(name);
  const stage = find(".stage");
  const range = find(".scrub input");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  let [data, model, views] = [null, null, []];
  let [position, goal, looping, frame, previous] = [0, null, null, 0, 0]; // looping: a beat of the phase
  let [said, width, walking, askedAt] = [-1, "", false, -1]; // askedAt: the beat at which a number was asked about
  const [stops, tips, presenter] = [makeStops(stage), makeTips(stage), makePresenter(root)];
  let painted = ""; // the theme's colours as drawn
  let [placed, obeyed] = [false, undefined]; // whether data have come, and the last request to go on
  const origins = makeOrigins(root, (beat) => {
    askedAt = beat;
    seek(beat);
  });

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

  // The element inside that has the focus.
  const focused = () => stage.getRootNode().activeElement;

  function draw() {
    const resting = goal === null;
    const i = beatAt(model, position);
    const held = stage.contains(focused()) ? focused() : null;
    views.forEach((view) => view.draw(position, resting && position === i));
    range.value = position;
    find(".ticks").style.setProperty("--done", model.last ? position / model.last : 1);
    find(".play span").textContent = resting ? "Play" : "Pause";
    find(".play path").setAttribute("d", resting ? "m4 2 10 6-10 6z" : "M3 2h3.5v12H3z M9.5 2H13v12H9.5z");
    find(".loop").setAttribute("aria-pressed", String(looping !== null));
    if (said !== i) tell(i);
    if (askedAt >= 0 && askedAt !== i) hush();
    if (held && !held.isConnected) stage.focus({ preventScroll: true }); // what had it is gone: the keys go on
    if (resting) stops.ensure();
  }

  function hush() {
    askedAt = -1;
    const closed = origins.close();
    if (closed) draw();
    return closed;
  }

  // A number was clicked: playback rests at the end of this beat, and the panel says where it comes from.
  function ask(number) {
    if (number.askedFor === null) return;
    if (goal !== null) seek(null);
    askedAt = beatAt(model, position);
    origins.open(number, isDark());
    draw();
  }

  function tell(i) {
    said = i;
    const beat = data.beats[i];
    explain(find(".say h2"), beat.title);
    explain(find(".sentence"), beat.say);
    find(".hint").textContent = i ? "" : "Press Play to watch it happen, or step with the arrow keys. Click any number to see where it comes from.";
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
    showMath(root, beat);
    showComparison(root, model.steps[beat.step]);
    tellWho();
  }

  // Who is in the chunk that the beat is about.
  function tellWho() {
    const beat = data.beats[said];
    const [rank, , bucket, chunk] = beat.focus ?? [];
    const step = model.steps[beat.step];
    const group = step.groups.findIndex((g) => g.bucket === bucket && !g.count);
    const update = beat.focus && step.updates.findLast((u) => u.g === group && u.rank === rank && u.chunk === chunk && u.at <= beat.moment + 1e-15);
    find(".hand .who").hidden = !update || !data.numbers;
    if (update && data.numbers) showPills(find(".hand .pills"), update.inside, isDark());
  }

  const isDark = () => stage.hasAttribute("data-dark");

  function recolour() {
    const style = getComputedStyle(stage);
    const dark = luminance(style.color) > 0.5;
    const paint = `${style.color} ${style.getPropertyValue("--st-background-color")}`;
    if (paint === painted) return; // a rerun brings the same theme: what has the focus stays
    painted = paint;
    stage.toggleAttribute("data-dark", dark);
    const colours = { ink: style.color, paper: style.getPropertyValue("--st-background-color").trim() || (dark ? "#0e1117" : "#ffffff") };
    const held = stage.contains(focused());
    views.forEach((view) => view.colour(dark, colours));
    if (held && !focused()) stage.focus({ preventScroll: true });
    tellWho();
    origins.recolour(dark);
  }

  function resize() {
    const now = `${stage.clientWidth} ${unitOf(root)}`;
    if (!model || !stage.clientWidth || now === width) return;
    width = now;
    presenter.measure();
    views.forEach((view, n) => view.layout(find(n ? ".lanes" : ".field").clientWidth));
    origins.place();
    draw();
  }

  function set(next) {
    const known = data?.id === next.id;
    const old = data?.beats[beatAt(model, position)];
    const looks = ({ ghost, present }) => JSON.stringify([ghost, present]);
    if (!known || looks(data) !== looks(next)) {
      data = next;
      model = prepare(data);
      if (!known) start(old);
      show();
      if (!known && old && data.keep && data.beats[position].id !== old.id) setTimeout(commit); // another beat than asked for
    }
    recolour();
    width = "";
    resize();
    goOn(next.goto);
  }

  // The page asks to go to a beat, once: a stage that is drawn anew has nothing to catch up on.
  function goOn(asked) {
    const to = placed && asked && asked.nonce !== obeyed ? (model.index.get(asked.beat) ?? -1) : -1;
    [placed, obeyed] = [true, asked?.nonce];
    if (to < 0) return;
    find(".field").scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    if (goal === null && to === position + 1) step(1);
    else seek(to);
  }

  // Other data: at rest, on the beat that was shown before if the place is to be kept.
  function start(old) {
    cancelAnimationFrame(frame);
    [goal, looping] = [null, null];
    position = placeOf(model, data.keep ? old : null);
  }

  function show() {
    [said, width, painted] = [-1, "", ""];
    hush();
    presenter.use(Boolean(data.present));
    useTerms(data.terms);
    tips.use(data.terms);
    origins.use(model);
    find(".tiles").replaceChildren();
    find(".wires").replaceChildren();
    views = [(data.numbers ? makeCards : makeMatrix)(root, model), makeTimeline(root, model, seek)];
    build();
    views.forEach((view, n) => view.layout(find(n ? ".lanes" : ".field").clientWidth));
    draw();
    // The keys work at once, unless someone is busy elsewhere on the page.
    if (document.activeElement === document.body) stage.focus({ preventScroll: true });
  }

  function build() {
    find(".source").textContent = data.source;
    stage.dataset.source = data.source;
    range.max = model.last;
    find(".phases").replaceChildren(
      ...data.phases.map(({ key, label }) => {
        const chip = element("button", "", label);
        const term = termForms.get(label.toLowerCase());
        if (term) chip.dataset.term = term;
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
  const deaf = makeKeys(stage, { keys, stops, tips, presenter, ask, hush, presenting: () => Boolean(data?.present) });
  stage.addEventListener("click", ({ target }) => target.closest("[data-origin]") && ask(target.closest("[data-origin]")));
  find(".origin .shut").onclick = hush;

  const relayout = () => {
    width = "";
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
      deaf();
    },
  };
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
