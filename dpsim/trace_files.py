"""A trace as a file: JSON that is read strictly, since a file may claim anything, and the Perfetto format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError, choice, read_text, shown
from dpsim.forms import from_dict
from dpsim.scenario import Scenario
from dpsim.trace import (
    ALL_REDUCE,
    ARRAYS,
    BACKWARD,
    BARRIER,
    COLUMNS,
    FLOAT_COLUMNS,
    FORMAT,
    FORWARD,
    INT_ARRAYS,
    KINDS,
    MAX_EVENTS,
    MAX_VALUES,
    RECEIVE,
    SCATTER,
    SOURCES,
    VERSION,
    Events,
    Trace,
)

MAX_TRACE_BYTES = 200_000_000


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
    if not isinstance(undefined, list) or not lines or len(undefined) != scenario.begun_steps:
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
        "step": (0, scenario.begun_steps - 1),
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
    waits = (BARRIER,) if scenario.exchange.awaited else ()
    for kind in (SCATTER, FORWARD, BACKWARD, *waits):
        rows = columns["kind"] == kind
        pairs = columns["step"][rows] * scenario.world_size + columns["rank"][rows]
        if len(np.unique(pairs)) != scenario.begun_steps * scenario.world_size:
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
        with np.errstate(invalid="ignore"):  # a number too large for the type is found below
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
    t, r, p = scenario.begun_steps, scenario.world_size, scenario.model.size
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
