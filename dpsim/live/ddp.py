"""DistributedDataParallel around a replica: its own buckets and overlap, seen through a hook.

Annotations are evaluated here, unlike elsewhere: torch compares those of a hook with its own types.
"""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from dpsim.checks import InputError
from dpsim.live.exchange import whole
from dpsim.live.recorder import Recorder, Where
from dpsim.scenario import Scenario
from dpsim.timeline import buckets

MIB = 2**20


def wrap(module: nn.Module, scenario: Scenario, *, broadcast: bool) -> DistributedDataParallel:
    """`module` with the scenario's buckets; where `broadcast`, every rank takes rank 0's parameters.

    The scenario's cap is in the bytes that an element stands for; here an element has its real size.
    """
    cap, parameter = scenario.buckets.cap_bytes, next(module.parameters())
    if cap is not None:
        cap = math.ceil(cap / scenario.bytes_per_element * parameter.element_size()) / MIB
    devices = [parameter.device.index] if parameter.device.type == "cuda" else None
    return DistributedDataParallel(module, device_ids=devices, bucket_cap_mb=cap, init_sync=broadcast)


class Watch:
    """A communication hook that averages as torch's own does, and records when every bucket travels.

    `ready` hears of a bucket when it is full; `where` says which synchronisation it belongs to.
    """

    def __init__(self, module: nn.Module, recorder: Recorder, ready: Callable[[int], None]) -> None:
        self._names = {parameter: name for name, parameter in module.named_parameters()}
        self._recorder, self._ready = recorder, ready
        self.where = Where(-1, -1, -1)
        self.seen: dict[int, tuple[str, ...]] = {}

    def hook(
        self,
        _: object,
        bucket: dist.GradBucket,  # type: ignore[name-defined] # DDP insists on it, torch's types lack it
    ) -> torch.futures.Future[torch.Tensor]:
        """What DistributedDataParallel calls with a full bucket."""
        number, where = bucket.index(), self.where
        self.seen[number] = tuple(
            name for p, name in self._names.items() if any(p is q for q in bucket.parameters())
        )
        self._ready(number)
        vector = bucket.buffer().div_(dist.get_world_size())
        return whole(self._recorder, vector, Where(where.step, where.micro_batch, number))

    def check(self, scenario: Scenario) -> None:
        """InputError where torch has made other buckets than the trace will speak of."""
        expected = {b: bucket.names for b, bucket in enumerate(buckets(scenario, 1))}
        if self.seen != expected:
            rule = (
                f"must be given in mode ddp, so that torch makes {len(expected)} buckets of these tensors; "
                f"by its default it made {len(self.seen)}"
            )
            raise InputError("buckets.cap_bytes", rule, scenario.buckets.cap_bytes)
