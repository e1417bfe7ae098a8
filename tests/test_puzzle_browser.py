"""The puzzle composed in a real browser, with the mouse and without; and a question below the stage."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from serving import ROOT, Pages, free_port, served
from stage_page import CONTRASTS, Stage, Watched, number_of

from dpsim.ask import ask
from dpsim.beats import beats
from dpsim.forms import preset
from dpsim.puzzle import Transfer, in_lines, parse, solution
from dpsim.simulate import simulate

pytestmark = pytest.mark.browser
RING = parse(3, solution(3))


class Puzzle(Watched):
    """The page with one question."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page, url)
        self.root = page.locator(".puzzle")
        self.announced = self.root.locator(".announced")

    def open(self, query: str = "ranks=3") -> None:
        self.page.goto(f"{self.url}/?{query}")
        expect(self.root.locator(".card").first).to_be_visible()

    def holds(self, rank: int, chunk: int, said: str) -> None:
        """Wait until a cell is read out so: whose contributions are in it."""
        named = self.root.get_by_role("button", name=re.compile(rf"^rank {rank}, chunk {chunk}\b"))
        expect(named).to_have_attribute("aria-label", re.compile(rf": {re.escape(said)}$"))

    def press(self, name: str) -> None:
        self.root.get_by_role("button", name=name).click()

    def send(self, t: Transfer) -> None:
        self.root.get_by_role("button", name=re.compile(rf"^rank {t.source}, chunk {t.chunk}:")).click()
        self.press(f"{'add' if t.op == '+' else 'keep'} chunk {t.chunk} on rank {t.destination}")

    def heard(self) -> None:
        """Wait until the server has answered the last change."""
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")

    def check(self) -> None:
        self.page.get_by_role("button", name="Check my answer").click()


@pytest.fixture(scope="module")
def page_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page for these tests, served."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "tests/puzzle_app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    with served(command, port, tmp_path_factory.mktemp("puzzle") / "server.log", ROOT) as url:
        yield url


@pytest.fixture
def show(pages: Pages, page_url: str) -> Callable[..., Puzzle]:
    """Opens that page."""
    return pages(Puzzle, page_url)


def is_right(puzzle: Puzzle) -> None:
    for rank in range(3):
        for chunk in range(3):
            expect(
                puzzle.root.get_by_role(
                    "button", name=re.compile(rf"^rank {rank}, chunk {chunk}: .*0, 1, 2$")
                )
            ).to_be_visible()
    puzzle.check()
    expect(puzzle.page.get_by_test_id("stAlert")).to_contain_text("no schedule does with less")


def test_a_ring_is_composed_by_quick_clicks_and_nothing_is_lost(show: Callable[..., Puzzle]) -> None:
    puzzle = show()
    for n, transfers in enumerate(RING):
        if n:
            puzzle.press("Next round")
        for transfer in transfers:
            puzzle.send(transfer)
    expect(puzzle.root.locator(".costs")).to_have_text("rounds 4 of 4chunks sent by the busiest rank 4 of 4")
    puzzle.root.locator("summary").click()
    lines = in_lines(3, solution(3))
    expect(puzzle.root.locator("ol li")).to_have_text(lines[:3])
    puzzle.page.get_by_label("Something else").fill("x")  # another widget reruns the page
    puzzle.page.keyboard.press("Enter")
    puzzle.heard()
    is_right(puzzle)


def test_a_ring_is_composed_without_a_mouse_and_read_out(show: Callable[..., Puzzle]) -> None:
    puzzle = show()
    keys = puzzle.page.keyboard
    for n, (first, *_) in enumerate(RING):
        if n:
            puzzle.root.get_by_role("button", name="Next round").focus()
            keys.press("Enter")
            expect(puzzle.announced).to_have_text(f"Round {n + 1} begins.")
        cell = puzzle.root.get_by_role(
            "button", name=re.compile(rf"^rank {first.source}, chunk {first.chunk}:")
        )
        cell.focus()
        keys.press("Enter")  # and the focus is where the next rank adds it
        expect(puzzle.announced).to_contain_text("to whom does it go")
        if first.op == "=":
            keys.press("Tab")
        keys.press("Enter")
        done = "adds" if first.op == "+" else "keeps"
        expect(puzzle.announced).to_have_text(
            f"Rank {first.source} sends chunk {first.chunk} to rank {first.destination}, which {done} it."
        )
        expect(cell).to_be_focused()
        puzzle.root.get_by_role("button", name="The same from every rank").focus()
        keys.press("Enter")
    is_right(puzzle)


