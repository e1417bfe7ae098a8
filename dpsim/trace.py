"""The trace: what happened in a scenario's steps, simulated, measured or recorded.

Every picture, number and file format reads a `Trace` and cannot tell these apart except by `source`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError, choice, read_text, shown
from dpsim.forms import from_dict, to_dict
from dpsim.scenario import Scenario
from dpsim.timeline import Bucket, buckets

FORMAT, VERSION = "dpsim-trace", 1
MAX_EVENTS = 200_000
MAX_VALUES = 8_000_000  # numbers in one trace's arrays: 64 MB
MAX_TRACE_BYTES = 200_000_000

SOURCES = ("simulated", "measured", "recorded")
KINDS = ("scatter", "forward", "backward", "send", "receive", "barrier", "optimizer", "all_reduce")
SCATTER, FORWARD, BACKWARD, SEND, RECEIVE, BARRIER, OPTIMIZER, ALL_REDUCE = range(len(KINDS))
MACHINE = ("hardware", "versions", "date", "process_ids")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Events:
    """Events in columns of one length. `kind` indexes `KINDS`; -1 stands where a column does not apply,
    and bucket -2 is the count of valid tokens. `peer` is the other rank of a send or receive.

    An all-reduce is its sends and receives where each message is known, and one `all_reduce` event per rank
    where it was measured as a whole.
    """

    step: Ints
    rank: Ints
    kind: Ints
    micro_batch: Ints
    bucket: Ints
    round: Ints
    peer: Ints
    chunk: Ints
    start_s: Floats
    end_s: Floats
    bytes: Floats

    def __len__(self) -> int:
        return len(self.step)

    def where(self, *, step: int | None = None, **equal: int) -> Ints:
        """Numbers of the events, of one step or of all, whose columns equal these values, in order."""
        rows: Ints = np.arange(len(self)) if step is None else self._rows_of_steps[step]
        mask = np.ones(len(rows), bool)
        for name, value in equal.items():
            mask &= getattr(self, name)[rows] == value
        chosen: Ints = rows[mask]
        return chosen

    @cached_property
    def _rows_of_steps(self) -> list[Ints]:
        order = np.argsort(self.step, kind="stable")
        return np.split(order, np.searchsorted(self.step[order], np.arange(1, self.step.max() + 1)))

    @cached_property
    def receive_number(self) -> Ints:
        """For every event how many receives stand before it: the place of its payload, if it is one."""
        receives = (self.kind == RECEIVE).astype(np.int64)
        before: Ints = np.cumsum(receives) - receives
        return before


COLUMNS = tuple(f.name for f in fields(Events))
FLOAT_COLUMNS = ("start_s", "end_s", "bytes")


@dataclass(frozen=True, eq=False)
class Trace:
    """Events and named arrays; T steps, R ranks, K micro-batches (the most of any rank), P parameters.

    `parameters` [T + 1, R, P]: every replica before step t, and after the last.
    `gradient_sums` [T, R, K, P], `loss_sums` [T, R, K], `valid_tokens` [T, R, K] (int64).
    `scaled` [T, R, K, P]: what each rank brings to the all-reduce, its sums times the factor before it.
    `counted` [T, R]: the all-reduced count of valid tokens on every rank, -1 where none travels.
    `reduced` [T, R, P]: the gradient the all-reduce forms on every replica; zeros in an undefined step.
    `payload`: what every receive event brought, one after another; `payload_stops` where each one ends.
    `undefined`: per step why there is no gradient, or None.
    `machine`: hardware, versions, date and process ids, of a trace that was not simulated, and what else its
    maker says of the run.
    """

    scenario: Scenario
    source: str
    events: Events
    parameters: Floats
    loss_sums: Floats
    gradient_sums: Floats
    valid_tokens: Ints
    scaled: Floats
    counted: Ints
    reduced: Floats
    payload: Floats
    payload_stops: Ints
    undefined: tuple[str | None, ...]
    machine: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice("source", self.source, SOURCES)
        if self.source != "simulated" and not set(self.machine) >= set(MACHINE):
            rule = f"must name {', '.join(MACHINE)} in a {self.source} trace"
            raise InputError("machine", rule, sorted(self.machine))

    @property
    def steps(self) -> int:
        """How many steps the trace holds."""
        return self.scenario.steps

    @property
    def bytes_per_element(self) -> float:
        """What an element of the gradient weighs on its way: really where it was measured, else what it
        stands for."""
        real = {"float32": 4.0, "float64": 8.0}
        return real.get(self.machine.get("dtype", ""), self.scenario.bytes_per_element)

    def gradient(self, step: int) -> Floats | None:
        """The gradient of one step (P), the same on every replica; None where it is undefined."""
        return None if self.undefined[step] else self.reduced[step, 0]

    def payload_of(self, receive: int) -> Floats:
        """What one receive event brought."""
        number = int(self.events.receive_number[receive])
        start = int(self.payload_stops[number - 1]) if number else 0
        return self.payload[start : int(self.payload_stops[number])]

    def step_window(self, step: int) -> tuple[float, float]:
        """When a step starts and ends, in seconds."""
        rows = self.events.where(step=step)
        return float(self.events.start_s[rows].min()), float(self.events.end_s[rows].max())

    def buckets(self, step: int) -> tuple[Bucket, ...]:
        """The buckets of one step. A run that has warmed up uses those of its later steps from the first."""
        made = buckets(self.scenario, step)
        rows = self.events.where(step=step, kind=BACKWARD)
        return made if self.events.bucket[rows].max() < len(made) else buckets(self.scenario, 1)

    def to_json(self) -> str:
        """The trace as one JSON object; floats are written so that they read back bit for bit."""
        arrays = {name: _packed(getattr(self, name)) for name in ARRAYS}
        data = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "scenario": to_dict(self.scenario, full=True),
            "machine": dict(self.machine),
            "undefined": list(self.undefined),
            "kinds": list(KINDS),
            "events": {name: getattr(self.events, name).tolist() for name in COLUMNS},
            "arrays": arrays,
        }
        return json.dumps(data, separators=(",", ":"), allow_nan=False)


INT_ARRAYS = ("valid_tokens", "counted", "payload_stops")
ARRAYS = (
    "parameters",
    "loss_sums",
    "gradient_sums",
    "valid_tokens",
    "scaled",
    "counted",
    "reduced",
    "payload",
    "payload_stops",
)


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), "values": array.ravel().tolist()}


def from_json(text: str) -> Trace:
    """The trace that `text` holds; InputError where it is none, is newer, or does not fit together."""
    if len(text) > MAX_TRACE_BYTES:
        rule = f"must have at most {MAX_TRACE_BYTES} characters"
        raise InputError("trace", rule, len(text))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("trace", "must be a JSON object", text[:40]) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else data
        raise InputError("trace", f"must be a file of the format {FORMAT}", found)
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError("trace", f"must be of version {VERSION}, which this dpsim reads", version)
    if data.get("kinds") not in (list(KINDS), list(KINDS[:ALL_REDUCE])):  # older files end before all_reduce
        raise InputError("trace.kinds", f"must be {', '.join(KINDS)}", data.get("kinds"))
    scenario = from_dict(data.get("scenario"))
    events = _events(data.get("events"), scenario)
    arrays = {name: _unpacked(name, data.get("arrays")) for name in ARRAYS}
    _fit(scenario, events, arrays)
    undefined = data.get("undefined")
    lines = isinstance(undefined, list) and all(u is None or _is_line(u) for u in undefined)
    if not isinstance(undefined, list) or not lines or len(undefined) != scenario.steps:
        raise InputError("trace.undefined", "must have a text or null for every step", undefined)
    machine = data.get("machine")
    if not isinstance(machine, dict) or not all(isinstance(v, str) for v in machine.values()):
        raise InputError("trace.machine", "must be a table of texts", machine)
    source = choice("trace.source", data.get("source"), SOURCES)
    return Trace(scenario, source, events, undefined=tuple(undefined), machine=machine, **arrays)


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 500 and value.isprintable()


def _events(data: Any, scenario: Scenario) -> Events:
    if not isinstance(data, dict) or set(data) != set(COLUMNS):
        raise InputError("trace.events", f"must have the columns {', '.join(COLUMNS)}", data)
    columns = {}
    for name in COLUMNS:
        dtype = np.float64 if name in FLOAT_COLUMNS else np.int64
        columns[name] = _array(f"trace.events.{name}", data[name], dtype)
    lengths = {len(c) for c in columns.values()}
    if len(lengths) != 1 or not 1 <= max(lengths) <= MAX_EVENTS:
        rule = f"must have columns of one length, 1 to {MAX_EVENTS}"
        raise InputError("trace.events", rule, sorted(lengths))
    bounds = {
        "step": (0, scenario.steps - 1),
        "rank": (0, scenario.world_size - 1),
        "peer": (-1, scenario.world_size - 1),
        "kind": (0, len(KINDS) - 1),
        "micro_batch": (-1, max(scenario.micro_batches) - 1),
        "bucket": (-2, 2),
        "round": (-1, 2 * scenario.world_size),
        "chunk": (-1, scenario.world_size - 1),
        "bytes": (0, 1e18),
        "start_s": (0, 1e12),
        "end_s": (0, 1e12),
    }
    for name, (low, high) in bounds.items():
        values = columns[name]
        if values.min() < low or values.max() > high:
            worst = values.min() if values.min() < low else values.max()
            rule = f"must be from {low} to {high:g}"
            raise InputError(f"trace.events.{name}", rule, worst.item())
    if np.any(columns["end_s"] < columns["start_s"]):
        raise InputError("trace.events.end_s", "must not be before start_s", "an event that is")
    for kind in (SCATTER, FORWARD, BACKWARD, BARRIER):
        rows = columns["kind"] == kind
        pairs = columns["step"][rows] * scenario.world_size + columns["rank"][rows]
        if len(np.unique(pairs)) != scenario.steps * scenario.world_size:
            rule = f"must have a {KINDS[kind]} event of every rank in every step"
            raise InputError("trace.events.kind", rule, int(rows.sum()))
    return Events(**columns)


def _array(name: str, values: Any, dtype: type) -> NDArray[Any]:
    if not isinstance(values, list) or len(values) > MAX_VALUES:
        raise InputError(name, f"must be a list of at most {MAX_VALUES} numbers", shown(values))
    try:
        array = np.array(values)
        if array.ndim != 1 or (len(values) and array.dtype.kind not in "if"):
            raise ValueError
        cast: NDArray[Any] = array.astype(dtype)
    except (ValueError, OverflowError):
        raise InputError(name, "must be a flat list of numbers", values) from None
    if not np.all(np.isfinite(cast)) or not np.array_equal(cast, array):
        kind = "finite" if dtype is np.float64 else "whole"
        raise InputError(name, f"must be {kind} numbers", values)
    return cast


def _unpacked(name: str, arrays: Any) -> NDArray[Any]:
    packed = arrays.get(name) if isinstance(arrays, dict) else None
    where = f"trace.arrays.{name}"
    if not isinstance(packed, dict) or set(packed) != {"shape", "values"}:
        raise InputError(where, "must have a shape and values", packed)
    values = _array(where, packed["values"], np.int64 if name in INT_ARRAYS else np.float64)
    shape = packed["shape"]
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n <= MAX_VALUES for n in shape)
    try:
        return values.reshape(shape if whole else (-1, -1))
    except ValueError:
        raise InputError(f"{where}.shape", f"must multiply to {len(values)} values", shape) from None


def _fit(scenario: Scenario, events: Events, arrays: Mapping[str, NDArray[Any]]) -> None:
    t, r, p = scenario.steps, scenario.world_size, scenario.model.size
    k = max(scenario.micro_batches)
    receives = int(np.sum(events.kind == RECEIVE))
    expected = {
        "parameters": (t + 1, r, p),
        "loss_sums": (t, r, k),
        "gradient_sums": (t, r, k, p),
        "valid_tokens": (t, r, k),
        "scaled": (t, r, k, p),
        "counted": (t, r),
        "reduced": (t, r, p),
        "payload": (arrays["payload"].size,),
        "payload_stops": (receives,),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            rule = f"must have the shape {list(shape)}"
            raise InputError(f"trace.arrays.{name}", rule, list(arrays[name].shape))
    stops = np.concatenate([[0], arrays["payload_stops"]])
    if np.any(np.diff(stops) < 0) or stops[-1] != arrays["payload"].size:
        rule = "must rise to the length of payload"
        raise InputError("trace.arrays.payload_stops", rule, int(stops[-1]))


def save(trace: Trace, path: str | Path) -> None:
    """Write the trace to one file: as a whole or not at all, where it is a file and no device or pipe."""
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_text(trace.to_json(), "utf-8")
        return
    target = target.resolve()  # a link stays one
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_text(trace.to_json(), "utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load(path: str | Path) -> Trace:
    """The trace in the file at `path`."""
    return from_json(read_text("trace", path, MAX_TRACE_BYTES))


def to_perfetto(trace: Trace) -> str:
    """The events in the Chrome trace event format, which Perfetto opens: a process per rank, a thread each
    for computing, sending, receiving and whole all-reduces, times in microseconds."""
    events = trace.events
    threads = ("compute", "send", "receive", "all_reduce")
    rows: list[dict[str, Any]] = []
    for rank in range(trace.scenario.world_size):
        names = [("process_name", 0, f"rank {rank}")]
        names += [("thread_name", i, thread) for i, thread in enumerate(threads)]
        rows += [
            {"ph": "M", "name": what, "pid": rank, "tid": i, "args": {"name": name}}
            for what, i, name in names
        ]
    for i in range(len(events)):
        kind = KINDS[events.kind[i]]
        labels = {
            name: getattr(events, name)[i].item()
            for name in ("step", "micro_batch", "bucket", "round", "peer", "chunk", "bytes")
            if getattr(events, name)[i] != -1
        }
        rows.append(
            {
                "ph": "X",
                "name": kind,
                "cat": trace.source,
                "pid": int(events.rank[i]),
                "tid": threads.index(kind) if kind in threads else 0,
                "ts": float(events.start_s[i]) * 1e6,
                "dur": float(events.end_s[i] - events.start_s[i]) * 1e6,
                "args": labels,
            }
        )
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"}, allow_nan=False)
