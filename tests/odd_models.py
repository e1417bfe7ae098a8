"""A rank of DistributedDataParallel on a model with a tied, a frozen and an unused parameter.

Run as a program with its rank, the world size and a folder to meet in; prints its gradients
and one device's as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from dpsim.live.ddp import Watch
from dpsim.live.recorder import Clock, Recorder
from dpsim.trace import ALL_REDUCE, KINDS

TOKENS = [[0, 1, 2, 3], [2, 2, 1, 0]]
LABELS = [[1, 2, -100, 0], [-100, -100, -100, -100]]  # the second rank has no valid token
VALID = 3


class Odd(nn.Module):
    """logits = E[x] Eᵀ + b, with b frozen, and a parameter that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.E = nn.Parameter(torch.arange(12.0, dtype=torch.float64).reshape(4, 3).sin())
        self.out = nn.Linear(3, 4, dtype=torch.float64)
        self.out.weight = self.E  # tied
        nn.init.ones_(self.out.bias).requires_grad_(False)  # frozen
        self.unused = nn.Parameter(torch.ones(5, dtype=torch.float64))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(self.out(self.E[x]), y, ignore_index=-100, reduction="sum")


def gradients(module: nn.Module) -> dict[str, list[float] | None]:
    """The gradient of every parameter, flat; None where there is none."""
    grads = {name: p.grad for name, p in module.named_parameters()}
    return {name: None if grad is None else grad.flatten().tolist() for name, grad in grads.items()}


def main(rank: int, size: int, folder: Path) -> None:
    store = dist.FileStore(str(folder / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    module, recorder = Odd(), Recorder(Clock(torch.device("cpu")))
    if rank > 0:
        torch.nn.init.normal_(module.E)  # the broadcast has to matter
    recorder.on = True
    ddp = DistributedDataParallel(module, find_unused_parameters=True)
    watch = Watch(module, recorder, lambda _: None)
    ddp.register_comm_hook(None, watch.hook)
    loss = ddp(torch.tensor(TOKENS[rank]), torch.tensor(LABELS[rank]))
    (loss * size / VALID).backward()  # the average over R ranks makes it Σ S / N
    travelled = recorder.columns(rank)["kind"]
    assert {KINDS[kind] for kind in travelled} == {KINDS[ALL_REDUCE]}
    whole = Odd()
    (whole(torch.tensor(TOKENS).flatten(), torch.tensor(LABELS).flatten()) / VALID).backward()
    said = {"gradients": gradients(module), "alone": gradients(whole), "buckets": list(watch.seen.values())}
    print(json.dumps(said))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
