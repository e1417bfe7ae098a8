"""The stage in a real Chromium while things change: data, a ghost of before, a busy server, a presenter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from serving import ROOT, Pages, free_port, served
from stage_page import Stage, number_of, picture, query, told

from dpsim.forms import from_query, preset
from dpsim.metrics import step_metrics
from dpsim.simulate import simulate

pytestmark = [pytest.mark.browser, pytest.mark.moves]

Visit = Callable[..., Stage]

# Every seen text's size in pixels, with the text.
SIZES = """(stage) => {
  const found = [];
  const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || holder.closest(".announced")) continue;
    if (!holder.checkVisibility({ visibilityProperty: true })) continue;
    found.push([parseFloat(getComputedStyle(holder).fontSize), text]);
  }
  return found;
}"""
# The longest time between two frames from now on, in milliseconds, in window.dpsimGap.
WATCH = """() => {
  window.dpsimGap = 0;
  let last = performance.now();
  const look = (now) => {
    window.dpsimGap = Math.max(window.dpsimGap, now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


@pytest.fixture(scope="module")
def page_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page for these tests, served."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "tests/stage_app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    with served(command, port, tmp_path_factory.mktemp("page") / "server.log", ROOT) as url:
        yield url


@pytest.fixture
def show(pages: Pages, page_url: str) -> Visit:
    """Opens that page."""
    return pages(Stage, page_url)


def change(stage: Stage) -> None:
    """Take up the change, or take it back, and wait for the new picture."""
    before = stage.root.locator(".summary").inner_text()
    stage.page.get_by_text("Changed").click()
    expect(stage.root.locator(".summary")).not_to_have_text(before)
    stage.ready()


# -- the place -----------------------------------------------------------------------------------------------


def test_the_place_is_kept_on_the_same_beat(show: Visit) -> None:
    stage = show(query(keep="1", beat="allreduce.b0.r1", change="network.gradient_bytes=20e6"))
    stage.key("ArrowRight")
    stage.at(number_of("allreduce.b0.r2"))
    change(stage)
    stage.at(number_of("allreduce.b0.r2"))
    change(stage)
    stage.at(number_of("allreduce.b0.r2"))


def test_without_the_same_beat_the_phase_is_kept(show: Visit) -> None:
    stage = show(query(keep="1", beat="allreduce.b0.r5", change="collective=tree"))
    change(stage)
    expect(stage.root.locator("[aria-current=step]")).to_have_text("Broadcast")
    expect(stage.heading).to_have_text("Broadcast, round 1 of 2")
    stage.page.wait_for_url("**beat=allreduce.b0.r2*")  # the link follows


def test_without_the_phase_it_opens_where_it_is_told_to(show: Visit) -> None:
    stage = show(query(keep="1", beat="count", change="reduction=mean_of_rank_means"))
    change(stage)
    expect(stage.heading).to_have_text(told()[0].title)


def test_unless_asked_to_the_place_is_not_kept(show: Visit) -> None:
    stage = show(query(beat="forward", change="network.gradient_bytes=20e6"))
    stage.key("End")
    change(stage)
    stage.at(number_of("forward"))


# -- a ghost of before ---------------------------------------------------------------------------------------


def test_what_was_before_a_change_stays_in_sight(show: Visit) -> None:
    keys = "network.gradient_bytes=20e6;reduction=mean_of_rank_means"
    stage = show(query(keep="1", ghost="1", beat="optimizer", change=keys))
    plain = picture(stage.lanes, 0.9)
    assert stage.root.locator(".was").count() == 0
    change(stage)
    stage.at(stage.last())
    was = step_metrics(simulate(preset("first-screen")), 0).step_time_s
    changed = from_query(dict(k.split("=") for k in keys.split(";")), base=preset("first-screen"))
    now = step_metrics(simulate(changed), 0)
    expect(stage.root.locator(".legend")).to_contain_text("before the change: 15.8 ms per step")
    card = stage.cards.nth(0).locator(".numbers span")
    expect(card.nth(0)).to_have_text("0.38680.4375")
    expect(card.nth(0).locator("s")).to_have_text("0.4375")
    # One scale: the playhead at the new end stands where the lengths say.
    lanes = stage.lanes.bounding_box()
    assert lanes is not None
    share = (stage.playhead_x() - lanes["x"] - 22) / (lanes["width"] - 24)
    assert share == pytest.approx(now.step_time_s / was, abs=0.01)
    after = picture(stage.lanes, 0.97)
    assert 0 < after["share"] < plain["share"], "behind the end there is the dashed line alone"
    assert stage.cut_off() == []
    change(stage)
    assert stage.root.locator(".was").count() == 0


def test_the_playhead_is_dragged_on_the_common_scale(show: Visit) -> None:
    stage = show(query(keep="1", ghost="1", beat="optimizer", change="network.gradient_bytes=20e6"))
    change(stage)
    goal = stage.playhead_x() - 3
    stage.key("Home")
    lanes = stage.lanes.bounding_box()
    assert lanes is not None
    stage.page.mouse.move(lanes["x"] + 40, lanes["y"] + 20)
    stage.page.mouse.down()
    stage.page.mouse.move(goal, lanes["y"] + 20)
    assert abs(stage.playhead_x() - goal) < 1.5
    stage.page.mouse.move(lanes["x"] + lanes["width"] - 2, lanes["y"] + 20)  # behind the new end
    stage.page.mouse.up()
    stage.at(stage.last())


def test_with_another_world_size_only_the_step_is_compared(show: Visit) -> None:
    stage = show(query(ghost="1", preset="ring-8", change="world_size=4", keep="1", beat="optimizer"))
    change(stage)
    expect(stage.cards).to_have_count(4)
    expect(stage.root.locator(".legend")).to_contain_text("before the change")
    expect(stage.cards.locator(".was")).to_have_count(0)


# -- playback ------------------------------------------------------------------------------------------------


def test_playback_goes_on_while_the_server_is_busy(show: Visit) -> None:
    stage = show()
    stage.speed.select_option("0.5")
    stage.play.click()
    stage.record()
    stage.page.evaluate(WATCH)
    stage.page.get_by_role("button", name="Be busy").click()
    app = stage.page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "running")
    stage.page.wait_for_timeout(1500)
    expect(app).to_have_attribute("data-test-script-state", "running")
    stage.plays()
    during = [frame["position"] for frame in stage.recorded()]
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    stage.plays()
    positions = [frame["position"] for frame in stage.recorded()]
    assert during == sorted(during)
    assert positions == sorted(positions), "it starts again"
    assert during[-1] - during[0] > 0.15
    assert len(set(during)) > 10
    assert stage.page.evaluate("window.dpsimGap") < 1000


def test_playback_survives_reruns_and_a_theme_while_it_plays(show: Visit) -> None:
    stage = show()
    stage.speed.select_option("0.5")
    stage.play.click()
    stage.record()
    for scheme in ("dark", "light", "dark"):
        stage.page.get_by_role("button", name="Rerun").click()
        stage.frames(15)
        stage.page.emulate_media(color_scheme=scheme)
        stage.frames(15)
        stage.plays()
    expect(stage.root).to_have_attribute("data-dark", "")
    positions = [frame["position"] for frame in stage.recorded()]
    assert positions == sorted(positions)
    assert positions[-1] > positions[0]


# -- in front of a class -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("first-screen", (1920, 1080)),
        ("overlap", (1280, 720)),
        ("ring-8", (1280, 720)),
    ],
)
def test_the_presenters_view_fits_and_is_large(show: Visit, name: str, size: tuple[int, int]) -> None:
    width, height = size
    stage = show(query(present="1", preset=name), viewport={"width": width, "height": height})
    for beat in range(0, stage.last() + 1, 4):
        stage.go(beat)
        box = stage.root.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height
        assert stage.cut_off() == []
        if name == "first-screen" and width == 1920:
            small = [found for found in stage.root.evaluate(SIZES) if found[0] < 18]
            assert not small
    expect(stage.root.get_by_role("button", name="Copy link")).to_be_hidden()
    expect(stage.root.locator(".keys")).to_be_hidden()


