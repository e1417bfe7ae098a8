"""Make the pictures of the app again, light and dark, wide and narrow: ``python docs/pictures.py [FOLDER]``.

Without a folder only the README's two pictures are made, beside this file.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
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


@contextmanager
def served() -> Iterator[str]:
    """The app on a free port; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    app = subprocess.Popen(
        [*command, "--server.headless", "true"], cwd=HERE.parent, stdout=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        app.terminate()
        app.wait()


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
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(found), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, query, width, height in README if len(sys.argv) == 1 else PAGES:
            for theme in ("light", "dark"):
                picture(browser, address, query, (width, height), theme, folder / f"{name}-{theme}.png")
        browser.close()


if __name__ == "__main__":
    main()
