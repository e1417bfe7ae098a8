"""Trace files: what is none is refused in one line, what is one reads back, and Perfetto can open it."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios

from dpsim.checks import InputError
from dpsim.forms import preset
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.trace import COLUMNS, KINDS, Trace
from dpsim.trace_files import from_json, load, save, to_perfetto

MACHINE = {"hardware": "cpu", "versions": "torch 2", "date": "2025-01-01", "process_ids": "7 8"}
VALID: dict[str, Any] = json.loads(simulate(preset("chapter-19-2")).to_json())


def mutated(path: str, value: Any) -> str:
    """A valid trace's JSON with one part replaced."""
    data = copy.deepcopy(VALID)
    *parts, last = path.split(".")
    target: Any = data
    for part in parts:
        target = target[part]
    target[last] = value
    return json.dumps(data)


def refused(text: str) -> str:
    """The message with which `text` is refused."""
    with pytest.raises(InputError) as caught:
        from_json(text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{caught.value.field}: ")
    return message


@pytest.mark.parametrize(
    "text",
    ["", "no trace", "[]", "null", "3", '"dpsim-trace"', "{}", '{"format": "png"}', "[" * 100_000, "\x00"],
)
def test_a_file_that_is_no_trace(text: str) -> None:
    assert refused(text).startswith("trace: must be a ")


@pytest.mark.parametrize("version", [0, 2, 99, "1", None, [1]])
def test_a_trace_of_another_version(version: Any) -> None:
    assert refused(mutated("version", version)) == (
        f"trace: must be of version 1, which this dpsim reads, got {version!r}"
    )


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(part: float, tmp_path: Path) -> None:
    whole = json.dumps(VALID)
    path = tmp_path / "cut.json"
    path.write_text(whole[: int(len(whole) * part)], "utf-8")
    with pytest.raises(InputError, match=r"^trace: must be a JSON object"):
        load(path)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError, match=r"^trace: must be a file that can be read"):
            load(path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"^trace: must be UTF-8 text"):
        load(tmp_path / "binary.json")


MANY = len(VALID["events"]["step"])
BROKEN: list[tuple[str, Any, str]] = [
    ("scenario", None, "scenario: must be a table"),
    ("scenario.world_size", 3, "model.gradient_sums: must have one entry per rank"),
    ("scenario.steps", 2, "trace.events.kind: must have a scatter event of every rank in every step"),
    ("source", "guessed", "trace.source: must be one of simulated, measured, recorded"),
    ("kinds", ["send"], "trace.kinds: must be scatter, forward"),
    ("undefined", [], "trace.undefined: must have a text or null for every step"),
    ("undefined", [3], "trace.undefined: must have a text or null for every step"),
    ("machine", [], "trace.machine: must be a table of texts"),
    ("machine", {"hardware": 3}, "trace.machine: must be a table of texts"),
    ("events", {}, "trace.events: must have the columns step, rank"),
    ("events.rank", [0], "trace.events: must have columns of one length"),
    ("events.rank", [2] * MANY, "trace.events.rank: must be from 0 to 1"),
    ("events.kind", [-1] * MANY, "trace.events.kind: must be from 0 to 7"),
    ("events.peer", [-2] * MANY, "trace.events.peer: must be from -1 to 1"),
    ("events.chunk", [0.5] * MANY, "trace.events.chunk: must be whole numbers"),
    ("events.start_s", [None] * MANY, "trace.events.start_s: must be a flat list of numbers"),
    ("events.start_s", [float("nan")] * MANY, "trace.events.start_s: must be finite numbers"),
    ("events.end_s", [0.0] * MANY, "trace.events.end_s: must not be before start_s"),
    ("arrays", [], "trace.arrays.parameters: must have a shape and values"),
    ("arrays.reduced.shape", [4], "trace.arrays.reduced: must have the shape [1, 2, 2]"),
    ("arrays.reduced.shape", [5], "trace.arrays.reduced.shape: must multiply to 4 values"),
    ("arrays.reduced.values", [1.0] * 5, "trace.arrays.reduced.shape: must multiply to 5 values"),
    ("arrays.counted.values", [0.5, 0.5], "trace.arrays.counted: must be whole numbers"),
    ("arrays.counted.values", [2**64, 0], "trace.arrays.counted: must be"),
    ("arrays.parameters.values", "abcdefgh", "trace.arrays.parameters: must be a list"),
    ("arrays.payload_stops.values", [1] * 99, "trace.arrays.payload_stops"),
    (
        "arrays.payload_stops.values",
        [1, 2, 3, 4, 5, 5],
        "trace.arrays.payload_stops: must rise to the length",
    ),
    (
        "arrays.payload_stops.values",
        [2, 1, 3, 4, 5, 6],
        "trace.arrays.payload_stops: must rise to the length",
    ),
    ("arrays.payload.shape", [0, 10**30], "trace.arrays.payload.shape: must multiply"),
]


@pytest.mark.parametrize(("path", "value", "message"), BROKEN)
def test_a_part_that_does_not_fit(path: str, value: Any, message: str) -> None:
    assert refused(mutated(path, value)).startswith(message)


