"""What is kept of a learner, in the app without a browser: what the browser would say is put in by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from serving import free_port
from streamlit.testing.v1 import AppTest
from test_app import APP, is_fine, page_text, plain
from test_lessons import WHOLE

import dpsim.database
import dpsim.store
from dpsim.exercises import items
from dpsim.lessons import Lesson, lessons
from dpsim.progress import DAY_S, Attempt
from dpsim.recovery import is_key, learner_id, recovery_code
from dpsim.store import Store, store
from dpsim.ui.learner import BROWSER, Learner, exported

KEY, OTHER = "0123456789abcdef" * 2, "f" * 32
SCREEN = ("one-step", "what-will-the-weights-be")
(QUESTION,) = next(s for s in lessons()[SCREEN[0]].screens if s.slug == SCREEN[1]).questions
PLACE = "/".join([*SCREEN, QUESTION.id])
NUMBER = ("one-step", "what-more-ranks-bring", "tokens-per-step")
DRILLS = list(items())
RIGHT = next(i for i, option in enumerate(QUESTION.asked.options) if option.right)


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of this test's own."""
    chosen = f"sqlite:///{tmp_path / 'p.sqlite3'}"
    monkeypatch.setenv("DPSIM_DATABASE", chosen)
    return chosen


def title(n: int) -> str:
    return items()[DRILLS[n]].title


