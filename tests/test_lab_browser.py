"""The lab in a real Chromium: link, controls and stage always agree, and nothing that was chosen is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest

pytest.importorskip("playwright")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect
from serving import Pages, served_app
from stage_page import Stage

from dpsim.forms import from_query, preset, to_query, to_toml
from dpsim.simulate import simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocketRoute

pytestmark = pytest.mark.browser
DESKTOP = {"width": 1280, "height": 900}
START = preset("next-token")


class Lab(Stage):
    """One page with the lab."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.ranks = page.get_by_role("spinbutton", name="Ranks", exact=True)
        self.more = page.locator("[class*=st-key-lab-world_size]").get_by_test_id("stNumberInputStepUp")
        self.undo = page.get_by_role("button", name="Undo")

    def open(self, query: str = "") -> None:
        self.page.goto(f"{self.url}/lab?{query}")
        self.ready()

    def settled(self) -> None:
        """Wait until the server has nothing left to do."""
        self.page.wait_for_timeout(100)
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        self.frames(3)

    def select(self, label: str, option: str) -> None:
        self.page.get_by_role("combobox", name=label, exact=True).click()
        self.page.get_by_role("option", name=option, exact=True).click()
        self.settled()

    def address(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.page.url).query))

    def group(self, name: str) -> Locator:
        """A group of controls, opened."""
        self.page.get_by_test_id("stPopover").get_by_role("button", name=name, exact=True).click()
        body = self.page.get_by_test_id("stPopoverBody")
        expect(body).to_be_visible()
        return body

    def closed(self) -> None:
        """Close the group that is open: a click outside would be taken for that alone."""
        body = self.page.get_by_test_id("stPopoverBody")
        self.page.keyboard.press("Escape")
        if body.is_visible():
            self.page.locator("h1").click()
        expect(body).to_be_hidden()
        self.settled()

    def agrees(self, ranks: int) -> None:
        """Control, stage and address say the same number of ranks."""
        expect(self.cards).to_have_count(ranks)
        expect(self.ranks).to_have_value(str(ranks))
        asked = self.address()
        said = asked.get("world_size") or preset(asked.get("preset", "next-token")).world_size
        assert int(said) == ranks


@pytest.fixture
def lab(pages: Pages, app_url: str) -> Callable[..., Lab]:
    """Opens the lab in a new tab."""
    return pages(Lab, app_url)


@pytest.mark.moves
def test_the_lab_is_drawn_and_plays(lab: Callable[..., Lab]) -> None:
    page = lab()
    page.agrees(4)
    page.play.click()
    page.plays()
    page.frames(30)
    assert page.position() > 0


def test_a_change_keeps_the_place_on_the_stage(lab: Callable[..., Lab]) -> None:
    page = lab("beat=allreduce.b0.r2")
    place = page.position()
    assert place > 0
    page.select("Reduction", "naive mean of rank means")
    expect(page.where).to_contain_text("of 12")  # no count travels any more
    expect(page.heading).to_contain_text("round 3 of 3")
    assert page.asked("beat") == "allreduce.b0.r2"
    page.ranks.fill("6")
    page.ranks.press("Enter")
    page.agrees(6)
    expect(page.heading).to_contain_text("round 3 of 5")


def test_eight_quick_clicks_are_eight(lab: Callable[..., Lab]) -> None:
    page = lab()
    steps = page.page.locator("[class*=st-key-lab-steps]").get_by_test_id("stNumberInputStepUp")
    for _ in range(8):
        steps.click(delay=0, no_wait_after=True)
    page.settled()
    expect(page.page.get_by_role("spinbutton", name="Steps", exact=True)).to_have_value("9")
    expect(page.root.locator(".summary")).to_contain_text("of 9")
    assert page.address()["steps"] == "9"


def test_quick_clicks_on_several_controls_lose_none(lab: Callable[..., Lab]) -> None:
    page = lab()
    steps = page.page.locator("[class*=st-key-lab-steps]").get_by_test_id("stNumberInputStepUp")
    for _ in range(3):
        page.more.click(delay=0, no_wait_after=True)
        steps.click(delay=0, no_wait_after=True)
    page.settled()
    expect(page.root.locator(".summary")).to_contain_text("of 4")  # the last click has been answered
    page.agrees(7)
    assert page.address()["steps"] == "4"


