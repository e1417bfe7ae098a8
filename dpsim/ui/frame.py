"""What every page shares: the icon, the presenter's view, and the few rules that no theme can say."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpsim.ui.learner import mount

ICON = str(Path(__file__).parent / "icon.png")

# Streamlit's captions, and white on the dark theme's primary colour, are too faint.
# A term says what it means at the foot of the window: never cut off, wherever the word stands.
STYLE = """<style>
.stAppHeader { height: 2.75rem; min-height: 2.75rem; }
:has(> .st-key-learner) { display: none; }
.stMainBlockContainer { padding: 3rem clamp(1rem, 3vw, 3rem) 2rem; }
.st-key-title .stText { font-size: 1.5rem; font-weight: 600; line-height: 1.25; white-space: normal; }
.stApp [data-testid="stCaptionContainer"] { color: inherit; opacity: 0.8; }
.stApp button:is([kind="primary"], [kind="primaryFormSubmit"]) { color: light-dark(#ffffff, #0b1220); }
.st-key-begin { margin: -0.7rem 0; }
.st-key-reductions, [class*="st-key-wide-"] { overflow-x: auto; }
abbr.term { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; border-radius: 3px; }
abbr.term:focus-visible { outline: 3px solid var(--st-primary-color, #0b5cad); }
abbr.term:is(:hover, :focus)::after {
  content: attr(data-says); position: fixed; left: 50%; bottom: 1rem; transform: translateX(-50%);
  z-index: 999999; width: max-content; max-width: min(92vw, 42rem);
  padding: 0.7rem 1rem; border-radius: 10px; cursor: auto;
  background: #1b2130; color: #ffffff; font-size: 1rem; font-weight: 400; line-height: 1.4; text-align: left;
  box-shadow: 0 4px 24px #0006; border: 1px solid #ffffff40; pointer-events: none;
}
</style>"""

# The presenter's view: the stage, and one quiet way back.
ALONE = """<style>
.stAppHeader, [data-testid="stSidebar"] { display: none; }
.stMainBlockContainer { padding: 1.75rem 1rem 0; }
.st-key-leave { position: fixed; right: 0.5rem; top: 0.1rem; z-index: 100; width: auto; }
.st-key-leave button { min-height: 0; padding: 0 0.6rem; }
.st-key-leave p { font-size: 0.8rem; }
</style>"""


def navigation() -> StreamlitPage:
    """The page list; gives the page that was asked for."""
    st.set_page_config(page_title="dpsim: one data-parallel step", page_icon=ICON, layout="wide")
    pages = [
        st.Page("pages/step.py", title="One step", default=True),
        st.Page("pages/lab.py", title="Lab", url_path="lab"),
        st.Page("pages/lesson.py", title="Lessons", url_path="lesson"),
        st.Page("pages/practice.py", title="Practice", url_path="practice"),
        st.Page("pages/test.py", title="Test", url_path="test"),
        st.Page("pages/progress.py", title="Progress", url_path="progress"),
        st.Page("pages/verify.py", title="Verify", url_path="verify"),
        st.Page("pages/teach.py", title="For teachers", url_path="teach"),
    ]
    page = st.navigation(pages, position="top")
    if st.session_state.get("page") != page.url_path:
        st.session_state["page"] = page.url_path
        st.session_state["visit"] = st.session_state.get("visit", 0) + 1
    st.session_state["begun"] = True
    return page


def visit() -> int:
    """How often this session has come to another page until now."""
    return int(st.session_state.get("visit", 0))


def has_navigated() -> bool:
    """Whether this run comes from the browser's Back or Forward: only then has somebody chosen the address.

    Everything else may be sent with an address of before the last answer. Streamlit says it to a script in
    no public way; a version that does not say it at all fails the tests in the browser.
    """
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def frame() -> None:
    """Apply the frame; call it first on every page."""
    if not st.session_state.pop("begun", False):
        # A fresh server whose first visitor asks for a page of pages/ runs that page without app.py, until
        # somebody has called st.navigation: from then on app.py comes first.
        navigation()
        st.rerun()
    st.html(STYLE)
    mount()


def presenting(stage: str, ids: tuple[str, ...]) -> bool:
    """Whether the link asks for the presenter's view; then the page's chrome is gone but for the way back.

    The address keeps the beat, one of `ids`, that the stage with the key `stage` rests on, there and back.
    """
    if st.query_params.get("present") != "1":
        return False
    st.html(ALONE)
    st.button(
        "Leave the presenter's view",
        key="leave",
        type="tertiary",
        on_click=_present,
        args=(stage, ids, False),
    )
    return True


def present_button(stage: str, ids: tuple[str, ...]) -> None:
    """The toggle into the presenter's view."""
    st.button(
        "Present",
        key="present",
        icon=":material/slideshow:",
        on_click=_present,
        args=(stage, ids, True),
        help="A large stage for the projector, stepped by a remote",
    )


def rests_on(stage: str, ids: tuple[str, ...]) -> str:
    """The beat that the stage with this key has told it rests on, if it is one of `ids`; else nothing."""
    told = st.session_state.get(stage)
    beat = told.get("beat") if told is not None else None
    return beat if beat in ids else ""


def _present(stage: str, ids: tuple[str, ...], large: bool) -> None:
    beat = rests_on(stage, ids)
    wanted = st.query_params.to_dict() | ({"beat": beat} if beat else {})
    wanted.pop("present", None)
    st.query_params.from_dict(wanted | ({"present": "1"} if large else {}))
