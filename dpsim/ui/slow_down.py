"""Whether this browser may do something again already, and what is said where it may not."""

from __future__ import annotations

import math
import secrets

import streamlit as st

from dpsim.recovery import learner_id
from dpsim.ui.learner import learner
from dpsim.wording import plural

MINUTE_S = 60


def slow_down(action: str) -> str:
    """Empty if an action of `dpsim.rates` may be done now, which is then counted; else when to try again."""
    from dpsim.rates import wait_s  # only who does something waits for it

    key = learner().key
    browser = learner_id(key) if key else st.session_state.setdefault("session", secrets.token_hex(8))
    seconds = wait_s(action, browser, st.context.ip_address)
    if not seconds:
        return ""
    when = plural(seconds, "second")
    if seconds > 2 * MINUTE_S:
        when = plural(math.ceil(seconds / MINUTE_S), "minute")
    return f"That was a lot in a short time. Try again in {when}: what you have entered stays here."
