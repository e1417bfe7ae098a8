"""The stage: one component that owns playback. Its parts are plain files, read at import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

HERE = Path(__file__).parent
SCRIPTS = ("model.js", "geometry.js", "card.js", "cards.js", "matrix.js", "timeline.js", "stage.js")


def script() -> str:
    """The stage's one ES module: its parts in order; the last one exports."""
    return "\n".join((HERE / name).read_text("utf-8") for name in SCRIPTS)


_component = st.components.v2.component(
    "dpsim_stage",
    html=(HERE / "stage.html").read_text("utf-8"),
    css=(HERE / "stage.css").read_text("utf-8"),
    js=script(),
)


def stage(data: dict[str, Any], *, key: str) -> str | None:
    """Draw the stage; the id of the beat it was last stopped at, None before that.

    It tells Python only on commit (a pause, a step, a choice), so call it inside a fragment.
    """
    result = _component(key=key, data=data, default={"beat": None}, on_beat_change=lambda: None)
    return result.beat if isinstance(result.beat, str) else None
