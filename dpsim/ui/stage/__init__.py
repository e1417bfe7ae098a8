"""The stage: one component that owns playback."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpsim.ui.stage.files import read, script

_component = st.components.v2.component(
    "dpsim_stage", html=read("stage.html"), css=read("stage.css"), js=script()
)


def stage(data: dict[str, Any], *, key: str) -> str | None:
    """Draw the stage; the id of the beat it was last stopped at, None before that.

    It tells Python only on commit (a pause, a step, a choice), so call it inside a fragment.
    """
    result = _component(key=key, data=data, default={"beat": None}, on_beat_change=lambda: None)
    return result.beat if isinstance(result.beat, str) else None
