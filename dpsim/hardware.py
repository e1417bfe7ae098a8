"""Named hardware: what messages and passes cost somewhere, kept in small TOML files, put into scenarios."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.checks import InputError, choice, key_shown, number, read_text, text, toml, whole
from dpsim.parts import MAX_RANKS, put
from dpsim.scenario import Scenario
from dpsim.timeline import buckets
from dpsim.user_data import user_data

MAX_FILE_BYTES = 10_000  # an entry has about one thousand
MAX_ENTRIES = 100
ELEMENT_BYTES = {"float32": 4, "float64": 8}
SOURCES = ("measured", "stated")  # on a machine, or by whoever wrote the file, as from a data sheet

_NAME = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class Hardware:
    """What computing and sending cost. A message of B bytes takes latency_s + B / bandwidth_bytes_per_s, a
    forward pass over n tokens forward_s + n forward_s_per_token at speed 1, a backward pass likewise.

    The errors are the largest relative ones of the fits. `model`, `mode`, `dtype`, `ranks`, `devices` (one a
    rank, between spaces) and `backend` say what ran, `machine`, `versions` and `date` where and when.
    """

    name: str
    source: str
    latency_s: float
    bandwidth_bytes_per_s: float
    forward_s_per_token: float
    backward_s_per_token: float
    optimizer_s: float
    forward_s: float = 0.0
    backward_s: float = 0.0
    dtype: str = "float32"
    message_error: float | None = None
    forward_error: float | None = None
    backward_error: float | None = None
    ranks: int | None = None
    devices: str = ""
    backend: str = ""
    mode: str = ""
    model: str = ""
    machine: str = ""
    versions: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        checked_name("hardware.name", self.name)
        choice("hardware.source", self.source, SOURCES)
        choice("hardware.dtype", self.dtype, ELEMENT_BYTES)
        bandwidth = number("hardware.bandwidth_bytes_per_s", self.bandwidth_bytes_per_s, 0.001, 1e18)
        put(self, bandwidth_bytes_per_s=bandwidth)
        for name in (
            "latency_s",
            "forward_s",
            "forward_s_per_token",
            "backward_s",
            "backward_s_per_token",
            "optimizer_s",
        ):
            put(self, **{name: number(f"hardware.{name}", getattr(self, name), 0, 3600)})
        for name in ("message_error", "forward_error", "backward_error"):
            if getattr(self, name) is not None:
                put(self, **{name: number(f"hardware.{name}", getattr(self, name), 0)})
        if self.ranks is not None:
            put(self, ranks=whole("hardware.ranks", self.ranks, 1, MAX_RANKS))
        for name in ("devices", "backend", "mode", "model", "machine", "versions", "date"):
            text(f"hardware.{name}", getattr(self, name), 300)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the gradient, as its dtype has them."""
        return ELEMENT_BYTES[self.dtype]


def checked_name(field: str, name: Any) -> str:
    """`name`, which is the name of a file as well."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(field, "must be 1 to 40 of the characters a to z, 0 to 9 and -", name)
    return name


def to_dict(hardware: Hardware) -> dict[str, Any]:
    """`hardware` as numbers and text, without what is not known."""
    return {name: value for name, value in asdict(hardware).items() if value is not None and value != ""}


def from_dict(data: Mapping[str, Any]) -> Hardware:
    """The entry that `data` writes down; InputError names what breaks a rule."""
    known = {field.name: field for field in fields(Hardware)}
    for key in data:
        if key not in known:
            rule = f"unknown key; known are {', '.join(known)}"
            raise InputError(f"hardware.{key_shown(key)}", rule, data[key])
    for name, field in known.items():
        if field.default is MISSING and name not in data:
            raise InputError(f"hardware.{name}", "is needed", None)
    return Hardware(**data)


def to_toml(hardware: Hardware) -> str:
    """`hardware` as TOML."""
    import tomli_w  # only who writes TOML needs it

    return tomli_w.dumps(to_dict(hardware))


def from_toml(written: str) -> Hardware:
    """The entry in a TOML file's text."""
    return from_dict(toml("hardware", written))


def folder() -> Path:
    """Where entries are kept: DPSIM_HARDWARE, else hardware in dpsim's folder of the user's data."""
    chosen = os.environ.get("DPSIM_HARDWARE")
    return Path(chosen) if chosen else user_data() / "hardware"


def names() -> list[str]:
    """The names of the entries that are kept, in order."""
    try:
        return sorted(path.stem for path in folder().glob("*.toml"))
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise _unusable(error) from None


