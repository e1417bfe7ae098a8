"""The test's page without a browser: one answer to each question, no word about it before the end, all of it
kept under the browser's key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import give, one_wrong_and_the_right
from google.protobuf.json_format import MessageToDict
from limits import RateLimitItemPerHour, RateLimitItemPerMinute
from streamlit.testing.v1 import AppTest
from test_app import is_fine, page_text, plain
from test_final_test import right_answer, wrong_answer
from test_progress_app import KEY, OTHER, me, opened, says, to_browser

import dpsim.database
import dpsim.rates
from dpsim.exercises import variant
from dpsim.final_test import Posed, fingerprint, objectives, questions
from dpsim.kept_tests import Sitting
from dpsim.lessons import Lesson, lessons
from dpsim.prose import literal
from dpsim.rates import Rate
from dpsim.recovery import known_as, learner_id, recovery_code
from dpsim.score import Score
from dpsim.store import store

ANNE = learner_id(KEY)
COUNT = len(objectives())
FIRST = "This question has its answer already"


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of this test's own."""
    chosen = f"sqlite:///{tmp_path / 'p.sqlite3'}"
    monkeypatch.setenv("DPSIM_DATABASE", chosen)
    return chosen


def shown(question: int | None = None, key: str = KEY, **query: str) -> AppTest:
    """The page as a learner sees it, perhaps at one of the questions, which count from 0."""
    where = query if question is None else {"question": str(question + 1)}
    return says(opened("test", **where), key)


def begun(
    url: str, seed: str = "a-seed-not-to-be-told", of: tuple[Posed, ...] | None = None
) -> tuple[Sitting, tuple[Posed, ...]]:
    """A test that was begun, and its questions; `of` are those that it was begun with, if others."""
    posed = questions(seed, objectives())
    return store(url).begin_test(ANNE, seed, fingerprint(of or posed)), posed


def answered(app: AppTest, number: int, n: int, posed: tuple[Posed, ...], given: str) -> AppTest:
    place = f"test/{number}/{n}"
    if posed[n].asked.kind != "cell":
        return give(app, posed[n].asked, given, place)
    app.session_state[f"{place}:given"] = {"given": given}
    return app.button(key=f"{place}:give").click().run()


def first(posed: tuple[Posed, ...], kind: str) -> int:
    return next(n for n, one in enumerate(posed) if one.asked.kind == kind)


def heading(app: AppTest) -> str:
    return plain(app.title[0].value)


