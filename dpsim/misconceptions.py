"""The misconceptions that exercises look for: what is believed, what is right, and who voiced it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from dpsim.checks import InputError, sequence, text, toml

LONGEST = 400


@dataclass(frozen=True)
class Misconception:
    """A mistaken belief, what holds instead, and where it was voiced: none where nobody is cited."""

    id: str
    name: str
    right: str
    sources: tuple[str, ...]


@cache
def misconceptions() -> dict[str, Misconception]:
    """All misconceptions by id, in the order of the file."""
    path = resources.files("dpsim") / "content" / "misconceptions.toml"
    return read_misconceptions(path.read_text("utf-8"))


def read_misconceptions(written: str) -> dict[str, Misconception]:
    """The misconceptions in the text of a TOML file; InputError names the one and the key that is wrong."""
    known = [field.name for field in fields(Misconception) if field.name != "id"]
    found = {}
    for name, table in toml("misconceptions", written).items():
        if not re.fullmatch(r"M[1-9][0-9]?", name):
            raise InputError("misconceptions", "must be named M1 to M99", name)
        if not isinstance(table, Mapping):
            raise InputError(f"misconceptions.{name}", "must be a table of keys", table)
        for key in (*table, *known):
            if (key in table) != (key in known):
                rule = f"unknown key; known are {', '.join(known)}" if key in table else "is needed"
                raise InputError(f"misconceptions.{name}.{key}", rule, table.get(key))
        where = f"misconceptions.{name}"
        sources = table["sources"]
        cited = sequence(f"{where}.sources", sources, 8) if sources != [] else ()
        found[name] = Misconception(
            name,
            _said(f"{where}.name", table["name"]),
            _said(f"{where}.right", table["right"]),
            tuple(_said(f"{where}.sources[{i}]", source) for i, source in enumerate(cited)),
        )
    return found


def _said(field: str, value: object) -> str:
    """A line of text that says something."""
    said = text(field, value, LONGEST)
    if not said.strip():
        raise InputError(field, "must say something", value)
    return said
