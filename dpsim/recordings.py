"""Runs that were measured and kept: traces as files, shown as recorded."""

from __future__ import annotations

from functools import lru_cache

from dpsim.app import PACKAGE
from dpsim.checks import choice
from dpsim.trace import Trace
from dpsim.trace_files import load

FOLDER = PACKAGE / "content" / "recordings"


def recordings() -> tuple[str, ...]:
    """The names of all recordings."""
    return tuple(path.stem for path in sorted(FOLDER.glob("*.json")))


@lru_cache(maxsize=8)
def recording(name: str) -> Trace:
    """A recording by its name; it says itself on which machine it was measured, and when."""
    return load(FOLDER / f"{choice('recording', name, recordings())}.json")
