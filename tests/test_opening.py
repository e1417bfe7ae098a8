"""Opening files: whatever a file claims, there is a scenario or trace that can be shown, or a message."""

from __future__ import annotations

import copy
import json
import time
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.forms import from_query, preset, preset_names, to_toml
from dpsim.replay import check_replayable
from dpsim.simulate import simulate
from dpsim.trace_files import from_json
from dpsim.ui.opening import opened_scenario, opened_trace

ODD: list[Any] = [None, -1, 0, 1, 7, 1e300, "x", [], {}, True, [[1]], "nan", 2**70]


@lru_cache
def saved(name: str = "empty-rank") -> str:
    return simulate(preset(name)).to_json()


@pytest.mark.parametrize("name", preset_names())
def test_what_was_saved_opens(name: str) -> None:
    assert opened_trace(saved(name)).to_json() == saved(name)
    assert from_query(opened_scenario(to_toml(preset(name)))) == preset(name)


def test_a_measured_trace_is_recorded_elsewhere() -> None:
    data = json.loads(saved())
    data["source"] = "measured"
    data["machine"] = dict.fromkeys(("hardware", "versions", "date", "process_ids"), "x")
    assert opened_trace(json.dumps(data)).source == "recorded"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value; of a long list its ends."""
    found = [path] if path else []
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(i, value[i]) for i in sorted({0, len(value) - 1}) if value]
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


PLACES = places(json.loads(saved()))


@law(400)
@given(st.sampled_from(PLACES), st.sampled_from(ODD))
def test_a_trace_changed_anywhere_is_shown_or_refused(place: tuple[Any, ...], odd: Any) -> None:
    data = json.loads(saved())
    target = data
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = copy.deepcopy(odd)
    begun, message = time.monotonic(), ""
    try:
        opened_trace(json.dumps(data))
    except InputError as error:
        message = str(error)
    assert len(message) < 2000
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("column", ["rank", "peer", "chunk", "round"])
def test_a_receive_that_does_not_follow_the_schedule_is_refused(column: str) -> None:
    data = json.loads(saved("first-screen"))
    kinds = data["events"]["kind"]
    row = len(kinds) - 1 - kinds[::-1].index(data["kinds"].index("receive"))
    data["events"][column][row] = (data["events"][column][row] + 1) % 3
    with pytest.raises(InputError, match=r"trace.events: must follow the ring of bucket 0 in step 0"):
        check_replayable(from_json(json.dumps(data)))


def test_a_trace_whose_scenario_is_too_much_work_is_refused_at_once() -> None:
    data = json.loads(saved("accelerate-doc"))
    data["scenario"]["batch"] = {"lengths": [4096] * 16}
    data["scenario"]["steps"] = 200
    begun = time.monotonic()
    with pytest.raises(InputError):
        opened_trace(json.dumps(data))
    assert time.monotonic() - begun < 5


def test_a_trace_larger_than_the_app_shows_is_refused() -> None:
    data = json.loads(saved("ring-8"))
    data["scenario"]["steps"] = 201
    with pytest.raises(InputError):
        opened_trace(json.dumps(data))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name: is needed"),
        ("x" * 100_001, "TOML: must have at most 100000 characters"),
        (".".join("a" * 42) + " = 1", "TOML: must have at most 40 dots in a line"),
        ("[" + " . ".join("a" * 30_000) + "]", "TOML: must have at most 100000 characters"),
        ("x = {" + '"!".' * 20_000 + "a = 1}", "TOML: must have at most 40 dots in a line"),
        ("# " + "a" * 99_000, "name: is needed"),
        ("name = 'x'\nworld_size = 65\n[batch]\nsequences = 4", "world_size: must be a whole number"),
    ],
    ids=lambda value: value[:20],
)
def test_a_scenario_that_cannot_be_shown_is_refused_at_once(text: str, message: str) -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match=f"^{message}"):
        opened_scenario(text)
    assert time.monotonic() - begun < 5