def opened(page: str = "progress", **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page(f"pages/{page}.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def lesson() -> AppTest:
    return opened("lesson", lesson=SCREEN[0], screen=SCREEN[1])


def to_browser(app: AppTest) -> dict[str, Any]:
    """What the browser's part is told."""
    found = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    (data,) = [data for data in found if "wish" in data]
    return dict(data)


def says(app: AppTest, key: str, blocked: bool = False) -> AppTest:
    """The browser tells its key."""
    said = {"turn": to_browser(app)["turn"], "key": key, "blocked": blocked}
    app.session_state[BROWSER] = {"said": said}
    return app.run()


def answered(app: AppTest, option: int) -> AppTest:
    app.radio(key=f"{PLACE}:given").set_value(str(option))
    return app.button(key=f"{PLACE}:give").click().run()


def me(app: AppTest) -> Learner:
    found: Learner = app.session_state["learner"]
    return found


def attempt(item: str, right: bool, days_ago: float, misconception: str = "") -> Attempt:
    return Attempt(item, "7", "number", "1", right, misconception, time.time() - days_ago * DAY_S)


def filled(url: str, *attempts: Attempt, key: str = KEY) -> Store:
    """A store in which a learner has made these attempts."""
    kept = store(url)
    for each in attempts:
        kept.record(learner_id(key), each)
    return kept


def section(app: AppTest, heading: str) -> list[str]:
    """The text of the page under a heading."""
    blocks = [b for b in app.main if b.type in ("header", "markdown", "caption", "metric")]
    texts = [(b.type, plain(b.value)) for b in blocks]
    begin = next((i for i, (kind, text) in enumerate(texts) if (kind, text) == ("header", heading)), None)
    if begin is None:
        return []
    rest = texts[begin + 1 :]
    end = next((i for i, (kind, _) in enumerate(rest) if kind == "header"), len(rest))
    return [text for _, text in rest[:end]]


def test_a_visitor_who_answers_nothing_leaves_nothing(url: str) -> None:
    for page in ("step", "lab", "lesson", "progress"):
        app = opened(page)
        assert to_browser(app) == {"turn": 0, "wish": "", "key": "", "blocked": False}
    is_fine(app)
    assert "Nothing here yet" in page_text(app)
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_the_first_answer_has_the_browser_make_a_key_and_is_then_stored(url: str) -> None:
    app = answered(lesson(), RIGHT)
    assert to_browser(app)["wish"] == "make"
    assert me(app).answers == {PLACE: str(RIGHT)}
    begun = time.time()
    says(app, KEY)
    assert to_browser(app)["wish"] == ""
    ((kept),) = store(url).attempts(learner_id(KEY))
    assert (kept.item, kept.kind, kept.given, kept.right) == (PLACE, "choose-one", str(RIGHT), True)
    assert abs(kept.at - begun) < 60
    assert store(url).answers(learner_id(KEY)) == {PLACE: str(RIGHT)}
    assert me(app).waiting == []


def test_a_new_session_has_the_answers_once_the_browser_has_told_its_key() -> None:
    says(answered(lesson(), RIGHT), KEY)
    app = lesson()
    assert "You predicted" not in page_text(app)
    says(app, KEY)
    assert "You predicted" in page_text(app)
    app = says(lesson(), OTHER)
    assert "You predicted" not in page_text(app)


def test_what_was_answered_before_the_key_came_is_added_to_what_is_there(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 2)).keep_answer(learner_id(KEY), "a/b/c", "1")
    app = says(answered(lesson(), RIGHT), KEY)
    assert [a.item for a in me(app).attempts] == [DRILLS[1], PLACE]
    assert me(app).answers == {"a/b/c": "1", PLACE: str(RIGHT)} == store(url).answers(learner_id(KEY))
    assert [a.item for a in store(url).attempts(learner_id(KEY))] == [DRILLS[1], PLACE]
    for _ in range(3):
        app.run()
    assert len(store(url).attempts(learner_id(KEY))) == len(me(app).attempts) == 2


def test_the_page_says_what_is_due_what_comes_what_is_mastered(url: str) -> None:
    ladder = [attempt(DRILLS[3], True, days) for days in (50, 49, 46, 39, 18)]
    filled(
        url, attempt(DRILLS[1], True, 3), attempt(DRILLS[2], True, 0.5), attempt(DRILLS[4], False, 1), *ladder
    )
    app = says(opened(), KEY)
    is_fine(app)
    assert [metric.value for metric in app.metric] == ["2", "1", "1"]
    assert section(app, "Due now") == [
        f"**{title(1)}**  \n1 of 1 attempt right",
        f"**{title(4)}**  \n0 of 1 attempt right",
    ]
    assert section(app, "Coming later") == [f"- **{title(2)}** in 12 hours, round 1 of 4"]
    assert section(app, "Mastered") == [f"- {title(3)}"]


def test_a_lesson_s_questions_are_counted_but_do_not_come_again(url: str) -> None:
    app = says(answered(lesson(), RIGHT), KEY)
    app = says(opened(), KEY)
    own = [found for found in lessons().values() if isinstance(found, Lesson)]
    counts = [sum(len(screen.asked) for screen in found.screens) for found in own]
    assert section(app, "Lessons") == [
        f"1 of {counts[0]} questions answered, 1 right",
        *(f"0 of {count} questions answered" for count in counts[1:]),
    ]
    assert [metric.value for metric in app.metric] == ["0", "0", "0"]


def test_misconceptions_are_held_until_a_right_answer(url: str) -> None:
    kept = filled(url, attempt(DRILLS[1], False, 3, "M-odd"))
    assert section(says(opened(), KEY), "Misconceptions you still hold")[0].startswith("**“M-odd”**")
    kept.record(learner_id(KEY), attempt(DRILLS[1], True, 2))
    assert section(says(opened(), KEY), "Misconceptions you still hold") == []


def test_the_code_is_shown_on_demand_and_brings_everything_to_another_browser(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3))
    app = says(opened(), KEY)
    assert not app.code
    app.button(key="progress.show").click().run()
    (code,) = app.code
    assert code.value == recovery_code(KEY)
    other = opened()
    other.text_input(key="progress.code").set_value(code.value.lower().replace("-", " "))
    other.button(key="progress.use.go").click().run()
    assert [block.value for block in other.success] == [
        "This browser goes on with what was kept under the code\\."
    ]
    assert [a.item for a in me(other).attempts] == [DRILLS[1]]
    told = to_browser(other)
    assert (told["wish"], told["key"]) == ("set", KEY)
    assert says(other, KEY).button(key="progress.show")


def test_another_code_replaces_what_the_browser_had_and_leaves_it_in_the_store(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3))
    filled(url, attempt(DRILLS[2], True, 3), key=OTHER)
    app = says(opened(), OTHER)
    app.text_input(key="progress.code").set_value(recovery_code(KEY))
    app.button(key="progress.use.go").click().run()
    assert [a.item for a in me(app).attempts] == [DRILLS[1]]
    assert to_browser(app)["wish"] == "set"  # what the browser said last was of before, and does not count
    assert [a.item for a in store(url).attempts(learner_id(OTHER))] == [DRILLS[2]]


