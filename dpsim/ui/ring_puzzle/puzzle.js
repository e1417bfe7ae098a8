// The puzzle: which chunk goes where, as text; the server says who is in a chunk then. Quick clicks lose nothing:
// the text stands here, all of it is handed over at every change, and what comes back of an earlier one is ignored.

const puzzles = new WeakMap();
const MARKS = { "+": "add", "=": "keep" };

export default function ({ data, parentElement, setStateValue }) {
  let puzzle = puzzles.get(parentElement);
  if (!puzzle) puzzles.set(parentElement, (puzzle = createPuzzle(parentElement)));
  puzzle.send = (text) => setStateValue("given", text);
  puzzle.set(data);
  return () => {
    puzzle.stop();
    puzzles.delete(parentElement);
  };
}

function createPuzzle(root) {
  const find = (name) => root.querySelector(name);
  const box = find(".puzzle");
  let [data, text, waiting, source, cards, shape, dark] = [null, "", false, null, [], "", false];
  const before = []; // texts, for undo
  const puzzle = { send: () => {}, set, stop: () => watcher.disconnect() };
  const picks = () => data.mode === "pick";
  const transfers = () => (text.split("|").at(-1) || null)?.split(";") ?? [];
  const parts = (transfer) => [...transfer.matchAll(/\d/g)].map(Number).concat(transfer.at(-1));

  function set(next) {
    if (waiting && next.given !== text) return;
    const heard = waiting;
    [data, text, waiting] = [next, next.given, false];
    if (shape !== `${data.mode} ${data.world}`) build();
    dark = luminance(getComputedStyle(box).color) > 0.5;
    box.toggleAttribute("data-dark", dark);
    draw();
    if (heard && data.note) say(data.note);
  }

  function change(now, told, remember = true) {
    if (remember) before.push(text);
    [text, waiting] = [now, true];
    puzzle.send(text);
    say(told);
    draw();
  }

  function say(told) {
    find(".announced").textContent = told;
  }

  function build() {
    shape = `${data.mode} ${data.world}`;
    source = null;
    box.classList.toggle("pick", picks());
    box.classList.toggle("many", data.world > 4);
    box.style.setProperty("--wide", data.world === 3 && !picks() ? "250px" : "330px"); // three stand as a triangle
    find(".desk").hidden = picks();
    cards = Array.from({ length: data.world }, (_, rank) => makeCard(rank));
    const top = Math.ceil(data.world / 2);
    find(".rows").replaceChildren(
      ...[cards.slice(0, top), cards.slice(top)].map((some) => {
        const row = element("div");
        row.append(...some.map((card) => card.node));
        return row;
      }),
    );
  }

  function makeCard(rank) {
    const node = element("section", "card");
    node.setAttribute("aria-label", `rank ${rank}`);
    const header = element("header");
    header.append(element("b", "", `rank ${rank}`));
    const here = Object.entries(MARKS).map(([op, word]) => {
      const button = element("button", "", `${op} ${word}`);
      button.onclick = () => send(rank, op);
      return button;
    });
    if (!picks()) header.append(...here);
    const grid = element("div", "cells");
    grid.style.setProperty("--columns", data.world > 4 ? 2 : data.world);
    const cells = Array.from({ length: data.world }, (_, chunk) => {
      const cell = element("button", "cell");
      const [now, then] = ["slots", "then"].map((name) => element("span", name));
      then.append(element("span", "slots"));
      cell.append(element("span", "name", `chunk ${chunk}`));
      if (!picks()) cell.append(now, then);
      cell.onclick = () => (picks() ? choose(rank, chunk) : take(rank, chunk));
      grid.append(cell);
      return { cell, now, then };
    });
    node.append(header, grid);
    return { node, here, cells };
  }

  function choose(rank, chunk) {
    change(`${rank}.${chunk}`, `Chosen: chunk ${chunk} on rank ${rank}.`);
  }

  // A chunk is taken up to be sent; the keyboard goes on at the next rank round the ring.
  function take(rank, chunk) {
    const again = source && source[0] === rank && source[1] === chunk;
    source = again ? null : [rank, chunk];
    draw();
    say(again ? "Nothing is chosen." : find(".task").textContent);
    if (!again) cards[(rank + 1) % data.world].here[0].focus({ preventScroll: true });
  }

  function send(rank, op) {
    const [from, chunk] = source;
    source = null;
    const now = [...transfers(), `${from}>${rank}.${chunk}${op}`];
    change(withRound(now), `Rank ${from} sends chunk ${chunk} to rank ${rank}, which ${MARKS[op]}s it.`);
    cards[from].cells[chunk].cell.focus({ preventScroll: true });
  }

  const withRound = (now) => [...text.split("|").slice(0, -1), now.join(";")].join("|");

  function drop(i) {
    const [from, to, chunk] = parts(transfers()[i]);
    change(withRound(transfers().filter((_, n) => n !== i)), `Taken back: chunk ${chunk} from rank ${from} to rank ${to}.`);
    const chips = find(".chips").querySelectorAll("button");
    (chips[Math.min(i, chips.length - 1)] ?? find(".undo")).focus({ preventScroll: true });
  }

  find(".next").onclick = () => {
    source = null;
    change(`${text}|`, `Round ${text.split("|").length + 1} begins.`);
    cards[0].cells[0].cell.focus({ preventScroll: true });
  };
  find(".likewise").onclick = () => {
    const [from, to, chunk, op] = parts(transfers().at(-1));
    const turned = (by) => [from, to, chunk].map((n) => (n + by) % data.world);
    const all = Array.from({ length: data.world }, (_, by) => turned(by)).map(([a, b, c]) => `${a}>${b}.${c}${op}`);
    const fresh = all.filter((transfer) => !transfers().includes(transfer));
    change(withRound([...transfers(), ...fresh]), `${fresh.length} more transfers, the same from every rank.`);
  };
  find(".undo").onclick = () => {
    const rounds = text.split("|");
    const less = transfers().length ? withRound(transfers().slice(0, -1)) : rounds.slice(0, -1).join("|");
    change(before.pop() ?? less, "Taken back.", false);
  };
  find(".over").onclick = () => change("", "Everything is as at the beginning.");
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !source) return;
    const [rank, chunk] = source;
    source = null;
    draw();
    cards[rank].cells[chunk].cell.focus({ preventScroll: true });
  });

  function draw() {
    cards.forEach(({ node }, rank) => node.style.setProperty("--rank", rankColour(rank, dark)));
    if (picks()) return drawPicked();
    find(".task").textContent = source
      ? `Chunk ${source[1]} of rank ${source[0]}: to whom does it go, and is it added or kept there?`
      : "Choose a chunk to send. A round reads what was there at its start.";
    const round = transfers().map(parts);
    cards.forEach(({ here, cells }, rank) => {
      here.forEach((button, i) => {
        button.hidden = !source || source[0] === rank;
        const word = i ? "keep" : "add";
        button.setAttribute("aria-label", source ? `${word} chunk ${source[1]} on rank ${rank}` : word);
      });
      cells.forEach((cell, chunk) => drawCell(cell, rank, chunk, round));
    });
    drawDesk(round);
    drawWires(round);
  }

  function drawPicked() {
    find(".task").textContent = text ? `Chosen: chunk ${text.split(".")[1]} on rank ${text.split(".")[0]}` : "Choose one cell.";
    cards.forEach(({ cells }, rank) =>
      cells.forEach(({ cell }, chunk) => {
        cell.setAttribute("aria-label", `rank ${rank}, chunk ${chunk}`);
        cell.setAttribute("aria-pressed", String(text === `${rank}.${chunk}`));
      }),
    );
  }

  function drawCell({ cell, now, then }, rank, chunk, round) {
    const [is, will] = [data.now[rank][chunk], data.then[rank][chunk]];
    const comes = round.some(([, to, c]) => to === rank && c === chunk);
    fillSlots(now, is);
    fillSlots(then.firstChild, will);
    then.hidden = !comes || waiting;
    cell.classList.toggle("moved", comes);
    cell.classList.toggle("whole", !/[^1]/.test(will) && !waiting);
    cell.setAttribute("aria-pressed", String(Boolean(source) && source[0] === rank && source[1] === chunk));
    const later = comes && !waiting ? `, after this round ${inWords(will)}` : "";
    cell.setAttribute("aria-label", `rank ${rank}, chunk ${chunk}: ${inWords(is)}${later}`);
  }

  function inWords(inside) {
    const who = [...inside].map((times, rank) => (times === "0" ? "" : times === "1" ? `${rank}` : `${rank} ${times} times`)).filter(Boolean);
    return `of rank${who.length > 1 ? "s" : ""} ${who.join(", ")}`;
  }

  // A slot for every rank: its colour and number where it is in it, and how often where that is too often.
  function fillSlots(slots, inside) {
    const key = `${inside} ${dark}`;
    if (slots.dataset.key === key) return;
    slots.dataset.key = key;
    slots.replaceChildren(
      ...[...inside].map((times, rank) => {
        const slot = element("i", times > "1" ? "twice" : "", times === "0" ? "" : times === "1" ? rank : `×${times}`);
        if (times === "0") return slot;
        const colour = rankColour(rank, dark);
        slot.style.background = colour;
        slot.style.color = luminance(colour) > 0.18 ? "#000000" : "#ffffff";
        return slot;
      }),
    );
  }

  function drawDesk(round) {
    const n = text.split("|").length;
    find("h3").textContent = `Round ${n}`;
    find(".costs").replaceChildren(
      ...data.costs.map(([what, count, of]) => {
        const cost = element("span", "", `${what} `);
        cost.append(element("b", "", count), ` of ${of}`);
        return cost;
      }),
    );
    const key = `${text.split("|").at(-1)} ${dark}`;
    const chips = find(".chips");
    if (chips.dataset.key !== key) {
      chips.dataset.key = key;
      chips.replaceChildren(
        ...round.map(([from, to, chunk, op], i) => {
          const chip = element("button", "", `${from} → ${to} · chunk ${chunk} · ${MARKS[op]}`);
          chip.setAttribute("aria-label", `Take back: rank ${from} sends chunk ${chunk} to rank ${to}, ${MARKS[op]}`);
          chip.style.setProperty("--rank", rankColour(from, dark));
          chip.onclick = () => drop(i);
          return chip;
        }),
        ...(round.length ? [] : ["No transfer in this round yet."]),
      );
    }
    find(".note").textContent = waiting ? find(".note").textContent : data.note;
    find(".next").disabled = find(".likewise").disabled = !round.length;
    find(".undo").disabled = !text && !before.length;
    find(".over").disabled = !text;
    find("details").hidden = n === 1;
    find("ol").replaceChildren(...data.past.map((line) => element("li", "", line)));
  }

  // Messages between the same two ranks share one line and one label.
  function drawWires(round) {
    const pairs = new Map();
    for (const [from, to, chunk, op] of round) pairs.set(`${from} ${to}`, [...(pairs.get(`${from} ${to}`) ?? []), `${chunk}${op}`]);
    const field = find(".field").getBoundingClientRect();
    const boxes = cards.map(({ node }) => {
      const at = node.getBoundingClientRect();
      return { x: at.left - field.left + at.width / 2, y: at.top - field.top + at.height / 2, w: at.width, h: at.height };
    });
    const made = [...pairs].map(([pair, what]) => {
      const [from, to] = pair.split(" ").map(Number);
      const [a, b] = anchors(boxes[from], boxes[to], { x: field.width / 2, y: field.height / 2 });
      const line = wire();
      line.draw(a, b);
      const label = element("span", "", what.length > 3 ? `${what.length} chunks` : what.map((w) => `${w.slice(0, -1)} ${w.at(-1)}`).join("\n"));
      const way = pairs.has(`${to} ${from}`) ? 0.3 : 0.38;
      label.style.left = `${a.x + (b.x - a.x) * way}px`;
      label.style.top = `${a.y + (b.y - a.y) * way}px`;
      label.style.setProperty("--rank", rankColour(from, dark));
      return [line.wire, label];
    });
    find(".wires").replaceChildren(...made.map(([line]) => line));
    find(".tiles").replaceChildren(...made.map(([, label]) => label));
  }

  const watcher = new ResizeObserver(() => data && !picks() && drawWires(transfers().map(parts)));
  watcher.observe(find(".field"));
  return puzzle;
}