def test_a_remote_steps_it_without_a_click(show: Visit) -> None:
    stage = show(query(present="1"))
    stage.page.keyboard.press("PageDown")
    stage.at(1)
    stage.page.keyboard.press("PageUp")
    stage.at(0)
    stage.page.evaluate("document.activeElement.blur()")
    stage.page.keyboard.press("PageDown")
    stage.at(1)


def test_a_remote_blanks_the_screen_and_brings_it_back(show: Visit) -> None:
    stage = show(query(present="1", beat="forward"))
    blank, status = stage.root.locator(".blank"), stage.root.get_by_role("status")
    at = number_of("forward")
    for black, back in ((".", "."), ("b", "Escape"), (".", "b"), ("b", "PageDown"), (".", "ArrowLeft")):
        stage.page.keyboard.press(black)
        expect(blank).to_be_visible()
        box = blank.bounding_box()
        assert box == {"x": 0, "y": 0, "width": 1280, "height": 900}
        expect(status).to_contain_text("The screen is blank")
        stage.page.keyboard.press(back)
        expect(blank).to_be_hidden()
        expect(status).to_contain_text("back")
        stage.at(at)


def test_nothing_blanks_the_usual_view(show: Visit) -> None:
    stage = show()
    stage.key(".", "b")
    expect(stage.root.locator(".blank")).to_be_hidden()


def test_the_panel_stays_on_the_presenters_screen(show: Visit) -> None:
    stage = show(query(present="1", beat="optimizer"), viewport={"width": 1280, "height": 720})
    stage.cards.nth(0).locator(".numbers span").first.click()
    expect(stage.root.get_by_role("dialog")).to_be_in_viewport(ratio=1)
    assert stage.cut_off() == []


# -- layout --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [9, 13, 16])
def test_nine_to_sixteen_ranks_leave_no_hole_in_a_row(show: Visit, world: int) -> None:
    stage = show(query(preset="ring-8", change=f"world_size={world}"))
    change(stage)
    expect(stage.cards).to_have_count(world)
    boxes = [card.bounding_box() for card in stage.cards.all()]
    rows: dict[int, list[float]] = {}
    for box in boxes:
        assert box is not None
        rows.setdefault(round(box["y"]), []).append(box["x"])
    for row in rows.values():
        apart = {round(b - a) for a, b in zip(sorted(row), sorted(row)[1:], strict=False)}
        assert max(apart) - min(apart) <= 1
    assert stage.cut_off() == []


def test_a_packet_never_covers_the_words_of_the_batch(show: Visit) -> None:
    stage = show(query(preset="accumulation", change="buckets.sync_every_micro_batch=true"))
    change(stage)
    for beat in range(stage.last() + 1):
        stage.go(beat)
        covered = stage.root.evaluate(
            """(stage) => [...stage.querySelectorAll(".tile")].flatMap((tile) => {
              const a = tile.getBoundingClientRect();
              return [...stage.querySelectorAll(".centre > .label, .centre > b")].filter((words) => {
                const b = words.getBoundingClientRect();
                const apart = a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top;
                return !apart && words.textContent && words.checkVisibility({ visibilityProperty: true });
              });
            }).length"""
        )
        assert covered == 0
