"""The clock and the record of one rank.

A mark is a moment: nanoseconds of the host's monotonic clock, which all processes of a host share, or an
event on a device's stream, tied to that clock when the run starts. It becomes a number when the run is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from dpsim.trace import COLUMNS

Mark = Any  # int on a host, torch.cuda.Event on a device


@dataclass(frozen=True)
class Where:
    """Which all-reduce of a run: its step, micro-batch (-1: the whole window) and bucket."""

    step: int
    micro_batch: int
    bucket: int


class Clock:
    """Marks on `device`. Work there runs behind the host's back, so its marks are events on its stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._base: tuple[int, Any] = (time.perf_counter_ns(), None)

    def start(self) -> int:
        """Tie the device to the host; nanoseconds of the host's clock."""
        event = None
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            event = self._event()
        self._base = (time.perf_counter_ns(), event)
        return self._base[0]

    def mark(self) -> Mark:
        """Now, as the device sees it."""
        return self._event() if self._device.type == "cuda" else time.perf_counter_ns()

    def host_mark(self) -> Mark:
        """Now, as the host sees it, once the device has done what it was given."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter_ns()

    def nanoseconds(self, mark: Mark) -> int:
        """A mark on the host's clock."""
        if isinstance(mark, int):
            return mark
        mark.synchronize()
        since_ms: float = self._base[1].elapsed_time(mark)
        return self._base[0] + round(since_ms * 1e6)

    def _event(self) -> Any:
        event: Any = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event


class Recorder:
    """The events of one rank, with the payload of every receive, while `on`."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.on = clock, False
        self._rows: list[tuple[Any, ...]] = []
        self._payload: list[torch.Tensor] = []

    def add(
        self,
        kind: int,
        where: Where,
        start: Mark,
        end: Mark,
        *,
        round: int = -1,
        peer: int = -1,
        chunk: int = -1,
        size: int = 0,
        payload: torch.Tensor | None = None,
    ) -> None:
        """One event; `size` in bytes, `payload` what a receive brought."""
        if self.on:
            row = (where.step, kind, where.micro_batch, where.bucket, round, peer, chunk, start, end, size)
            self._rows.append(row)
            if payload is not None:
                self._payload.append(payload)

    def span(self, kind: int, where: Where) -> Callable[[], None]:
        """Start an event now; call what comes back at its end."""
        start = self.clock.mark()
        return lambda: self.add(kind, where, start, self.clock.mark())

    def columns(self, rank: int) -> dict[str, list[Any]]:
        """The events in the columns of a trace, times in nanoseconds of the host's clock."""
        ns = self.clock.nanoseconds
        rows = [(t, rank, *row, ns(start), ns(end), size) for t, *row, start, end, size in self._rows]
        return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}

    def payloads(self) -> list[list[float]]:
        """What every receive brought, in the order of the receive events."""
        return [[float(v) for v in payload.tolist()] for payload in self._payload]
