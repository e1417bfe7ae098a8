"""The lessons' page in a real browser: where its parts are, and what a test asks them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect
from stage_page import Watched

LONGEST_LOAD_MS = 60_000  # a screen with a chart waits for Plotly's five megabytes, on a busy machine long


class LessonPage(Watched):
    """One page of the app with a lesson."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.heading = page.get_by_role("heading", level=1)
        self.lock = page.get_by_role("button", name="Lock my prediction")
        self.next = page.get_by_role("button", name=re.compile("^Next(: | lesson: )"))
        self.stage = page.locator(".stage")
        self.alerts = page.get_by_test_id("stAlert")
        self.main = page.get_by_test_id("stMain")

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

    def turn(self, scheme: str) -> None:
        """Change to the light or the dark theme, and wait until the page has."""
        self.page.emulate_media(color_scheme=scheme)
        expect(self.page.get_by_test_id("stApp")).to_have_css("color-scheme", scheme)
        dark = self.stage.and_(self.page.locator("[data-dark]"))
        expect(dark).to_have_count(self.stage.count() if scheme == "dark" else 0)

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