def test_transfers_are_taken_back_one_by_one_and_all_at_once(show: Callable[..., Puzzle]) -> None:
    puzzle = show()
    for transfer in RING[0]:
        puzzle.send(transfer)
    chips = puzzle.root.locator(".chips button")
    expect(chips).to_have_count(3)
    chips.nth(1).click()
    expect(chips).to_have_count(2)
    expect(puzzle.announced).to_have_text("Taken back: chunk 1 from rank 1 to rank 2.")
    puzzle.press("Undo")
    expect(chips).to_have_count(3)
    puzzle.press("Start over")
    expect(chips).to_have_count(0)
    puzzle.press("Undo")
    expect(chips).to_have_count(3)
    puzzle.heard()
    puzzle.holds(1, 0, "of rank 1, after this round of ranks 0, 1")
    puzzle.send(Transfer(0, 1, 0, "+"))
    expect(puzzle.root.locator(".note")).to_contain_text("a transfer stands twice")
    puzzle.root.get_by_role("button", name=re.compile("^rank 2, chunk 2:")).click()
    puzzle.page.keyboard.press("Escape")
    expect(puzzle.root.locator('[aria-pressed="true"]')).to_have_count(0)


@pytest.mark.parametrize("ranks", [3, 6])
def test_on_a_phone_nothing_is_wider_than_the_window_and_all_can_be_read(
    show: Callable[..., Puzzle], ranks: int
) -> None:
    puzzle = show(f"ranks={ranks}", viewport={"width": 390, "height": 844}, color_scheme="dark")
    puzzle.send(Transfer(0, 1, 0, "+"))
    puzzle.press("The same from every rank")
    puzzle.heard()
    assert puzzle.page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = (
        "(box) => [...box.querySelectorAll('*')].filter((n) => n.getBoundingClientRect().right > 390).length"
    )
    assert puzzle.root.evaluate(wide) == 0
    faint = [(text, ratio) for text, ratio in puzzle.root.evaluate(CONTRASTS) if ratio < 4.5]
    assert faint == []


def test_one_cell_is_pointed_at(show: Callable[..., Puzzle]) -> None:
    puzzle = show("kind=cell&ranks=4")
    expect(puzzle.root.locator('[aria-pressed="true"]')).to_have_count(0)
    for name in ("rank 2, chunk 2", "rank 0, chunk 1"):
        puzzle.press(name)
    expect(puzzle.root.locator('[aria-pressed="true"]')).to_have_accessible_name("rank 0, chunk 1")
    puzzle.heard()
    puzzle.check()
    expect(puzzle.page.get_by_test_id("stAlert")).to_contain_text("Yes, there.")


def test_below_the_stage_a_question_is_answered_and_the_stage_steps_on(visit: Callable[..., Stage]) -> None:
    stage = visit("beat=allreduce.b0.r0")
    trace = simulate(preset("first-screen"))
    asked = ask(trace, beats(trace), "allreduce.b0.r0")
    assert asked is not None
    right = next(i for i, option in enumerate(asked.options) if option.right)
    stage.page.get_by_role("button", name="Ask me what comes next").click()
    stage.page.get_by_test_id("stRadio").locator("label:has(input)").nth(right).click()
    stage.page.get_by_role("button", name="Check my answer").click()
    expect(stage.alerts).to_contain_text("Right.")
    at = number_of("allreduce.b0.r0")
    stage.at(at)
    stage.page.get_by_role("button", name="Step on and see").click()
    stage.at(at + 1)
    expect(stage.alerts).to_contain_text("as you said")
    stage.back.click()  # the wish was obeyed once: it holds nobody there
    stage.at(at)
    stage.page.get_by_role("button", name="Ask me what comes next").click()
    stage.key("ArrowRight")
    stage.at(at + 1)
    expect(stage.alerts).to_contain_text(f"It was {asked.options[right].text}: you saw it.")
