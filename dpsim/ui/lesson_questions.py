"""Questions on a lesson's screen: nothing chosen beforehand, a prediction locked before its outcome shows."""

from __future__ import annotations

import streamlit as st

from dpsim.checks import InputError
from dpsim.directives import Exercise, Predict
from dpsim.prose import filled
from dpsim.questions import Question, grade, read_number
from dpsim.setting import Setting
from dpsim.ui.text import explained, literal


def shown(text: str, setting: Setting) -> str:
    """A lesson's Markdown with its figures in place."""
    return filled(text, lambda reference: setting.figure(reference).text, literal)


def answers() -> dict[str, str]:
    """This session's answers by lesson, screen and question: kept while other pages are visited."""
    kept: dict[str, str] = st.session_state.setdefault("lesson.answers", {})
    return kept


def predict(block: Predict, place: str, setting: Setting) -> bool:
    """Draw a prediction; whether it is locked, so that what follows may be shown."""
    question, given = block.question, answers().get(place)
    if given is None:
        _form(question, place, setting, "Lock my prediction", ":material/lock:")
        st.caption("What happens is shown once your prediction is locked.")
        return False
    with st.container(border=True, key=f"outcome.{place}"):
        st.markdown(f"**{shown(question.question, setting)}**")
        predicted, actual = st.columns(2)
        predicted.markdown(f"You predicted  \n{_answer(question, given, setting)}")
        actual.markdown(f"It is  \n{_right_answer(question, setting)}")
    _verdict(question, given, setting)
    if block.after:
        st.markdown(explained(shown(block.after, setting)), unsafe_allow_html=True)
    return True


def exercise(block: Exercise, place: str, setting: Setting) -> None:
    """Draw an exercise: graded at once, and to be tried again."""
    _form(block.question, place, setting, "Check my answer", ":material/check:")
    given = answers().get(place)
    if given is not None and not st.session_state.get(f"{place}:refused"):
        _verdict(block.question, given, setting)


def _form(question: Question, place: str, setting: Setting, label: str, icon: str) -> None:
    key, refused = f"{place}:given", st.session_state.get(f"{place}:refused")
    if key not in st.session_state:  # on coming back to the screen
        st.session_state[key] = answers().get(place)
    asked = shown(question.question, setting)
    with st.form(f"{place}:form"):
        if question.options:
            texts = [shown(option.text, setting) for option in question.options]
            st.radio(asked, list(map(str, range(len(texts)))), None, lambda i: texts[int(i)], key=key)
        else:
            st.text_input(asked, key=key, placeholder="A number, such as 0.5 or 7/4")
        st.form_submit_button(
            label, icon=icon, type="primary", key=f"{place}:give", on_click=_give, args=(place, question)
        )
        if refused:
            st.error(literal(refused))


def _give(place: str, question: Question) -> None:
    """Take what is in the form as the answer, unless it is none: then say so, and count no attempt."""
    given = st.session_state.get(f"{place}:given")
    refused = None
    if question.options and given is None:
        refused = "Choose one of the answers first."
    elif not question.options:
        try:
            read_number(given or "")
        except InputError as error:
            refused = str(error) if given else "Type a number first."
    st.session_state[f"{place}:refused"] = refused
    if refused is None:
        answers()[place] = str(given)


def _verdict(question: Question, given: str, setting: Setting) -> None:
    """Right or not, and why exactly this answer is."""
    verdict = grade(question, given, setting.value)
    said = shown(verdict.feedback, setting)
    if verdict.right:
        st.success(f"**Right.** {said}", icon=":material/check_circle:")
    else:
        st.warning(f"**Not quite.** {said}", icon=":material/lightbulb:")


def _answer(question: Question, given: str, setting: Setting) -> str:
    return f"**{shown(question.options[int(given)].text, setting) if question.options else literal(given)}**"


def _right_answer(question: Question, setting: Setting) -> str:
    if question.options:
        return f"**{shown(question.right_option.text, setting)}**"
    return f"**{literal(setting.figure(question.answer).text)}**"
