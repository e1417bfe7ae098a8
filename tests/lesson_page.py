"""The lessons' page in a real browser: where its parts are, and what a test asks them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

# Streamlit looks for its own server below the page's path first: a browser reports what is not there.
LOOKED_FOR = re.compile(r"status of 404")

LONGEST_LOAD_MS = 60_000  # a screen with a chart waits for Plotly's five megabytes, on a busy machine long


class LessonPage:
    """One page of the app with a lesson; `faults` is what went wrong on it so far."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.faults: list[str] = []
        self.heading = page.get_by_role("heading", level=1)
        self.lock = page.get_by_role("button", name="Lock my prediction")
        self.next = page.get_by_role("button", name=re.compile("^Next(: | lesson: )"))
        self.stage = page.locator(".stage")
        self.alerts = page.get_by_test_id("stAlert")
        self.main = page.get_by_test_id("stMain")
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("console", lambda said: self._heard(said.type, said.text))

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and not LOOKED_FOR.search(text):
            self.faults.append(f"console: {text}")

    def open(self, lesson: str = "", screen: str = "") -> None:
        """Open a screen by its link and wait until it is drawn."""
        asked = "&".join(f"{k}={v}" for k, v in (("lesson", lesson), ("screen", screen)) if v)
        self.page.goto(f"{self.url}/lesson?{asked}")
        expect(self.heading).not_to_be_empty(timeout=LONGEST_LOAD_MS)
        expect(self.heading).to_have_css("font-weight", "600", timeout=LONGEST_LOAD_MS)  # by our own style
        self.ready()

    def ready(self) -> None:
        """Wait until the script has run."""
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")

    def asked(self, key: str) -> str | None:
        """A value in the address bar."""
        return parse_qs(urlsplit(self.page.url).query).get(key, [None])[0]

    def tab_to(self, wanted: Locator, most: int = 60) -> None:
        """Press Tab until `wanted` has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("(node) => node === document.activeElement"):
                return
        raise AssertionError(f"{wanted} cannot be reached with Tab")

    def too_wide(self) -> list[str]:
        """What of the page is wider than the window."""
        found = self.page.evaluate(
            """() => {
              const width = document.documentElement.clientWidth;
              const main = document.querySelector('[data-testid="stMain"]');
              return main.scrollWidth <= width ? [] : [...main.querySelectorAll("*")]
                .filter((node) => node.getBoundingClientRect().right > width + 1)
                .map((node) => `${node.tagName} ${node.className} ${node.textContent.slice(0, 40)}`);
            }"""
        )
        assert isinstance(found, list)
        return found
