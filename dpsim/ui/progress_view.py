"""The progress page: what is due, what comes when, what is still mistaken, and all that is kept."""

from __future__ import annotations

import secrets
import time

import streamlit as st

from dpsim.exercises import items
from dpsim.progress import MASTERED, Attempt, Standing, due, held, learning, mastered
from dpsim.prose import literal
from dpsim.ui.frame import frame
from dpsim.ui.learner import learner
from dpsim.ui.lesson_blocks import TEXT_WIDTH
from dpsim.ui.lesson_top import top
from dpsim.ui.progress_kept import kept
from dpsim.ui.progress_names import can_show, misconception, places, readable, title, when
from dpsim.wording import plural

STYLE = """<style>
.st-key-progress h2 { padding: 1.25rem 0 0.25rem; font-size: 1.3rem; font-weight: 600; }
.st-key-progress [data-testid="stMetricValue"] { font-size: 1.6rem; }
.st-key-progress [class*="st-key-row-"] { justify-content: space-between; }
</style>"""
MOST_SHOWN = 30  # of one list


def progress_page() -> None:
    """Draw the page."""
    frame()
    st.html(STYLE)
    me = learner()
    me.shown = me.awaited = True  # who has taken a test alone has a key and no attempts
    with st.container(key="progress", width=TEXT_WIDTH):
        top("Progress", "progress")
        if me.attempts:
            _learned(me.attempts, me.answers, time.time())
        else:
            _empty()
        kept()


def _empty() -> None:
    st.markdown(
        "**Nothing here yet.** Answer a question in a lesson or an exercise, and this page says what you "
        "have mastered, what is due again and when, and which misconceptions you still hold. What you answer "
        "is kept without an account, and comes back after a reload."
    )
    st.page_link("pages/lesson.py", label="To the lessons", icon=":material/school:")


def _learned(attempts: list[Attempt], answered: dict[str, str], now: float) -> None:
    """What the attempts come to. A lesson's question always has the same numbers: only the bank's exercises,
    which have fresh ones, come again."""
    bank = items()
    drills = [attempt for attempt in attempts if attempt.item in bank]
    now_due, rests = due(drills, now), [item for item in learning(drills) if item.due and item.due > now]
    done = mastered(drills)
    with st.container(horizontal=True, gap="large"):
        for label, count in (("Due now", now_due), ("Come later", rests), ("Mastered", done)):
            st.metric(label, len(count), width="content")
    st.caption(
        "An exercise that you got right comes again after 1, 3, 7 and 21 days, with fresh numbers, and is "
        "then mastered. After a wrong answer it is due at once."
    )
    _due(now_due)
    _later(rests, now)
    _mastered(done)
    _mistaken(attempts)
    _lessons(attempts, answered)


def _due(found: list[Standing]) -> None:
    if not found:
        return
    st.header("Due now", anchor=False)
    for item in found[:MOST_SHOWN]:
        said = f"{item.right} of {plural(item.attempts, 'attempt')} right"
        _row(f"**{literal(title(item.item))}**  \n{said}", item.item, f"row-due-{item.item}")
    _more(found)


def _later(found: list[Standing], now: float) -> None:
    if not found:
        return
    st.header("Coming later", anchor=False)
    lines = [
        f"- **{literal(title(item.item))}** {when(item.due - now)}, round {item.box} of {MASTERED - 1}"
        for item in found[:MOST_SHOWN]
        if item.due is not None
    ]
    st.markdown("\n".join(lines))
    _more(found)


def _mastered(found: list[Standing]) -> None:
    if not found:
        return
    st.header("Mastered", anchor=False)
    st.markdown("\n".join(f"- {literal(title(item.item))}" for item in found[:MOST_SHOWN]))
    _more(found)


def _more(found: list[Standing]) -> None:
    if len(found) > MOST_SHOWN:
        st.caption(f"and {len(found) - MOST_SHOWN} more")


def _mistaken(attempts: list[Attempt]) -> None:
    """The misconceptions still held, each with the way to where it showed."""
    found = held(attempts, can_show(attempts))
    if not found:
        return
    st.header("Misconceptions you still hold", anchor=False)
    for name, item in found.items():
        said, right = misconception(name)
        _row(f"**“{literal(said)}”**" + (f"  \n{literal(right)}" if right else ""), item, f"row-held-{name}")
    st.caption("Each goes from here once you answer a question right at which it could have shown.")


def _lessons(attempts: list[Attempt], answered: dict[str, str]) -> None:
    """Of each lesson, how many questions were answered, and how many right when last asked."""
    last = {attempt.item: attempt.right for attempt in attempts}
    st.header("Lessons", anchor=False)
    for lesson in readable():
        asked = places(lesson)
        done = {place: item for place, item in asked.items() if place in answered}
        said = f"{len(done)} of {plural(len(asked), 'question')} answered"
        if done:
            said += f", {sum(last.get(item, False) for item in done.values())} right"
        with st.container(horizontal=True, vertical_alignment="center", key=f"row-lesson-{lesson.slug}"):
            st.page_link("pages/lesson.py", label=literal(lesson.title), query_params={"lesson": lesson.slug})
            st.caption(said, width="content")


def _row(markdown: str, item: str, key: str) -> None:
    """A text, and beside it the way to the item: a lesson's screen, or practising an exercise."""
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        st.markdown(markdown, width="stretch")
        if "/" in item:
            lesson, screen = item.split("/")[:2]
            st.page_link(
                "pages/lesson.py", label="See the lesson", icon=":material/school:",
                query_params={"lesson": lesson, "screen": screen},
            )  # fmt: skip
        elif item in items():
            st.page_link(
                "pages/practice.py", label="Practise", icon=":material/exercise:",
                query_params={"item": item, "seed": secrets.token_hex(4)},
            )  # fmt: skip
