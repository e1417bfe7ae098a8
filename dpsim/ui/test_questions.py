"""A test that is open: one question a screen, all of them in a row, handing it in. The address says which.

No verdict is computed here, and nothing that belongs to one is sent to the browser.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsim.checks import InputError
from dpsim.database import UnreachableError
from dpsim.final_test import Posed, score
from dpsim.kept_tests import Sitting
from dpsim.prose import literal
from dpsim.questions import Asked
from dpsim.store import Store
from dpsim.ui.asking import fields, in_words
from dpsim.ui.lesson_top import top
from dpsim.ui.progress_names import readable
from dpsim.wording import day, spans

SURE, SAID = "test.sure", "test.not-ended"
FIRST = "This question has its answer already, from another tab perhaps: the first one stands."
Posing = tuple[Posed, ...]


def at_work(kept: Store, who: str, now: Sitting, posed: Posing) -> bool:
    """Draw the question that the address names, or else where the test stands; whether it was that."""
    given = kept.test_answers(who, now.number)
    wanted = st.query_params.get("question", "")
    if wanted in map(str, range(1, len(posed) + 1)):
        _question(kept, who, now, posed, given, int(wanted) - 1)
        return False
    _standing(kept, who, now, posed, given)
    return True


def _question(kept: Store, who: str, now: Sitting, posed: Posing, given: Mapping[int, str], n: int) -> None:
    """One question: to be answered, or with its answer."""
    one, place = posed[n], f"test/{now.number}/{n}"
    titles = {lesson.slug: lesson.title for lesson in readable()}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "All questions", icon=":material/arrow_back:", type="tertiary", key="test.all", on_click=_go
        )
        st.caption(
            f"{literal(titles[one.objective.lesson])} · {len(given)} of {len(posed)} given", width="content"
        )
    top(f"Question {n + 1} of {len(posed)}", place)

    def keep(answer: str) -> None:
        try:
            kept.answer_test(who, now.number, n, answer)
        except UnreachableError as error:
            said = f"{error} Nothing is lost: try again in a minute."
            raise InputError("answer", said, None) from None
        except InputError as error:
            raise InputError(error.field, FIRST, None) from None

    if n in given:
        _given(one.asked, given[n], place)
    else:
        fields(one.asked, place, "Give this answer", ":material/lock:", None, keep)
        st.caption("An answer that is given is final. Whether it is right is said once you hand the test in.")
    _ways_on(len(posed), given, n)
    _row(now, len(posed), given, n)


def _given(asked: Asked, answer: str, place: str) -> None:
    """A question that has its answer."""
    with st.container(border=True, key="test.given"):
        st.markdown(f"**{asked.question}**")
        st.markdown(f":material/lock: Given: **{in_words(asked, answer)}**")
    if st.session_state.get(f"{place}:refused"):
        st.warning(literal(FIRST))


def _ways_on(count: int, given: Mapping[int, str], n: int) -> None:
    """Back, and on to the next question that is open; where none is, to handing in."""
    after = next((m % count for m in range(n + 1, n + count) if m % count not in given), None)
    with st.container(horizontal=True):
        if n:
            st.button("Back", key="back", icon=":material/chevron_left:", on_click=_go, args=(n - 1,))
        if after is None:
            label = "Hand in" if n in given else "Skip"
        else:
            label = f"On to question {after + 1}" if n in given else f"Skip to question {after + 1}"
        st.button(
            label, key="next", type="primary" if n in given else "secondary",
            icon=":material/chevron_right:", icon_position="right", on_click=_go, args=(after,),
        )  # fmt: skip


def _row(now: Sitting, count: int, given: Mapping[int, str], at: int | None) -> None:
    """All questions, those that are given with a tick, to go to any."""
    key = f"test.row/{now.number}/{at}"
    st.pills(
        "Questions; a tick says that the answer is given", range(count),
        default=at, required=at is not None, key=key, on_change=_turn, args=(key,),
        format_func=lambda n: f"{n + 1} ✓" if n in given else str(n + 1),
    )  # fmt: skip


def _standing(kept: Store, who: str, now: Sitting, posed: Posing, given: Mapping[int, str]) -> None:
    """What is given and what is open, and handing in."""
    still = [n for n in range(len(posed)) if n not in given]
    top("Your test", "test")
    if said := st.session_state.pop(SAID, ""):
        st.error(literal(said))
    st.progress(
        len(given) / len(posed), f"Begun on {day(now.begun)}: {len(given)} of {len(posed)} questions given"
    )
    if still:
        st.button(
            f"Go on with question {still[0] + 1}", key="test.on", type="primary",
            icon=":material/chevron_right:", icon_position="right", on_click=_go, args=(still[0],),
        )  # fmt: skip
    _row(now, len(posed), given, None)
    st.header("Hand in", anchor=False)
    _hand_in(kept, who, now, posed, still)


def _hand_in(kept: Store, who: str, now: Sitting, posed: Posing, still: list[int]) -> None:
    """The button, asked for twice, with what is still open."""
    if still:
        verb, pronoun = ("is", "It counts") if len(still) == 1 else ("are", "They count")
        which = "Question" if len(still) == 1 else "Questions"
        said = f"{which} {spans([n + 1 for n in still])} {verb} still open. "
        said += f"{pronoun} as wrong if you hand in now."
    else:
        said = "Every question has its answer."
    if not st.session_state.get(SURE):
        st.markdown(said)
        st.button(
            "Hand in", key="test.end", icon=":material/task_alt:",
            type="secondary" if still else "primary", on_click=_set_sure, args=(True,),
        )  # fmt: skip
        return
    st.warning(f"{said} Nothing can be changed afterwards.")
    with st.container(horizontal=True):
        st.button(
            "Yes, hand in", key="test.yes", type="primary", on_click=_end,
            args=(kept, who, now.number, posed),
        )  # fmt: skip
        st.button("Not yet", key="test.no", on_click=_set_sure, args=(False,))


def _end(kept: Store, who: str, number: int, posed: Posing) -> None:
    _set_sure(False)
    try:
        kept.end_test(who, number, lambda answers: score(posed, answers))
    except UnreachableError as error:
        st.session_state[SAID] = f"{error} Nothing is lost: try again in a minute."
    except InputError as error:
        st.session_state[SAID] = f"{error}."
    else:
        st.query_params.clear()


def _set_sure(sure: bool) -> None:
    st.session_state[SURE] = sure


def _turn(key: str) -> None:
    chosen = st.session_state[key]
    if chosen is not None:
        _go(chosen)


def _go(n: int | None = None) -> None:
    """To a question, or to where the test stands; the address names it, so that Back comes here again."""
    _set_sure(False)
    st.query_params.from_dict({} if n is None else {"question": str(n + 1)})