def test_back_and_forward_move_everything(lab: Callable[..., Lab]) -> None:
    page = lab()
    for ranks in (5, 6, 7):
        page.ranks.fill(str(ranks))
        page.ranks.press("Enter")
        page.agrees(ranks)
    for ranks in (6, 5, 4):
        page.page.go_back()
        page.agrees(ranks)
    for ranks in (5, 6, 7):
        page.page.go_forward()
        page.agrees(ranks)
    page.undo.click()
    page.agrees(6)


def test_the_address_opens_the_same_in_a_new_tab(lab: Callable[..., Lab]) -> None:
    page = lab()
    page.ranks.fill("6")
    page.ranks.press("Enter")
    page.agrees(6)
    page.select("Collective", "tree")
    page.go(3)
    other = lab(urlsplit(page.page.url).query)
    other.agrees(6)
    other.at(3)
    assert other.page.url == page.page.url


def test_a_lost_connection_loses_nothing(chromium: Browser, app_url: str) -> None:
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(45_000)
    tab = context.new_page()
    sockets: list[WebSocketRoute] = []

    def through(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    tab.route_web_socket(lambda url: "/_stcore/stream" in url, through)
    page = Lab(tab, app_url)
    page.open()
    page.ranks.fill("6")
    page.ranks.press("Enter")
    page.agrees(6)
    page.go(4)
    connections = len(sockets)
    sockets[-1].close()
    page.page.wait_for_timeout(300)
    page.more.click(force=True)
    for _ in range(100):
        if len(sockets) > connections:
            break
        page.page.wait_for_timeout(100)
    assert len(sockets) > connections, "it has connected again"
    page.settled()
    page.page.wait_for_timeout(1000)
    page.settled()
    ranks = int(page.ranks.input_value())
    assert ranks in (6, 7)
    page.agrees(ranks)
    page.more.click()
    page.agrees(ranks + 1)
    context.close()


class Held:
    """A page whose server's answers can be held back: what it sends then is older than the server's state."""

    def __init__(self, chromium: Browser, url: str) -> None:
        self.context = chromium.new_context(viewport=DESKTOP)
        self.context.set_default_timeout(45_000)
        tab = self.context.new_page()
        self.waiting: list[str | bytes] | None = None
        tab.route_web_socket(lambda address: "/_stcore/stream" in address, self._through)
        self.page = Lab(tab, url)
        self.page.open()

    def _through(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        self.send = socket.send
        server.on_message(lambda m: socket.send(m) if self.waiting is None else self.waiting.append(m))

    def after(self, first: Callable[[], None], second: Callable[[], None]) -> Lab:
        """Do the second thing when the server has answered the first, but nobody has seen it."""
        self.waiting = []
        first()
        while not self.waiting:
            self.page.page.wait_for_timeout(100)
        self.page.page.wait_for_timeout(2000)
        second()
        self.page.page.wait_for_timeout(100)
        for message in self.waiting:
            self.send(message)
        self.waiting = None
        self.page.settled()
        return self.page


@pytest.fixture
def held(chromium: Browser, app_url: str) -> Iterator[Held]:
    """The lab, with a server that answers late."""
    made = Held(chromium, app_url)
    yield made
    made.context.close()


def test_a_click_before_the_last_one_s_answer_is_seen_takes_nothing_back(held: Held) -> None:
    steps = held.page.page.locator("[class*=st-key-lab-steps]").get_by_test_id("stNumberInputStepUp")
    page = held.after(lambda: held.page.more.click(), lambda: steps.click())
    page.agrees(5)
    expect(page.root.locator(".summary")).to_contain_text("of 2")
    tokens = page.group("Batch").locator("button[aria-pressed]")
    expect(tokens).to_have_count(40)
    page = held.after(lambda: tokens.nth(0).click(), lambda: tokens.nth(1).click())
    expect(page.cards.first.locator("header")).to_contain_text("5 valid of 8 tokens")
    page.agrees(5)


def test_a_click_on_what_an_undo_is_about_to_replace_does_not_bring_it_back(held: Held) -> None:
    page = held.page
    page.more.click()
    page.agrees(5)
    steps = page.page.locator("[class*=st-key-lab-steps]").get_by_test_id("stNumberInputStepUp")
    page = held.after(lambda: page.undo.click(), lambda: steps.click())
    page.agrees(4)
    assert page.address() == {"preset": "next-token"}


def test_tokens_are_clicked_to_mask_them(lab: Callable[..., Lab]) -> None:
    page = lab()
    body = page.group("Batch")
    tokens = body.locator("button[aria-pressed]")
    expect(tokens).to_have_count(32)
    for place in (0, 1, 2, 3, 4):
        tokens.nth(place).click(no_wait_after=True)
    page.settled()
    expect(page.cards.first.locator("header")).to_contain_text("2 valid of 8 tokens")
    expect(tokens.nth(0)).to_have_attribute("aria-pressed", "false")
    assert "batch.labels" in page.address()
    tokens.nth(0).focus()
    page.page.keyboard.press("Space")
    page.settled()
    expect(page.cards.first.locator("header")).to_contain_text("3 valid of 8 tokens")
    page.closed()
    page.undo.click()
    page.settled()
    expect(page.cards.first.locator("header")).to_contain_text("2 valid of 8 tokens")
    body = page.group("Batch")
    expect(body.locator("button[aria-pressed]").nth(0)).to_have_attribute("aria-pressed", "false")


def test_share_gives_a_link_with_the_beat(lab: Callable[..., Lab]) -> None:
    page = lab("preset=first-screen")
    page.go(5)
    beat = page.asked("beat")
    page.page.get_by_role("button", name="Share").click()
    link = page.page.get_by_role("dialog").get_by_test_id("stCode").inner_text().strip()
    asked = dict(parse_qsl(urlsplit(link).query))
    assert asked.pop("beat") == beat
    assert from_query(asked) == preset("first-screen")
    other = lab(urlsplit(link).query)
    other.at(5)


def test_a_link_too_long_becomes_a_file(lab: Callable[..., Lab]) -> None:
    long = replace(START, batch=replace(START.batch, lengths=(4,) * 400, valid=(3,) * 400))
    page = lab(to_query(long))
    page.page.get_by_role("button", name="Share").click()
    dialog = page.page.get_by_role("dialog")
    expect(dialog).to_contain_text("some programs cut links after 2000")
    with page.page.expect_download() as download:
        dialog.get_by_role("button", name="Scenario as TOML").click()
    assert Path(download.value.path()).read_text("utf-8") == to_toml(long)


def upload(page: Lab, name: str, text: str | bytes) -> Locator:
    body = page.page.get_by_test_id("stPopoverBody")
    if not body.is_visible():
        body = page.group("Open")
    content = text if isinstance(text, bytes) else text.encode()
    body.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )
    page.settled()
    return body


def test_a_saved_scenario_and_a_saved_trace_open_again(lab: Callable[..., Lab]) -> None:
    page = lab()
    upload(page, "mine.toml", to_toml(preset("ring-8")))
    page.agrees(8)
    page = lab()
    trace = json.loads(simulate(preset("empty-rank")).to_json())
    trace["source"] = "measured"
    trace["machine"] = dict.fromkeys(("hardware", "versions", "date", "process_ids"), "x")
    upload(page, "mine.json", json.dumps(trace))
    expect(page.cards).to_have_count(3)
    expect(page.root.locator(".source")).to_have_text("recorded")
    page.closed()
    page.more.click()
    page.agrees(4)
    expect(page.root.locator(".source")).to_have_text("simulated")


BAD_FILES: list[tuple[str, str | bytes, str]] = [
    ("a.toml", "colour = 1", "colour: unknown key"),
    ("a.toml", "x" * 100_001, "TOML: must have at most 100000 characters"),
    ("a.toml", ".".join(["a"] * 50) + " = 1", "TOML: must have at most 40 dots in a line"),
    ("a.toml", b"\xff\xfe", "file: must be UTF-8 text"),
    ("a.json", "{}", "trace: must be a file of the format dpsim-trace"),
    ("a.json", "[" * 100_000, "trace: must be a JSON object"),
]


def test_a_file_that_is_none_is_told_and_the_picture_stays(lab: Callable[..., Lab]) -> None:
    page = lab()
    for name, text, message in BAD_FILES:
        body = upload(page, name, text)
        expect(body.get_by_test_id("stAlert")).to_contain_text(message)
        expect(page.cards).to_have_count(4)


def test_a_click_that_is_refused_is_told_and_taken_back(lab: Callable[..., Lab]) -> None:
    page = lab("batch.lengths=[0,8]&batch.valid=[0,8]&world_size=2")
    body = page.group("Batch")
    body.locator("button[aria-pressed]").nth(2).click()
    page.settled()
    expect(body.get_by_test_id("stAlert")).to_contain_text("batch.tokens[0]")
    expect(body.locator("button[aria-pressed]").nth(2)).to_have_attribute("aria-pressed", "true")


def test_nothing_serious_for_axe_and_nothing_cut_off(lab: Callable[..., Lab]) -> None:
    page = lab("steps=3", viewport={"width": 390, "height": 900}, color_scheme="dark")
    for tab in ("Time", "Over the steps", "Gradients", "Time"):
        page.page.get_by_role("tab", name=tab).click()
        page.settled()
        width = page.page.evaluate("innerWidth")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        wide = page.page.evaluate(
            "[...document.querySelectorAll('.stMain *')].filter((n) => !n.closest('.st-key-reductions') "
            "&& n.checkVisibility() && n.getBoundingClientRect().right > innerWidth + 1 "
            "&& !n.closest('[data-testid=stTabs] [role=tablist]')).map((n) => n.outerHTML.slice(0, 80))"
        )
        assert wide == []
        found = Axe().run(page.page).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in serious] == []
        if tab == "Gradients":  # and once more on a large screen in the light
            page.page.set_viewport_size(DESKTOP)
            page.page.emulate_media(color_scheme="light")


