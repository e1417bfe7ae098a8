"""A question as a form: nothing chosen beforehand, and what is no answer is a message, no attempt."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpsim.checks import InputError
from dpsim.prose import literal
from dpsim.puzzle import judged, parse, target
from dpsim.questions import Asked
from dpsim.ui.answers import answer, give
from dpsim.ui.ring_puzzle import cell_picker, ring_puzzle, said
from dpsim.ui.slow_down import slow_down
from dpsim.wording import plural


def form(asked: Asked, place: str, label: str, icon: str, item: str | None = None, seed: str = "") -> None:
    """Draw the question with a button that gives the answer. `item` and `seed` say which variant it is: the
    question at this place where nothing is said, and none that is kept beyond the session for ""."""

    def keep(given: str) -> None:
        give(place, given, judged(asked, given), asked.kind, place if item is None else item, seed)

    fields(asked, place, label, icon, answer(asked, place), keep)


def fields(
    asked: Asked, place: str, label: str, icon: str, given: str | None, keep: Callable[[str], None]
) -> None:
    """Draw the question, with what was given before in it, and a button that hands what is in it to `keep`,
    which may refuse it with an InputError."""
    refused = st.session_state.get(f"{place}:refused")
    drawn = asked.kind in DRAWN
    with st.container(border=True) if drawn else st.form(f"{place}:form"):
        FIELDS[asked.kind](asked, place, given)
        button = st.button if drawn else st.form_submit_button
        button(
            label, icon=icon, type="primary", key=f"{place}:give", on_click=_give,
            args=(place, asked, given, keep),
        )  # fmt: skip
        if refused:
            st.error(literal(refused))


def refused(place: str) -> bool:
    """Whether what was last given at this place was no answer."""
    return bool(st.session_state.get(f"{place}:refused"))


def verdict(asked: Asked, given: str) -> None:
    """Right or not, and why exactly this answer is; beside a right number the exact one."""
    found = judged(asked, given)
    if not found.right:
        st.warning(f"**Not quite.** {found.feedback}", icon=":material/lightbulb:")
        return
    exact = f" Exactly: **{literal(asked.exact)}**." if asked.kind == "number" else ""
    st.success(f"**Right.** {found.feedback}{exact}", icon=":material/check_circle:")


def in_words(asked: Asked, given: str) -> str:
    """An answer as Markdown."""
    if asked.kind == "number":
        return literal(given)
    if asked.kind == "cell":
        rank, chunk = given.split(".")
        return f"chunk {chunk} on rank {rank}"
    if asked.kind == "ring":
        rounds = [transfers for transfers in parse(int(asked.answer), given) if transfers]
        return f"{plural(sum(map(len, rounds)), 'transfer')} in {plural(len(rounds), 'round')}"
    chosen = [asked.options[int(i)].text for i in given.split(",") if i]
    return (" → " if asked.kind == "order" else ", ").join(chosen) or "none of them"


def right_in_words(asked: Asked) -> str:
    """The right answer as Markdown."""
    if asked.kind == "number":
        return literal(asked.exact)
    if asked.kind == "order":
        return " → ".join(option.text for option in asked.options)
    if asked.kind == "ring":
        return f"a ring of {target(int(asked.answer))} rounds, in each of which every rank sends a chunk on"
    return ", ".join(in_words(asked, o.text) if asked.kind == "cell" else o.text for o in asked.right_options)


def _keep(key: str, value: object) -> None:
    """What a widget shows on coming back to the screen."""
    if key not in st.session_state:
        st.session_state[key] = value


def _number(asked: Asked, place: str, given: str | None) -> None:
    key = f"{place}:given"
    _keep(key, given)
    unit = f" in {asked.unit}" if asked.unit not in ("", "times") else ""
    st.text_input(asked.question, key=key, placeholder=f"A number{unit}, such as 0.5 or 7/4")


def _choose_one(asked: Asked, place: str, given: str | None) -> None:
    key = f"{place}:given"
    _keep(key, given)
    texts = [option.text for option in asked.options]
    st.radio(asked.question, list(map(str, range(len(texts)))), None, lambda i: texts[int(i)], key=key)


def _choose_several(asked: Asked, place: str, given: str | None) -> None:
    st.markdown(f"**{asked.question}**")
    st.caption("Choose all that are right.")
    chosen = (given or "").split(",")
    for i, option in enumerate(asked.options):
        _keep(f"{place}:given.{i}", str(i) in chosen)
        st.checkbox(option.text, key=f"{place}:given.{i}")


def _order(asked: Asked, place: str, given: str | None) -> None:
    st.markdown(f"**{asked.question}**")
    shuffled = list(map(str, asked.shuffled(place)))
    chosen = given.split(",") if given else [None] * len(shuffled)
    for i in range(len(shuffled)):
        _keep(f"{place}:given.{i}", chosen[i])
        st.selectbox(
            f"Step {i + 1}", shuffled, None, lambda s: asked.options[int(s)].text, key=f"{place}:given.{i}",
            placeholder="Choose the step",
        )  # fmt: skip


def _cell(asked: Asked, place: str, given: str | None) -> None:
    st.markdown(f"**{asked.question}**")
    cell_picker(int(asked.answer), f"{place}:given", given or "")


def _ring(asked: Asked, place: str, given: str | None) -> None:
    st.markdown(f"**{asked.question}**")
    ring_puzzle(int(asked.answer), f"{place}:given", given or "")


FIELDS: dict[str, Callable[[Asked, str, str | None], None]] = {
    "number": _number,
    "choose-one": _choose_one,
    "choose-several": _choose_several,
    "order": _order,
    "cell": _cell,
    "ring": _ring,
}
DRAWN = {  # what is no widget of a form, and what is asked for where nothing has been done in it
    "cell": "Choose one cell first.",
    "ring": "Compose at least one transfer first.",
}


def _give(place: str, asked: Asked, before: str | None, keep: Callable[[str], None]) -> None:
    """Take what is in the form as the answer, unless it is none: then say so, and count no attempt."""
    wrong = None
    try:
        given = _given(place, asked, before)
        if said := slow_down("answer"):
            raise InputError("answer", said, None)
        judged(asked, given)
        keep(given)
    except InputError as error:
        wrong = error.rule if error.value is None else str(error)
    st.session_state[f"{place}:refused"] = wrong


def _given(place: str, asked: Asked, before: str | None) -> str:
    """What stands in the form, as it is kept; InputError without a value where something is missing."""
    if asked.kind == "choose-several":
        several = [i for i in range(len(asked.options)) if st.session_state.get(f"{place}:given.{i}")]
        if not several:
            raise InputError("answer", "Choose at least one of the answers first.", None)
        return ",".join(map(str, several))
    if asked.kind == "order":
        places = [st.session_state.get(f"{place}:given.{i}") for i in range(len(asked.options))]
        if None in places:
            raise InputError("answer", "Choose a step for every place first.", None)
        if len(set(places)) < len(places):
            raise InputError("answer", "Choose every step once.", None)
        return ",".join(map(str, places))
    if asked.kind in DRAWN:
        drawn = said(f"{place}:given", before or "")
        if not drawn:
            raise InputError("answer", DRAWN[asked.kind], None)
        return drawn
    given = st.session_state.get(f"{place}:given")
    if not given:
        first = "Type a number first." if asked.kind == "number" else "Choose one of the answers first."
        raise InputError("answer", first, None)
    return str(given)