@pytest.mark.parametrize(
    "typed", ["", "nonsense", "<b>x</b>", recovery_code(OTHER), recovery_code(KEY)[:-1] + "?"]
)
def test_a_code_that_leads_nowhere_is_a_message_and_changes_nothing(url: str, typed: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3))
    app = says(opened(), KEY)
    app.text_input(key="progress.code").set_value(typed)
    app.button(key="progress.use.go").click().run()
    (error,) = app.error
    assert "recovery code: must" in plain(error.value)
    assert "<b>" not in error.value
    assert me(app).key == KEY
    assert to_browser(app)["wish"] == ""
    assert not app.exception


def test_the_export_holds_everything(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3)).keep_answer(learner_id(KEY), "a/b/c", "1")
    app = says(opened(), KEY)
    export = json.loads(exported(me(app)))
    assert store(url).export(learner_id(KEY)).items() <= export.items()
    assert KEY not in json.dumps(export)
    (button,) = app.get("download_button")
    assert button.proto.label == "Export everything"
    unkept = answered(lesson(), RIGHT)
    assert json.loads(exported(me(unkept)))["answers"] == {PLACE: str(RIGHT)}


def test_deleting_asks_first_and_leaves_nothing(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3)).keep_answer(learner_id(KEY), PLACE, "1")
    filled(url, attempt(DRILLS[2], True, 3), key=OTHER)
    app = says(opened(), KEY)
    app.button(key="progress.delete").click().run()
    app.button(key="progress.no").click().run()
    assert store(url).attempts(learner_id(KEY))
    app.button(key="progress.delete").click().run()
    app.button(key="progress.yes").click().run()
    assert [block.value for block in app.success] == ["Everything is deleted, here and in this browser\\."]
    assert "Nothing here yet" in page_text(app)
    assert store(url).export(learner_id(KEY))["created_at"] is None
    assert store(url).attempts(learner_id(OTHER))
    assert to_browser(app) == {"turn": 1, "wish": "forget", "key": "", "blocked": False}
    says(app, "")
    app.switch_page("pages/lesson.py")
    app.query_params["lesson"], app.query_params["screen"] = SCREEN
    assert "You predicted" not in page_text(app.run())


def test_a_key_that_is_gone_or_another_in_the_browser_changes_the_session(url: str) -> None:
    filled(url, attempt(DRILLS[1], True, 3))
    filled(url, attempt(DRILLS[2], True, 3), key=OTHER)
    app = says(opened(), KEY)
    assert [a.item for a in me(says(app, OTHER)).attempts] == [DRILLS[2]]
    assert me(says(app, "")).attempts == []
    assert "Nothing here yet" in page_text(app)


def test_who_has_taken_a_test_alone_can_take_it_along_and_delete_it(url: str) -> None:
    app = opened()
    assert me(app).awaited  # else the browser's key would come too late for the page
    names = {button.key for button in says(app, KEY).button}
    assert {"progress.show", "progress.delete"} <= names


def test_an_answer_that_its_question_cannot_take_any_more_counts_as_none(url: str) -> None:
    kept = filled(url, attempt("gone-from-the-bank", False, 1, "M-gone"))
    kept.keep_answer(learner_id(KEY), PLACE, "17")
    kept.keep_answer(learner_id(KEY), "/".join(NUMBER), "no number any more")
    app = says(lesson(), KEY)
    is_fine(app)
    assert "You predicted" not in page_text(app)
    is_fine(says(opened("lesson", lesson=NUMBER[0], screen=NUMBER[1]), KEY))
    is_fine(says(opened(), KEY))


def test_an_answer_of_no_item_stays_in_the_session() -> None:
    def script() -> None:
        from dpsim.questions import Verdict
        from dpsim.ui.answers import give

        give("here", "1", Verdict(True, ""), "number", "", "")

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert me(app) == Learner(answers={"here": "1"}, shown=True)


