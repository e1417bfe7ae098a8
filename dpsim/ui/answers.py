"""What was answered: kept while other pages are visited, and by `dpsim.ui.learner` beyond the session."""

from __future__ import annotations

import time

from dpsim.checks import InputError
from dpsim.progress import Attempt
from dpsim.puzzle import judged
from dpsim.questions import Asked, Verdict
from dpsim.ui.learner import keep, learner


def answers() -> dict[str, str]:
    """The last answer at every place: a lesson's, screen's and question's name, or a variant's."""
    me = learner()
    me.shown = True
    return me.answers


def answer(asked: Asked, place: str) -> str | None:
    """The last answer at a place, if the question there can still take it: lessons change."""
    given = answers().get(place)
    try:
        if given is not None:
            judged(asked, given)
    except InputError:
        return None
    return given


def give(place: str, given: str, verdict: Verdict, kind: str, item: str, seed: str) -> None:
    """Keep an answer and what it was worth; `item` and `seed` say which variant was asked, of which kind."""
    answers()[place] = given
    if not item:
        return
    right, shows, now = verdict.right, verdict.misconception, time.time()
    try:
        attempt = Attempt(item, seed, kind, given, right, shows, now)
    except InputError as error:  # a teacher's lesson may have names that are too long to be kept
        learner().trouble = f"{error}."
    else:
        keep(place, attempt)
