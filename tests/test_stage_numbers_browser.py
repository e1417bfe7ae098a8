"""The stage in a real Chromium: the numbers that it shows, worked out by hand, and the links to its beats."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect
from stage_page import Stage, number_of, picture, query, told

from dpsim.forms import preset

pytestmark = pytest.mark.browser

Visit = Callable[..., Stage]

LAST = len(told()) - 1


def written(value: float) -> str:
    """A small whole number as the stage writes it."""
    return f"{value:g}".replace("-", "−")


def ring_by_hand(rounds: int) -> tuple[list[list[float]], list[list[set[int]]], dict[tuple[int, int], float]]:
    """The first screen's cells after so many rounds of reduce-scatter: values, who is in them, what came last
    as (rank, chunk): value. In round s rank r sends chunk (r - s) mod R to rank r + 1, which adds it."""
    sums = preset("first-screen").model.gradient_sums
    assert sums is not None
    held = [list(row[0]) for row in sums]
    inside = [[{rank} for _ in range(4)] for rank in range(4)]
    came: dict[tuple[int, int], float] = {}
    for s in range(rounds):
        sent = [(r, (r - s) % 4, held[r][(r - s) % 4], set(inside[r][(r - s) % 4])) for r in range(4)]
        came = {}
        for r, chunk, value, who in sent:
            held[(r + 1) % 4][chunk] += value
            inside[(r + 1) % 4][chunk] |= who
            came[(r + 1) % 4, chunk] = value
    return held, inside, came


def test_the_numbers_of_a_round_are_right(visit: Visit) -> None:
    beat = told()[number_of("allreduce.b0.r1")]
    stage = visit(query(beat=beat.id))
    stage.at(number_of(beat.id), LAST + 1)
    held, inside, came = ring_by_hand(2)
    assert beat.focus is not None
    rank, chunk = beat.focus.rank, beat.focus.chunk
    own, added = held[rank][chunk] - came[rank, chunk], came[rank, chunk]

    expect(stage.heading).to_have_text("Reduce-scatter, round 2 of 3")
    expect(stage.sentence).to_have_text(beat.sentence)
    for value in (added, own, held[rank][chunk]):
        expect(stage.sentence).to_contain_text(written(value))
    arithmetic = f"{written(own)} + {written(added)} = {written(held[rank][chunk])}"
    assert beat.arithmetic[0] == f"chunk {chunk} on rank {rank}: {arithmetic}"
    expect(stage.root.locator(".math .label").first).to_have_text(f"chunk {chunk} on rank {rank}")
    expect(stage.root.locator(".math code")).to_have_text([arithmetic])

    colours = [
        stage.cards.nth(r).evaluate("(card) => getComputedStyle(card).borderLeftColor") for r in range(4)
    ]
    for r in range(4):
        cells = stage.cards.nth(r).locator(".cell")
        expect(cells.locator("b")).to_have_text([written(value) for value in held[r]])
        striped = cells.locator(".stripes").evaluate_all(
            "(bars) => bars.map((bar) => getComputedStyle(bar).backgroundImage)"
        )
        for c in range(4):
            found = set(re.findall(r"rgb\([^)]*\)", striped[c]))
            assert found == {colours[who] for who in inside[r][c]}, f"who is in chunk {c} on rank {r}"

    pills = stage.root.locator(".pills span")
    expect(pills).to_have_text(["0", "1", "2", "3"])
    filled = pills.evaluate_all("(all) => all.map((pill) => getComputedStyle(pill).backgroundColor)")
    assert {r for r in range(4) if filled[r] == colours[r]} == inside[rank][chunk]
    assert {filled[r] for r in range(4) if r not in inside[rank][chunk]} == {"rgba(0, 0, 0, 0)"}

    tiles = stage.root.locator(".tile")
    expect(tiles).to_have_count(4)
    shown = tiles.evaluate_all(
        "(all) => all.map((tile) => [tile.lastChild.textContent, tile.querySelector('b').textContent])"
    )
    assert sorted(map(tuple, shown)) == sorted((f"chunk {c}", written(v)) for (_, c), v in came.items())


def test_the_finished_chunks_are_whole_in_shape_too(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r2"))
    whole = stage.root.locator(".cell.whole")
    expect(whole).to_have_count(4)
    assert stage.root.locator(".cell:not(.whole)").count() == 12
    assert "polygon" in whole.first.evaluate("(cell) => getComputedStyle(cell).clipPath")
    for r in range(4):  # after R - 1 rounds rank r owns chunk (r + 1) mod R
        expect(stage.cards.nth(r).locator(".cell").nth((r + 1) % 4)).to_have_class(re.compile("whole"))
    stage.key("End")
    expect(whole).to_have_count(16)
    total = [sum(column) for column in zip(*ring_by_hand(0)[0], strict=True)]
    for r in range(4):
        expect(stage.cards.nth(r).locator(".cell b")).to_have_text([written(value) for value in total])


def test_the_three_ways_stand_side_by_side(visit: Visit) -> None:
    stage = visit()
    sums, counts = np.array(ring_by_hand(0)[0]), np.array([7, 2, 5, 2])
    right, naive = sums.sum(axis=0) / 16, (sums / counts[:, None]).mean(axis=0)
    compared = stage.root.locator(".compare > div")
    expect(compared).to_have_count(3)
    for row, name, gradient in ((0, "token-weighted", right), (1, "naive", naive), (2, "one device", right)):
        expect(compared.nth(row)).to_contain_text(name)
        vector = ", ".join(f"{value:.4g}".replace("-", "−") for value in gradient)
        expect(compared.nth(row).locator(".vector")).to_have_text(f"g = [{vector}]")
    off = np.linalg.norm(naive - right) / np.linalg.norm(right)
    expect(compared.nth(0)).not_to_contain_text("off by")
    expect(compared.nth(1)).to_contain_text(f"off by {100 * off:.4g} %")


def test_the_address_names_the_beat_and_opens_it_again(visit: Visit) -> None:
    stage = visit()
    stage.key("End", "ArrowLeft", "ArrowLeft")  # a step back jumps
    stage.at(LAST - 2)
    beat = told()[LAST - 2]
    assert stage.asked("beat") == beat.id
    again = visit(stage.page.url.partition("?")[2])
    again.at(LAST - 2, LAST + 1)
    expect(again.heading).to_have_text(beat.title)
    expect(again.sentence).to_have_text(beat.sentence)
    assert picture(again.lanes)["hash"] == picture(stage.lanes)["hash"]
    expect(again.alerts).to_have_count(0)


def test_copy_link_copies_a_link_to_the_beat(visit: Visit) -> None:
    stage = visit(query(preset="collective-tree"), permissions=["clipboard-read", "clipboard-write"])
    for beat in (1, 2):
        stage.key("ArrowRight")
        stage.at(beat)
    stage.root.get_by_role("button", name="Copy link").click()
    expect(stage.root.get_by_role("button", name="Copied")).to_be_visible()
    link = stage.page.evaluate("navigator.clipboard.readText()")
    again = visit(link.partition("?")[2])
    again.at(2, len(told("collective-tree")))
    expect(again.sentence).to_have_text(told("collective-tree")[2].sentence)


def test_the_address_after_choosing_a_preset_opens_what_is_seen(visit: Visit) -> None:
    stage = visit()
    stage.key("End", "ArrowLeft")
    stage.at(LAST - 1)
    stage.choose("chapter-19-2")
    stage.at(0, len(told("chapter-19-2")))
    again = visit(stage.page.url.partition("?")[2])
    expect(again.alerts).to_have_count(0)
    again.at(0, len(told("chapter-19-2")))


def test_stepping_adds_nothing_to_the_history(visit: Visit) -> None:
    stage = visit()
    before = stage.page.evaluate("history.length")
    for beat in range(1, 5):
        stage.key("ArrowRight")
        stage.at(beat)
    stage.key("Home", "End")
    stage.at(LAST)
    assert stage.page.evaluate("history.length") == before
