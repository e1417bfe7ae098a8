"""What this machine has, and what a live run makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsim.checks import InputError
from dpsim.live.errors import LiveError


@dataclass(frozen=True)
class Machine:
    """What a rank's process finds: versions, cores, the names of the GPUs that torch can use, backends."""

    python: str
    torch: str
    machine: str
    cores: int
    cuda: tuple[str, ...]
    gloo: bool
    nccl: bool

    @classmethod
    def of(cls, ready: Mapping[str, Any]) -> Machine:
        """The machine in a process' first line."""
        values = {name: ready[name] for name in cls.__dataclass_fields__}
        return cls(**values | {"cuda": tuple(values["cuda"])})

    @property
    def gpus(self) -> str:
        """The GPUs by number and name."""
        names = sorted(set(self.cuda))
        return ", ".join(f"{self.cuda.count(name)} {name}" for name in names)


@dataclass(frozen=True)
class Choice:
    """The device of every rank, the backend, the dtype, and in words what was chosen and why."""

    devices: tuple[str, ...]
    backend: str
    dtype: str
    hardware: str


def choose(machine: Machine, wanted: str, dtype: str | None, ranks: int) -> Choice:
    """Where `ranks` ranks run. `wanted` is auto, cpu or cuda; InputError where cuda is not to be had."""
    if not machine.gloo:
        raise LiveError("this torch has no Gloo, which the ranks talk over: install another build of torch")
    host = f"{ranks} CPU {'process' if ranks == 1 else 'processes'} on {machine.cores} cores, Gloo"
    if wanted == "cuda" and not machine.cuda:
        raise InputError("devices", "must be auto or cpu where torch finds no GPU", wanted)
    if wanted == "cpu" or not machine.cuda:
        why = "CPU, as wanted" if machine.cuda else "no GPU"
        return Choice(("cpu",) * ranks, "gloo", dtype or "float64", f"{why}: {host}")
    if machine.nccl and len(machine.cuda) >= ranks:
        devices = tuple(f"cuda:{r}" for r in range(ranks))
        return Choice(devices, "nccl", dtype or "float32", f"{machine.gpus}, a rank on each of {ranks}, NCCL")
    devices = tuple(f"cuda:{r % len(machine.cuda)}" for r in range(ranks))
    shared = "ranks share it" if len(machine.cuda) == 1 else "ranks share them"
    if len(machine.cuda) >= ranks:
        shared = "this torch has no NCCL"
    why = (
        f"{machine.gpus}: {shared}, Gloo, staged through host memory, so communication times are not those "
        f"of a cluster"
    )
    return Choice(devices, "gloo", dtype or "float32", why)
