"""The stage in a real Chromium, for everyone: narrow screens, dark and light, reduced motion, screen readers,
odd titles, and nobody else asked for anything."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from stage_page import CONTRASTS, Stage, query, told

pytestmark = pytest.mark.browser

Visit = Callable[..., Stage]

PHONE = {"width": 390, "height": 844}
LOWEST_CONTRAST = 4.5
ODD_TITLES = {
    "markdown": r"$x$ <b>bold</b> `_a_` ~~s~~ \ :smile: [l](http://x) :red[r] **b** &amp; # 1. - x | y",
    "icon": "a :material/home: icon",
    "arrows": "a -> b -- c >= d",
    "address": "http://example.org and www.example.org and a@example.org",
}
WORD_JOINER = "\u2060"  # invisible; it may keep a text from being read as Markdown
LAST = len(told()) - 1


def test_reduced_motion_jumps_from_beat_to_beat(visit: Visit) -> None:
    stage = visit(reduced_motion="reduce")
    stage.record()
    stage.key(" ")
    stage.at(1)
    stage.key(" ", "ArrowRight", "PageDown")
    stage.at(4)
    stage.play.click()
    stage.at(5)
    stage.forth.click()
    stage.at(6)
    stage.key("ArrowLeft")
    stage.at(5)
    stage.frames(5)
    frames = stage.recorded()
    assert {frame["position"] for frame in frames} <= set(range(7)), "no picture between two beats"
    for beat in range(7):
        shown = {(frame["playhead"], frame["tiles"]) for frame in frames if frame["position"] == beat}
        assert len(shown) <= 1, f"beat {beat + 1} moves"


@pytest.mark.parametrize("name", ["first-screen", "overlap", "ring-8", "ring-64"])
def test_nothing_is_cut_off_on_a_narrow_screen(visit: Visit, name: str) -> None:
    stage = visit(query(preset=name), viewport=PHONE)
    main = stage.page.get_by_test_id("stMain")
    last = stage.last()
    for beat in (0, last // 2, last):
        stage.go(beat)
        assert stage.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert main.evaluate("(main) => main.scrollWidth <= main.clientWidth")
        assert stage.cut_off() == []


@pytest.mark.moves
def test_everything_can_be_reached_on_a_narrow_screen(visit: Visit) -> None:
    stage = visit(query(beat="backward"), viewport=PHONE)
    expect(stage.heading).to_be_in_viewport()
    expect(stage.sentence).to_be_in_viewport()
    for control in (stage.play, stage.back, stage.forth, stage.loop, stage.speed, stage.slider):
        control.click(trial=True)
        expect(control).to_be_in_viewport(ratio=0.9)
    chips = stage.root.get_by_role("group", name="Phases").get_by_role("button")
    for chip in chips.all():
        chip.click(trial=True)
        box = chip.bounding_box()
        assert box is not None
        assert box["height"] >= 24, "a finger needs at least 24 pixels"
    stage.root.get_by_role("button", name="Copy link").click(trial=True)
    stage.text.locator("summary").click()
    expect(stage.text.get_by_text("Optimizer step")).to_be_visible()
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    stage.play.click()
    stage.plays()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_the_stage_has_contrast(visit: Visit, scheme: str) -> None:
    stage = visit(query(preset="ring-8"), color_scheme=scheme)
    assert (stage.root.get_attribute("data-dark") is not None) == (scheme == "dark")
    faint = set()
    for beat in (0, 4, 6, 11, 13, stage.last()):
        stage.go(beat)
        found = stage.root.evaluate(CONTRASTS)
        assert len(found) > 60
        faint |= {f"{text}: {ratio:.2f}" for text, ratio in found if ratio < LOWEST_CONTRAST}
    assert not faint


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("first-screen", {"color_scheme": "dark", "viewport": PHONE}),
        ("ring-64", {"color_scheme": "light"}),
    ],
    ids=["narrow", "ring-64"],
)
def test_axe_finds_no_serious_fault(visit: Visit, name: str, options: dict[str, object]) -> None:
    stage = visit(query(preset=name, beat="allreduce.b0.r1"), **options)
    stage.text.locator("summary").click()
    expect(stage.text.get_by_text("Optimizer step")).to_be_visible()
    found = Axe().run(stage.page).response
    assert len(found["passes"]) > 10, "axe has looked at the page"
    faults = [
        f"{fault['id']} ({fault['impact']}): {[node['target'] for node in fault['nodes']]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert not faults, "\n".join(faults)


def test_the_sentence_is_announced_and_the_pictures_have_names(visit: Visit) -> None:
    stage = visit()
    expect(stage.root).to_have_accessible_name("One data-parallel step, beat by beat")
    expect(stage.sentence).to_have_attribute("aria-live", "polite")
    expect(stage.root.get_by_role("img")).to_have_count(1)
    expect(stage.lanes).to_have_accessible_name(re.compile("Timeline of 4 ranks, 15.8 ms per step"))


def test_the_beats_are_on_the_page_as_text(visit: Visit) -> None:
    stage = visit()
    stage.text.locator("summary").click()
    for beat in told():
        for part in (beat.title, beat.sentence):
            expect(stage.text.get_by_text(part).first).to_be_visible()
    assert "\\" not in stage.text.inner_text()


@pytest.mark.parametrize("title", ODD_TITLES.values(), ids=ODD_TITLES.keys())
def test_a_title_is_shown_as_it_was_typed(visit: Visit, title: str) -> None:
    stage = visit(query(title=title))
    expect(stage.title).to_be_visible()
    assert stage.title.inner_text().replace(WORD_JOINER, "").strip() == title
    assert stage.title.locator("a").count() == 0


def test_bad_input_is_told_beside_the_last_good_picture(visit: Visit) -> None:
    stage = visit(query(world_size="0"))
    expect(stage.alerts).to_contain_text("world_size: must be a whole number from 1 to")
    stage.at(0, LAST + 1)
    expect(stage.cards).to_have_count(4)


def test_nobody_else_is_asked_for_anything(visit: Visit) -> None:
    stage = visit()
    stage.forth.click()
    stage.page.wait_for_timeout(3_000)
    hosts = {url.removeprefix("blob:").split("/")[2] for url in stage.requests if not url.startswith("data:")}
    assert hosts == {stage.url.removeprefix("http://")}
