"""The small editor of masks: a row a sequence, a button a token; a click says whether it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from dpsim.batch import global_batch
from dpsim.edits import with_marks
from dpsim.scenario import MASKED, Scenario
from dpsim.ui.lab_state import change

HERE = Path(__file__).parent
MOST_SEQUENCES, MOST_LENGTH = 16, 24  # above, counts are typed
KEY = "lab.tokens"

_component = st.components.v2.component(
    "dpsim_token_editor",
    html='<div class="rows" role="group" aria-label="Which tokens count"></div>',
    css=(HERE / "editor.css").read_text("utf-8"),
    js=(HERE / "editor.js").read_text("utf-8"),
)


def marks(scenario: Scenario) -> list[str]:
    """For every sequence "1101": 1 a valid token, 0 a masked one."""
    return ["".join("0" if y == MASKED else "1" for y in row) for row in global_batch(scenario).labels]


def token_editor(scenario: Scenario, epoch: int) -> None:
    """The editor. `epoch` rises when something else than a click here has decided what is shown."""
    rows = marks(scenario)
    if len(rows) > MOST_SEQUENCES or max(map(len, rows)) > MOST_LENGTH:
        most = f"{MOST_SEQUENCES} sequences of {MOST_LENGTH} tokens"
        st.caption(f"Tokens can be clicked up to {most}; in this batch type how many count.")
        return
    st.caption("Click a token to mask it, or to make it count.")
    data: dict[str, Any] = {"rows": rows, "epoch": epoch}
    _component(key=KEY, data=data, default={"rows": rows}, on_rows_change=_clicked)


def _clicked() -> None:
    """All marks at once, so that no quick click is lost."""
    rows = st.session_state[KEY].get("rows")
    if isinstance(rows, list) and all(isinstance(row, str) for row in rows):
        change(lambda scenario: with_marks(scenario, tuple(rows)), "tokens")
