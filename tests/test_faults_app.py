"""The faults in the app without a browser: switched on and off in the lab, opened by a link, in a lesson."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest
from test_app import opened as first_page
from test_app import plain
from test_faults import NAMES, healthy
from test_lab import fine, shown
from test_lab import opened as lab_page

from dpsim.checks import InputError
from dpsim.content_check import texts
from dpsim.directives import Break, directive
from dpsim.faults import NAMED, broken
from dpsim.forms import preset, to_query
from dpsim.lessons import Lesson, Screen
from dpsim.live.job import check_runs_live
from dpsim.setting import Setting
from dpsim.ui.lab_state import Lab


def stages(app: AppTest) -> list[dict[str, Any]]:
    data = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    return [d for d in data if "beats" in d]


def with_faults(query: dict[str, str] | str = "") -> AppTest:
    """The lab with its faults in sight."""
    app = lab_page(query)
    return looking(app)


def looking(app: AppTest) -> AppTest:
    now: Lab = app.session_state["lab"]
    app.session_state[f"lab.break.{now.epoch}"] = True
    return app.run()


@pytest.mark.parametrize("name", NAMES)
def test_a_link_opens_the_broken_scenario(name: str) -> None:
    scenario = broken(healthy(name), name)
    query = dict(parse_qsl(to_query(scenario)))
    app = first_page(query)
    assert [block.value for block in (*app.exception, *app.error)] == []
    (data,) = stages(app)
    last = "hang" if name == "uneven-batches" else "late" if name == "no-barrier" else "optimizer"
    assert data["beats"][-1]["id"] == last
    app = lab_page(query)
    fine(app)
    assert shown(app) == scenario
    (told,) = [w.value for w in app.warning if name != "padding-counted"] or [""]
    assert name == "padding-counted" or plain(told).startswith(f"**{NAMED[name].title}.**")


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_one_click_and_undo_takes_it_back(name: str) -> None:
    base = healthy(name)
    app = with_faults({"preset": base.name})
    fine(app)
    assert not app.warning
    app.button(f"lab.break.{name}").click().run()
    fine(app)
    made = shown(app)
    assert made == broken(base, name) or (made.name, made.title) == ("lab", "")
    (told,) = app.warning
    assert plain(told.value).startswith(f"**{NAMED[name].title}.** {NAMED[name].says}")
    (data,) = stages(app)
    assert data["ghost"]["world"] == base.world_size
    app.button("lab.undo").click().run()
    fine(app)
    assert shown(app) == base
    assert not app.warning


def test_one_fault_takes_the_place_of_another_and_mending_takes_it_away() -> None:
    app = with_faults({"preset": "first-screen"})
    app.button("lab.break.dropped-chunk").click().run()
    assert shown(app).collective == "ring, without 4"
    looking(app).button("lab.break.wrong-divisor").click().run()
    fine(app)
    assert (shown(app).collective, shown(app).reduction) == ("ring", "sum_over_world_size")
    looking(app).button("lab.break.mend").click().run()
    fine(app)
    assert (shown(app).collective, shown(app).reduction) == ("ring", "token_weighted")
    assert not app.warning


def test_what_cannot_be_is_disabled_and_says_why() -> None:
    app = with_faults({"preset": "first-screen"})
    assert app.button("lab.break.padding-counted").disabled
    assert not app.button("lab.break.dropped-chunk").disabled
    said = [plain(caption.value) for caption in app.caption]
    assert any("Not here: it cannot be: the gradient sums are given" in text for text in said)
    alone = with_faults({"preset": "next-token", "world_size": "1"})
    assert alone.button("lab.break.no-barrier").disabled


def test_a_run_that_never_ends_shows_for_ever_and_no_number() -> None:
    app = lab_page(dict(parse_qsl(to_query(broken(preset("first-screen"), "uneven-batches")))))
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Step time"] == metrics["Longest wait"] == "for ever"
    assert metrics["Scaling efficiency"] == "—"
    (data,) = stages(app)
    assert data["steps"][0]["hangs"] is True
    assert data["steps"][0]["summary"] == "the step never ends"
    assert data["steps"][0]["end"] > max(data["times"])


def test_replicas_that_differ_stand_on_their_own_cards() -> None:
    app = first_page(dict(parse_qsl(to_query(broken(preset("first-screen"), "no-barrier")))))
    (data,) = stages(app)
    own = data["steps"][0]["own"]
    assert len({tuple(rank["after"]) for rank in own}) == 4
    assert len({tuple(rank["before"]) for rank in own}) == 1
    rows, texts_ = data["origins"]["rows"], data["origins"]["texts"]
    for rank, row in enumerate(own):
        title = texts_[rows[row["origins"]["after"][0]][0]]
        assert title == f"Parameter θ0 after step 1 on rank {rank}"


def test_what_cannot_run_live_is_refused_in_one_sentence() -> None:
    base = preset("first-screen")
    with pytest.raises(InputError, match="a run of this scenario would hang"):
        check_runs_live(broken(base, "uneven-batches"), "chunks")
    with pytest.raises(InputError, match="a run that does not wait is only simulated"):
        check_runs_live(broken(base, "no-barrier"), "chunks")
    for mode in ("library", "ddp"):
        for name in ("dropped-chunk", "doubled-chunk"):
            with pytest.raises(InputError, match="only mode chunks sends the rows itself"):
                check_runs_live(broken(base, name), mode)


# -- in a lesson ---------------------------------------------------------------------------------------------


def read(body: str) -> Break:
    made = directive("break", body, 1, "test.md", Setting(preset("next-token")))
    assert isinstance(made, Break)
    return made


def test_a_lesson_names_faults_a_scenario_and_a_caption() -> None:
    block = read('faults = ["no-barrier", "dropped-chunk"]\ncaption = "Look: {{R}}."')
    assert [fault.name for fault in block.faults] == ["no-barrier", "dropped-chunk"]
    assert block.scenario == preset("next-token")
    assert len(read("").faults) == 8
    for body, why in (
        ('faults = ["gremlins"]', "must be one of wrong-divisor"),
        ("faults = []", "must have 1 to 8 entries"),
        ('faults = ["padding-counted"]\nscenario = "first-screen"', "faults.0.*gradient sums are given"),
        ('fault = "no-barrier"', "unknown key"),
    ):
        with pytest.raises(InputError, match=why):
            read(body)


def test_the_caption_is_among_the_texts_that_are_checked() -> None:
    block = read('caption = "Seen by every check."')
    screen = Screen("One", "one", (block,))
    lesson = Lesson("test", "Test", "x", 1.0, 1, (), (), {}, Setting(preset("next-token")), (screen,))
    assert ("one", "Seen by every check.") in list(texts(lesson))


def page(body: str) -> None:
    """A page with one such block."""
    from dpsim.directives import Break, directive
    from dpsim.forms import preset
    from dpsim.setting import Setting
    from dpsim.ui.lesson_break import break_it

    made = directive("break", body, 1, "test.md", Setting(preset("first-screen")))
    assert isinstance(made, Break)
    break_it(made, "lesson/screen")


def test_a_lesson_shows_it_as_it_should_be_until_a_fault_is_chosen() -> None:
    app = AppTest.from_function(page, args=('faults = ["dropped-chunk", "uneven-batches"]',)).run(timeout=30)
    assert not app.exception
    (pills,) = app.get("button_group")
    assert [option.content for option in pills.proto.options] == [
        "As it should be",
        "A chunk is dropped",
        "Uneven numbers of batches",
    ]
    (data,) = stages(app)
    assert "ghost" not in data
    assert not app.warning
    for choice, last in (("A chunk is dropped", "optimizer"), ("Uneven numbers of batches", "hang")):
        app.button_group[0].set_value(choice).run(timeout=30)
        assert not app.exception
        (data,) = stages(app)
        assert data["beats"][-1]["id"] == last
        assert "ghost" in data
        assert len(app.warning) == 1
    app.button_group[0].set_value(None).run(timeout=30)
    assert not app.exception
    assert not app.warning