@pytest.mark.parametrize("shape", [[0, 10**30], [0] * 100, [False]])
def test_a_shape_that_numpy_cannot_hold_of_an_array_without_values(shape: list[Any]) -> None:
    data = json.loads(simulate(replace(preset("ring-8"), world_size=1)).to_json())
    data["arrays"]["payload_stops"] = {"shape": shape, "values": []}
    assert refused(json.dumps(data)).startswith("trace.arrays.payload_stops")


def test_times_whose_difference_overflows_are_refused() -> None:
    data = copy.deepcopy(VALID)
    data["events"]["start_s"][0], data["events"]["end_s"][0] = -1e308, 1e308
    assert refused(json.dumps(data)).startswith("trace.events.")


WRONG = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@law(600)
@given(st.integers(0, 2**32 - 1), WRONG, st.sampled_from(("replace", "remove", "double")))
def test_a_mutated_trace_is_a_trace_or_an_input_error(seed: int, value: Any, how: str) -> None:
    chance, data = Random(seed), copy.deepcopy(VALID)
    target: Any = data
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = chance.choice(keys)
        inner = target[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.25:
            break
        target = inner
    if how == "replace":
        target[key] = value
    elif how == "remove":
        del target[key]
    elif isinstance(target, list):
        target.insert(key, inner)
    try:
        read = from_json(json.dumps(data))
    except InputError as error:
        is_one_line(error)
        return
    assert from_json(read.to_json()).to_json() == read.to_json()


def is_one_line(error: InputError) -> None:
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("source", ["measured", "recorded"])
def test_a_trace_that_was_not_simulated_says_on_which_machine(source: str) -> None:
    made = simulate(preset("chapter-19-2"))
    with pytest.raises(InputError, match=r"^machine: must name hardware, versions, date, process_ids"):
        replace(made, source=source)
    lacking = {name: text for name, text in MACHINE.items() if name != "date"}
    with pytest.raises(InputError, match=f"in a {source} trace"):
        replace(made, source=source, machine=lacking)
    named = replace(made, source=source, machine=MACHINE)
    assert from_json(named.to_json()).machine == MACHINE
    assert from_json(named.to_json()).source == source
    assert refused(mutated("source", source)).startswith("machine: must name")


def test_a_source_is_one_of_three() -> None:
    with pytest.raises(InputError, match=r"^source: must be one of simulated, measured, recorded"):
        replace(simulate(preset("chapter-19-2")), source="real")


def test_saving_writes_one_file_that_opens_again(tmp_path: Path) -> None:
    made = simulate(preset("first-screen"))
    save(made, tmp_path / "trace.json")
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]
    assert load(tmp_path / "trace.json").to_json() == made.to_json()
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["kinds"] == list(KINDS)


def test_a_trace_is_written_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, place, link = simulate(preset("chapter-19-2")), tmp_path / "trace.json", tmp_path / "link.json"
    place.write_text("older", "utf-8")
    link.symlink_to(place)

    def half(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text.encode(encoding)[:99])
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        with pytest.raises(OSError, match="full"):
            save(made, link)
    assert place.read_text("utf-8") == "older"
    save(made, link)
    assert load(place).to_json() == made.to_json()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "trace.json"]
    assert link.is_symlink()
    save(made, "/dev/null")  # which is no file, and stays what it is
    assert Path("/dev/null").is_char_device()


def slices(made: Trace) -> list[dict[str, Any]]:
    return [row for row in json.loads(to_perfetto(made))["traceEvents"] if row["ph"] == "X"]


@law(30)
@given(scenarios(max_ranks=5))
def test_perfetto_gets_complete_events_of_the_chrome_trace_event_format(scenario: Scenario) -> None:
    """ph X with name, cat, pid, tid, ts and dur in microseconds; ph M names processes and threads."""
    made = simulate(scenario)
    data = json.loads(to_perfetto(made))
    assert data["displayTimeUnit"] == "ms"
    named = [row for row in data["traceEvents"] if row["ph"] == "M"]
    assert {row["ph"] for row in data["traceEvents"]} == {"X", "M"}
    processes = {row["pid"]: row["args"]["name"] for row in named if row["name"] == "process_name"}
    assert processes == {r: f"rank {r}" for r in range(scenario.world_size)}
    threads = {(row["pid"], row["tid"]): row["args"]["name"] for row in named if row["name"] == "thread_name"}
    rows = slices(made)
    assert len(rows) == len(made.events)
    for i, row in enumerate(rows):
        kind = KINDS[made.events.kind[i]]
        assert (row["name"], row["cat"], row["pid"]) == (kind, "simulated", made.events.rank[i])
        expected = kind if kind in ("send", "receive") else "compute"
        assert threads[row["pid"], row["tid"]] == expected
        assert row["ts"] == pytest.approx(made.events.start_s[i] * 1e6)
        assert row["ts"] + row["dur"] == pytest.approx(made.events.end_s[i] * 1e6)
        assert row["dur"] >= 0
        assert set(row["args"]) <= set(COLUMNS)


@law(30)
@given(scenarios(max_ranks=5))
def test_perfetto_s_slices_follow_one_another_on_every_thread(scenario: Scenario) -> None:
    lanes: dict[tuple[int, int], set[tuple[float, float]]] = defaultdict(set)
    for row in slices(simulate(scenario)):
        lanes[row["pid"], row["tid"]].add((row["ts"], row["ts"] + row["dur"]))
    for lane in lanes.values():
        for (_, end), (start, _) in pairwise(sorted(lane)):
            assert end <= start + 1e-6
