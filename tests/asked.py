"""For tests: all answers that a question has words for, and how each is given on a page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from dpsim.questions import Asked

FAR = "-987654"  # an answer that nobody foresaw


def every_answer(asked: Asked) -> list[tuple[str, str, bool]]:
    """Answers as they are kept, what each of them gets to hear, and whether it is right."""
    if asked.kind == "number":
        told = [(repr(slip.value), slip.feedback, False) for slip in asked.wrong]
        return [*told, (FAR, asked.other, False), (repr(asked.answer), asked.feedback, True)]
    places = list(range(len(asked.options)))
    if asked.kind == "choose-one":
        return [(str(i), option.feedback, option.right) for i, option in enumerate(asked.options)]
    if asked.kind == "order":
        swapped = [[*places[:i], i + 1, i, *places[i + 2 :]] for i in places[:-1]]
        told = [(_joined(order), asked.options[i].feedback, False) for i, order in enumerate(swapped)]
        return [*told, (_joined(places), asked.feedback, True)]
    assert asked.kind == "choose-several"
    right = {i for i in places if asked.options[i].right}
    others = [sorted(right ^ {i}) for i in places]
    told = [(_joined(o), asked.options[i].feedback, False) for i, o in enumerate(others) if o]
    said = asked.feedback or asked.right_options[0].feedback
    return [*told, (_joined(sorted(right)), said, True)]


def one_wrong_and_the_right(asked: Asked) -> list[tuple[str, str, bool]]:
    """The first answer that is wrong, and the right one."""
    told = every_answer(asked)
    return [next(t for t in told if not t[2]), next(t for t in told if t[2])]


def give(app: AppTest, asked: Asked, answer: str, place: str) -> AppTest:
    """Answer the question that is drawn under `place`, and press its button."""
    key = f"{place}:given"
    if asked.kind == "number":
        app.text_input(key=key).set_value(answer)
    elif asked.kind == "choose-one":
        app.radio(key=key).set_value(answer)
    elif asked.kind == "order":
        for i, step in enumerate(answer.split(",")):
            app.selectbox(key=f"{key}.{i}").set_value(step)
    else:
        assert asked.kind == "choose-several"
        for i in range(len(asked.options)):
            app.checkbox(key=f"{key}.{i}").set_value(str(i) in answer.split(","))
    return app.button(key=f"{place}:give").click().run()


def _joined(places: list[int]) -> str:
    return ",".join(map(str, places))
