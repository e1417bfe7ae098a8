"""This session's answers by place: kept while other pages are visited."""

from __future__ import annotations

import streamlit as st

from dpsim.questions import Verdict


def answers() -> dict[str, str]:
    """The last answer at every place: a lesson's, screen's and question's name, or a variant's."""
    kept: dict[str, str] = st.session_state.setdefault("lesson.answers", {})
    return kept


def give(place: str, given: str, verdict: Verdict, kind: str, item: str, seed: str) -> None:
    """Keep an answer and what it was worth; `item` and `seed` say which variant was asked, of which kind."""
    answers()[place] = given
