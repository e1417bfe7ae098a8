"""The lessons' page without a browser, through app.py: every screen, predictions, exercises, links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asked import every_answer, give, one_wrong_and_the_right
from streamlit.testing.v1 import AppTest
from test_app import APP, is_fine, page_text, plain
from test_lessons import WHOLE

from dpsim.directives import Break, Exercise, Predict, Recording, Stage
from dpsim.forms import preset, to_query
from dpsim.lessons import Lesson, Screen, lessons
from dpsim.prose import literal
from dpsim.ui.picture import picture

OWN = {slug: lesson for slug, lesson in lessons().items() if isinstance(lesson, Lesson)}
SCREENS = [(slug, screen.slug) for slug, lesson in OWN.items() for screen in lesson.screens]
WEIGHTS = ("one-step", "what-will-the-weights-be")
RATIO = ("whose-tokens-count", "how-much-does-a-token-count")
each_screen = pytest.mark.parametrize(("lesson", "screen"), SCREENS)


def opened(lesson: str = "", screen: str = "", **more: str) -> AppTest:
    """The lessons' page as it is after opening a link."""
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/lesson.py")
    for key, value in (("lesson", lesson), ("screen", screen), *more.items()):
        if value:
            app.query_params[key] = value
    return app.run()


def heading(app: AppTest) -> str:
    """The heading of the screen."""
    (title,) = app.title
    return plain(title.value)


def stages(app: AppTest) -> list[dict[str, object]]:
    """The data of the stages on the page."""
    data = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    return [d for d in data if "beats" in d]


def screen_of(lesson: str, screen: str) -> Screen:
    return next(s for s in OWN[lesson].screens if s.slug == screen)


def said(app: AppTest) -> list[str]:
    """The verdicts on the page."""
    return [block.value for block in (*app.success, *app.warning)]


def is_open(screen: Screen) -> bool:
    return any(isinstance(block, Predict) for block in screen.blocks)


def test_the_list_names_every_lesson_with_minutes_and_objectives() -> None:
    app = opened()
    is_fine(app)
    assert heading(app) == "Lessons"
    text = page_text(app)
    for lesson in OWN.values():
        assert literal(lesson.title) in [block.value for block in app.subheader]
        for objective in lesson.objectives.values():
            assert objective in text
    for lesson, caption in zip(OWN.values(), app.caption, strict=True):
        assert caption.value.startswith(f"{lesson.minutes} minutes")


@each_screen
def test_every_screen_opens_by_its_link_keeps_its_answers_and_explains_them(lesson: str, screen: str) -> None:
    app = opened(lesson, screen)
    is_fine(app)
    assert heading(app) == screen_of(lesson, screen).title
    assert all(radio.value is None for radio in app.radio), "nothing is chosen beforehand"
    assert all(not field.value for field in app.text_input)
    text = "\n".join([page_text(app), *(r.label for r in app.radio), *(t.label for t in app.text_input)])
    assert "{{" not in text
    blocks, setting = screen_of(lesson, screen).blocks, OWN[lesson].setting
    wanted = [b for b in blocks if isinstance(b, (Stage, Break))]
    wanted += [b for b in blocks if isinstance(b, Recording) and "stage" in b.show]
    assert len(stages(app)) == (0 if is_open(screen_of(lesson, screen)) else len(wanted))
    text = "\n".join(block.value for block in (*app.markdown, *app.success, *app.warning, *app.caption))
    asked = [b for b in blocks if isinstance(b, (Predict, Exercise))]
    for block in asked:
        question = setting.asked(block.question.asked)
        hidden = [feedback for _, feedback, _ in every_answer(question)]
        hidden += [setting.shown(block.after)] if isinstance(block, Predict) else []
        assert not [h for h in hidden if h and h in text], "nothing is explained before an answer"
    for block in asked:
        question, place = setting.asked(block.question.asked), f"{lesson}/{screen}/{block.question.id}"
        answers = one_wrong_and_the_right(question)  # what all of them get to hear: test_lessons_questions
        for answer, feedback, right in answers[: 1 if isinstance(block, Predict) else 2]:  # that is locked
            give(app, question, answer, place)
            assert not app.exception
            verdict = "**Right.**" if right else "**Not quite.**"
            assert any(verdict in told and feedback in told for told in said(app))


