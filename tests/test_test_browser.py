"""The test in a real Chromium: what was given outlives a reload and a restart, a second tab cannot change it,
and everything can be read, on a phone too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lesson_page import LessonPage
from playwright.sync_api import Browser, Page, expect
from serving import Pages, free_port, served_app
from stage_page import CONTRASTS
from test_final_test import right_answer
from test_lessons_browser import serious

from dpsim.final_test import Posed, fingerprint, objectives, questions, score
from dpsim.recovery import learner_id
from dpsim.store import Store

pytestmark = pytest.mark.browser

TESTED = objectives()
COUNT = len(TESTED)
GIVEN_KEY = "fedcba9876543210" * 2
KEY = "localStorage.getItem('dpsim.key')"
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SEED = "a-seed-not-to-be-told"
TYPED = "0.123454321"


class TestPage(LessonPage):
    """The page Test."""

    __test__ = False  # it is a page, and no class of tests

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.give = page.get_by_role("button", name="Give this answer")
        self.row = page.get_by_role("radiogroup", name="Questions; a tick says that the answer is given")

    def open(self, question: int | None = None, **_: str) -> None:
        """Open the page, perhaps at a question, which count from 0."""
        self.page.goto(f"{self.url}/test" + ("" if question is None else f"?question={question + 1}"))
        expect(self.heading).not_to_be_empty()
        self.ready()

    def at(self, question: int) -> None:
        """Wait for a question."""
        expect(self.heading).to_have_text(f"Question {question + 1} of {COUNT}")
        self.ready()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def choose(self, n: int) -> None:
        self.page.get_by_test_id("stRadio").locator("label:has(input)").nth(n).click()


def first(posed: tuple[Posed, ...], kind: str) -> int:
    return next(n for n, one in enumerate(posed) if one.asked.kind == kind)


def test_what_was_given_outlives_a_reload_and_a_restart_and_stands_until_it_is_handed_in(
    chromium: Browser, tmp_path: Path
) -> None:
    context = chromium.new_context(viewport=DESKTOP, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(45_000)
    port, database = free_port(), f"sqlite:///{tmp_path / 'p.sqlite3'}"
    kept, logs = Store(database), [tmp_path / "first.log", tmp_path / "second.log"]
    with served_app(logs[0], port, DPSIM_DATABASE=database) as url:
        tab = TestPage(context.new_page(), url)
        tab.open()
        expect(tab.main).to_contain_text(f"{COUNT} questions")
        assert tab.page.evaluate(KEY) is None, "who only looks gets no key"
        tab.press("Begin the test")
        tab.at(0)
        who = learner_id(tab.page.evaluate(KEY))
        (test,) = kept.tests(who)
        posed = questions(test.seed, TESTED)
        number, choice = first(posed, "number"), first(posed, "choose-one")
        tab.open(number)
        tab.page.get_by_role("textbox").fill(TYPED)
        tab.give.click()
        expect(tab.main).to_contain_text(f"Given: {TYPED}")
        tab.open(choice)
        tab.choose(1)
        tab.give.click()
        expect(tab.main).to_contain_text(f"{2} of {COUNT} given")
        cell = first(posed, "cell")
        tab.open(cell)
        rank, chunk = right_answer(posed[cell].asked).split(".")
        tab.page.locator(".puzzle").get_by_role("button", name=f"rank {rank}, chunk {chunk}").click()
        tab.give.click()
        expect(tab.main).to_contain_text(f"Given: chunk {chunk} on rank {rank}")
        tab.page.reload()
        expect(tab.main).to_contain_text(f"Given: chunk {chunk} on rank {rank}")
        wanted = {number: TYPED, choice: "1", cell: f"{rank}.{chunk}"}
        assert kept.test_answers(who, test.number) == wanted

        other = TestPage(context.new_page(), url)
        another = next(n for n, one in enumerate(posed) if one.asked.kind == "number" and n != number)
        for page, typed in ((tab, "2"), (other, "3")):
            page.open(another)
            page.at(another)
            page.page.get_by_role("textbox").fill(typed)
        tab.give.click()
        expect(tab.main).to_contain_text("Given: 2")
        other.give.click()
        expect(other.main).to_contain_text("the first one stands")
        expect(other.main).to_contain_text("Given: 2")
        wanted[another] = "2"
        assert kept.test_answers(who, test.number) == wanted
        assert not tab.faults + other.faults

    with served_app(logs[1], port, DPSIM_DATABASE=database) as url:
        tab.page.goto(f"{url}/test")
        expect(tab.main).to_contain_text(f"{len(wanted)} of {COUNT} questions given")
        tab.faults.clear()  # while there was no server, the page said so
        ticked = tab.row.get_by_role("radio").filter(has_text="✓")
        expect(ticked).to_have_text([f"{n + 1} ✓" for n in sorted(wanted)])
        tab.row.get_by_role("radio", name=f"{choice + 1} ✓", exact=True).click()
        tab.at(choice)
        tab.page.go_back()
        expect(tab.heading).to_have_text("Your test")
        tab.press("Hand in")
        expect(tab.main).to_contain_text("are still open. They count as wrong")
        tab.press("Yes, hand in")
        expect(tab.heading).to_have_text("Your result")
        made = score(posed, wanted)
        expect(tab.main).to_contain_text(f"{made.right} of {COUNT} questions right")
        assert kept.tests(who)[0].score == made
        expect(tab.page.get_by_test_id("stExpander")).to_have_count(COUNT)
        tab.page.get_by_test_id("stExpander").nth(number).locator("summary").click()
        expect(tab.main).to_contain_text(f"You answered {TYPED}.")
        tab.page.reload()
        expect(tab.heading).to_have_text("Your result")
        assert not tab.faults
        told = [*tab.requests, *other.requests, *(log.read_text("utf-8") for log in logs)]
        assert not [s for s in told for secret in (who, test.seed, TYPED) if secret in s]
    context.close()
    kept.close()


def test_every_state_can_be_read_on_a_phone_and_on_a_screen(pages: Pages, app_url: str) -> None:
    kept, who = Store(os.environ["DPSIM_DATABASE"]), learner_id(GIVEN_KEY)
    tab = pages(TestPage, app_url)()
    looks_well(tab)
    posed = questions(SEED, TESTED)
    test = kept.begin_test(who, SEED, fingerprint(posed))
    for n in range(9):
        kept.answer_test(who, test.number, n, right_answer(posed[n].asked))
    tab.page.evaluate(f"localStorage.setItem('dpsim.key', '{GIVEN_KEY}')")
    tab.open()
    expect(tab.heading).to_have_text("Your test")
    tab.press("Hand in")
    expect(tab.page.get_by_role("button", name="Yes, hand in")).to_be_visible()
    looks_well(tab)
    tab.press("Not yet")
    still = next(n for n in range(9, COUNT) if posed[n].asked.kind == "number")
    tab.open(still)
    tab.give.click()
    expect(tab.alerts).to_contain_text("Type a number first")
    looks_well(tab)
    assert SEED not in tab.page.content()
    for n in range(9, 31):
        kept.answer_test(who, test.number, n, right_answer(posed[n].asked))
    kept.end_test(who, test.number, lambda answers: score(posed, answers))
    tab.open()
    expect(tab.alerts.first).to_contain_text("Passed. 31 of 36")
    tab.page.get_by_test_id("stExpander").nth(8).locator("summary").click()
    looks_well(tab)
    kept.delete(who)
    kept.close()


def looks_well(tab: TestPage) -> None:
    """Nothing is cut off or faint, on a phone and on a screen, in the light and in the dark; axe agrees."""
    tab.ready()
    for size, scheme in ((PHONE, "dark"), (DESKTOP, "light")):
        tab.page.set_viewport_size(size)
        tab.turn(scheme)
        assert tab.too_wide() == []
        found = tab.main.evaluate(CONTRASTS)
        assert len(found) > 8
        assert [f"{text}: {ratio:.2f}" for text, ratio in found if ratio < 4.5] == []
    assert serious(tab) == []
    tab.page.set_viewport_size(DESKTOP)
    tab.turn("light")
