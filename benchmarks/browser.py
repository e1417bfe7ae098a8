"""How smooth the stage is in a real Chromium with 4, 16 and 64 ranks: first drawn frame, payload, frames.

`python benchmarks/browser.py` prints one Markdown table. The baseline of the frames is an empty
requestAnimationFrame loop on about:blank, measured in the same browser just before each stage.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from serving import chromium_path, launched_chromium, no_chromium, served_app

from dpsim.beats import beats
from dpsim.comparison import compare
from dpsim.forms import preset, to_query
from dpsim.scenario import Batch, Model, Scenario
from dpsim.simulate import simulate
from dpsim.ui.stage.payload import stage_data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PLAY_S = 5
LOADS = 3
SLOW_MS = 50
AIM_FRAMES_PER_S, AIM_PAYLOAD_BYTES = 60, 500_000
NEAR = 0.98  # 60 frames a second are reached where the screen's own pace is, within this share

# Milliseconds from the start of the navigation until the stage's sentence is there and one frame was drawn.
FIRST_FRAME = """() => new Promise((done) => {
  const find = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.shadowRoot?.querySelector(".stage h2")?.textContent) return true;
    }
    return false;
  };
  const look = () =>
    find(document) ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
  look();
})"""

# The times between frames, in milliseconds, over so many seconds.
FRAMES = """(seconds) => new Promise((done) => {
  const gaps = [];
  let [first, last] = [null, null];
  const frame = (now) => {
    if (last !== null) gaps.push(now - last);
    first ??= now;
    last = now;
    if (now - first < 1000 * seconds) requestAnimationFrame(frame);
    else done(gaps);
  };
  requestAnimationFrame(frame);
})"""


@dataclass(frozen=True)
class Frames:
    """What a loop of animation frames looked like."""

    per_s: float
    slow: int
    longest_ms: float


def scenarios() -> Iterator[tuple[str, Scenario]]:
    """A preset's name and what is made of it: 4, 16 and 64 ranks on a ring."""
    yield "first-screen", preset("first-screen")
    counts = tuple(1 + (5 * rank) % 8 for rank in range(16))
    yield (
        "ring-8",
        replace(
            preset("ring-8"),
            title="A ring of sixteen ranks",
            world_size=16,
            model=Model(kind="scalar", vocabulary=16),
            batch=Batch(lengths=(8,) * 16, valid=counts),
        ),
    )
    yield "ring-64", preset("ring-64")


def payload_bytes(scenario: Scenario) -> int:
    """How long the stage's data are as compact JSON."""
    trace = simulate(scenario)
    ways = compare(scenario)
    told = beats(trace, ways)
    data = stage_data(trace, told, ways, told[0].id)
    return len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode())


def first_frame_ms(browser: Browser, url: str) -> float:
    """The first drawn frame of the stage on a page that this browser has never seen; the median of some."""
    taken = []
    for _ in range(LOADS):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(url, wait_until="commit")
        taken.append(float(page.evaluate(FIRST_FRAME)))
        context.close()
    return median(taken)


def frames_of(page: Page) -> Frames:
    """Frames over PLAY_S seconds."""
    gaps = page.evaluate(FRAMES, PLAY_S)
    return Frames(1000 * len(gaps) / sum(gaps), sum(gap > SLOW_MS for gap in gaps), max(gaps))


def played(browser: Browser, url: str) -> tuple[Frames, Frames]:
    """Frames of an empty loop, then of the stage while it plays, one after the other in one window."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto("about:blank")
    empty = frames_of(page)
    page.goto(url)
    page.locator(".stage h2").filter(has_text="Before").wait_for()
    page.wait_for_load_state("networkidle")
    page.locator(".stage .play").click()
    ours = frames_of(page)
    moved = float(page.locator(".stage .scrub input").input_value())
    if moved <= 0:
        raise SystemExit(f"{url}: the stage does not play")
    context.close()
    return empty, ours


def verdict(reached: bool) -> str:
    """Whether an aim was reached."""
    return "reached" if reached else "MISSED"


def measure(browser: Browser, url: str, name: str, scenario: Scenario) -> tuple[str, ...]:
    """One row of the table."""
    address = f"{url}/?preset={name}&{to_query(scenario)}"
    size = payload_bytes(scenario)
    first = first_frame_ms(browser, address)
    empty, ours = played(browser, address)
    pace = min(AIM_FRAMES_PER_S, empty.per_s)
    return (
        f"{scenario.world_size}",
        f"{first:.0f} ms",
        f"{size / 1e6:.3f} MB ({verdict(size < AIM_PAYLOAD_BYTES)})",
        f"{ours.per_s:.1f} / {empty.per_s:.1f} = {ours.per_s / empty.per_s:.2f} "
        f"({verdict(ours.per_s >= NEAR * pace)})",
        f"{ours.slow} / {empty.slow} ({verdict(ours.slow == 0)})",
        f"{ours.longest_ms:.0f} / {empty.longest_ms:.0f} ms = {ours.longest_ms / empty.longest_ms:.1f}",
    )


def main() -> None:
    """Measure everything and print the table."""
    path = chromium_path()
    if path is None:
        raise SystemExit(no_chromium())
    head = (
        "ranks", "first drawn frame", "payload", "frames/s: stage / empty loop = ratio",
        f"frames over {SLOW_MS} ms: stage / empty loop", "longest frame: stage / empty loop = ratio",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [head, ("---",) * len(head)]
    with (
        tempfile.TemporaryDirectory() as folder,
        served_app(Path(folder) / "server.log") as url,
        launched_chromium(path) as browser,
    ):
        first_frame_ms(browser, url)  # the server's own first run is not the stage's
        rows += [measure(browser, url, name, scenario) for name, scenario in scenarios()]
        engine = f"Chromium {browser.version}"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f}"
    print(f"{engine}, Streamlit {version('streamlit')}, Python {platform.python_version()}, {machine}")
    print(
        f"First drawn frame: median of {LOADS} loads with an empty cache. Frames: {PLAY_S} s of playing; "
        f"baseline: an empty requestAnimationFrame loop on about:blank in the same window, just before.\n"
        f"Aims: {AIM_FRAMES_PER_S} frames a second (or the empty loop's pace where that is lower), none over "
        f"{SLOW_MS} ms, payload under {AIM_PAYLOAD_BYTES / 1e6:g} MB at 64 ranks.\n"
    )
    for row in rows:
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
