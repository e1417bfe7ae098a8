"""In the app: a question below every stage about what comes next; the puzzle and the cells as questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from test_app import opened, payload, plain
from test_app import told as beats_of
from test_lab import opened as lab_opened
from test_lessons_app import OWN, stages
from test_lessons_app import opened as lesson_opened

from dpsim.ask import ask
from dpsim.beats import beats
from dpsim.directives import Predict, Stage
from dpsim.forms import preset, to_query
from dpsim.puzzle import solution
from dpsim.simulate import simulate
from dpsim.ui.ask_me import NOTHING_LEFT
from dpsim.ui.live_state import Measured
from dpsim.ui.picture import run_of

PUZZLE = str(Path(__file__).with_name("puzzle_app.py"))
IDS = [beat.id for beat in beats_of("first-screen")]


def rests(app: AppTest, beat: str, stage: str = "stage") -> AppTest:
    """The stage has told that it rests on a beat."""
    app.session_state[stage] = {"beat": beat}
    return app.run()


def press(app: AppTest, name: str, stage: str = "stage") -> AppTest:
    return app.button(key=f"ask/{stage}/{name}").click().run()


def give(app: AppTest, answer: str, stage: str = "stage") -> AppTest:
    key = f"ask/{stage}:given"
    (app.radio(key=key) if app.radio else app.text_input(key=key)).set_value(answer)
    return app.button(key=f"ask/{stage}:give").click().run()


def asked_at(beat: str) -> Any:
    asked = ask(simulate(preset("first-screen")), beats_of("first-screen"), beat)
    assert asked is not None
    return asked


def boxes(app: AppTest) -> list[str]:
    assert not app.exception
    return [plain(block.value) for block in (*app.success, *app.warning, *app.info, *app.error)]


def question(app: AppTest) -> str:
    """What is asked, above its options or its box."""
    assert not app.exception
    return next(w.label for w in (*app.radio, *app.text_input) if str(w.key).startswith("ask/"))


def buttons(app: AppTest) -> list[str]:
    return [b.label for b in app.button if str(b.key).startswith("ask/")]


# -- ask me --------------------------------------------------------------------------------------------------


def test_at_every_beat_of_the_first_screen_a_right_answer_is_right_and_the_next_beat_is_wished() -> None:
    app = opened()
    for beat, after in pairwise(IDS):
        rests(app, beat)
        press(app, "button")
        asked = asked_at(beat)
        right = next((str(i) for i, o in enumerate(asked.options) if o.right), repr(asked.answer))
        give(app, right)
        assert boxes(app)[0].startswith("**Right.**")
        before = payload(app).get("goto", {"nonce": 0})
        press(app, "on")
        assert payload(app)["goto"] == {"beat": after, "nonce": before["nonce"] + 1}


def test_nothing_is_chosen_before_and_no_answer_is_none() -> None:
    app = press(rests(opened(), IDS[5]), "button")
    assert app.radio[0].value is None
    app.button(key="ask/stage:give").click().run()
    assert boxes(app) == ["Choose one of the answers first."]
    assert "Step on without an answer" in buttons(app)


def test_a_wrong_answer_is_explained_and_at_the_next_beat_both_are_told() -> None:
    asked = asked_at(IDS[5])
    wrong = next(i for i, o in enumerate(asked.options) if not o.right)
    app = give(press(rests(opened(), IDS[5]), "button"), str(wrong))
    assert boxes(app) == [f"**Not quite.** {asked.options[wrong].feedback}"]
    rests(app, IDS[6])
    right = asked.right_options[0].text
    assert boxes(app) == [f"It was **{right}**; you had said **{asked.options[wrong].text}**."]
    assert buttons(app) == ["Ask me what comes next"]
    rests(app, IDS[7])  # and no longer
    assert boxes(app) == []


def test_a_right_answer_is_said_to_have_been_right() -> None:
    right = next(i for i, o in enumerate(asked_at(IDS[5]).options) if o.right)
    app = rests(give(press(rests(opened(), IDS[5]), "button"), str(right)), IDS[6])
    assert boxes(app) == [f"It was **{asked_at(IDS[5]).right_options[0].text}**, as you said."]


@pytest.mark.parametrize("steps", [1, 3])
def test_an_open_question_closes_with_the_answer_when_the_stage_goes_on(steps: int) -> None:
    app = rests(press(rests(opened(), IDS[5]), "button"), IDS[5 + steps])
    assert boxes(app) == [f"It was **{asked_at(IDS[5]).right_options[0].text}**: you saw it."]
    assert not app.radio


def test_going_back_says_nothing_and_the_question_is_gone() -> None:
    app = rests(press(rests(opened(), IDS[5]), "button"), IDS[2])
    assert boxes(app) == []
    assert buttons(rests(app, IDS[5])) == ["Ask me what comes next"]


def test_asking_again_begins_anew() -> None:
    app = give(press(rests(opened(), IDS[5]), "button"), "0")
    press(app, "close")
    assert boxes(app) == []
    press(app, "button")
    assert app.radio[0].value is None
    assert boxes(app) == []


def test_another_scenario_takes_the_question_away() -> None:
    app = press(rests(opened(), IDS[0]), "button")
    app.query_params["preset"] = "ring-8"
    app.run()
    assert not app.radio
    assert buttons(app) == ["Ask me what comes next"]


def test_at_the_last_beat_a_sentence_says_that_nothing_comes() -> None:
    app = rests(opened(), IDS[-1])
    assert app.button(key="ask/stage/button").disabled
    assert NOTHING_LEFT in [c.value for c in app.caption]


def test_the_presenters_view_asks_nothing() -> None:
    assert buttons(opened("present=1")) == []
    assert buttons(lab_opened("present=1")) == []


def test_the_lab_asks() -> None:
    app = rests(lab_opened("preset=ring-8"), "allreduce.b0.r2", "lab.stage")
    press(app, "button", "lab.stage")
    asked = ask(simulate(preset("ring-8")), beats_of("ring-8"), "allreduce.b0.r2")
    assert asked is not None
    assert question(app) == asked.question


def test_the_stage_of_a_lesson_asks_about_its_own_scenario() -> None:
    slug, screen, block = next(
        (slug, screen, block)
        for slug, lesson in OWN.items()
        for screen in lesson.screens
        for block in takewhile(lambda block: not isinstance(block, Predict), screen.blocks)
        if isinstance(block, Stage)
    )
    app = lesson_opened(slug, screen.slug)
    assert len(stages(app)) == 1
    press(app, "button", f"stage/{slug}/{screen.slug}")
    trace = simulate(block.scenario)
    asked = ask(trace, beats(trace), block.beat)
    assert asked is not None
    assert question(app) == asked.question


def test_a_measured_trace_is_asked_about_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    query = to_query(preset("first-screen"))
    trace, ways = run_of(to_query(preset("collective-tree")))
    found = Measured(query, "chunks", trace, ways)
    for page in ("step_view", "lab", "lesson_blocks"):
        monkeypatch.setattr(f"dpsim.ui.{page}.measured", lambda stage, query: found)
    monkeypatch.setattr("dpsim.ui.live_results.live_results", lambda found: None)
    app = press(rests(opened(), "backward"), "button")
    asked = ask(trace, beats_of("collective-tree"), "backward")
    assert asked is not None
    assert question(app) == asked.question


# -- the puzzle and the cells as questions -------------------------------------------------------------------


@pytest.fixture
def tried() -> Callable[..., AppTest]:
    """The page with one question of a kind."""

    def open_(**query: str) -> AppTest:
        app = AppTest.from_file(PUZZLE, default_timeout=30)
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return open_


def drawn(app: AppTest) -> dict[str, Any]:
    (component,) = app.get("bidi_component")
    data = json.loads(component.proto.json)
    assert isinstance(data, dict)
    return data


def check(app: AppTest, place: str) -> AppTest:
    return app.button(key=f"{place}:give").click().run()


@pytest.mark.parametrize("ranks", ["3", "4", "5", "6"])
def test_a_composed_ring_is_right(tried: Callable[..., AppTest], ranks: str) -> None:
    app, place = tried(ranks=ranks), f"try/ring/{ranks}"
    check(app, place)
    assert boxes(app) == ["Compose at least one transfer first."]
    size = int(ranks)
    app.session_state[f"{place}:given"] = {"given": solution(size)}
    app.run()
    assert drawn(app)["then"] == [["1" * size] * size] * size
    check(app, place)
    assert boxes(app)[0].startswith("**Right.** Every contribution is in every chunk")
    many = 2 * size * (size - 1)
    assert f"You gave {many} transfers in {2 * (size - 1)} rounds; right is a ring of" in app.caption[0].value


def test_what_is_wrong_is_said(tried: Callable[..., AppTest]) -> None:
    app, place = tried(ranks="3"), "try/ring/3"
    app.session_state[f"{place}:given"] = {"given": "0>1.0+|0>1.0+"}
    check(app, place)
    assert "On rank 1 chunk 0 ends with the contribution of rank 0 in it twice" in boxes(app)[0]


def test_the_board_shows_before_and_after_the_round(tried: Callable[..., AppTest]) -> None:
    app = tried(ranks="3")
    app.session_state["try/ring/3:given"] = {"given": "0>1.0+|1>2.0+;0>2.1+"}
    data = drawn(app.run())
    assert data["now"][1] == ["110", "010", "010"]
    assert data["now"][2] == ["001", "001", "001"]
    assert data["then"][2] == ["111", "101", "001"]
    assert data["costs"] == [
        ["rounds", 2, 4], ["turns they last", 3, 4], ["chunks sent by the busiest rank", 2, 4],
    ]  # fmt: skip
    assert data["past"] == ["Round 1: rank 0 sends chunk 0 to rank 1, which adds it."]
    assert "queue at its port" in data["note"]


@pytest.mark.parametrize("odd", ["0>0.0+", "<script>", "9", 7, None, ["0>1.0+"]])
def test_what_no_browser_of_ours_sends_is_no_answer(tried: Callable[..., AppTest], odd: Any) -> None:
    app, place = tried(ranks="3"), "try/ring/3"
    app.session_state[f"{place}:given"] = {"given": odd}
    app.run()
    assert drawn(app)["given"] == ""
    check(app, place)
    assert len(boxes(app)) == 1
    assert app.error


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("0.1", "**Right.** Yes, there."),
        ("0.0", "**Not quite.** That is where"),
        ("2.2", "**Not quite.** Follow"),
    ],
)
def test_a_cell_is_pointed_at(tried: Callable[..., AppTest], cell: str, said: str) -> None:
    app, place = tried(kind="cell", ranks="4"), "try/cell/4"
    assert drawn(app) == {"mode": "pick", "world": 4, "given": ""}
    check(app, place)
    assert boxes(app) == ["Choose one cell first."]
    app.session_state[f"{place}:given"] = {"given": cell}
    check(app, place)
    assert boxes(app)[0].startswith(said)
    assert drawn(app)["given"] == cell
