"""The test's page: what it is, question by question while it is open, and what came of it."""

from __future__ import annotations

import secrets

import streamlit as st

from dpsim.checks import InputError
from dpsim.database import UnreachableError
from dpsim.final_test import fingerprint, objectives, questions
from dpsim.kept_tests import Sitting
from dpsim.prose import literal
from dpsim.recovery import learner_id
from dpsim.score import PASS, needed
from dpsim.store import Store
from dpsim.ui.frame import frame
from dpsim.ui.learner import learner, opened
from dpsim.ui.lesson_blocks import TEXT_WIDTH
from dpsim.ui.lesson_top import top
from dpsim.ui.lesson_view import STYLE
from dpsim.ui.slow_down import slow_down
from dpsim.ui.test_questions import at_work
from dpsim.ui.test_result import result
from dpsim.wording import day

BEGINS, SAID = "test.begins", "test.said"
MINUTES_PER_QUESTION = 1.25
MOST_SHOWN = 20  # earlier tests
HEADINGS = """<style>
.st-key-test h2 { padding: 1.25rem 0 0.25rem; font-size: 1.3rem; font-weight: 600; }
</style>"""


def test_page() -> None:
    """Draw the page."""
    frame()
    st.html(STYLE + HEADINGS)
    me, kept = learner(), opened()
    me.shown = me.awaited = True
    with st.container(key="lesson", width=TEXT_WIDTH), st.container(key="test"):
        if kept is None or me.blocked:
            st.session_state.pop(BEGINS, None)
            _nowhere(me.blocked)
            return
        try:
            if me.key and st.session_state.pop(BEGINS, False):
                _begin_now(kept, learner_id(me.key))
            _test(kept, learner_id(me.key) if me.key else "")
        except UnreachableError:
            _unreachable()


def _test(kept: Store, who: str) -> None:
    """What there is to see for a learner; for one that is not known (yet) what the test is."""
    sittings = kept.tests(who) if who else []
    tested = objectives()
    now = next((sitting for sitting in sittings if sitting.ended is None), None)
    scored = [sitting for sitting in sittings if sitting.score is not None]
    wanted = next((s for s in scored if str(s.number) == st.query_params.get("test")), None)
    if wanted is None and now is not None:
        posed = questions(now.seed, tested)
        if fingerprint(posed) != now.fingerprint:
            _changed(now)
        elif not at_work(kept, who, now, posed):
            return
        _others(scored)
        return
    shown = wanted or (scored[-1] if scored else None)
    if shown is None:
        top("Test", "test")
        _intro(len(tested))
        return
    posed = questions(shown.seed, tested)
    answers = kept.test_answers(who, shown.number)
    result(who, shown, posed if fingerprint(posed) == shown.fingerprint else (), answers)
    _again(now is not None)
    _others([sitting for sitting in scored if sitting != shown])


def _intro(count: int) -> None:
    """What the test is, and the button that begins it."""
    if not count:
        st.info("There is nothing to be tested: no lesson has an objective with an exercise of the bank.")
        return
    minutes = 5 * round(count * MINUTES_PER_QUESTION / 5)
    st.markdown(
        f"**{count} questions, one for each objective of the lessons, with numbers of your own.**\n\n"
        f"- It is passed with {int(100 * PASS)} %: {needed(count)} of {count} right.\n"
        "- Each question takes **one answer**, which is final. You may skip a question and come back to it.\n"
        "- Whether an answer is right, and why, is said **once you hand the test in**. What is still open "
        "then counts as wrong.\n"
        f"- It takes about {minutes} minutes, at once or in several goes: what you have given is kept under "
        "a key that only this browser has, and is there after a reload. The recovery code on the page "
        "Progress takes it to another browser.\n"
        "- You may use paper, a calculator, the lessons and the lab. A test that is not passed may be "
        "followed by another one, with other numbers."
    )
    _begin_button("Begin the test")
    st.page_link("pages/lesson.py", label="To the lessons", icon=":material/school:")


def _begin_button(label: str) -> None:
    st.button(label, icon=":material/play_arrow:", type="primary", key="test.begin", on_click=_begin)
    if said := st.session_state.pop(SAID, ""):
        st.error(literal(said))


def _begin() -> None:
    """Begin a test, now or as soon as the browser has a key to keep it under."""
    me = learner()
    if said := slow_down("test"):
        st.session_state[SAID] = said
        return
    st.session_state[BEGINS] = True
    if not me.key and not me.wish:
        me.ask("make")


def _begin_now(kept: Store, who: str) -> None:
    """Begin a test, or go on with the one that is open already, in another tab perhaps."""
    seed, tested, now = secrets.token_hex(16), objectives(), kept.open_test(who)
    if now is not None and fingerprint(questions(now.seed, tested)) != now.fingerprint:
        kept.give_up_test(who, now.number)
    try:
        begun = kept.begin_test(who, seed, fingerprint(questions(seed, tested)))
    except InputError as error:  # there is no room for more
        st.session_state[SAID] = f"{error}."
        return
    st.query_params.clear()
    if begun.seed == seed:
        st.query_params["question"] = "1"


def _again(is_open: bool) -> None:
    """The way to another test, which may have been begun."""
    st.header("Another test", anchor=False)
    if is_open:
        st.button("Go on with the test that is open", type="primary", key="test.back", on_click=_show)
        return
    st.markdown("It asks for the same objectives, with other numbers. What you have passed stays passed.")
    _begin_button("Begin another test")


def _others(scored: list[Sitting]) -> None:
    """The way to the results of other tests, the last first."""
    if not scored:
        return
    st.header("Earlier tests", anchor=False)
    for sitting in reversed(scored[-MOST_SHOWN:]):
        score = sitting.score
        assert score is not None
        passed = "passed" if score.passed else "not passed"
        st.button(
            f"{day(sitting.begun)}: {score.right} of {score.of} right, {passed}", type="tertiary",
            key=f"test.shows/{sitting.number}", on_click=_show, args=(sitting,),
        )  # fmt: skip


def _show(sitting: Sitting | None = None) -> None:
    """The result of a test, or what there is to see without that."""
    st.query_params.from_dict({} if sitting is None else {"test": str(sitting.number)})


def _changed(now: Sitting) -> None:
    """A test whose questions are not the ones any more that it was begun with."""
    top("Test", "test")
    st.warning(
        f"Your test of {day(now.begun)} cannot be continued: the lessons or the exercises have been changed "
        "since, and its questions are not the same any more. It counts for nothing.",
        icon=":material/update:",
    )
    _begin_button("Begin a new test")


def _nowhere(blocked: bool) -> None:
    """Why no test can be taken where nothing is kept, and what to do."""
    top("Test", "test")
    if blocked:
        st.warning(
            "No test can be taken in this browser: it keeps nothing for this site, and a test has to outlive "
            "a reload. Allow this site to store data (a private window may forbid it), then reload the "
            "page; or use another browser.",
            icon=":material/block:",
        )
    else:
        st.warning(
            "No test can be taken here: nothing is kept on this server, and a test has to outlive a reload. "
            "Whoever runs the server can change that with the setting `DPSIM_DATABASE`.",
            icon=":material/block:",
        )
    st.markdown("The lessons and all exercises work nevertheless.")
    st.page_link("pages/practice.py", label="To the exercises", icon=":material/exercise:")


def _unreachable() -> None:
    top("Test", "test")
    st.error(
        "The database cannot be reached, so no test can be taken at the moment. A test that you have begun "
        "is not lost: reload this page in a minute to go on with it.",
        icon=":material/cloud_off:",
    )
