"""The stage in a page of a real browser: where its parts are, and what a test asks them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import Locator, Page, expect

from dpsim.beats import Beat, beats
from dpsim.comparison import compare
from dpsim.forms import preset
from dpsim.simulate import simulate

expect.set_options(timeout=45_000)

# What is on a canvas from a share of its width on: its inked pixels, its colours, and a number that changes
# when the picture does.
CANVAS = """(canvas, start) => {
  const from = Math.round(start * canvas.width);
  const { data } = canvas.getContext("2d").getImageData(from, 0, canvas.width - from, canvas.height);
  const colours = new Set();
  let [inked, hash] = [0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = data.subarray(i, i + 4);
    if (a) inked++;
    if (a === 255) colours.add(`rgb(${r}, ${g}, ${b})`);
    hash = (Math.imul(hash, 31) + r + 256 * g + 65536 * b + a) | 0;
  }
  return { inked, share: inked / (data.length / 4), colours: [...colours], hash };
}"""

# From now on remember, frame by frame, what moves.
RECORD = """(stage) => {
  const frames = (window.dpsimFrames = []);
  const look = () => {
    frames.push({
      position: Number(stage.querySelector(".scrub input").value),
      beat: stage.querySelector(".where").textContent,
      playhead: stage.querySelector(".playhead").style.transform,
      tiles: [...stage.querySelectorAll(".tile")].map((tile) => tile.style.transform).join(" "),
    });
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""

# Every text that is seen, with its colours: [text, contrast]. Translucent layers are laid over each other.
CONTRASTS = """(stage) => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (css) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = css;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => (v * a) / 255 + under[i] * (1 - a / 255));
  const up = (node) => node.parentElement ?? node.getRootNode().host ?? null;
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const holder = walker.currentNode.parentElement;
    const span = document.createRange();
    span.selectNodeContents(walker.currentNode);
    if (!text || !span.getClientRects().length || holder.closest("button:disabled")) continue;
    if (!holder.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const layers = [];
    let opacity = 1;
    for (let node = holder; node; node = up(node)) {
      const style = getComputedStyle(node);
      layers.unshift(rgba(style.backgroundColor));
      opacity *= Number(style.opacity);
    }
    const ground = layers.reduce((under, layer) => over(layer, under), [255, 255, 255]);
    const [r, g, b, a] = rgba(getComputedStyle(holder).color);
    const ink = over([r, g, b, a * opacity], ground);
    const [low, high] = [light(ink), light(ground)].sort((x, y) => x - y);
    found.push([text, (high + 0.05) / (low + 0.05)]);
  }
  return found;
}"""

# What of the stage is cut off: seen elements that leave the window, texts that leave the box they belong to,
# cards that lie over each other.
CUT_OFF = """(stage) => {
  const wrong = [];
  const name = (node) => `<${node.tagName.toLowerCase()} class="${node.getAttribute("class") ?? ""}">`;
  const span = ({ left, right }) => `${left.toFixed(1)} to ${right.toFixed(1)}`;
  const width = document.documentElement.clientWidth;
  for (const node of stage.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (box.left < -1 || box.right > width + 1) wrong.push(`${name(node)} at ${span(box)} of ${width}`);
  }
  const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const text = range.getBoundingClientRect();
    const around = holder
      .closest("b, i, h2, h3, p, code, .cell, .card, .say, .hand, .origin, button, .side")
      ?.closest(".cell, .card, .say, .hand, .origin, button, .side");
    if (!around || !text.width || !holder.checkVisibility({ visibilityProperty: true })) continue;
    const box = around.getBoundingClientRect();
    if (!box.width) continue; // it has no box of its own
    const below = text.bottom > box.bottom + 1 && !around.closest(".origin:popover-open"); // a sheet scrolls
    if (text.left < box.left - 1 || text.right > box.right + 1 || below)
      wrong.push(`"${holder.textContent.trim()}" at ${span(text)} leaves ${name(around)} at ${span(box)}`);
  }
  const cards = [...stage.querySelectorAll(".card")].map((card) => card.getBoundingClientRect());
  cards.forEach((a, i) =>
    cards.slice(0, i).forEach((b, j) => {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        wrong.push(`card ${i} lies over card ${j}`);
    }),
  );
  return wrong;
}"""


class Watched:
    """One page of the app; `faults` is what went wrong on it so far: errors, and requests to anybody else."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.requests: list[str] = []
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("console", self._heard)
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda socket: self._asked(socket.url))

    def _heard(self, message: Any) -> None:
        # On a page with a path of its own Streamlit first asks for its own routes below that path.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            self.faults.append(f"console: {message.text}")

    def _asked(self, url: str) -> None:
        self.requests.append(url)
        own = (self.url + "/", f"blob:{self.url}/", self.url.replace("http", "ws", 1) + "/", "data:")
        if not url.startswith(own):
            self.faults.append(f"request: {url}")


class Stage(Watched):
    """One page with the stage, which is its `root`."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.root = page.locator(".stage")
        self.heading = self.root.get_by_role("heading", level=2)
        self.sentence = self.root.locator(".sentence")
        self.where = self.root.locator(".where")
        self.play = self.root.locator("button.play")
        self.back = self.root.get_by_role("button", name="Step back")
        self.forth = self.root.get_by_role("button", name="Step forward")
        self.loop = self.root.get_by_role("button", name="Loop phase")
        self.speed = self.root.get_by_role("combobox", name="Speed")
        self.slider = self.root.get_by_role("slider", name="Beat")
        self.playhead = self.root.locator(".playhead")
        self.lanes = self.root.locator(".lanes canvas")
        self.matrix = self.root.locator("canvas.matrix")
        self.cards = self.root.locator(".card")
        self.alerts = page.get_by_test_id("stAlert")
        self.title = page.locator(".st-key-title .stText")
        self.control = page.get_by_role("combobox", name="Scenario")
        self.text = page.get_by_test_id("stExpander").filter(has_text="The same step as text")

    def open(self, query: str = "") -> None:
        """Open the app with a query and wait until the stage is drawn."""
        self.page.goto(f"{self.url}/?{query}")
        self.ready()

    def ready(self) -> None:
        """Wait until the script has run and the stage is drawn and rests."""
        expect(self.heading).not_to_be_empty()
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        self.page.evaluate("document.fonts.ready.then(() => null)")
        self.frames(2)

    def frames(self, count: int) -> None:
        """Let the page draw some frames."""
        self.page.evaluate(
            "(n) => new Promise((done) => {"
            " const next = () => (n-- ? requestAnimationFrame(next) : done(null)); next(); })",
            count,
        )

    def at(self, beat: int, of: int | None = None) -> None:
        """Wait until the stage rests on this beat (0 is the first)."""
        shown = f"beat {beat + 1} of " if of is None else f"beat {beat + 1} of {of}"
        expect(self.where).to_contain_text(shown)
        self.rests()
        assert self.position() == beat

    def rests(self) -> None:
        """Wait until nothing plays."""
        expect(self.play).to_have_text("Play")

    def plays(self) -> None:
        """Wait until it plays."""
        expect(self.play).to_have_text("Pause")

    def position(self) -> float:
        """The place along the list of beats: 4 at rest on beat 4, 3.5 on the way to it."""
        return float(self.slider.input_value())

    def last(self) -> int:
        """The place of the last beat."""
        return int(self.slider.get_attribute("max") or 0)

    def go(self, beat: int) -> None:
        """Go to a beat with the slider and wait until the stage rests there."""
        self.slider.fill(str(beat))
        self.at(beat)

    def key(self, *keys: str) -> None:
        """Press keys while the stage has the focus."""
        self.root.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def record(self) -> None:
        """Remember every frame from now on."""
        self.root.evaluate(RECORD)

    def recorded(self) -> list[dict[str, Any]]:
        """The frames so far."""
        frames = self.page.evaluate("window.dpsimFrames")
        assert isinstance(frames, list)
        return frames

    def playhead_x(self) -> float:
        """Where the playhead is, in pixels of the page."""
        box = self.playhead.bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2

    def choose(self, name: str) -> None:
        """Choose a preset with the control of the page."""
        title = preset(name).title
        self.control.click()
        self.control.fill(title)
        self.page.get_by_role("option", name=title, exact=True).click()

    def asked(self, key: str) -> str | None:
        """A value in the address bar."""
        return parse_qs(urlsplit(self.page.url).query).get(key, [None])[0]

    def cut_off(self) -> list[str]:
        """What of the stage is cut off or lies over something."""
        found = self.root.evaluate(CUT_OFF)
        assert isinstance(found, list)
        return found


def picture(canvas: Locator, start: float = 0.0) -> dict[str, Any]:
    """What is on a canvas, from a share of its width on: `inked` pixels and their `share`, its `colours`, a
    `hash` of it."""
    found = canvas.evaluate(CANVAS, start)
    assert isinstance(found, dict)
    return found


def query(**keys: str) -> str:
    """A query for `Stage.open`."""
    return "&".join(f"{key}={quote(value)}" for key, value in keys.items())


@lru_cache
def told(name: str = "first-screen") -> tuple[Beat, ...]:
    """The beats of a preset."""
    return beats(simulate(preset(name)), compare(preset(name)))


def number_of(beat: str, name: str = "first-screen") -> int:
    """A beat's place in its preset, by its id."""
    return [b.id for b in told(name)].index(beat)
