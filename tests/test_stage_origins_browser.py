"""The stage in a real Chromium: numbers that say where they come from, and terms that are explained."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect
from stage_page import CONTRASTS, Stage, number_of, query, told

from dpsim.glossary import terms_in

pytestmark = pytest.mark.browser

Visit = Callable[..., Stage]

PHONE = {"width": 390, "height": 844}
# Numbers that a Tab could stop at.
STOPS = """(stage) => stage.querySelectorAll(':is([data-origin], .term)[tabindex="0"]').length"""


def panel(stage: Stage) -> Locator:
    return stage.root.get_by_role("dialog")


def codes(stage: Stage) -> list[str]:
    return panel(stage).locator(".lines code").all_inner_texts()


def test_a_cell_says_its_arithmetic_its_ranks_and_its_beat(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r3"))
    stage.cards.nth(2).locator(".cell").nth(0).click()  # made in round 2 of the reduce-scatter
    expect(panel(stage)).to_be_focused()
    expect(panel(stage)).to_have_accessible_name("Chunk 0 on rank 2")
    expect(panel(stage)).to_contain_text("14 valid of 24 tokens")
    assert codes(stage) == ["−2 + 8 = 6", "3 + 5 − 2 = 6"]
    filled = (
        panel(stage)
        .locator(".pills span")
        .evaluate_all(
            "(all) => all.map((pill) => getComputedStyle(pill).backgroundColor !== 'rgba(0, 0, 0, 0)')"
        )
    )
    assert filled == [True, True, True, False]
    expect(stage.root.locator(".hand")).to_be_hidden()
    panel(stage).get_by_role("button", name="Go to this beat").click()
    stage.at(number_of("allreduce.b0.r1"))
    expect(panel(stage)).to_be_visible()
    stage.key("ArrowRight")
    expect(panel(stage)).to_be_hidden()
    expect(stage.root.locator(".hand")).to_be_visible()


def test_what_a_number_was_made_of_can_be_followed_back(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    stage.cards.nth(2).locator(".cell").nth(0).click()
    panel(stage).get_by_role("button", name="Chunk 0 on rank 1, Reduce-scatter, round 1 of 3").click()
    assert codes(stage) == ["5 + 3 = 8"]
    panel(stage).get_by_role("button", name="Chunk 0 on rank 0, Backward").click()
    assert codes(stage) == ["3"]
    panel(stage).get_by_role("button", name="‹ Back").click()
    panel(stage).get_by_role("button", name="‹ Back").click()
    assert codes(stage)[0] == "−2 + 8 = 6"
    expect(panel(stage).get_by_role("button", name="‹ Back")).to_be_hidden()


def test_a_packet_says_what_it_carries(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    stage.root.locator(".tile").filter(has_text="chunk 0").click()
    expect(panel(stage)).to_contain_text("on its way from rank 1 to rank 2")
    assert codes(stage) == ["5 + 3 = 8"]


@pytest.mark.moves
def test_a_click_while_it_plays_rests_it_and_stays(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r0"))
    stage.speed.select_option("0.5")
    stage.play.click()
    stage.root.locator(".tile.flying").first.dispatch_event("click")
    stage.at(number_of("allreduce.b0.r1"))
    expect(panel(stage)).to_be_visible()
    stage.frames(10)
    expect(panel(stage)).to_be_visible()


OTHERS = {
    "count": (
        (".card header span", 1, "8 − 2 = 6"),
        (".centre > b", 0, "7 + 2 + 5 + 2 = 16"),
        (".summary", 0, "0.1 + 0.6 + 6 + 2 + 6.6 + 0.5 = 15.8 ms"),
    ),
    "optimizer": (
        (".card .numbers span", 0, "0.5 − 0.1 × 0.625 = 0.4375"),
        (".compare .vector", 1, "1.169 / (1.535 × 0.9843) = 0.7737"),
        (".compare .vector", 2, "(3 + 5 − 2 + 4) / 16 = 0.625"),
    ),
}


@pytest.mark.parametrize("beat", OTHERS)
def test_every_other_number_says_where_it_comes_from(visit: Visit, beat: str) -> None:
    stage = visit(query(beat=beat))
    for selector, place, arithmetic in OTHERS[beat]:
        stage.root.locator(selector).nth(place).click()
        assert arithmetic in codes(stage)
        expect(panel(stage)).to_be_in_viewport(ratio=0.95)
        assert stage.cut_off() == []
        stage.page.keyboard.press("Escape")


def test_a_token_says_what_it_weighs_and_a_masked_one_why_it_does_not(visit: Visit) -> None:
    stage = visit(query(beat="scatter"))
    stage.cards.nth(1).locator(".strip .valid").nth(1).click()
    expect(panel(stage)).to_contain_text("valid token 2 of sequence 1")
    assert [code.rpartition("= ")[2] for code in codes(stage)] == ["1", "2", "2", "0.25", "4"]
    stage.root.locator(".centre .masked").first.click()
    expect(panel(stage)).to_contain_text("masked token 8 of sequence 0")
    expect(panel(stage)).to_contain_text("no weight under any reduction")
    assert codes(stage) == []


def test_a_long_strip_is_asked_as_a_whole(visit: Visit) -> None:
    stage = visit(query(preset="accelerate-doc", beat="scatter"))
    stage.cards.nth(0).locator(".strip .valid").click()
    expect(panel(stage)).to_contain_text("The valid tokens of rank 0")
    assert len(codes(stage)) == 5


def test_a_chunk_of_64_ranks_says_who_is_in_it(visit: Visit) -> None:
    stage = visit(query(preset="ring-64", beat="allreduce.b0.r40"))
    stage.matrix.click(position={"x": 2, "y": 2})
    expect(panel(stage)).to_be_hidden()
    stage.matrix.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"):
        stage.page.keyboard.press(key)
    stage.page.keyboard.press("Enter")
    # In round n rank r sends chunk r - n: after 41 rounds chunk 1 has come from rank 1 to rank 42.
    expect(panel(stage)).to_contain_text("Chunk 1 on rank 3")
    expect(panel(stage)).to_contain_text("3 of 64 ranks are in it: 1–3.")
    panel(stage).get_by_role("button", name="Go to this beat").click()
    stage.at(number_of("allreduce.b0.r1", "ring-64"))
    stage.page.keyboard.press("Escape")
    expect(panel(stage)).to_be_hidden()
    expect(stage.matrix).to_be_focused()


# -- keyboard ------------------------------------------------------------------------------------------------


def test_the_keyboard_alone_reaches_every_number_and_term(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    assert stage.root.evaluate(STOPS) == 1
    stage.root.focus()
    for _ in range(20):
        stage.page.keyboard.press("Tab")
        if stage.root.evaluate("(s) => s.getRootNode().activeElement?.matches('[data-origin], .term')"):
            break
    # A walk over everything that an arrow key leads to.
    reached = stage.root.evaluate(
        """(stage) => {
          const press = (node, key) => {
            node.focus();
            node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            return stage.getRootNode().activeElement;
          };
          const seen = new Set([stage.getRootNode().activeElement]);
          const queue = [...seen];
          while (queue.length) {
            const from = queue.shift();
            for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"]) {
              const to = press(from, key);
              if (!seen.has(to)) seen.add(to) && queue.push(to);
            }
          }
          const all = [...stage.querySelectorAll("[data-origin], .term")].filter((n) => n.checkVisibility());
          return { missed: all.filter((n) => !seen.has(n)).map((n) => n.outerHTML), all: all.length };
        }"""
    )
    assert reached["all"] > 80
    assert reached["missed"] == []
    assert stage.root.evaluate(STOPS) == 1
    stage.at(number_of("allreduce.b0.r1"))


def test_enter_and_space_open_it_and_escape_gives_the_focus_back(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    cell = stage.cards.nth(2).locator(".cell").nth(0)
    for key in ("Enter", " "):
        cell.focus()
        stage.page.keyboard.press(key)
        expect(panel(stage)).to_be_focused()
        assert codes(stage)[0] == "−2 + 8 = 6"
        stage.page.keyboard.press("Escape")
        expect(panel(stage)).to_be_hidden()
        expect(cell).to_be_focused()
    stage.rests()
    stage.page.keyboard.press("PageDown")  # beats go on from a number too
    stage.at(number_of("allreduce.b0.r2"))
    stage.root.focus()
    stage.page.keyboard.press("ArrowRight")
    stage.at(number_of("allreduce.b0.r3"))


def test_the_keys_go_on_when_the_focused_number_is_gone(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    stage.root.locator(".tile").first.focus()
    stage.page.keyboard.press("PageDown")
    stage.at(number_of("allreduce.b0.r2"))
    stage.page.keyboard.press("PageDown")
    stage.at(number_of("allreduce.b0.r3"))


def test_numbers_are_buttons_named_by_what_they_show(visit: Visit) -> None:
    stage = visit(query(beat="optimizer"))
    expect(stage.cards.nth(0).get_by_role("button", name="0.4375", exact=True)).to_have_count(1)
    expect(stage.cards.nth(0).get_by_role("button", name="7 valid of 8 tokens")).to_have_count(1)
    expect(stage.cards.nth(0).get_by_role("button", name="valid token 3 of sequence 0")).to_have_count(1)


# -- terms ---------------------------------------------------------------------------------------------------


def test_terms_are_marked_as_the_glossary_finds_them(visit: Visit) -> None:
    stage = visit()
    for i, beat in enumerate(told()):
        stage.go(i)
        for place, text in ((stage.heading, beat.title), (stage.sentence, beat.sentence)):
            assert place.inner_text() == text
            expected = [text[start:end] for start, end, _ in terms_in(text)]
            assert place.locator(".term").all_inner_texts() == expected


def test_a_term_is_explained_on_hover_focus_and_tap(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    tip, word = stage.root.get_by_role("tooltip"), stage.heading.locator(".term")
    expect(tip).to_be_hidden()
    word.hover()
    expect(tip).to_contain_text("The first half of a ring all-reduce")
    stage.page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    word.focus()
    expect(tip).to_be_visible()
    expect(word).to_have_accessible_description(re.compile("The first half of a ring all-reduce"))
    stage.page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    stage.root.get_by_role("group", name="Phases").get_by_role("button", name="All-gather").hover()
    expect(tip).to_contain_text("The second half")


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 812}], ids=["phone", "desktop"])
def test_an_explanation_never_leaves_the_screen(visit: Visit, viewport: dict[str, int]) -> None:
    stage = visit(query(beat="optimizer"), viewport=viewport, has_touch=True)
    terms = stage.root.locator(".term")
    for i in range(terms.count()):
        if not terms.nth(i).is_visible():
            continue
        terms.nth(i).scroll_into_view_if_needed()
        terms.nth(i).dispatch_event("click")
        box = stage.root.get_by_role("tooltip").bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= viewport["width"]
        assert 0 <= box["y"] <= box["y"] + box["height"] <= viewport["height"]


# -- for everyone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}],
    ids=["light", "phone"],
)
def test_the_panel_is_readable_and_axe_finds_nothing(visit: Visit, options: dict[str, object]) -> None:
    stage = visit(query(beat="optimizer"), **options)
    for selector in (".card .numbers span", ".compare .ours .vector"):
        stage.root.locator(selector).first.click()
        expect(panel(stage)).to_be_visible()
        faint = [found for found in stage.root.evaluate(CONTRASTS) if found[1] < 4.5]
        assert not faint
        assert stage.cut_off() == []
        found = Axe().run(stage.page).response["violations"]
        assert not [f["id"] for f in found if f["impact"] in ("serious", "critical")]
        stage.page.keyboard.press("Escape")


def test_on_a_phone_what_was_asked_stays_in_sight(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"), viewport=PHONE)
    for rank in range(4):
        cell = stage.cards.nth(rank).locator(".cell").nth(3)
        cell.evaluate("(cell) => cell.click()")
        expect(panel(stage)).to_be_in_viewport(ratio=0.99)
        sheet, box = panel(stage).bounding_box(), cell.bounding_box()
        assert sheet is not None
        assert box is not None
        assert box["y"] + box["height"] <= sheet["y"]
        panel(stage).get_by_role("button", name="Close").click()
        expect(cell).to_be_focused()


def test_a_rerun_leaves_the_panel_open(visit: Visit) -> None:
    stage = visit(query(beat="optimizer"))
    stage.cards.nth(0).locator(".numbers span").first.click()
    stage.page.keyboard.press("r")  # Streamlit's own key
    stage.frames(20)
    stage.ready()
    stage.page.emulate_media(color_scheme="dark")
    expect(stage.root).to_have_attribute("data-dark", "")
    expect(panel(stage)).to_be_visible()


def test_a_rerun_leaves_the_focus_on_its_number(visit: Visit) -> None:
    stage = visit(query(beat="optimizer"))
    cell = stage.cards.nth(1).locator(".cell").nth(2)
    cell.focus()
    stage.page.keyboard.press("r")
    stage.frames(20)
    stage.ready()
    expect(cell).to_be_focused()
    stage.page.emulate_media(color_scheme="dark")
    expect(stage.root).to_have_attribute("data-dark", "")
    stage.page.keyboard.press("PageUp")  # the cells were made again: the stage itself has the focus now
    stage.at(stage.last() - 1)