def told(app: AppTest) -> str:
    """All text that the browser is sent, wherever it stands."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                yield from texts(each)
        elif isinstance(value, str):
            yield value
            if value.startswith("{"):  # a component's data
                yield from texts(json.loads(value))

    parts = [MessageToDict(node.proto) for tree in (app.main, app.sidebar) for node in tree if node.proto]
    return "\n".join(texts(parts))


def all_text(app: AppTest) -> str:
    said = [*app.markdown, *app.warning, *app.error, *app.success, *app.info, *app.caption]
    return "\n".join(plain(block.value) for block in said)


def row(app: AppTest) -> list[str]:
    """The labels of all questions."""
    (found,) = app.get("button_group")
    return [option.content for option in found.proto.options]


def hand_in(app: AppTest) -> AppTest:
    app.button(key="test.end").click().run()
    return app.button(key="test.yes").click().run()


def test_before_it_is_begun_the_page_says_what_it_is_and_keeps_nothing(url: str) -> None:
    app = opened("test")
    is_fine(app)
    text = page_text(app)
    for said in (f"{COUNT} questions", "80 %", f"29 of {COUNT}", "one answer", "once you hand", "45 minutes"):
        assert said in text
    assert to_browser(app)["wish"] == ""
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_to_begin_has_the_browser_make_a_key_and_then_asks_the_first_question(url: str) -> None:
    app = opened("test")
    app.button(key="test.begin").click().run()
    assert to_browser(app)["wish"] == "make"
    assert me(app).key == ""
    is_fine(says(app, KEY))
    assert heading(app) == f"Question 1 of {COUNT}"
    assert app.query_params["question"] in ("1", ["1"])
    test = store(url).open_test(ANNE)
    assert test is not None
    posed = questions(test.seed, objectives())
    assert test.fingerprint == fingerprint(posed)
    assert posed[0].asked.question in told(app)
    assert re.fullmatch("[0-9a-f]{32}", test.seed)


def test_who_begins_in_two_tabs_has_one_test(url: str) -> None:
    tabs = [shown(), shown()]
    for app in tabs:
        app.button(key="test.begin").click().run()
    assert len(store(url).tests(ANNE)) == 1
    assert heading(tabs[1]) == "Your test"


def test_no_question_holds_its_answer_and_each_is_taken_once_and_for_good(url: str) -> None:
    test, posed = begun(url)
    app = shown()
    for n in range(COUNT):
        asked, app.query_params["question"] = posed[n].asked, str(n + 1)
        is_fine(app.run())
        assert heading(app) == f"Question {n + 1} of {COUNT}"
        given = (right_answer if n % 3 else wrong_answer)(asked)
        for _ in range(2):  # before and after the answer
            sent = told(app)
            assert asked.question in sent
            hidden = [asked.solution, asked.feedback, asked.other, test.seed]
            hidden += [option.feedback for option in asked.options]
            hidden += [slip.feedback for slip in asked.wrong]
            assert not [h for h in hidden if h and h in sent]
            assert not app.success
            assert asked.link == "" or asked.link not in sent
            if not [b for b in app.button if b.key == f"test/{test.number}/{n}:give"]:
                break
            is_fine(answered(app, test.number, n, posed, given))
        assert store(url).test_answers(ANNE, test.number)[n] == given
        assert ":material/lock: Given:" in page_text(app)
        fields = [*app.text_input, *app.radio, *app.checkbox, *app.selectbox]
        assert not fields, "what was given cannot be changed"
    assert me(app).attempts == []


def test_what_is_no_answer_is_a_message_and_leaves_the_question_open(url: str) -> None:
    test, posed = begun(url)
    n = first(posed, "number")
    app = shown(n)
    for typed in ("", "many"):
        answered(app, test.number, n, posed, typed)
        assert len(app.error) == 1
    assert app.text_input[0].value == "many"
    n = first(posed, "order")
    app = shown(n)
    app.button(key=f"test/{test.number}/{n}:give").click().run()
    assert "Choose a step for every place first" in app.error[0].value
    assert store(url).test_answers(ANNE, test.number) == {}


def test_questions_are_skipped_and_come_back_to_and_the_row_says_which_are_given(url: str) -> None:
    test, posed = begun(url)
    app = shown(0)
    assert row(app) == [str(n + 1) for n in range(COUNT)]
    app.button(key="next").click().run()
    assert heading(app) == f"Question 2 of {COUNT}"
    answered(app, test.number, 1, posed, right_answer(posed[1].asked))
    assert row(app)[:3] == ["1", "2 ✓", "3"]
    app.button(key="back").click().run()
    assert heading(app) == f"Question 1 of {COUNT}"
    assert app.button(key="next").label == "Skip to question 3"
    app.button(key="test.all").click().run()
    assert heading(app) == "Your test"
    assert row(app)[:3] == ["1", "2 ✓", "3"]
    app.button(key="test.on").click().run()
    assert heading(app) == f"Question 1 of {COUNT}"


def test_after_the_last_question_it_goes_on_with_the_skipped_ones_and_then_to_handing_in(url: str) -> None:
    test, posed = begun(url)
    for n in range(1, COUNT - 1):
        store(url).answer_test(ANNE, test.number, n, "1")
    app = shown(COUNT - 1)
    answered(app, test.number, COUNT - 1, posed, right_answer(posed[-1].asked))
    assert app.button(key="next").label == "On to question 1"
    app.button(key="next").click().run()
    assert app.button(key="next").label == "Skip"
    answered(app, test.number, 0, posed, right_answer(posed[0].asked))
    assert app.button(key="next").label == "Hand in"
    app.button(key="next").click().run()
    assert heading(app) == "Your test"
    assert "Every question has its answer" in page_text(app)


@pytest.mark.parametrize("wanted", ["0", str(COUNT + 1), "-1", "x", "<b>", "1e3", "01", ""])
def test_a_question_that_there_is_not_leads_to_where_the_test_stands(url: str, wanted: str) -> None:
    begun(url)
    app = says(opened("test", question=wanted), KEY)
    is_fine(app)
    assert heading(app) == "Your test"


def test_another_session_goes_on_where_it_was_left_and_another_learner_does_not(url: str) -> None:
    test, posed = begun(url)
    answered(shown(0), test.number, 0, posed, right_answer(posed[0].asked))
    store(url).close()  # as after a restart of the server
    again = shown()
    assert heading(again) == "Your test"
    assert f"1 of {COUNT} questions given" in again.get("progress")[0].proto.text
    assert "Given:" in page_text(shown(0))
    assert heading(shown(key=OTHER)) == "Test"
    assert heading(opened("test", question="1")) == "Test", "before the key is known"


def test_the_first_answer_stands_whatever_another_tab_says(url: str) -> None:
    test, posed = begun(url)
    n = first(posed, "number")
    one, other = shown(n), shown(n)
    answered(one, test.number, n, posed, "1")
    answered(other, test.number, n, posed, "2")
    assert [FIRST in block.value for block in other.warning] == [True]
    assert "Given: **1**" in page_text(other)
    assert store(url).test_answers(ANNE, test.number) == {n: "1"}
    other = shown(first(posed, "choose-one"))
    hand_in(shown())
    answered(other, test.number, first(posed, "choose-one"), posed, "0")
    assert heading(other) == "Your result", "a test that has ended takes no answer"
    assert store(url).test_answers(ANNE, test.number) == {n: "1"}
    assert not other.exception


def test_handing_in_names_what_is_open_asks_once_more_and_scores_what_is_kept(url: str) -> None:
    test, posed = begun(url)
    given = {n: right_answer(posed[n].asked) if n % 2 else wrong_answer(posed[n].asked) for n in range(10)}
    for n, answer in given.items():
        store(url).answer_test(ANNE, test.number, n, answer)
    app = shown()
    assert f"Questions 11 to {COUNT} are still open" in page_text(app)
    app.button(key="test.end").click().run()
    assert "Nothing can be changed afterwards" in app.warning[0].value
    app.button(key="test.no").click().run()
    assert store(url).open_test(ANNE) == test
    hand_in(app)
    assert not app.exception
    assert heading(app) == "Your result"
    assert store(url).tests(ANNE)[0].score == Score(5, COUNT)
    assert f"**Not passed.** 5 of {COUNT} questions right" in app.warning[0].value
    assert f"29 are needed, {80} %" in app.warning[0].value
    assert known_as(ANNE) in all_text(app)
    labels = [expander.label for expander in app.expander]
    words = ["Right" if n % 2 else "Not right" for n in range(10)] + ["No answer"] * (COUNT - 10)
    assert labels == [f"**{word}:** {one.objective.text}" for word, one in zip(words, posed, strict=True)]
    for n, (one, expander) in enumerate(zip(posed, app.expander, strict=True)):
        verdicts = [block.value.split("**")[1] for block in (*expander.success, *expander.warning)]
        assert verdicts == (["Right." if n % 2 else "Not quite."] if n in given else [])
        inside = "\n".join(block.value for block in expander.markdown)
        assert one.asked.question in inside
        assert one.asked.solution in inside
    linked = {link.proto.page for link in app.get("page_link")}
    assert linked >= {"lesson", "practice"}
    titles = [literal(lesson.title) for lesson in lessons().values() if isinstance(lesson, Lesson)]
    assert [link.proto.label for link in app.get("page_link") if link.proto.page == "lesson"] == titles


@pytest.mark.parametrize(("right", "passes"), [(28, False), (29, True)])
def test_four_fifths_pass(url: str, right: int, passes: bool) -> None:
    test, posed = begun(url)
    for n, one in enumerate(posed):
        answer = right_answer(one.asked) if n < right else wrong_answer(one.asked)
        store(url).answer_test(ANNE, test.number, n, answer)
    app = hand_in(shown())
    assert [block.value for block in app.success if "**Passed.**" in block.value] == (
        [f"**Passed.** 29 of {COUNT} questions right, 80 %."] if passes else []
    )
    assert store(url).tests(ANNE)[0].score == Score(right, COUNT)


def test_another_test_has_other_questions_and_earlier_results_are_there(url: str) -> None:
    test, posed = begun(url)
    hand_in(shown())
    app = shown()
    app.button(key="test.begin").click().run()
    assert heading(app) == f"Question 1 of {COUNT}"
    after = store(url).open_test(ANNE)
    assert after is not None
    assert [p.asked for p in questions(after.seed, objectives())] != [p.asked for p in posed]
    app = shown()
    app.button(key=f"test.shows/{test.number}").click().run()
    assert heading(app) == "Your result"
    app.button(key="test.back").click().run()
    assert heading(app) == "Your test"
    hand_in(app)
    assert app.button(key=f"test.shows/{test.number}")
    assert heading(shown(test=str(after.number))) == "Your result"
    assert heading(shown(key=OTHER, test=str(test.number))) == "Test", "it is nobody else's"


def test_a_test_of_another_version_of_the_content_cannot_be_continued(url: str) -> None:
    test, posed = begun(url, of=questions("other", objectives()))
    for app in (shown(), shown(0)):
        assert ["cannot be continued" in block.value for block in app.warning] == [True]
        assert posed[0].asked.question not in told(app)
    app.button(key="test.begin").click().run()
    assert heading(app) == f"Question 1 of {COUNT}"
    assert [(t.number == test.number, t.score) for t in store(url).tests(ANNE)] == [
        (True, None),
        (False, None),
    ]


def test_a_score_outlives_the_questions_it_was_got_with(url: str) -> None:
    test, posed = begun(url, of=questions("other", objectives()))
    store(url).end_test(ANNE, test.number, lambda _: Score(29, COUNT))
    app = shown()
    assert "**Passed.**" in app.success[0].value
    assert "cannot be shown any more" in plain(app.info[-1].value)
    assert not app.expander
    assert posed[0].asked.question not in told(app)


def test_where_nothing_is_kept_the_page_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    app = says(opened("test"), "", blocked=True)
    assert ["Allow this site to store data" in block.value for block in app.warning] == [True]
    assert not [button for button in app.button if button.key == "test.begin"]
    monkeypatch.setenv("DPSIM_DATABASE", "off")
    app = opened("test")
    assert ["`DPSIM_DATABASE`" in block.value for block in app.warning] == [True]
    assert not [button for button in app.button if button.key == "test.begin"]
    assert not app.exception


def test_a_browser_that_refuses_the_key_begins_nothing() -> None:
    app = opened("test")
    app.button(key="test.begin").click().run()
    says(app, "", blocked=True)
    assert "No test can be taken in this browser" in app.warning[0].value
    says(app, KEY)
    assert heading(app) == "Test"


def test_while_the_database_is_away_nothing_is_lost(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, posed = begun(url)
    n = first(posed, "number")
    app, standing = shown(n), shown()
    standing.button(key="test.end").click().run()
    file = tmp_path / "p.sqlite3"
    store(url).close()
    for each in tmp_path.glob("p.sqlite3*"):
        each.rename(tmp_path / f"away-{each.name}")
    file.mkdir()
    answered(app, test.number, n, posed, "1")
    standing.button(key="test.yes").click().run()
    for page in (app, standing, shown()):
        assert ["cannot be reached" in block.value for block in page.error] == [True]
        assert "is not lost" in page.error[0].value
        assert not page.exception
    file.rmdir()
    for each in tmp_path.glob("away-*"):
        each.rename(tmp_path / each.name.removeprefix("away-"))
    monkeypatch.setattr(dpsim.database, "AGAIN_S", 0.0)
    app = shown(n)
    assert heading(app) == f"Question {n + 1} of {COUNT}"
    assert store(url).open_test(ANNE) == test


def test_progress_shows_exports_and_deletes_who_has_only_taken_a_test(url: str) -> None:
    test, posed = begun(url)
    store(url).answer_test(ANNE, test.number, 0, right_answer(posed[0].asked))
    app = says(opened(), KEY)
    assert app.get("download_button")
    other = opened()
    other.text_input(key="progress.code").set_value(recovery_code(KEY))
    other.button(key="progress.use.go").click().run()
    assert me(other).key == KEY, "the code of somebody who has only a test is known"
    app.button(key="progress.delete").click().run()
    app.button(key="progress.yes").click().run()
    assert store(url).tests(ANNE) == []
    assert heading(says(opened("test"), "")) == "Test"


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are soon reached."""
    monkeypatch.delenv("DPSIM_LIMITS")
    one, many = RateLimitItemPerMinute(1), RateLimitItemPerMinute(100)
    monkeypatch.setitem(dpsim.rates.RATES, "answer", Rate(one, many))
    monkeypatch.setitem(dpsim.rates.RATES, "test", Rate(RateLimitItemPerHour(1), many))
    dpsim.rates._counts.cache_clear()


