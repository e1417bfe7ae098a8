"""What a learner answered, in a real Chromium: it outlives a reload and a restart of the server, nothing
tells the key, and deleting leaves nothing."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from lesson_page import LessonPage
from playwright.sync_api import Browser, BrowserContext, expect
from serving import free_port, served_app
from stage_page import CONTRASTS

from dpsim.exercises import items
from dpsim.progress import DAY_S, Attempt
from dpsim.recovery import is_key, learner_id, recovery_code
from dpsim.store import Store

pytestmark = pytest.mark.browser

SCREEN = ("one-step", "what-will-the-weights-be")
KEY = "localStorage.getItem('dpsim.key')"
NO_STORAGE = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } });"
# What the page's script does at every message to the server.
STATES = """() => {
  window.dpsimStates = [];
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...what) {
    window.dpsimStates.push(document.querySelector("[data-test-script-state]").dataset.testScriptState);
    return send.apply(this, what);
  };
}"""
TABLES = ("learners", "attempts", "places")
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

Serve = Callable[[], AbstractContextManager[str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "p.sqlite3"


@pytest.fixture
def serve(tmp_path: Path, file: Path) -> Serve:
    """Starts the app with a database of this test's own, always at the same address."""
    port = free_port()
    return lambda: served_app(
        tmp_path / f"{time.monotonic_ns()}.log", port, DPSIM_DATABASE=f"sqlite:///{file}"
    )


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser that has never been here."""
    made = chromium.new_context(viewport=DESKTOP, color_scheme="light")
    made.set_default_timeout(45_000)
    yield made
    made.close()


class Learning(LessonPage):
    """A page of the app; `sent` is how often it has asked the server for a run."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        super().__init__(context.new_page(), url)
        self.sent = 0
        self.page.on("websocket", lambda socket: socket.on("framesent", lambda _: self._sent()))
        self.predicted = self.page.get_by_text("You predicted")

    def _sent(self) -> None:
        self.sent += 1

    def progress(self) -> None:
        self.page.goto(f"{self.url}/progress")
        expect(self.heading).to_have_text("Progress")
        self.ready()


def holds(file: Path, wanted: list[int], longest_s: float = 30) -> None:
    """Wait until the tables have so many rows."""
    end = time.monotonic() + longest_s
    found: list[int] | None = None
    while found != wanted:
        assert time.monotonic() < end, f"{found} instead of {wanted}"
        time.sleep(0.1)
        with contextlib.suppress(sqlite3.OperationalError), sqlite3.connect(file) as connection:
            found = [connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in TABLES]


def test_answers_outlive_a_reload_and_a_restart_nothing_tells_the_key_and_deleting_leaves_nothing(
    serve: Serve, context: BrowserContext, file: Path, tmp_path: Path
) -> None:
    with serve() as url:
        tab = Learning(context, url)
        tab.open(*SCREEN)
        tab.page.wait_for_timeout(1500)
        assert (tab.sent, tab.page.evaluate(KEY)) == (1, None), "who answers nothing gets no key and no rerun"
        around = ":has(> .st-key-learner)"
        assert tab.page.evaluate(f"getComputedStyle(document.querySelector('{around}')).display") == "none"
        tab.page.evaluate(STATES)
        tab.page.get_by_test_id("stRadio").locator("label").nth(1).click()
        tab.lock.click()
        expect(tab.predicted).to_be_visible()
        tab.page.wait_for_function(KEY)
        key = tab.page.evaluate(KEY)
        assert is_key(key)
        holds(file, [1, 1, 1])
        tab.page.wait_for_timeout(1500)
        assert tab.sent == 3, "one run for the answer, one for the key"
        states = tab.page.evaluate("dpsimStates")
        assert states == ["notRunning"] * 2, "else the foot of the page may be lost"
        tab.page.reload()
        expect(tab.predicted).to_be_visible()
        tab.page.wait_for_timeout(1500)
        assert tab.sent == 5, "one run for the page, one for the key"
        assert not tab.faults
    with serve() as url:
        tab.page.reload()
        expect(tab.predicted).to_be_visible()
        tab.faults.clear()  # while there was no server, the page said so
        other = Learning(context, url)
        other.open(*SCREEN)
        expect(other.predicted).to_be_visible()
        tab.progress()
        expect(tab.main).to_contain_text(re.compile(r"1 of [0-9]+ questions answered"))
        tab.page.get_by_role("button", name="Show my recovery code").click()
        expect(tab.page.get_by_text(recovery_code(key))).to_be_visible()
        tab.page.get_by_role("button", name="Delete everything").click()
        tab.page.get_by_role("button", name="Yes, delete everything").click()
        expect(tab.main).to_contain_text("Everything is deleted")
        expect(other.lock).to_be_visible()  # another tab has forgotten it as well
        tab.page.wait_for_function(f"{KEY} === null")
        holds(file, [0, 0, 0])
        assert not tab.faults + other.faults
    told = [asked for page in (tab, other) for asked in page.requests]
    told += [log.read_text("utf-8") for log in tmp_path.glob("*.log")]
    assert not [said for said in told if key in said or recovery_code(key) in said]


def test_a_code_brings_everything_and_the_page_fits_and_can_be_read(
    serve: Serve, context: BrowserContext, file: Path
) -> None:
    key, now, drills = "0123456789abcdef" * 2, time.time(), list(items())
    story = [(0, True, 50), (0, True, 49), (0, True, 46), (0, True, 39), (0, True, 18), (1, True, 3)]
    story += [(2, False, 1), (3, True, 0.2)]
    kept = Store(f"sqlite:///{file}")
    for n, right, days in story:
        shows = "" if right else "M1"
        made = Attempt(drills[n], "7", "number", "1", right, shows, now - days * DAY_S)
        kept.record(learner_id(key), made)
    kept.close()
    with serve() as url:
        tab = Learning(context, url)
        tab.progress()
        tab.page.get_by_text("Use a code from another browser").click()
        typed = recovery_code(key).lower().replace("-", " ")
        tab.page.get_by_label("Recovery code").fill(typed)
        tab.page.get_by_role("button", name="Use this code").click()
        expect(tab.main).to_contain_text("This browser goes on")
        tab.page.wait_for_function(f"{KEY} === '{key}'")
        tab.page.reload()
        expect(tab.page.get_by_role("heading", name="Misconceptions you still hold")).to_be_visible()
        for size in (DESKTOP, PHONE):
            tab.page.set_viewport_size(size)
            tab.ready()
            assert not tab.too_wide()
            for scheme in ("dark", "light"):
                tab.turn(scheme)
                found = tab.main.evaluate(CONTRASTS)
                assert len(found) > 15
                assert not [f"{text}: {ratio:.2f}" for text, ratio in found if ratio < 4.5]
        tab.page.get_by_role("link", name="Practise").first.click()
        expect(tab.heading).to_have_text(items()[drills[1]].title)
        assert tab.asked("item") == drills[1]
        assert not tab.faults


def test_a_browser_that_keeps_nothing_works_and_says_so(
    serve: Serve, context: BrowserContext, file: Path
) -> None:
    context.add_init_script(NO_STORAGE)
    with serve() as url:
        tab = Learning(context, url)
        tab.open(*SCREEN)
        tab.page.get_by_test_id("stRadio").locator("label").nth(1).click()
        tab.lock.click()
        expect(tab.predicted).to_be_visible()
        tab.page.get_by_role("link", name="Progress").first.click()
        expect(tab.main).to_contain_text("This browser keeps nothing for this site")
        expect(tab.main).to_contain_text(re.compile(r"1 of [0-9]+ questions answered"))
        assert not file.exists()
