"""All that is kept about a learner: where, how to take it elsewhere, and how to have it deleted."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpsim.checks import InputError
from dpsim.database import UnreachableError
from dpsim.prose import literal
from dpsim.recovery import recovery_code
from dpsim.ui.learner import Learner, delete, exported, learner, opened, use_code

CODE, SHOW, SURE, SAID = "progress.code", "progress.shown", "progress.sure", "progress.said"


def kept() -> None:
    """The section below what was learned."""
    me = learner()
    st.header("What is kept", anchor=False)
    _how(me)
    for kind, text in st.session_state.pop(SAID, []):
        {"good": st.success, "bad": st.error}[kind](literal(text))
    if me.attempts or me.key:  # a key is made only where there is something to keep
        _take(me)
    if not me.blocked and opened() is not None:
        _another()
    if me.attempts or me.key:
        _delete()


def _how(me: Learner) -> None:
    """What is kept where; or why nothing is, and that it all works nevertheless."""
    if opened() is None or me.blocked:
        why = "This browser keeps nothing for this site" if me.blocked else "Nothing is kept on this server"
        st.info(f"{why}: your answers last until you close or reload the page.", icon=":material/info:")
        return
    if me.trouble:
        st.warning(
            f"{literal(me.trouble)} What you answer now stays on this page until it is closed or reloaded, "
            "and is kept as soon as that is possible again.",
            icon=":material/cloud_off:",
        )
    st.markdown(
        "Your answers, whether they were right, and when you gave them, your tests and certificates: on the "
        "server that shows this page, under a random key that only your browser has. No name but one that "
        "you type for a certificate, no address, no account. Whoever clears the browser's data loses the "
        "key; the recovery code brings everything back."
    )


def _take(me: Learner) -> None:
    """The code, and everything as a file."""
    with st.container(horizontal=True):
        if me.key:
            st.button(
                "Show my recovery code", icon=":material/key:", key="progress.show",
                on_click=_set, args=(SHOW, True),
            )  # fmt: skip
        st.download_button(
            "Export everything", lambda: exported(me), "dpsim-progress.json", "application/json",
            icon=":material/download:", on_click="ignore", key="progress.export",
        )  # fmt: skip
    if st.session_state.pop(SHOW, False) and me.key:  # until anything else is done
        st.code(recovery_code(me.key), language=None)
        st.caption("Write it down. Whoever has it sees and changes what is kept here.")


def _another() -> None:
    with st.expander("Use a code from another browser"), st.form("progress.use", border=False):
        st.text_input("Recovery code", key=CODE, placeholder="seven groups of four signs", max_chars=100)
        st.caption("This browser then goes on with what is kept under that code.")
        st.form_submit_button("Use this code", on_click=_use, key="progress.use.go")


def _delete() -> None:
    if not st.session_state.get(SURE):
        st.button(
            "Delete everything",
            icon=":material/delete:",
            key="progress.delete",
            on_click=_set,
            args=(SURE, True),
        )
        return
    st.warning("Everything that is kept about you is deleted for good. Nobody can bring it back.")
    with st.container(horizontal=True):
        st.button("Yes, delete everything", type="primary", key="progress.yes", on_click=_yes)
        st.button("Keep it", key="progress.no", on_click=_set, args=(SURE, False))


def _set(name: str, value: bool) -> None:
    st.session_state[name] = value


def _yes() -> None:
    _set(SURE, False)
    _do(delete, "Everything is deleted, here and in this browser.")


def _use() -> None:
    typed = str(st.session_state.get(CODE, ""))
    if _do(lambda: use_code(typed), "This browser goes on with what was kept under the code."):
        st.session_state[CODE] = ""


def _do(work: Callable[[], None], good: str) -> bool:
    """Do something that the store may refuse, and have it said what came of it."""
    try:
        work()
    except (InputError, UnreachableError) as error:
        st.session_state[SAID] = [("bad", str(error))]
        return False
    st.session_state[SAID] = [("good", good)]
    return True
