"""Make the pictures of the app again, light and dark, wide and narrow: ``python docs/pictures.py [FOLDER]``.

Without a folder only the README's two pictures are made, beside this file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]
from serving import chromium_path, launched_chromium, no_chromium, served_app

README = [("stage", "beat=allreduce.b0.r1", 1280, 812)]
PAGES = [
    ("start", "", 1280, 812),
    ("reduce-scatter", "beat=allreduce.b0.r1", 1280, 812),
    ("optimizer", "beat=optimizer", 1280, 812),
    ("overlap", "preset=overlap&beat=s1.allreduce.b1.r2", 1280, 900),
    ("empty-rank", "preset=empty-rank&reduction=mean_of_rank_means&beat=optimizer", 1280, 812),
    ("ring-8", "preset=ring-8&beat=allreduce.b0.r4", 1280, 900),
    ("ring-64", "preset=ring-64&beat=allreduce.b0.r40", 1280, 900),
    ("bad-input", "world_size=0", 1280, 900),
    ("narrow", "beat=allreduce.b0.r1", 390, 844),
    ("narrow-8", "preset=ring-8&beat=allreduce.b0.r4", 390, 844),
    ("narrow-64", "preset=ring-64&beat=allreduce.b0.r40", 390, 844),
]


def picture(
    browser: Browser, address: str, query: str, size: tuple[int, int], theme: str, file: Path
) -> None:
    """One state of the app in one theme, as a file."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.goto(f"{address}/?{query}")
    page.wait_for_selector(".stage .say h2:not(:empty)")
    page.wait_for_timeout(800)
    page.screenshot(path=file, full_page=width < 500)
    context.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(parents=True, exist_ok=True)
    path = chromium_path()
    if path is None:
        sys.exit(no_chromium())
    log = Path(tempfile.mkdtemp()) / "app.log"
    with served_app(log) as address, launched_chromium(path) as browser:
        for name, query, width, height in README if len(sys.argv) == 1 else PAGES:
            for theme in ("light", "dark"):
                picture(browser, address, query, (width, height), theme, folder / f"{name}-{theme}.png")


if __name__ == "__main__":
    main()
