"""Who is learning here: what this session knows of a learner, and how that outlives it without an account.

The browser holds a key, the store what was answered under it. A session begins without either. Once the
browser has told its key, the store's answers come in and what was answered meanwhile goes out. Where the
browser keeps nothing or the store cannot be reached, everything works on in the session, and the progress
page says so.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpsim.checks import InputError
from dpsim.progress import Attempt
from dpsim.recovery import is_key, key_of, learner_id

if TYPE_CHECKING:
    from dpsim.store import Store

BROWSER = "learner.browser"  # the component's key
_component = st.components.v2.component(
    "dpsim_learner",
    html="<span></span>",
    js=(Path(__file__).parent / "key.js").read_text("utf-8"),
)


@dataclass
class Learner:
    """What a session knows. `waiting` is what the store has not got yet: where an answer was given, and the
    attempt. `wish` is what the browser is asked to do in its `turn`: make, set or forget its key."""

    answers: dict[str, str] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    waiting: list[tuple[str, Attempt]] = field(default_factory=list)
    key: str = ""
    loaded: bool = False
    turn: int = 0
    wish: str = ""
    blocked: bool = False
    trouble: str = ""
    shown: bool = False  # whether the page shows anything of this
    awaited: bool = False  # whether the page looks different once the key is known

    def ask(self, wish: str) -> None:
        """Ask the browser for something."""
        self.turn, self.wish = self.turn + 1, wish

    def forget(self) -> None:
        """Know nothing of any learner any more."""
        self.answers, self.attempts, self.waiting = {}, [], []
        self.key, self.loaded, self.trouble = "", False, ""


def learner() -> Learner:
    """This session's learner."""
    found: Learner = st.session_state.setdefault("learner", Learner())
    return found


def opened() -> Store | None:
    """The store, or None where nothing is to be kept."""
    from dpsim.store import address, store  # only who answers something waits for SQLAlchemy

    url = address()
    return None if url is None else store(url)


def mount() -> None:
    """Let the browser tell its key, on every page, unseen. The page is run again only when answers come in
    that it shows, or the key that it awaits."""
    me = learner()
    me.shown = me.awaited = False
    with st.container(key="learner"):
        _exchange()


@st.fragment
def _exchange() -> None:
    me = learner()
    told = st.session_state.get(BROWSER)
    before = me.key
    changed = _hear(me, told.get("said") if told is not None else None)
    data = {"turn": me.turn, "wish": me.wish, "key": me.key, "blocked": me.blocked}
    _component(key=BROWSER, data=data, default={"said": None}, on_said_change=lambda: None)
    if (changed and me.shown) or (me.awaited and me.key != before):
        st.rerun()


def _hear(me: Learner, said: Any) -> bool:
    """Take in what the browser says of its key; whether a page would look different."""
    before = (len(me.answers), len(me.attempts), me.blocked, me.trouble)
    if isinstance(said, dict) and said.get("turn") == me.turn:  # else it does not know our last wish yet
        key = said.get("key")
        me.wish, me.blocked = "", said.get("blocked") is True
        if (key := key if is_key(key) else "") != me.key:
            if me.key:
                me.forget()
            me.key = str(key)
    _settle(me)
    return before != (len(me.answers), len(me.attempts), me.blocked, me.trouble)


def _settle(me: Learner) -> None:
    """Fetch from the store what it has, once, and hand over what waits. What fails is tried again later."""
    if not me.key or (me.loaded and not me.waiting):
        return
    kept = opened()
    if kept is None:
        me.loaded, me.waiting = True, []
        return
    from dpsim.database import UnreachableError

    who = learner_id(me.key)
    try:
        if not me.loaded:
            answers, attempts = kept.answers(who), kept.attempts(who)
            me.answers, me.attempts, me.loaded = answers | me.answers, attempts + me.attempts, True
        while me.waiting:
            place, attempt = me.waiting[0]
            kept.keep_answer(who, place, attempt.given)
            kept.record(who, attempt)
            me.waiting.pop(0)
        me.trouble = ""
    except UnreachableError as error:
        me.trouble = str(error)
    except InputError as error:  # there is no room for more
        me.trouble, me.waiting = f"{error}.", []


def keep(place: str, attempt: Attempt) -> None:
    """Keep an attempt, and as the last answer at its place. The first one has the browser make a key."""
    me = learner()
    me.attempts.append(attempt)
    me.waiting.append((place, attempt))
    if me.key:
        _settle(me)
    elif not me.wish and not me.blocked and opened() is not None:
        me.ask("make")


def use_code(code: str) -> None:
    """Go on in this browser with what is kept under a recovery code. InputError where the code is none or
    nothing is kept under it; UnreachableError."""
    key, kept, me = key_of(code), opened(), learner()
    who = learner_id(key)
    if kept is None or not kept.knows(who):
        raise InputError("recovery code", "must be of something that is kept here", "nothing kept")
    if me.key:
        me.forget()
    me.key = key
    _settle(me)
    me.ask("set")


def exported(me: Learner) -> str:
    """All that is kept about a learner, as JSON. It is called outside of any session."""
    kept = opened()
    if me.key and kept is not None and not me.trouble:
        everything = kept.export(learner_id(me.key))
    else:
        everything = {"attempts": [asdict(attempt) for attempt in me.attempts], "answers": me.answers}
    return json.dumps({"dpsim": "progress", "times": "seconds since 1970, UTC"} | everything, indent=1)


def delete() -> None:
    """Delete everything: in the store, in this session, and the browser's key. UnreachableError where the
    store cannot do it; then the key stays, so that it can be done later."""
    me, kept = learner(), opened()
    if me.key and kept is not None:
        kept.delete(learner_id(me.key))
    me.forget()
    me.ask("forget")