def test_who_answers_too_fast_is_told_when_to_try_again_and_loses_nothing(url: str, limited: None) -> None:
    test, posed = begun(url)
    app = shown(first(posed, "choose-one"))
    answered(app, test.number, first(posed, "choose-one"), posed, "0")
    n = first(posed, "number")
    app = shown(n)
    answered(app, test.number, n, posed, "17")
    assert re.search(r"Try again in [0-9]+ seconds", plain(app.error[0].value))
    assert app.text_input[0].value == "17"
    assert list(store(url).test_answers(ANNE, test.number)) == [first(posed, "choose-one")]
    drill = says(opened("practice", item="x-R1", seed="a"), KEY)
    asked = variant("x-R1", "a")
    give(drill, asked, one_wrong_and_the_right(asked)[1][0], "practice/x-R1/a")
    assert "Try again in" in plain(drill.error[0].value)
    assert not drill.success
    assert me(drill).attempts == []
    other = says(opened("practice", item="x-R1", seed="a"), OTHER)
    give(other, asked, one_wrong_and_the_right(asked)[1][0], "practice/x-R1/a")
    assert other.success, "another browser is another one"


def test_who_begins_too_many_tests_is_told_when_to_try_again(url: str, limited: None) -> None:
    app = shown()
    app.button(key="test.begin").click().run()
    assert heading(app) == f"Question 1 of {COUNT}"
    hand_in(shown())
    app = shown()
    app.button(key="test.begin").click().run()
    assert re.search(r"Try again in (59|60) minutes", plain(app.error[0].value))
    assert store(url).open_test(ANNE) is None


def test_the_list_of_lessons_and_the_end_of_the_last_one_lead_here() -> None:
    found = [lesson for lesson in lessons().values() if isinstance(lesson, Lesson)]

    def leads(**query: str) -> bool:
        return "test" in [link.proto.page for link in opened("lesson", **query).get("page_link")]

    assert leads()
    assert leads(lesson=found[-1].slug, screen=found[-1].screens[-1].slug)
    assert not leads(lesson=found[0].slug, screen=found[0].screens[-1].slug)
