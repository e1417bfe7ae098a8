"""The small editor of masks: a row a sequence, a button a token; a click says whether it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from dpsim.batch import global_batch
from dpsim.edits import with_marks
from dpsim.prose import literal
from dpsim.scenario import MASKED, Scenario
from dpsim.ui.lab_state import Lab, heard

HERE = Path(__file__).parent
MOST_SEQUENCES, MOST_LENGTH = 16, 24  # above, counts are typed

_component = st.components.v2.component(
    "dpsim_token_editor",
    html='<div class="rows" role="group" aria-label="Which tokens count"></div>',
    css=(HERE / "editor.css").read_text("utf-8"),
    js=(HERE / "editor.js").read_text("utf-8"),
)


def marks(scenario: Scenario) -> list[str]:
    """For every sequence "1101": 1 a valid token, 0 a masked one."""
    return ["".join("0" if y == MASKED else "1" for y in row) for row in global_batch(scenario).labels]


def token_editor(scenario: Scenario, now: Lab) -> None:
    """The editor; its clicks are heard with all other controls, all marks at once, so that none is lost."""
    rows = marks(scenario)
    if len(rows) > MOST_SEQUENCES or max(map(len, rows)) > MOST_LENGTH:
        most = f"{MOST_SEQUENCES} sequences of {MOST_LENGTH} tokens"
        st.caption(f"Tokens can be clicked up to {most}; in this batch type how many count.")
        return
    if "tokens" in now.refused:
        st.error(literal(now.refused["tokens"]))
    st.caption("Click a token to mask it, or to make it count.")
    now.edits["tokens"] = with_marks
    data: dict[str, Any] = {"rows": rows, "heard": heard(now, "tokens")}
    _component(key=now.widget("tokens"), data=data, default={"rows": rows}, on_rows_change=lambda: None)
    now.said["tokens"] = heard(now, "tokens")
