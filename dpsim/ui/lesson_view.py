"""The lessons' page: the list of them, and a lesson screen by screen. The address says which."""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from dpsim.checks import InputError
from dpsim.directives import Break, Chart, Collectives, Compare, Predict, Recording, Stage
from dpsim.forms import to_query
from dpsim.lessons import Lesson, Screen, lessons
from dpsim.prose import literal
from dpsim.scenario import Scenario
from dpsim.ui.answers import answers
from dpsim.ui.frame import frame
from dpsim.ui.lesson_blocks import TEXT_WIDTH, draw, present
from dpsim.ui.lesson_top import top
from dpsim.wording import plural

WITH_SCENARIO = (Stage, Recording, Break, Compare, Collectives, Chart)  # blocks that show one

# Streamlit's colours of code are too faint.
STYLE = """<style>
.st-key-lesson .stMarkdown p, .st-key-lesson .stMarkdown li { font-size: 1.075rem; line-height: 1.6; }
.st-key-lesson :is(.stRadio, .stTextInput) > label p { font-size: 1.075rem; font-weight: 600; }
.st-key-lesson .stTextInput > div { max-width: 20rem; }
.st-key-lesson .stCode code span.token.token { color: inherit; }
.st-key-lesson .stCode code span.token.keyword { color: light-dark(#0b5cad, #8cc6f7); font-weight: 600; }
.st-key-lesson .stCode code span.token:is(.string, .comment) { color: light-dark(#3f6212, #b5d99c); }
.st-key-lesson .katex { font-size: 1.12em; }
.st-key-lesson .katex-display { overflow-x: auto; overflow-y: hidden; text-align: left; }
.st-key-lesson .katex-display > .katex { text-align: left; white-space: normal; }
</style>"""


def lesson_page() -> None:
    """Draw the page. An unknown lesson or screen gets a message, beside what there is."""
    frame()
    st.html(STYLE)
    found, asked = lessons(), st.query_params.to_dict()
    name = asked.get("lesson")
    lesson = found.get(name) if name is not None else None
    if isinstance(lesson, Lesson):
        _lesson(lesson, found, asked)
        return
    top("Lessons", "list")
    if isinstance(lesson, InputError):
        st.error(literal(str(lesson)), icon=":material/error:")
    elif name is not None:
        known = ", ".join(slug for slug in found if isinstance(found[slug], Lesson))
        st.error(literal(str(InputError("lesson", f"must be one of {known}", name))), icon=":material/error:")
    _list(found)


def _list(found: dict[str, Lesson | InputError]) -> None:
    """A card for each lesson; an error stands in the place of one that cannot be read."""
    st.markdown("Short, with questions on the way. All numbers in them are computed as you read.")
    for i, (slug, lesson) in enumerate(found.items()):
        if i % 2 == 0:  # row by row, so that a narrow screen keeps the order
            columns = st.columns(2, gap="medium")
        with columns[i % 2].container(border=True, height="stretch", key=f"card/{slug}"):
            if isinstance(lesson, InputError):
                st.error(literal(str(lesson)), icon=":material/error:")
                continue
            _card(lesson)
    st.page_link("pages/test.py", label="Take the test on all of them", icon=":material/task_alt:")


def _card(lesson: Lesson) -> None:
    st.subheader(literal(lesson.title), anchor=False)
    asked = [f"{lesson.slug}/{screen.slug}/{asked.id}" for screen in lesson.screens for asked in screen.asked]
    done = sum(place in answers() for place in asked)
    facts = [
        f"{lesson.minutes} minutes",
        plural(len(lesson.screens), "screen"),
        plural(len(asked), "question"),
    ]
    st.caption(" · ".join([*facts, f"{done} answered"] if done else facts))
    st.markdown(lesson.setting.shown(lesson.summary))
    goals = "\n".join(f"- {lesson.setting.shown(text)}" for text in lesson.objectives.values())
    st.markdown(f"Afterwards you can\n\n{goals}")
    st.button(
        f"Open *{literal(lesson.title)}*",
        key=f"open/{lesson.slug}",
        type="primary",
        on_click=_go,
        args=(lesson, lesson.screens[0]),
    )