@pytest.mark.parametrize(("given", "taken"), [("0>1.0+;1>2.1+|2>0.1=", True), ("0>9.0+", False)])
def test_the_transfers_of_a_ring_come_back_if_they_can_be_read(url: str, given: str, taken: bool) -> None:
    def script() -> None:
        import streamlit as st

        from dpsim.questions import Asked
        from dpsim.ui.answers import answer

        st.session_state["found"] = answer(Asked("ring", "How?", answer=3.0), "a/b/c")

    app = AppTest.from_function(script)
    app.session_state["learner"] = Learner(answers={"a/b/c": given})
    assert app.run().session_state["found"] == (given if taken else None)


def test_a_drill_in_a_lesson_counts_for_the_bank_s_exercise(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drill = f'\n```exercise\nitem = "{DRILLS[1]}"\nobjective = "sums"\n```\n'
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "small.md").write_text(WHOLE + drill, "utf-8")
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path / "lessons"))
    kept = filled(url, attempt(DRILLS[1], True, 2))
    kept.keep_answer(learner_id(KEY), f"small/second-screen/{DRILLS[1].lower()}", "1")
    app = says(opened(), KEY)
    is_fine(app)
    assert section(app, "Lessons").count("1 of 3 questions answered, 1 right") == 1
    assert app.metric[0].value == "1"


@pytest.mark.parametrize(
    "said", [{"turn": 0, "key": "x"}, {"turn": 0, "key": 5}, {"turn": 9, "key": KEY}, "x", 3]
)
def test_nonsense_from_a_browser_is_no_key(said: object) -> None:
    app = opened()
    app.session_state[BROWSER] = {"said": said}
    app.run()
    is_fine(app)
    assert me(app).key == ""


def test_a_browser_that_keeps_nothing_is_asked_for_nothing_and_told_so() -> None:
    app = says(lesson(), "", blocked=True)
    answered(app, RIGHT)
    assert to_browser(app)["wish"] == ""
    assert "You predicted" in page_text(app)
    app.switch_page("pages/progress.py").run()
    assert ["This browser keeps nothing" in block.value for block in app.info] == [True]
    assert section(app, "Lessons")[0].startswith("1 of")


def test_switched_off_it_keeps_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSIM_DATABASE", "off")
    app = answered(lesson(), RIGHT)
    assert to_browser(app)["wish"] == ""
    app.switch_page("pages/progress.py").run()
    assert ["Nothing is kept on this server" in block.value for block in app.info] == [True]


@pytest.mark.parametrize("broken", ["nowhere", "port"])
def test_without_its_database_the_app_goes_on_and_catches_up_later(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "later"
    file = f"sqlite:///{folder / 'p.sqlite3'}"
    port = f"postgresql+psycopg://anne:hush@127.0.0.1:{free_port()}/dpsim"
    monkeypatch.setenv("DPSIM_DATABASE", file if broken == "nowhere" else port)
    app = says(answered(says(lesson(), KEY), RIGHT), KEY)
    is_fine_but = [block.value for block in (*app.exception, *app.error)]
    assert is_fine_but == []
    assert "You predicted" in page_text(app)
    app.switch_page("pages/progress.py").run()
    (note,) = app.warning
    assert "cannot be reached" in note.value
    assert "hush" not in note.value
    app.button(key="progress.delete").click().run()
    app.button(key="progress.yes").click().run()
    assert [block.value for block in app.error] == ["The database cannot be reached\\."]
    assert me(app).key == KEY, "without its key nothing could be deleted later"
    assert json.loads(exported(me(app)))["answers"] == {PLACE: str(RIGHT)}
    folder.mkdir()
    monkeypatch.setenv("DPSIM_DATABASE", file)
    monkeypatch.setattr(dpsim.database, "AGAIN_S", 0.0)
    app.run()
    is_fine(app)
    assert store(file).answers(learner_id(KEY)) == {PLACE: str(RIGHT)}
    assert len(store(file).attempts(learner_id(KEY))) == 1


def test_there_is_room_for_so_many_attempts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(url, attempt(DRILLS[1], True, 3))
    monkeypatch.setattr(dpsim.store, "MOST", 1)
    app = answered(says(lesson(), KEY), RIGHT)
    assert not app.exception
    app.switch_page("pages/progress.py").run()
    assert ["at most 1 for one learner" in block.value for block in app.warning] == [True]


def test_keys_are_as_the_tests_have_them() -> None:
    assert is_key(KEY)
    assert is_key(OTHER)
