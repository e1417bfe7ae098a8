"""DistributedDataParallel in two processes: each has its part of a batch, and gradients travel in buckets.

Run it: ``python ddp_torch.py``. It needs torch, starts its two processes itself and checks itself.
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS, STEPS = 2, 3


def new_model() -> nn.Sequential:
    """The same start on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The global batch of a step: 16 examples."""
    draw = torch.Generator().manual_seed(100 + step)
    return torch.randn(16, 8, generator=draw), torch.randint(4, (16,), generator=draw)


# region: train
def train(rank: int) -> nn.Module:
    """This rank's replica after some steps."""
    model = DistributedDataParallel(new_model(), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        inputs, labels = batch(step)
        mine = slice(rank, None, RANKS)  # no two ranks see the same example
        loss = nn.functional.cross_entropy(model(inputs[mine]), labels[mine])
        optimizer.zero_grad()
        loss.backward()  # full buckets leave while earlier layers are computed
        optimizer.step()  # by now all buckets are back, averaged
    return model.module


# endregion


def alone() -> nn.Module:
    """The same steps on one device, with the whole batch."""
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return model


def main(rank: int, meeting_place: str) -> None:
    """One process: join the others, train, compare with them and with one device."""
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=RANKS)
    held = nn.utils.parameters_to_vector(train(rank).parameters()).detach()
    everyone = [torch.empty_like(held) for _ in range(RANKS)]
    dist.all_gather(everyone, held)
    assert all(torch.equal(held, other) for other in everyone)  # the replicas: bit for bit
    reference = nn.utils.parameters_to_vector(alone().parameters()).detach()
    assert torch.allclose(held, reference, atol=1e-6)  # and one device, up to rounding
    if rank == 0:
        print("replicas equal, and equal to one device on the whole batch", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(str(Path(folder) / "meeting"),), nprocs=RANKS)
