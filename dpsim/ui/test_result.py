"""What a test came to: the score, every objective right or not, and only now why."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpsim.final_test import Posed, marks
from dpsim.kept_tests import Sitting
from dpsim.prose import literal
from dpsim.recovery import known_as
from dpsim.score import PASS, needed
from dpsim.ui.asking import in_words, right_in_words, verdict
from dpsim.ui.lesson_top import top
from dpsim.ui.practice import see
from dpsim.ui.progress_names import readable
from dpsim.wording import day


def result(who: str, sitting: Sitting, posed: tuple[Posed, ...], answers: Mapping[int, str]) -> None:
    """Draw the result of a test that was handed in; `posed` is empty where its questions are not known any
    more."""
    score = sitting.score
    assert score is not None
    top("Your result", f"test/result/{sitting.number}")
    said = f"{score.right} of {score.of} questions right, {100 * score.right // score.of} %"
    if score.passed:
        st.success(f"**Passed.** {said}.", icon=":material/check_circle:")
    else:
        enough = f"{needed(score.of)} are needed, {int(100 * PASS)} %"
        st.warning(f"**Not passed.** {said}; {enough}.", icon=":material/lightbulb:")
    ended = sitting.ended or sitting.begun
    st.caption(f"Handed in on {day(ended)}. A teacher's table has this test under `{known_as(who)}`.")
    if score.passed:
        from dpsim.ui.certificate_view import certificate  # only who has passed waits for cryptography

        certificate(sitting)
    st.header("Objective by objective", anchor=False)
    if posed:
        _objectives(sitting, posed, answers)
    else:
        st.info(
            "The lessons or the exercises have been changed since. The score stays; the questions cannot be "
            "shown any more."
        )


def _objectives(sitting: Sitting, posed: tuple[Posed, ...], answers: Mapping[int, str]) -> None:
    """The objectives under their lessons."""
    right = marks(posed, answers)
    for lesson in readable():
        own = [n for n, one in enumerate(posed) if one.objective.lesson == lesson.slug]
        if not own:
            continue
        with st.container(border=True, gap="small", key=f"result/{lesson.slug}"):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.page_link(
                    "pages/lesson.py", label=literal(lesson.title), icon=":material/school:",
                    query_params={"lesson": lesson.slug},
                )  # fmt: skip
                st.caption(f"{sum(right[n] for n in own)} of {len(own)} right", width="content")
            for n in own:
                _objective(n, posed[n], answers.get(n), right[n], f"result/{sitting.number}/{n}")


def _objective(n: int, one: Posed, given: str | None, right: bool, key: str) -> None:
    """One objective; on demand its question, what was answered, and the way to the answer."""
    said = "Right" if right else "No answer" if given is None else "Not right"
    icon = "check_circle" if right else "radio_button_unchecked" if given is None else "cancel"
    with st.expander(f"**{said}:** {one.objective.text}", icon=f":material/{icon}:", key=key):
        st.markdown(f"Question {n + 1}. **{one.asked.question}**")
        if given is None:
            st.markdown(f"You gave no answer. It is **{right_in_words(one.asked)}**.")
        else:
            st.markdown(f"You answered **{in_words(one.asked, given)}**.")
            verdict(one.asked, given)
            if not right:
                st.markdown(f"It is **{right_in_words(one.asked)}**.")
        if one.asked.solution:
            st.markdown(one.asked.solution)
        see(one.asked)
        st.page_link(
            "pages/practice.py", label="Practise this", icon=":material/exercise:",
            query_params={"item": one.item},
        )  # fmt: skip
