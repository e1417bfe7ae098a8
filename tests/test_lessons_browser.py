"""Lessons in a real Chromium: predicting by keyboard alone, Back and Forward, narrow screens, contrast."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from lesson_page import LessonPage
from playwright.sync_api import expect
from serving import Pages
from stage_page import CONTRASTS

from dpsim.lessons import Lesson, Prose, Screen, lessons

pytestmark = pytest.mark.browser

Visit = Callable[..., LessonPage]

LOWEST_CONTRAST = 4.5
TRIES = 20  # a quarter of a second each
PHONE = {"width": 390, "height": 844}
OWN = [lesson for lesson in lessons().values() if isinstance(lesson, Lesson)]
TOKENS = next(lesson for lesson in OWN if lesson.slug == "whose-tokens-count")


@pytest.fixture
def visit(pages: Pages, app_url: str) -> Visit:
    """Opens a lesson in a new tab."""
    return pages(LessonPage, app_url)


def test_predict_lock_see_and_go_on_by_keyboard_alone(visit: Visit) -> None:
    lesson = visit("one-step", "what-will-the-weights-be")
    keys = lesson.page.keyboard
    expect(lesson.stage).to_have_count(0)
    lesson.tab_to(lesson.page.get_by_role("radio").first)
    keys.press("ArrowDown")
    expect(lesson.page.get_by_role("radio", checked=True)).to_have_count(1)
    lesson.tab_to(lesson.lock)
    keys.press("Enter")
    expect(lesson.page.get_by_text("You predicted")).to_be_visible()
    expect(lesson.stage.locator(".say h2")).to_have_text("Before the step")
    expect(lesson.lock).to_have_count(0)
    expect(lesson.main.locator("[data-testid=stForm]").get_by_role("radio")).to_have_count(0)
    lesson.tab_to(lesson.next)
    keys.press("Enter")
    expect(lesson.heading).to_have_text("The moves of a step")
    expect(lesson.heading).to_be_focused()
    expect(lesson.heading).to_be_in_viewport()
    assert lesson.asked("screen") == "the-moves-of-a-step"
    lesson.page.go_back()
    expect(lesson.heading).to_have_text("What will the weights be?")
    expect(lesson.page.get_by_text("You predicted")).to_be_visible()
    lesson.page.go_forward()
    expect(lesson.heading).to_have_text("The moves of a step")


def test_every_screen_is_one_step_of_the_history(visit: Visit) -> None:
    lesson = visit("one-step")
    titles = [screen.title for screen in OWN[0].screens[:4]]
    before = lesson.page.evaluate("history.length")
    for title in titles[1:]:
        lesson.next.click()
        expect(lesson.heading).to_have_text(title)
    assert lesson.page.evaluate("history.length") == before + len(titles) - 1
    for title in reversed(titles[:-1]):
        lesson.page.go_back()
        expect(lesson.heading).to_have_text(title)
    for title in titles[1:]:
        lesson.page.go_forward()
        expect(lesson.heading).to_have_text(title)


def test_nothing_of_the_outcome_reaches_the_browser_before_the_lock(visit: Visit) -> None:
    lesson = visit("whose-tokens-count", "a-rank-with-nothing")
    expect(lesson.page.get_by_role("radio", checked=True)).to_have_count(0)
    for outcome in ("NaN", "1.75", "undefined"):
        assert outcome not in lesson.page.content()
    lesson.lock.click()
    expect(lesson.alerts).to_contain_text("Choose one of the answers first")
    lesson.page.get_by_text("There is none").click()
    lesson.lock.click()
    expect(lesson.page.get_by_text("NaN")).to_be_visible()


def test_the_row_of_screens_and_the_list_lead_to_screens(visit: Visit) -> None:
    lesson = visit()
    lesson.page.get_by_role("button", name="Open Whose tokens count").click()
    expect(lesson.heading).to_have_text(TOKENS.screens[0].title)
    lesson.page.get_by_role("button", name=re.compile("(^|page )3$", re.IGNORECASE)).click()
    expect(lesson.heading).to_have_text(TOKENS.screens[2].title)
    assert lesson.asked("screen") == TOKENS.screens[2].slug
    lesson.page.get_by_role("button", name="Lessons", exact=True).click()
    expect(lesson.heading).to_have_text("Lessons")


def test_the_lab_opens_with_the_lesson_s_numbers(visit: Visit) -> None:
    lesson = visit("whose-tokens-count")
    lesson.page.get_by_role("link", name="Try these numbers in the lab").click()
    expect(lesson.page.locator(".stage .batch, .stage").first).to_contain_text("8 valid of 8 tokens")


def one_of_each() -> list[tuple[str, str]]:
    """As few screens as show every kind of block, question and chart: what looks alike is looked at once."""
    left = {(lesson.slug, screen.slug): kinds_on(screen) for lesson in OWN for screen in lesson.screens}
    seen: set[str] = set()
    chosen = []
    while any(kinds - seen for kinds in left.values()):
        most = max(left, key=lambda place: len(left[place] - seen))
        seen |= left.pop(most)
        chosen.append(most)
    return chosen


def kinds_on(screen: Screen) -> set[str]:
    """What a screen is made of, as far as it looks different."""
    kinds = {type(block).__name__ for block in screen.blocks}
    kinds |= {f"question {question.asked.kind}" for question in screen.questions}
    prose = " ".join(block.text for block in screen.blocks if isinstance(block, Prose))
    return kinds | {mark for mark in ("$$", "\n|") if mark in prose}


def test_screens_of_every_look_fit_a_phone_and_have_contrast(visit: Visit) -> None:
    lesson = visit(viewport=PHONE)
    faint, wide = set(), []
    for slug, screen in [("", ""), *one_of_each()]:
        lesson.page.emulate_media(color_scheme="light")
        lesson.open(slug, screen)
        wide += [f"{screen}: {node}" for node in lesson.too_wide()]
        for scheme in ("light", "dark"):
            lesson.turn(scheme)
            for _ in range(TRIES):  # a chart is drawn anew in the other scheme, which takes a while
                found = lesson.main.evaluate(CONTRASTS)
                low = {
                    f"{text[:30]}: {ratio:.2f}"
                    for text, ratio in found
                    if ratio < LOWEST_CONTRAST and text != "…"  # where the row of screens leaves some out
                }
                if not low:
                    break
                lesson.page.wait_for_timeout(250)
            assert len(found) > 5
            faint |= {f"{screen}, {scheme}: {text}" for text in low}
    assert not wide
    assert not faint


def test_axe_finds_no_serious_fault(visit: Visit) -> None:
    lesson = visit("whose-tokens-count", "how-much-does-a-token-count")
    lesson.page.get_by_role("textbox").fill("0,25")
    lesson.lock.click()
    expect(lesson.stage).to_have_count(1)
    faults = serious(lesson)
    for slug, screen in [
        ("", ""),
        ("one-step", "check-yourself"),
        ("whose-tokens-count", "what-one-token-weighs"),
    ]:
        lesson.open(slug, screen)
        if screen == "check-yourself":
            lesson.page.get_by_role("button", name="Check my answer").first.click()
            expect(lesson.alerts).to_contain_text("Type a number first")
        faults += serious(lesson)
    assert not faults, "\n".join(faults)


def serious(lesson: LessonPage) -> list[str]:
    """What axe finds on the page that is serious."""
    lesson.ready()
    found = Axe().run(lesson.page).response
    assert len(found["passes"]) > 10, "axe has looked at the page"
    return [
        f"{fault['id']} ({fault['impact']}): {[node['target'] for node in fault['nodes']]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_term_is_explained_in_place_by_hover_tap_and_focus(visit: Visit, width: int) -> None:
    lesson = visit("one-step", viewport={"width": width, "height": 844}, has_touch=True)
    term = lesson.page.locator("abbr.term").first
    says = term.get_attribute("data-says")
    shown = "(node) => getComputedStyle(node, '::after').content"

    def comes_to_say(what: str) -> bool:
        """Whether the bubble's text becomes this: the pointer's move reaches the page a moment later."""
        for _ in range(TRIES):
            if term.evaluate(shown) == what:
                return True
            lesson.page.wait_for_timeout(250)
        return False

    assert comes_to_say("none")
    for show in (term.hover, term.tap, term.focus):
        lesson.page.mouse.move(0, 0)
        term.evaluate("(node) => node.blur()")
        assert comes_to_say("none")
        show()
        assert comes_to_say(f'"{says}"')
    bubble = term.evaluate(
        "(node) => { const s = getComputedStyle(node, '::after'); return [s.position, parseFloat(s.width)]; }"
    )
    assert bubble[0] == "fixed"
    assert bubble[1] < width
