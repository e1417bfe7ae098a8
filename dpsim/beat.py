"""What a beat is: a moment worth stopping at, and the phases that beats belong to."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = {
    "ring": ("Reduce-scatter", "All-gather"),
    "halving-doubling": ("Reduce-scatter", "All-gather"),
    "tree": ("Reduce", "Broadcast"),
    "parameter-server": ("Push", "Pull"),
}


@dataclass(frozen=True)
class Focus:
    """Where to look: a rank, and for a transfer the sending peer, the bucket and the chunk."""

    rank: int
    peer: int = -1
    bucket: int = -1
    chunk: int = -1


@dataclass(frozen=True)
class Beat:
    """A moment worth stopping at. `details` say the same for every rank or transfer."""

    id: str
    step: int
    phase: str
    title: str
    moment_s: float
    sentence: str
    arithmetic: tuple[str, ...]
    details: tuple[str, ...]
    focus: Focus | None = None