def test_a_prediction_is_locked_kept_and_shown_beside_the_outcome() -> None:
    (question,) = screen_of(*WEIGHTS).questions
    place = "/".join(WEIGHTS)
    app = opened(*WEIGHTS)
    assert "You predicted" not in page_text(app)
    assert stages(app) == []
    give(app, question.asked, "1", f"{place}/{question.id}")
    is_wrong = "That is a step along the sum"
    assert "You predicted" in page_text(app)
    assert "It is" in page_text(app)
    assert is_wrong in said(app)[0]
    assert len(stages(app)) == 1
    assert list(app.radio) == [], "a locked prediction cannot be changed"
    app.button(key="next").click().run()
    app.button(key="back").click().run()
    assert is_wrong in said(app)[0]
    assert len(stages(app)) == 1
    app.switch_page("pages/step.py").run()
    app.switch_page("pages/lesson.py")
    app.query_params["lesson"], app.query_params["screen"] = WEIGHTS
    app.run()
    assert is_wrong in said(app)[0]


def test_nothing_is_locked_before_something_is_chosen() -> None:
    app = opened(*WEIGHTS)
    app.button(key="/".join([*WEIGHTS, "weights:give"])).click().run()
    assert [block.value for block in app.error] == ["Choose one of the answers first\\."]
    assert stages(app) == []


def test_a_malformed_number_is_a_message_and_no_attempt() -> None:
    (question,) = screen_of(*RATIO).questions
    place = "/".join([*RATIO, question.id])
    app = give(opened(*RATIO), question.asked, "<b>four</b>", place)
    assert "must be a number" in app.error[0].value
    assert "<b>" not in app.error[0].value
    assert stages(app) == []
    assert said(app) == []
    give(app, question.asked, "8/2", place)
    assert "**Right.**" in said(app)[0]
    assert not app.error
    assert "8/2" in page_text(app)


def test_the_stage_s_data_stay_while_other_things_change() -> None:
    (question,) = screen_of(*WEIGHTS).questions
    app = give(opened(*WEIGHTS), question.asked, "2", "/".join([*WEIGHTS, question.id]))
    before = stages(app)
    app.query_params["beat"] = "barrier"  # the stage writes into the address where it stopped
    app.run()
    assert stages(app) == before


def test_a_link_names_a_beat_of_the_screen_s_stage() -> None:
    screen = ("whose-tokens-count", "hand-over-the-sum-and-the-count")
    assert stages(opened(*screen))[0]["first"] == "scatter"
    assert stages(opened(*screen, beat="barrier"))[0]["first"] == "barrier"
    assert stages(opened(*screen, beat="<b>"))[0]["first"] == "scatter"


@pytest.mark.parametrize("asked", ["nope", "<b>x</b>", "x" * 10_000])
def test_an_unknown_lesson_or_screen_is_named_beside_what_there_is(asked: str) -> None:
    app = opened(asked)
    assert not app.exception
    assert "must be one of one" in app.error[0].value
    assert "<b>" not in app.error[0].value
    assert [block.value for block in app.subheader] == [literal(lesson.title) for lesson in OWN.values()]
    app = opened("one-step", asked)
    assert not app.exception
    assert "must be one of different" in app.error[0].value
    assert heading(app) == OWN["one-step"].screens[0].title


def test_the_address_follows_the_buttons() -> None:
    app = opened("one-step")
    app.button(key="next").click().run()
    assert app.query_params["lesson"] == "one-step"
    assert app.query_params["screen"] == OWN["one-step"].screens[1].slug
    app.query_params["screen"] = OWN["one-step"].screens[-1].slug
    app.run()
    app.button(key="next").click().run()
    assert heading(app) == list(OWN.values())[1].screens[0].title


def test_a_lesson_with_a_mistake_says_so_and_the_others_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.md").write_text(WHOLE.replace("{{R}} ranks,", "<i>x</i>"), "utf-8")
    (tmp_path / "small.md").write_text(WHOLE, "utf-8")
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path))
    app = opened()
    assert not app.exception
    (error,) = app.error
    assert "must hold no HTML" in error.value
    assert "<i>" not in error.value
    assert "line 18" in error.value
    is_fine(opened("small", "second-screen"))
    is_fine(opened("one-step"))
    assert "must hold no HTML" in opened("broken").error[0].value


def test_a_stage_of_a_lesson_is_the_picture_of_its_scenario() -> None:
    lesson, screen = "whose-tokens-count", "hand-over-the-sum-and-the-count"
    data, _, _ = picture(to_query(preset("two-and-eight")))
    assert stages(opened(lesson, screen))[0]["id"] == data["id"]


def test_the_presenter_s_view_waits_for_an_open_prediction() -> None:
    assert stages(opened("one-step", "what-will-the-weights-be", present="1")) == []
    (data,) = stages(opened("whose-tokens-count", "hand-over-the-sum-and-the-count", present="1"))
    assert data["present"] is True