def test_a_fresh_server_that_is_first_asked_for_the_lab_shows_it(chromium: Browser, tmp_path: Path) -> None:
    with served_app(tmp_path / "server.log") as url:
        context = chromium.new_context(viewport=DESKTOP)
        context.set_default_timeout(30_000)
        page = Lab(context.new_page(), url)
        page.open("steps=2")
        expect(page.page.get_by_role("navigation").get_by_role("link")).to_have_count(8)
        page.agrees(4)
        assert page.asked("steps") == "2"
        assert page.page.title() == "dpsim: one data-parallel step"
        context.close()


def test_the_presenters_view_is_the_stage_alone_and_a_remote_steps_it(lab: Callable[..., Lab]) -> None:
    page = lab("present=1", viewport={"width": 1920, "height": 1080})
    expect(page.page.get_by_role("navigation")).not_to_be_visible()
    assert page.page.evaluate("document.querySelector('.stMain').scrollHeight") <= 1080
    for beat in (1, 2):
        page.page.keyboard.press("PageDown")
        page.at(beat)
    page.page.keyboard.press("PageUp")
    page.at(1)
    page.page.get_by_role("button", name="Leave the presenter's view").click()
    expect(page.page.get_by_role("navigation")).to_be_visible()
    page.agrees(4)
    assert page.asked("present") is None
    page.at(1)


def test_the_keyboard_alone_changes_and_undoes(lab: Callable[..., Lab]) -> None:
    page = lab()
    seen = []
    page.page.locator("body").focus()
    for _ in range(60):
        page.page.keyboard.press("Tab")
        label = page.page.evaluate(
            "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
        )
        seen.append(label)
        if label == "Ranks":
            break
    assert seen[-1] == "Ranks", seen
    page.page.keyboard.press("ArrowUp")
    page.page.keyboard.press("Enter")
    page.agrees(5)
    page.undo.focus()
    page.page.keyboard.press("Enter")
    page.agrees(4)


def test_a_wide_table_scrolls_inside_its_own_box(lab: Callable[..., Lab]) -> None:
    page = lab(to_query(START), viewport={"width": 390, "height": 844})
    box = page.page.locator(".st-key-reductions")
    assert box.evaluate("(b) => [b, ...b.querySelectorAll('*')].some((n) => n.scrollWidth > n.clientWidth)")
    assert page.page.evaluate("document.querySelector('.stMain').scrollWidth") <= 390
