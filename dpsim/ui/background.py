"""Work on this machine's devices, in a thread beside the page that asked for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpsim.checks import InputError

LOOK_S = 0.5
GONE_S = 5.0  # a page that was closed is gone; a connection that was lost comes back sooner

Say = Callable[[str, float], None]


@dataclass
class Background:
    """One piece of work: what it says of itself, its share of the whole that is done, and what came of it."""

    text: str = "starting"
    share: float = 0.0
    result: Any = None
    error: str | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def say(self, text: str, share: float) -> None:
        """Hear how far the work is."""
        self.text, self.share = text, share


def begun(work: Callable[[Say, threading.Event], Any]) -> Background:
    """Begin `work` beside the page of this session; it is called off when the page has been closed."""
    background = Background()
    context = get_script_run_ctx()
    session = context.session_id if context is not None else ""
    threading.Thread(target=_work, args=(background, work), daemon=True).start()
    threading.Thread(target=_watch, args=(background, session), daemon=True).start()
    return background


def _work(background: Background, work: Callable[[Say, threading.Event], Any]) -> None:
    try:
        background.result = work(background.say, background.cancel)
    except InputError as error:
        background.error = str(error)
    except Exception as error:  # whatever it is, whoever waits has to be told; the log has the rest
        background.error = f"the run failed ({type(error).__name__}: {error})"
        raise
    finally:
        background.done.set()


def _watch(background: Background, session: str) -> None:
    """Call the work off once the session has been gone for a while."""
    gone = 0.0
    while not background.done.wait(LOOK_S):
        there = not runtime.exists() or runtime.get_instance().is_active_session(session)
        gone = 0.0 if there else gone + LOOK_S
        if gone >= GONE_S:
            background.cancel.set()
