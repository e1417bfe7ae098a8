"""The switch to live in a real Chromium: a run is seen from start to end, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright")
pytest.importorskip("torch")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from serving import ROOT, Pages, free_port, served
from stage_page import Stage

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
MARK = "DPSIM_TEST_MARK"
SOON_S = 60_000.0  # milliseconds: the first start of torch is slow where others are at work


class Live(Stage):
    """A page whose stage can be switched to live."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.run = page.get_by_role("button", name="Run", exact=True)
        self.cancel = page.get_by_role("button", name="Cancel", exact=True)
        self.source = self.root.locator(".source")

    def open(self, path: str = "") -> None:
        self.page.goto(f"{self.url}/{path}")
        self.ready()

    def switch(self) -> None:
        """To live, until it is known what this machine has."""
        self.page.get_by_text("Live on").click()
        expect(self.run).to_be_visible()
        expect(self.page.get_by_text("Live on")).to_contain_text("core", timeout=SOON_S)
        expect(self.run).to_be_enabled(timeout=SOON_S)

    def work(self, times: int) -> None:
        """How often every rank repeats its work."""
        field = self.page.get_by_role("spinbutton", name="Repeat the work")
        field.fill(str(times))
        field.press("Enter")


def workers(mark: str) -> list[int]:
    """The ranks' processes of the server with this mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes()
            if ours and b"dpsim.live.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server and its ranks keep what they need, and nothing stays."""
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own: it has its own queue, and its ranks can be told from others."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    environment = os.environ | {MARK: str(folder), "TMPDIR": str(folder)}
    with served(command, port, tmp_path_factory.mktemp("log") / "log", ROOT, environment) as url:
        yield url


@pytest.fixture
def live(pages: Pages, server: str) -> Callable[..., Live]:
    return pages(Live, server)


@pytest.mark.moves
def test_a_run_is_seen_from_progress_to_the_measured_stage(live: Callable[..., Live], folder: Path) -> None:
    page = live("?preset=accelerate-doc")
    page.switch()
    page.work(5000)
    expect(page.source).to_have_text("simulated")
    page.run.click()
    expect(page.cancel).to_be_visible()
    expect(page.source).to_have_text("measured", timeout=SOON_S)
    assert len(workers(str(folder))) == 2
    page.play.click()
    page.plays()
    page.frames(20)
    assert page.position() > 0
    page.page.get_by_role("tab", name="Predicted and measured").click()
    expect(page.page.locator(".js-plotly-plot .barlayer path").first).to_be_visible()
    for name in ("As run", "Predicted and measured", "Ways to exchange"):
        page.page.get_by_role("tab", name=name).click()
        found = Axe().run(page.page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    page.page.set_viewport_size({"width": 390, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_run_is_called_off_and_another_one_goes(live: Callable[..., Live]) -> None:
    page = live("lab?preset=accelerate-doc")
    page.switch()
    page.work(1_000_000)
    page.run.click()
    expect(page.page.get_by_text("step 1 of 1")).to_be_visible(timeout=SOON_S)
    page.cancel.click()
    expect(page.alerts.filter(has_text="the run was cancelled")).to_be_visible()
    page.work(5)
    page.run.click()
    expect(page.source).to_have_text("measured", timeout=SOON_S)


def test_a_page_that_is_closed_ends_its_run(live: Callable[..., Live], folder: Path) -> None:
    page = live("?preset=accelerate-doc")
    page.switch()
    page.work(1_000_000)
    page.run.click()
    expect(page.page.get_by_text("step 1 of 1")).to_be_visible(timeout=SOON_S)
    at_work = workers(str(folder))
    assert len(at_work) == 2
    page.page.close()
    assert until(lambda: not workers(str(folder)), 20), "its ranks have ended"


def test_the_end_of_the_server_ends_a_run_and_leaves_nothing(
    chromium: object, tmp_path: Path, pages: Pages
) -> None:
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    left = tmp_path / "left"
    left.mkdir()
    environment = os.environ | {MARK: str(left), "TMPDIR": str(left)}
    with served(command, port, tmp_path / "log", ROOT, environment) as url:
        page = pages(Live, url)("?preset=accelerate-doc")
        page.switch()
        page.work(1_000_000)
        page.run.click()
        expect(page.page.get_by_text("step 1 of 1")).to_be_visible(timeout=SOON_S)
        assert len(workers(str(left))) == 2
        page.page.goto("about:blank")
    assert until(lambda: not workers(str(left)), 20)
    assert [path.name for path in left.iterdir()] == ["dpsim-live.lock"]
