"""The written forms of a scenario: a dictionary (JSON), TOML for files, a query for links."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlencode

from dpsim.checks import InputError, choice, key_shown, read_text
from dpsim.scenario import Batch, Buckets, Compute, Model, Network, Optimizer, Scenario

MAX_FILE_BYTES = 1_000_000
MAX_QUERY_CHARACTERS = 50_000

PARTS: dict[str, type] = {
    "model": Model,
    "batch": Batch,
    "optimizer": Optimizer,
    "compute": Compute,
    "network": Network,
    "buckets": Buckets,
}


TEACHING_ORDER = (
    "first-screen",
    "chapter-19-2",
    "two-and-eight",
    "accelerate-doc",
    "empty-rank",
    "accumulation",
    "next-token",
    "overlap",
    "collective-ring",
    "collective-tree",
    "collective-halving-doubling",
    "collective-parameter-server",
    "ring-8",
    "ring-64",
)


def _known(keys: Mapping[str, Any], cls: type, where: str) -> None:
    names = [f.name for f in fields(cls)]
    for key in keys:
        if key not in names:
            raise InputError(
                where + key_shown(str(key)), f"unknown key; known are {', '.join(names)}", keys[key]
            )


def from_dict(data: Any) -> Scenario:
    """The scenario that `data` writes down; InputError names what breaks a rule."""
    if not isinstance(data, Mapping):
        raise InputError("scenario", "must be a table of keys", data)
    _known(data, Scenario, "")
    values = dict(data)
    for name, cls in PARTS.items():
        part = values.get(name)
        if isinstance(part, Mapping):
            _known(part, cls, f"{name}.")
            values[name] = cls(**part)
        elif part is not None:
            raise InputError(name, "must be a table of keys", part)
    for needed in ("name", "batch"):
        if values.get(needed) is None:
            raise InputError(needed, "is needed", None)
    return Scenario(**{k: v for k, v in values.items() if v is not None})


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def to_dict(scenario: Scenario, *, full: bool = False) -> dict[str, Any]:
    """`scenario` as plain lists, numbers and text; without `full` only what differs from the default."""

    def plain(value: Any) -> Any:
        return [plain(v) for v in value] if isinstance(value, tuple) else value

    def table(part: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for f in fields(part):
            value = getattr(part, f.name)
            if is_dataclass(value):
                inner = table(value)
                if inner:
                    out[f.name] = inner
            elif value is not None and (full or value != _default(f)):
                out[f.name] = plain(value)
        return out

    data = table(scenario)
    data["world_size"] = scenario.world_size
    if full and scenario.batch.assignment is not None:
        del data["batch"]["micro_batches"]  # it follows from the assignment
    return data


def from_toml(text: str) -> Scenario:
    """The scenario in a TOML file's text."""
    if len(text) > MAX_FILE_BYTES:
        raise InputError("TOML", f"must have at most {MAX_FILE_BYTES} characters", len(text))
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of 5,000 digits
        raise InputError("TOML", f"must be a TOML file ({error})", text[:40]) from None
    return from_dict(data)


def to_toml(scenario: Scenario) -> str:
    """`scenario` as TOML, without what is at its default."""
    import tomli_w  # only who writes TOML needs it

    return tomli_w.dumps(to_dict(scenario))


def to_query(scenario: Scenario) -> str:
    """`scenario` as a URL query: dotted keys, text as it is, everything else as JSON."""
    flat: list[tuple[str, str]] = []
    for key, value in to_dict(scenario).items():
        inner = value.items() if key in PARTS else [(None, value)]
        for name, v in inner:
            dotted = key if name is None else f"{key}.{name}"
            written = v if isinstance(v, str) else json.dumps(v, separators=(",", ":"))
            flat.append((dotted, written))
    return urlencode(flat)


def from_query(query: str | Mapping[str, str], base: Scenario | None = None) -> Scenario:
    """The scenario in a URL query; keys that are absent come from `base` if there is one."""
    if isinstance(query, str):
        if len(query) > MAX_QUERY_CHARACTERS:
            rule = f"must have at most {MAX_QUERY_CHARACTERS} characters"
            raise InputError("URL", rule, len(query))
        query = dict(parse_qsl(query, keep_blank_values=True))
    data = to_dict(base, full=True) if base is not None else {}
    texts = {("", f.name) for f in fields(Scenario) if f.type == "str"}
    texts |= {(p, f.name) for p, cls in PARTS.items() for f in fields(cls) if f.type == "str"}
    for key, written in query.items():
        part, dot, name = key.rpartition(".")
        known: type | None = PARTS.get(part) if dot else Scenario
        if known is None:
            names = ", ".join(f.name for f in fields(Scenario))
            raise InputError(key_shown(key), f"unknown key; known are {names}", written)
        _known({name: written}, known, f"{part}." if part else "")
        if name in PARTS and not part:
            raise InputError(key, f"must be written key by key, as {name}.…", written)
        plain = (part, name) in texts or (name == "reduction" and not written.startswith("["))
        target = data.setdefault(part, {}) if part else data
        target[name] = written if plain else _json(key, written)
    return from_dict(data)


def _json(key: str, written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        rule = "must be written as a number like 0.001, a list like [1, 2], true or false"
        raise InputError(key, rule, written) from None


def _scenarios() -> Any:
    return resources.files("dpsim") / "content" / "scenarios"


@cache
def _preset_names() -> tuple[str, ...]:
    names = sorted(f.name.removesuffix(".toml") for f in _scenarios().iterdir())
    return tuple(sorted(names, key=lambda n: TEACHING_ORDER.index(n) if n in TEACHING_ORDER else len(names)))


def preset_names() -> list[str]:
    """The names of the presets, in the order in which one would teach them."""
    return list(_preset_names())


@cache
def _preset(name: str) -> Scenario:
    return from_toml((_scenarios() / f"{name}.toml").read_text("utf-8"))


def preset(name: str) -> Scenario:
    """The preset called `name`."""
    choice("preset", name, preset_names())
    return _preset(name)


def preset_or_file(name: str) -> Scenario:
    """The preset called `name`, or the scenario in the TOML file at that path."""
    if name in preset_names():
        return preset(name)
    if not name.endswith(".toml"):
        rule = f"must be a .toml file that exists, or one of {', '.join(preset_names())}"
        raise InputError("scenario", rule, name)
    return from_toml(read_text("scenario", name, MAX_FILE_BYTES))
