"""The stage's plain files: HTML, CSS, and the parts of its one ES module."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = (
    "model.js", "geometry.js", "words.js", "card.js", "cards.js", "matrix.js", "timeline.js", "origins.js",
    "focus.js", "keys.js", "present.js", "stage.js",
)  # fmt: skip


def read(name: str) -> str:
    """One file's text."""
    return (HERE / name).read_text("utf-8")


def script() -> str:
    """The stage's one ES module: its parts in order; the last one exports."""
    return "\n".join(map(read, SCRIPTS))
