"""Watching over the ranks of a run: progress, and the end of it as soon as one dies, hangs or fails."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsim.checks import InputError
from dpsim.live.board import HANDING_IN, JOINING, Activity, Board
from dpsim.live.devices import Machine
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.pool import Message, Process

POLL_S = 0.01
GRACE_S = 0.5  # a rank's death is felt by the others first: wait this long for the one to blame
# Whom to believe when several ranks fail: a cause before the loss of a peer, which is but its effect.
CAUSES = ("died", "memory", "input", "torch", "live", "bug", "lost")


@dataclass(frozen=True)
class Progress:
    """How far a run is: queued (`done` is its place), starting (ranks), step or collecting (steps)."""

    stage: str
    done: int
    total: int

    @property
    def text(self) -> str:
        """The same in words."""
        return {
            "queued": f"waiting for another run, number {self.done} in the queue",
            "starting": f"starting ranks, {self.done} of {self.total}",
            "step": f"step {self.done} of {self.total}",
            "collecting": "collecting the results",
        }[self.stage]


@dataclass(frozen=True)
class Limits:
    """How long a run may take, how long a rank may be silent, and the event that calls it off."""

    deadline_s: float
    stall_s: float
    cancel: threading.Event


class Watch:
    """Waits for the ranks' messages, and raises as soon as there is a reason not to."""

    def __init__(self, limits: Limits, say: Callable[[Progress], None]) -> None:
        self._limits, self._say = limits, say
        self._end = 0.0
        self._said: Progress | None = None
        self.waiting = False  # whether every rank is known to wait for a job

    def starts(self) -> None:
        """From now on the deadline counts."""
        self._end = time.monotonic() + self._limits.deadline_s

    def until_ready(self, processes: list[Process]) -> Machine:
        """Wait until every process has loaded torch; the machine as they find it."""
        fresh = [p for p in processes if p.ready is None]
        for process, ready in zip(fresh, self._answers(fresh, "ready", None, 0), strict=True):
            process.ready = ready
        self.waiting = True
        return Machine.of(processes[0].ready or {})

    def until_done(self, processes: list[Process], board: Board, steps: int) -> list[Message]:
        """Wait until every rank has answered."""
        self.waiting = False
        results = self._answers(processes, "result", board, steps)
        self.waiting = True
        return results

    def _answers(self, processes: list[Process], key: str, board: Board | None, steps: int) -> list[Message]:
        answers: dict[int, Message] = {}
        failures: dict[int, Message] = {}
        failed_at = alive_at = time.monotonic()
        seen: list[Activity] = []
        while len(answers) < len(processes):
            for rank, process in enumerate(processes):
                for message in process.messages():
                    if key in message:
                        answers[rank] = message[key]
                    else:
                        failures.setdefault(rank, message["error"])
                code = process.code()
                if code is not None and rank not in answers:
                    failures.setdefault(rank, {"kind": "died", "code": code})
            now = time.monotonic()
            doing = [board.read(r) if board else Activity() for r in range(len(processes))]
            if doing != seen or board is None:
                seen, alive_at = doing, now
            failed_at = failed_at if failures else now
            if failures and (now - failed_at > GRACE_S or len(failures) + len(answers) == len(processes)):
                kinds = [failure["kind"] for failure in failures.values()]
                self.waiting = kinds == ["input"] * len(processes)  # all have turned it down
                raise _blamed(failures, doing, processes)
            self._check_time(now, alive_at, doing, processes, answers)
            self._progress(doing, len(answers), len(processes), steps, starting=board is None)
            time.sleep(POLL_S)
        return [answers[rank] for rank in range(len(processes))]

    def _check_time(
        self,
        now: float,
        alive_at: float,
        doing: list[Activity],
        processes: list[Process],
        answers: dict[int, Message],
    ) -> None:
        if self._limits.cancel.is_set():
            raise CancelledError("the run was cancelled")
        late = now > self._end
        silent = now - alive_at > self._limits.stall_s and min(doing).phase >= JOINING
        if not (late or silent):
            return
        waited = [rank for rank in range(len(processes)) if rank not in answers]
        stopped = [rank for rank in waited if processes[rank].stopped()]
        rank = stopped[0] if stopped else min(waited, key=lambda r: doing[r])
        what = f"rank {rank} {'was stopped' if stopped else 'hangs'} {doing[rank].told}"
        if late:
            raise LiveError(f"the run was not done within {self._limits.deadline_s:g} s: {what}")
        raise LiveError(f"{what}: no rank gave a sign of life for {self._limits.stall_s:g} s")

    def _progress(self, doing: list[Activity], done: int, ranks: int, steps: int, *, starting: bool) -> None:
        first = min(doing)
        if starting:
            progress = Progress("starting", done, ranks)
        elif first.phase == HANDING_IN:
            progress = Progress("collecting", steps, steps)
        else:
            progress = Progress("step", max(first.step, 0) + 1, steps)
        if progress != self._said:
            self._said = progress
            self._say(progress)


def _blamed(failures: dict[int, Message], doing: list[Activity], processes: list[Process]) -> InputError:
    """The error of the rank that failed first in the order of causes."""
    rank = min(failures, key=lambda r: (CAUSES.index(failures[r]["kind"]), r))
    return explained(rank, failures[rank], doing[rank].told, processes[rank].last_words())


def explained(rank: int, failure: dict[str, Any], told: str, last_words: str) -> InputError:
    """A rank's failure as an error: the input that caused it, or a sentence."""
    kind, text = failure["kind"], failure.get("text", "")
    if kind == "input":
        return InputError(failure["field"], failure["rule"], failure["value"])
    if kind == "torch":
        return LiveError(f"torch cannot be used here ({text}); all that is simulated works without it")
    if kind == "live":
        return LiveError(text)
    if kind == "memory":
        return LiveError(f"rank {rank} ran out of memory {told}")
    if kind == "lost":
        return LiveError(f"rank {rank} lost the other ranks {told} ({text})")
    if kind == "bug":
        return LiveError(f"rank {rank} failed {told} ({text})")
    code = failure["code"]
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", as a system does that has run out of memory" if -code == signal.SIGKILL else ""
        return LiveError(f"rank {rank} was killed by {name} {told}{hint}")
    words = f" ({last_words})" if last_words else ""
    return LiveError(f"rank {rank} ended with exit code {code} {told}{words}")
