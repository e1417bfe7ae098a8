"""The hosts of a run that torchrun has started: which ranks share one, what each has, what all agree on."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpsim.live.devices import Choice, Machine, choose
from dpsim.live.offsets import Drift, most_wrong

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NAME = "DPSIM_HOST"  # another name for a host; two names on one machine count as two hosts


@dataclass(frozen=True)
class Place:
    """Where a rank is: its host's clock and name, its number among the `of` ranks of its torchrun agent, its
    process, and what it finds there."""

    clock: str
    host: str
    local_rank: int
    of: int
    pid: int
    machine: Machine

    @classmethod
    def here(cls, ready: Mapping[str, Any]) -> Place:
        """This process', from what its torch finds and what torchrun tells it."""
        name = os.environ.get(NAME, "")
        host, local = name or platform.node(), int(os.environ["LOCAL_RANK"])
        of = int(os.environ["LOCAL_WORLD_SIZE"])
        return cls(f"{_boot()} {name}", host, local, of, ready["pid"], Machine.of(ready))

    def text(self) -> str:
        """The place as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Place:
        """The place in a text."""
        data = json.loads(text)
        return cls(**data | {"machine": Machine.of(data["machine"])})


def _boot() -> str:
    """What processes have in common that share a monotonic clock: the boot it counts from."""
    try:
        return BOOT_ID.read_text("utf-8").strip()
    except OSError:  # hidden from a container: its name has to do
        return platform.node()


@dataclass(frozen=True)
class Host:
    """A host's name and ranks; `drift` tells its clock, None where it is rank 0's own."""

    name: str
    ranks: tuple[int, ...]
    drift: Drift | None = None

    def report(self) -> dict[str, Any]:
        """For programs: how far ahead its clock was before and after the run, in seconds, and the error."""
        ends = (self.drift.before.ahead, self.drift.after.ahead) if self.drift else (0, 0)
        return {
            "name": self.name,
            "ranks": list(self.ranks),
            "clock_offset_s": [ahead / 1e9 for ahead in ends],
            "clock_error_s": self.error / 1e9,
        }

    @property
    def error(self) -> int:
        """How wrong a time of this host may be on rank 0's clock, in nanoseconds."""
        return self.drift.error if self.drift else 0

    @property
    def told(self) -> str:
        """The same for people."""
        ranks = "rank" if len(self.ranks) == 1 else "ranks"
        return f"{self.name} ({ranks} {', '.join(map(str, self.ranks))})"


def hosts_of(places: Sequence[Place]) -> list[Host]:
    """The hosts in the order of their first ranks, so rank 0's is the first."""
    ranks: dict[str, list[int]] = {}
    for rank, place in enumerate(places):
        ranks.setdefault(place.clock, []).append(rank)
    return [Host(places[own[0]].host, tuple(own)) for own in ranks.values()]


def agreed(places: Sequence[Place], wanted: str, dtype: str | None) -> Choice:
    """The devices, backend and dtype of all ranks. Everyone takes GPUs where every host has one, and NCCL
    where each rank has a GPU to itself; InputError where cuda is wanted and a host has none."""
    made = [choose(place.machine, wanted, dtype, place.of) for place in places]
    if len({choice.devices[0] == "cpu" for choice in made}) > 1:
        made = [choose(place.machine, "cpu", dtype, place.of) for place in places]
    backend = "nccl" if all(choice.backend == "nccl" for choice in made) else "gloo"
    devices = tuple(choice.devices[place.local_rank] for choice, place in zip(made, places, strict=True))
    words = list(dict.fromkeys((p.host, c.hardware) for p, c in zip(places, made, strict=True)))
    if len(words) == 1:
        return Choice(devices, backend, made[0].dtype, made[0].hardware)
    over = "NCCL" if backend == "nccl" else "Gloo"
    hardware = f"{over} between all: " + "; ".join(f"{host}: {hardware}" for host, hardware in words)
    return Choice(devices, backend, made[0].dtype, hardware)


def described_hosts(hosts: Sequence[Host], places: Sequence[Place]) -> dict[str, str]:
    """What a trace says of the hosts, and of how far their clocks can be compared."""
    versions = dict.fromkeys(f"Python {p.machine.python}, torch {p.machine.torch}" for p in places)
    said = {"hosts": "; ".join(host.told for host in hosts), "versions": "; ".join(versions)}
    if len(hosts) == 1:
        return said
    wrong_ms = math.ceil(most_wrong([host.error for host in hosts]) / 1e3) / 1e3  # never less than it is
    clock = (
        f"{len(hosts)} hosts, each with its monotonic clock; offsets estimated by ping-pong before and after "
        f"the run, at most {wrong_ms:g} ms wrong between two hosts"
    )
    return said | {"clock": clock}
