// Hundreds of numbers and terms behind one tab stop, moved among with the arrow keys; and the explanation of a
// term, which shows while it is hovered, tapped or focused and never leaves the screen.

const STOPS = "[data-origin], .term";
const AHEAD = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function makeStops(stage) {
  const seen = (node) => node.checkVisibility() && !node.closest(".origin");
  const all = () => [...stage.querySelectorAll(STOPS)].filter(seen);

  function settle(node) {
    stage.querySelectorAll(`:is(${STOPS})[tabindex="0"]`).forEach((other) => (other.tabIndex = -1));
    node.tabIndex = 0;
  }

  // The next one in a direction: near along it, and rather straight ahead.
  function move(from, key) {
    const [ax, ay] = AHEAD[key];
    const middle = (node) => {
      const box = node.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    };
    const [x, y] = middle(from);
    let best = null;
    for (const node of all()) {
      const [dx, dy] = middle(node).map((v, i) => v - [x, y][i]);
      const ahead = ax * dx + ay * dy;
      const cost = ahead + 3 * Math.abs(ax ? dy : dx);
      if (node !== from && ahead > 1 && (!best || cost < best.cost)) best = { node, cost };
    }
    best?.node.focus();
  }

  stage.addEventListener("focusin", ({ target }) => target.matches(STOPS) && seen(target) && settle(target));
  return {
    move,
    // There is always one to come to with Tab, also after the numbers have changed.
    ensure() {
      const now = stage.querySelector(`:is(${STOPS})[tabindex="0"]`);
      if (now && seen(now)) return;
      const first = all()[0];
      if (first) settle(first);
    },
  };
}

function makeTips(stage) {
  const tip = stage.querySelector(".tip");
  let [terms, owner] = [{}, null];

  function show(node) {
    const entry = terms[node.dataset.term];
    if (!entry) return;
    owner?.removeAttribute("aria-describedby");
    owner = node;
    node.setAttribute("aria-describedby", tip.id);
    tip.replaceChildren(element("b", "", entry[1]), ` ${entry[0]}`);
    if (!tip.matches(":popover-open")) tip.showPopover();
    const [word, box, edge] = [node.getBoundingClientRect(), tip.getBoundingClientRect(), 8];
    const { clientWidth, clientHeight } = document.documentElement;
    const below = word.bottom + 6 + box.height + edge <= clientHeight;
    const top = below ? word.bottom + 6 : word.top - 6 - box.height;
    const left = Math.min(word.left, clientWidth - box.width - edge);
    tip.style.left = `${Math.max(edge, left)}px`;
    tip.style.top = `${Math.max(edge, Math.min(top, clientHeight - box.height - edge))}px`;
  }

  function hide() {
    if (!owner) return false;
    owner.removeAttribute("aria-describedby");
    owner = null;
    tip.hidePopover();
    return true;
  }

  const term = (event) => event.target.closest?.("[data-term]");
  stage.addEventListener("pointerover", (event) => event.pointerType === "mouse" && term(event) && show(term(event)));
  stage.addEventListener("pointerout", (event) => event.pointerType === "mouse" && term(event) === owner && hide());
  stage.addEventListener("focusin", (event) => (term(event) ? show(term(event)) : hide()));
  stage.addEventListener("focusout", hide);
  stage.addEventListener("click", (event) => term(event)?.matches(".term") && show(term(event)));
  return { use: (next) => (terms = next), hide };
}
