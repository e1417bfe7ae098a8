"""Ranks on a ring with their chunks: a schedule to be composed on them, or one cell to be pointed at.

The browser knows who sends what to whom, as text; who is in a chunk is computed here and sent back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from dpsim.checks import InputError
from dpsim.puzzle import clash, cost_of, in_lines, parse, state_after, target, written
from dpsim.ui.stage.files import read

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "dpsim_ring_puzzle",
    html=(HERE / "puzzle.html").read_text("utf-8"),
    css=(HERE / "puzzle.css").read_text("utf-8"),
    js="\n".join(
        [*map(read, ("words.js", "geometry.js", "card.js")), (HERE / "puzzle.js").read_text("utf-8")]
    ),
)


def said(key: str, kept: str) -> str:
    """What the component with this key has told last; `kept` before that."""
    told = st.session_state.get(key)
    given = told.get("given") if told is not None else None
    return given if isinstance(given, str) else kept


@st.fragment
def ring_puzzle(world_size: int, key: str, kept: str) -> None:
    """Draw the puzzle; `kept` are the transfers that stand in it on coming back."""
    _draw(board(world_size, said(key, kept)), key)


@st.fragment
def cell_picker(world_size: int, key: str, kept: str) -> None:
    """Draw the cells, as many chunks as ranks; `kept` is the one that was chosen before, such as "2.1"."""
    _draw({"mode": "pick", "world": world_size, "given": said(key, kept)}, key)


def _draw(data: dict[str, Any], key: str) -> None:
    _component(key=key, data=data, default={"given": data["given"]}, on_given_change=lambda: None)


def board(world_size: int, given: str) -> dict[str, Any]:
    """All that the puzzle shows of these transfers; of text that cannot be read, the beginning.

    `now` and `then` say who is in the cells [R][C] before and after the round that is being composed, as
    digits: "1020" has rank 0 once and rank 2 twice.
    """
    try:
        rounds = parse(world_size, given)
    except InputError:
        given, rounds = "", parse(world_size, "")
    cost, best = cost_of(world_size, rounds), target(world_size)
    return {
        "mode": "compose",
        "world": world_size,
        "given": given,
        "now": _cells(world_size, written(rounds[:-1])),
        "then": _cells(world_size, given),
        "costs": [
            ["rounds", cost.rounds, best],
            *([["turns they last", cost.turns, best]] if cost.turns > cost.rounds else []),
            ["chunks sent by the busiest rank", cost.sent, best],
        ],
        "note": clash(rounds) or _queued(cost.turns > cost.rounds),
        "past": in_lines(world_size, written(rounds[:-1])),
    }


def _cells(world_size: int, given: str) -> list[list[str]]:
    return [
        ["".join(str(min(9, n)) for n in who) for who in row]
        for row in state_after(world_size, given).tolist()
    ]


def _queued(queued: bool) -> str:
    more = (
        "A rank sends or gets several chunks in a round: they queue at its port, and the round lasts longer."
    )
    return more if queued else ""