def load(name: str) -> Hardware:
    """The entry called `name`; InputError where there is none, or where its file breaks a rule."""
    found = names()
    if name not in found:
        rule = f"must be one of {', '.join(found)}" if found else "must be kept by `dpsim calibrate` first"
        raise InputError("hardware", rule, name)
    path = folder() / f"{checked_name('hardware', name)}.toml"
    try:
        hardware = from_toml(read_text("hardware", path, MAX_FILE_BYTES))
        if hardware.name != name:
            raise InputError("hardware.name", "must be the name of the file", hardware.name)
    except InputError as error:
        raise InputError(f"{path.name}: {error.field}", error.rule, error.value) from None
    return hardware


def place(name: str) -> Path:
    """The file for an entry called `name`, in a folder that is there; InputError where none can be kept."""
    path = folder() / f"{checked_name('--name', name)}.toml"
    if name not in (kept := names()) and len(kept) >= MAX_ENTRIES:
        raise InputError(
            "--name", f"must be one of the {MAX_ENTRIES} entries that are kept: no more fit", name
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unusable(error) from None
    return path


def save(hardware: Hardware) -> Path:
    """Keep `hardware` in place of what had its name; its file. A reader finds one of the two, whole."""
    path = place(hardware.name)
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(to_toml(hardware))
        Path(file.name).replace(path)
    except OSError as error:
        raise _unusable(error) from None
    return path


def _unusable(error: OSError | ValueError) -> InputError:
    reason = getattr(error, "strerror", None) or "no such path"
    return InputError("DPSIM_HARDWARE", f"must be a folder that can be used ({reason})", str(folder()))


def predicted(
    scenario: Scenario, hardware: Hardware, *, dtype: str | None = None, mode: str | None = None
) -> Scenario:
    """`scenario` with the costs of a live run of it on `hardware`, at the real size of its gradient.

    `dtype` and `mode` are those of the run; left out, those that the hardware was measured in. A rank makes
    each pass as often as in a live run. In the mode chunks nothing overlaps. The clock knows
    costs per token alone: they are chosen so that the rank that takes longest takes as long as it does with
    the fixed cost of every pass; a rank with fewer tokens comes out too early.
    """
    batch = global_batch(scenario)
    tokens = batch.shard_counts(batch.lengths).sum(axis=1)
    speed, micro, passes = (np.array(v) for v in (scenario.speeds, scenario.micro_batches, scenario.passes))

    def per_token(fixed_s: float, each_s: float) -> float:
        slowest = float(np.max(passes * (fixed_s * micro + each_s * tokens)))
        weighed = float(np.max(tokens / speed))
        return slowest / weighed if weighed > 0 else each_s

    compute = replace(
        scenario.compute,
        forward_s_per_token=per_token(hardware.forward_s, hardware.forward_s_per_token),
        backward_s_per_token=per_token(hardware.backward_s, hardware.backward_s_per_token),
        optimizer_s=hardware.optimizer_s,
    )
    network = replace(
        scenario.network,
        latency_s=hardware.latency_s,
        bandwidth_bytes_per_s=hardware.bandwidth_bytes_per_s,
    )
    costly = replace(scenario, compute=compute, network=network)
    return at_real_size(costly, dtype or hardware.dtype, mode or hardware.mode)


def at_real_size(scenario: Scenario, dtype: str, mode: str) -> Scenario:
    """`scenario` as a live run exchanges its gradient: it takes as long on a link as its real elements, with
    the same buckets, and in the mode chunks nothing overlaps.

    A cap of one's own shrinks with the elements. Torch's two default caps, on a gradient that stands for a
    large one, make buckets that no cap makes at the real size: then it stands for as much as before, and the
    bandwidth is larger by what that is too much.
    """
    element_bytes, standing = ELEMENT_BYTES[dtype], scenario.bytes_per_element
    cap = scenario.buckets.cap_bytes
    overlap = scenario.buckets.overlap and mode != "chunks"
    scenario = replace(scenario, buckets=replace(scenario.buckets, overlap=overlap))
    if cap is not None:  # as many whole elements as reach it, by the comparison that makes buckets
        short = np.arange(1, scenario.model.size + 1) * standing < cap
        cap = float(element_bytes * (1 + np.count_nonzero(short)))
    network = replace(scenario.network, gradient_bytes=float(element_bytes * scenario.model.size))
    made = replace(scenario, network=network, buckets=replace(scenario.buckets, cap_bytes=cap))
    if buckets(made, 1) == buckets(scenario, 1):
        return made
    faster = scenario.network.bandwidth_bytes_per_s * standing / element_bytes
    return replace(scenario, network=replace(scenario.network, bandwidth_bytes_per_s=faster))
