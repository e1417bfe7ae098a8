"""The practice page: every exercise of the bank, with numbers as often as one likes. The address names the
exercise and the seed of its variant, so that a link puts the very same question to somebody else."""

from __future__ import annotations

import secrets

import streamlit as st

from dpsim.checks import InputError, choice, text
from dpsim.exercises import Item, items, mistakes, topics
from dpsim.lessons import Lesson, lessons
from dpsim.prose import literal
from dpsim.ui.frame import frame
from dpsim.ui.lesson_blocks import TEXT_WIDTH
from dpsim.ui.lesson_top import top
from dpsim.ui.lesson_view import STYLE
from dpsim.ui.practice import practise
from dpsim.wording import plural

LONGEST_SEED = 40


def practice_page() -> None:
    """Draw the page. An unknown exercise gets a message, beside what there is."""
    frame()
    st.html(STYLE)
    asked = st.query_params.to_dict()
    try:
        if "item" in asked:
            item = items()[choice("item", asked["item"], tuple(items()))]
            seed = text("seed", asked.get("seed", ""), LONGEST_SEED) or _fresh()
            _exercise(item, seed)
            return
    except InputError as error:
        top("Practice", "list")
        st.error(literal(str(error)), icon=":material/error:")
    else:
        top("Practice", "list")
    _list()


def _fresh() -> str:
    """A seed for this session's first variant: kept, so that a rerun asks the same."""
    kept: str = st.session_state.setdefault("practice.seed", secrets.token_hex(4))
    return kept


def _exercise(item: Item, seed: str) -> None:
    place = f"practice/{item.id}/{seed}"
    with st.container(key="lesson", width=TEXT_WIDTH):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("All exercises", icon=":material/arrow_back:", type="tertiary", on_click=_to_list)
            st.caption(f"{literal(topics()[item.topic])} · {item.id}", width="content")
        top(item.title, place)
        answered = practise(item.id, seed, place)
        _lesson_to(item)
        with st.container(horizontal=True):
            st.button(
                "Another one, with fresh numbers", key="another", icon=":material/casino:",
                type="primary" if answered else "secondary", on_click=_go, args=(item.id,),
            )  # fmt: skip
            following = _following(item.id)
            st.button(
                f"Next: {literal(items()[following].title)}", key="following",
                icon=":material/chevron_right:", icon_position="right", type="tertiary", on_click=_go,
                args=(following,),
            )  # fmt: skip


def _lesson_to(item: Item) -> None:
    """The way to the lesson's screen that has the item's objective, where it names one."""
    slug, _, objective = item.objective.partition("/")
    lesson = lessons().get(slug) if slug else None
    for screen in lesson.screens if isinstance(lesson, Lesson) else ():
        if objective in [asked.objective for asked in screen.asked]:
            st.page_link(
                "pages/lesson.py", label="See the lesson", icon=":material/school:",
                query_params={"lesson": slug, "screen": screen.slug},
            )  # fmt: skip
            return


def _following(item: str) -> str:
    names = list(items())
    return names[(names.index(item) + 1) % len(names)]


def _list() -> None:
    """The exercises by topic."""
    st.markdown(
        "Every exercise draws fresh numbers, knows its answer from them, and explains every wrong one. "
        "Nothing is graded here: try as often as you like."
    )
    for mistake in mistakes():
        st.error(literal(str(mistake)), icon=":material/error:")
    for i, (topic, title) in enumerate(topics().items()):
        if i % 2 == 0:  # row by row, so that a narrow screen keeps the order
            columns = st.columns(2, gap="medium")
        own = [item for item in items().values() if item.topic == topic]
        with columns[i % 2].container(border=True, height="stretch", key=f"topic/{topic}"):
            st.subheader(literal(title), anchor=False)
            st.caption(plural(len(own), "exercise"))
            for item in own:
                st.button(
                    literal(item.title), key=f"open/{item.id}", type="tertiary", on_click=_go, args=(item.id,)
                )


def _go(item: str) -> None:
    """An exercise with fresh numbers: the address names it, so that Back comes here again."""
    st.query_params.from_dict({"item": item, "seed": secrets.token_hex(4)})


def _to_list() -> None:
    st.query_params.clear()
