"""The stage in a real Chromium: that it is visible and drawn, plays, obeys, and shows the right numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from stage_page import Stage, number_of, picture, query, told

from dpsim.forms import preset, preset_names
from dpsim.scenario import COLLECTIVES

pytestmark = [pytest.mark.browser, pytest.mark.moves]

Visit = Callable[..., Stage]


LAST = len(told()) - 1


# -- drawn ---------------------------------------------------------------------------------------------------


def test_the_first_screen_is_visible_and_drawn(visit: Visit) -> None:
    stage = visit()
    expect(stage.heading).to_have_text(told()[0].title)
    expect(stage.sentence).to_have_text(told()[0].sentence)
    expect(stage.root.locator(".source")).to_have_text("simulated")
    expect(stage.root.locator(".hint")).to_contain_text("Press Play")
    expect(stage.play).to_be_in_viewport()
    expect(stage.cards).to_have_count(4)
    colours = set()
    for rank, valid in enumerate((7, 2, 5, 2)):
        card = stage.cards.nth(rank)
        expect(card).to_be_in_viewport()
        expect(card).to_contain_text(f"rank {rank}")
        expect(card).to_contain_text(f"{valid} valid of 8 tokens")
        expect(card.locator(".strip .valid")).to_have_count(valid)
        expect(card.locator(".strip i")).to_have_count(8)
        box = card.bounding_box()
        assert box is not None
        assert box["width"] > 120
        assert box["height"] > 100
        colours.add(card.evaluate("(card) => getComputedStyle(card).borderLeftColor"))
    assert len(colours) == 4, "every rank has a colour of its own"
    lanes = picture(stage.lanes)
    assert lanes["share"] > 0.3, "the timeline is blank"
    assert colours <= set(lanes["colours"]), "the timeline shows every rank's colour"
    assert stage.cut_off() == []


def unlike() -> list[str]:
    """Presets, one for each kind of stage: all of them are told and drawn without a browser elsewhere."""
    looks = {
        (s.world_size, s.collective, max(s.micro_batches)): name
        for name in reversed(preset_names())
        for s in [preset(name)]
    }
    return sorted(looks.values(), key=preset_names().index)


def test_presets_are_drawn_from_the_first_beat_to_the_last(visit: Visit, app_log: Path) -> None:
    stage = visit()
    assert {preset(name).collective for name in unlike()} == set(COLLECTIVES)
    for name in unlike():
        found, scenario = told(name), preset(name)
        if name != "first-screen":
            stage.choose(name)
        expect(stage.title).to_have_text(scenario.title)
        stage.at(0, len(found))
        expect(stage.heading).to_have_text(found[0].title)
        stage.key("End")
        stage.at(len(found) - 1)
        expect(stage.heading).to_have_text(found[-1].title)
        expect(stage.sentence).to_have_text(found[-1].sentence)
        assert picture(stage.lanes)["share"] > 0.1, f"{name}: the timeline is blank"
        if scenario.world_size > 16:
            assert picture(stage.matrix)["share"] > 0.05, f"{name}: the matrix is blank"
        else:
            expect(stage.cards).to_have_count(scenario.world_size)
            expect(stage.root.locator(".card .cell:not(.empty)").first).to_be_visible()
        assert stage.cut_off() == [], name
        expect(stage.alerts).to_have_count(0)
    assert "Traceback" not in app_log.read_text("utf-8")


def test_64_ranks_are_drawn_on_the_matrix_and_move(visit: Visit) -> None:
    stage = visit(query(preset="ring-64"))
    expect(stage.matrix).to_be_visible()
    expect(stage.cards).to_have_count(0)
    empty = picture(stage.matrix, 0.5)["share"]
    assert picture(stage.matrix)["inked"] > 1000
    stage.key("End")
    assert picture(stage.matrix, 0.5)["share"] > empty + 0.5, "every cell is full at the end"
    stage.key("Home", "PageDown")
    stage.at(1)
    assert picture(stage.matrix, 0.5)["share"] < empty + 0.1, "no cell is full yet"
    phases = stage.root.get_by_role("group", name="Phases").get_by_role("button")
    phases.filter(has_text="Reduce-scatter").click()
    stage.speed.select_option("4")
    stage.play.click()
    stage.plays()
    shown = set()
    for _ in range(5):
        shown.add((picture(stage.matrix)["hash"], picture(stage.matrix, 0.5)["hash"]))
        expect(stage.where).not_to_have_text(stage.where.inner_text())
    stage.play.click()
    stage.rests()
    assert min(len({circle for circle, _ in shown}), len({cells for _, cells in shown})) >= 4


# -- playback ------------------------------------------------------------------------------------------------


def test_play_moves_everything_and_stops_at_the_end_by_itself(visit: Visit) -> None:
    stage = visit()
    stage.speed.select_option("4")
    stage.record()
    stage.play.click()
    stage.plays()
    stage.at(LAST, LAST + 1)
    frames = stage.recorded()
    positions = [frame["position"] for frame in frames]
    assert positions == sorted(positions)
    assert sum(position % 1 > 0 for position in positions) > 2 * LAST, "it jumps from beat to beat"
    seen = dict.fromkeys(frame["beat"] for frame in frames)
    assert list(seen) == [f"beat {beat + 1} of {LAST + 1}" for beat in range(LAST + 1)]
    assert len({frame["playhead"] for frame in frames}) > 2 * LAST
    assert len({frame["tiles"] for frame in frames}) > LAST
    expect(stage.forth).to_be_disabled()
    stage.play.click()
    stage.plays()
    assert stage.position() < LAST, "Play at the end starts again from the beginning"


def test_pause_stops_on_a_beat(visit: Visit) -> None:
    stage = visit()
    stage.play.click()
    expect(stage.where).to_have_text(f"beat 3 of {LAST + 1}")
    stage.play.click()
    stage.rests()
    held = stage.position()
    assert held == int(held) == 2
    stage.record()
    stage.frames(20)
    assert {frame["position"] for frame in stage.recorded()} == {held}


def test_the_buttons_step_forth_and_back(visit: Visit) -> None:
    stage = visit()
    expect(stage.back).to_be_disabled()
    stage.forth.click()
    stage.at(1)
    stage.forth.click()
    stage.at(2)
    stage.back.click()
    stage.at(1)
    stage.back.click()
    stage.at(0)
    expect(stage.back).to_be_disabled()


def test_the_keys_step_jump_and_play(visit: Visit) -> None:
    stage = visit()
    for key, beat in (
        ("ArrowRight", 1), ("PageDown", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("PageUp", 1), ("End", LAST),
        ("ArrowRight", LAST), ("ArrowLeft", LAST - 1), ("Home", 0), ("ArrowLeft", 0),
    ):  # fmt: skip
        stage.key(key)
        stage.at(beat)
    stage.key(" ")
    stage.plays()
    stage.key(" ")
    stage.rests()
    stage.key("Control+End", "Alt+ArrowRight")
    stage.frames(3)
    assert stage.position() < LAST


def test_a_second_press_while_it_walks_is_a_second_step(visit: Visit) -> None:
    stage = visit()
    stage.key("ArrowRight")
    stage.frames(4)
    assert 0 < stage.position() < 1
    stage.key("ArrowRight")
    stage.at(2)


def test_two_presses_at_once_are_two_steps(visit: Visit) -> None:
    stage = visit()
    stage.root.evaluate(
        "(stage) => [1, 2].forEach(() =>"
        " stage.dispatchEvent(new KeyboardEvent('keydown', { key: 'PageDown', bubbles: true })))"
    )
    stage.at(2)


def test_the_keys_do_nothing_while_the_stage_has_no_focus(visit: Visit) -> None:
    stage = visit(query(beat="backward"))
    stage.record()
    stage.page.evaluate("document.activeElement.blur()")
    for key in ("ArrowRight", "ArrowLeft", "PageDown", "PageUp", "Home", "End", " "):
        stage.page.keyboard.press(key)
    stage.control.focus()
    for key in ("ArrowRight", "Home", "End", "r", "i", "n", " ", "g", "ArrowDown", "PageDown", "Escape"):
        stage.page.keyboard.press(key)
    stage.frames(3)
    assert {frame["position"] for frame in stage.recorded()} == {number_of("backward")}
    stage.key("ArrowRight")
    stage.at(number_of("backward") + 1)


def test_the_slider_is_moved_by_keyboard(visit: Visit) -> None:
    stage = visit()
    stage.slider.focus()
    for key, beat in (("ArrowRight", 1), ("End", LAST), ("ArrowLeft", LAST - 1), ("Home", 0)):
        stage.page.keyboard.press(key)
        stage.at(beat)
        said = f"beat {beat + 1} of {LAST + 1}: {told()[beat].title}"
        expect(stage.slider).to_have_attribute("aria-valuetext", said)
        expect(stage.slider).to_be_focused()


def test_the_slider_is_moved_by_mouse(visit: Visit) -> None:
    stage = visit()
    for share, beat in ((1, LAST), (0, 0), (0.5, LAST / 2)):
        box = stage.slider.bounding_box()
        assert box is not None
        stage.slider.click(position={"x": 11 + share * (box["width"] - 22), "y": box["height"] / 2})
        stage.at(round(beat))


@pytest.mark.parametrize("beat", ["backward", "allreduce.b0.r4"])
def test_the_playhead_is_dragged(visit: Visit, beat: str) -> None:
    stage = visit(query(beat=beat))
    goal = stage.playhead_x() - 2  # a moment before the beat is over
    stage.key("Home")
    stage.at(0)
    lanes = stage.lanes.bounding_box()
    assert lanes is not None
    mouse, height = stage.page.mouse, lanes["y"] + 20
    mouse.move(stage.playhead_x(), height)
    mouse.down()
    seen = []
    for share in np.linspace(0.2, 1, 8):
        mouse.move(lanes["x"] + (goal - lanes["x"]) * share, height)
        seen.append(stage.playhead_x())
    assert seen == sorted(seen)
    assert abs(seen[-1] - goal) < 1.5, "the playhead is where the mouse is"
    mouse.up()
    stage.at(number_of(beat))
    expect(stage.heading).to_have_text(told()[number_of(beat)].title)
    mouse.move(lanes["x"] + 30, height)
    stage.frames(3)
    assert stage.position() == number_of(beat), "after the drag the mouse no longer moves it"


def test_a_phase_is_chosen_by_its_chip(visit: Visit) -> None:
    stage = visit()
    phases = stage.root.get_by_role("group", name="Phases").get_by_role("button")
    firsts = {beat.phase: number for number, beat in reversed(list(enumerate(told())))}
    expect(phases).to_have_count(len(firsts))
    for label, phase in (("All-gather", "gather"), ("Forward", "forward"), ("Optimizer", "optimizer")):
        chip = phases.filter(has_text=label)
        chip.click()
        stage.at(firsts[phase])
        expect(chip).to_have_attribute("aria-current", "step")
        expect(stage.root.locator("[aria-current=step]")).to_have_count(1)


def test_a_phase_is_looped(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    low, high = number_of("allreduce.b0.r0") - 1, number_of("allreduce.b0.r2")
    stage.speed.select_option("4")
    stage.record()
    stage.loop.click()
    expect(stage.loop).to_have_attribute("aria-pressed", "true")
    stage.page.wait_for_function(
        "() => window.dpsimFrames.filter((f, i, all) => i && f.position < all[i - 1].position).length >= 3"
    )
    stage.loop.click()
    stage.rests()
    positions = [frame["position"] for frame in stage.recorded()]
    assert low <= min(positions) <= max(positions) <= high
    assert max(positions) > high - 0.5


def test_playback_survives_reruns_and_a_change_of_theme(visit: Visit) -> None:
    stage = visit()
    stage.speed.select_option("0.5")
    stage.page.evaluate(
        "() => { window.reruns = 0; new MutationObserver((all) => all.forEach(({ target }) =>"
        " (window.reruns += target.dataset.testScriptState !== 'notRunning'))).observe("
        "document.querySelector('.stApp'), { attributeFilter: ['data-test-script-state'] }); }"
    )
    stage.record()
    stage.play.click()
    stage.plays()
    stage.text.locator("summary").click()
    expect(stage.text.get_by_text(told()[-1].title)).to_be_visible()
    stage.page.keyboard.press("r")  # Streamlit's own key
    stage.page.wait_for_function("() => window.reruns > 0")
    expect(stage.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    stage.frames(10)
    stage.page.emulate_media(color_scheme="dark")
    expect(stage.root).to_have_attribute("data-dark", "")
    stage.frames(10)
    stage.plays()
    positions = [frame["position"] for frame in stage.recorded()]
    assert positions == sorted(positions), "it starts again"
    assert positions[-1] % 1 > 0
    reached = stage.position()
    stage.page.wait_for_function("(n) => window.dpsimFrames.at(-1).position > n", arg=reached)


def test_the_place_survives_a_rerun_by_streamlits_own_key(visit: Visit) -> None:
    stage = visit(query(beat="forward"))
    stage.key("ArrowRight")
    stage.at(number_of("forward") + 1)
    stage.key("r")
    stage.frames(20)
    stage.ready()
    stage.at(number_of("forward") + 1)
    expect(stage.alerts).to_have_count(0)


def test_another_preset_is_redrawn_from_its_start(visit: Visit) -> None:
    stage = visit(query(beat="allreduce.b0.r1"))
    before = picture(stage.lanes)["hash"]
    stage.play.click()
    stage.plays()
    stage.choose("ring-8")
    expect(stage.cards).to_have_count(8)
    stage.at(0, len(told("ring-8")))
    expect(stage.heading).to_have_text(told("ring-8")[0].title)
    assert picture(stage.lanes)["hash"] != before
    assert stage.asked("preset") == "ring-8"
