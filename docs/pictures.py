"""Make the pictures of the app again, light and dark, wide and narrow: ``python docs/pictures.py [FOLDER]``.

Without a folder only the README's two pictures are made, beside this file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]
from serving import chromium_path, launched_chromium, no_chromium, served_app

from dpsim.lessons import Lesson, lessons

README = [("stage", "?beat=allreduce.b0.r1", 1280, 862)]
WIDE, NARROW, PROJECTOR = (1280, 900), (390, 844), (1920, 1080)
STATES = {
    "start": ("", [WIDE, NARROW]),
    "reduce-scatter": ("?beat=allreduce.b0.r1", [WIDE, NARROW]),
    "optimizer": ("?beat=optimizer", [WIDE]),
    "overlap": ("?preset=overlap&beat=s1.allreduce.b1.r2", [WIDE]),
    "empty-rank": ("?preset=empty-rank&reduction=mean_of_rank_means&beat=optimizer", [WIDE]),
    "ring-8": ("?preset=ring-8&beat=allreduce.b0.r4", [WIDE, NARROW]),
    "ring-64": ("?preset=ring-64&beat=allreduce.b0.r40", [WIDE, NARROW]),
    "bad-input": ("?world_size=0", [WIDE]),
    "lab": ("lab", [WIDE, NARROW]),
    "lab-steps": ("lab?steps=8&optimizer.kind=adam&reduction=mean_of_rank_means", [WIDE, NARROW]),
    "lessons": ("lesson", [WIDE, NARROW]),
    "progress": ("progress", [WIDE, NARROW]),
    "test": ("test", [WIDE, NARROW]),
    "presenter": ("?present=1&beat=allreduce.b0.r1", [PROJECTOR, WIDE]),
    "presenter-8": ("?preset=ring-8&present=1&beat=allreduce.b0.r4", [PROJECTOR]),
}


def states() -> Iterator[tuple[str, str, int, int]]:
    """Every state to look at: a name, its address, and the window's width and height."""
    every = dict(STATES)
    for slug, lesson in lessons().items():
        if isinstance(lesson, Lesson):
            for screen in lesson.screens:
                query = urlencode({"lesson": slug, "screen": screen.slug})
                every[f"lesson-{slug}-{screen.slug}"] = (f"lesson?{query}", [WIDE, NARROW])
    for name, (address, sizes) in every.items():
        for width, height in sizes:
            yield f"{name}-{width}", address, width, height


def picture(
    browser: Browser, address: str, query: str, size: tuple[int, int], theme: str, file: Path
) -> None:
    """One state of the app in one theme, as a file."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.goto(f"{address}/{query}")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # fonts, and charts that draw themselves
    if not query.startswith(("lesson", "progress", "test")):
        page.wait_for_selector(".stage .say h2:not(:empty)")
    if "present=1" not in query and file.parent != HERE:  # the whole page, not the window's part of it
        whole = page.evaluate("document.querySelector('.stMain').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(height, int(whole))})
        page.wait_for_timeout(500)
    page.screenshot(path=file)
    context.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(parents=True, exist_ok=True)
    path = chromium_path()
    if path is None:
        sys.exit(no_chromium())
    log = Path(tempfile.mkdtemp()) / "app.log"
    with served_app(log) as address, launched_chromium(path) as browser:
        for name, query, width, height in README if len(sys.argv) == 1 else states():
            for theme in ("light", "dark"):
                picture(browser, address, query, (width, height), theme, folder / f"{name}-{theme}.png")


if __name__ == "__main__":
    main()