def _lesson(lesson: Lesson, found: dict[str, Lesson | InputError], asked: dict[str, str]) -> None:
    """One screen of a lesson, and the ways on from it."""
    slugs = [screen.slug for screen in lesson.screens]
    wanted = asked.get("screen", slugs[0])
    at = slugs.index(wanted) if wanted in slugs else 0
    screen = lesson.screens[at]
    place = f"{lesson.slug}/{screen.slug}"
    if (stage := _seen(screen, place)) and present(stage, place, asked.get("beat")):
        return
    with st.container(key="lesson"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Lessons", icon=":material/arrow_back:", type="tertiary", on_click=_to_list)
            st.caption(f"{literal(lesson.title)} · {at + 1} of {len(slugs)}", width="content")
        top(screen.title, place)
        if wanted not in slugs:
            message = InputError("screen", f"must be one of {', '.join(slugs)}", wanted)
            st.error(literal(str(message)), icon=":material/error:")
        complete = draw(screen, place, lesson.setting, asked.get("beat"))
        st.space("small")
        _ways_on(lesson, at, found, complete)


def _seen(screen: Screen, place: str) -> Stage | None:
    """The screen's stage, unless a prediction before it is still open."""
    for block in screen.blocks:
        if isinstance(block, Stage):
            return block
        if isinstance(block, Predict) and f"{place}/{block.question.id}" not in answers():
            return None
    return None


def _ways_on(lesson: Lesson, at: int, found: dict[str, Lesson | InputError], complete: bool) -> None:
    """Back, Next, any other screen, and the lab. Next stays quiet while a prediction is still open."""
    screens = lesson.screens
    with st.container(horizontal=True, width=TEXT_WIDTH, vertical_alignment="center"):
        if at > 0:
            before = (lesson, screens[at - 1])
            st.button("Back", key="back", icon=":material/chevron_left:", on_click=_go, args=before)
        if step := _next(lesson, at, found):
            label, after = step
            st.button(
                literal(label), key="next", type="primary" if complete else "secondary",
                icon=":material/chevron_right:", icon_position="right",
                on_click=_go, args=after,
            )  # fmt: skip
        else:
            st.button("All lessons", key="next", type="primary", on_click=_to_list)
            st.page_link("pages/test.py", label="Take the test", icon=":material/task_alt:")
    with st.container(horizontal=True, width=TEXT_WIDTH, vertical_alignment="center"):
        # A key for each screen: the address says which is shown, and nothing chosen before does.
        key = f"turn/{lesson.slug}/{at}"
        st.pagination(
            len(screens), default=at + 1, max_visible_pages=None, key=key, on_change=_turn, args=(lesson, key)
        )
        if complete:  # a scenario may give away what is still to be predicted
            st.page_link(
                "pages/lab.py",
                label="Try these numbers in the lab",
                icon=":material/experiment:",
                query_params=dict(parse_qsl(to_query(_scenario(screens[at], lesson)))),
            )


def _next(
    lesson: Lesson, at: int, found: dict[str, Lesson | InputError]
) -> tuple[str, tuple[Lesson, Screen]] | None:
    """What comes after a screen: the next one, or the next lesson's first; None after the last."""
    if at + 1 < len(lesson.screens):
        screen = lesson.screens[at + 1]
        return f"Next: {screen.title}", (lesson, screen)
    read = [other for other in found.values() if isinstance(other, Lesson)]
    for after in read[read.index(lesson) + 1 :]:
        return f"Next lesson: {after.title}", (after, after.screens[0])
    return None


def _scenario(screen: Screen, lesson: Lesson) -> Scenario:
    """What the screen's stage, ways or chart show, or else the lesson's own scenario."""
    found = [block.scenario for block in screen.blocks if isinstance(block, WITH_SCENARIO)]
    return found[0] if found else lesson.setting.scenario


def _go(lesson: Lesson, screen: Screen) -> None:
    """Another screen: the address names it, so that Back comes here again."""
    st.query_params.from_dict({"lesson": lesson.slug, "screen": screen.slug})


def _turn(lesson: Lesson, key: str) -> None:
    _go(lesson, lesson.screens[st.session_state[key] - 1])


def _to_list() -> None:
    st.query_params.clear()
