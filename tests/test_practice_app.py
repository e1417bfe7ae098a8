"""The practice page without a browser: every exercise can be opened, answered and had again."""

from __future__ import annotations

import json

import pytest
from asked import give, one_wrong_and_the_right
from streamlit.testing.v1 import AppTest
from test_app import APP, page_text

from dpsim.exercises import items, topics, variant
from dpsim.prose import literal

FORMS = ("choose-one", "choose-several", "number", "order")


def opened(item: str = "", seed: str = "") -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/practice.py")
    for key, value in (("item", item), ("seed", seed)):
        if value:
            app.query_params[key] = value
    return app.run()


def verdicts(app: AppTest) -> list[str]:
    return [block.value for block in (*app.success, *app.warning)]


def test_the_list_has_every_exercise_under_its_topic() -> None:
    app = opened()
    assert not app.exception
    assert [heading.value for heading in app.subheader] == list(topics().values())
    labels = [button.label for button in app.button]
    assert all(literal(item.title) in labels for item in items().values())


@pytest.mark.parametrize("item", items())
def test_an_exercise_keeps_its_answer_until_one_is_given_and_explains_it_then(item: str) -> None:
    asked = variant(item, "a")
    app = opened(item, "a")
    assert not app.exception
    told = "\n".join([page_text(app), *(b.value for b in app.markdown), *(r.label for r in app.radio)])
    told += "\n".join(t.label for t in app.text_input)
    assert asked.question in told
    said = [block.value for block in (*app.markdown, *app.success, *app.warning, *app.caption)]
    for hidden in (asked.solution, asked.feedback, asked.other, *(o.feedback for o in asked.options)):
        assert not hidden or not any(hidden in block for block in said)
    sent = json.dumps([component.proto.json for component in app.get("bidi_component")])
    assert asked.solution == "" or json.dumps(asked.solution)[1:-1] not in sent
    assert not verdicts(app)
    assert all(radio.value is None for radio in app.radio)
    for given, feedback, is_right in one_wrong_and_the_right(asked) if asked.kind in FORMS else ():
        give(app, asked, given, f"practice/{item}/a")
        assert not app.exception
        (verdict,) = verdicts(app)
        assert verdict.startswith("**Right.**" if is_right else "**Not quite.**")
        assert feedback in verdict
        assert asked.solution in [block.value for block in app.markdown]
        if asked.kind == "number" and is_right:
            assert f"Exactly: **{literal(asked.exact)}**" in verdict


def test_the_same_link_is_the_same_question_and_another_one_is_not() -> None:
    questions = {
        opened("x-C2", "same").text_input[0].label if opened("x-C2", "same").text_input else "" for _ in "ab"
    }
    assert len(questions) == 1
    app = opened("x-C2", "same")
    before = page_text(app) + "".join(t.label for t in (*app.text_input, *app.radio))
    app.button(key="another").click().run()
    after = page_text(app) + "".join(t.label for t in (*app.text_input, *app.radio))
    assert before != after
    assert app.query_params["item"] in ("x-C2", ["x-C2"])
    assert app.query_params["seed"] not in ("same", ["same"])


def test_without_a_seed_a_rerun_asks_the_same() -> None:
    app = opened("x-R1")
    before = [t.label for t in (*app.text_input, *app.radio)]
    app.run()
    assert [t.label for t in (*app.text_input, *app.radio)] == before


@pytest.mark.parametrize("item", ["x-C0", "<b>x</b>", "x" * 10_000])
def test_an_unknown_exercise_is_named_beside_what_there_is(item: str) -> None:
    app = opened(item)
    assert not app.exception
    assert "must be one of x\\-R1" in app.error[0].value
    assert "<b>" not in app.error[0].value
    assert len(app.subheader) >= 2


def test_a_seed_is_bounded() -> None:
    app = opened("x-R1", "s" * 41)
    assert not app.exception
    assert "seed" in app.error[0].value
