"""Accumulation in two real processes with DistributedDataParallel: all passes synchronised, or only the last.

Run it: ``python accumulation_torch.py``. It needs torch, starts its two processes itself and checks itself.
"""

import tempfile
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

RANKS, PASSES = 2, 3


# region: window
def window(model: DistributedDataParallel, batches: list[torch.Tensor], total: int, quiet: bool) -> None:
    """Forward and backward of a whole window; `total` counts what is valid in it, on all ranks."""
    for k, batch in enumerate(batches):
        last = k == len(batches) - 1
        with model.no_sync() if quiet and not last else nullcontext():
            loss = model(batch).sum() * RANKS / total  # DDP divides by RANKS again
            loss.backward()


# endregion


def gradient(rank: int, quiet: bool) -> tuple[list[float], int]:
    """The gradient after one window, and how many all-reduces it took."""
    network = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    model = DistributedDataParallel(network)
    sent: list[int] = []

    def counted(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        sent.append(bucket.index())
        summed = dist.all_reduce(bucket.buffer().div_(RANKS), async_op=True).get_future()
        return summed.then(lambda done: done.value()[0])

    model.register_comm_hook(None, counted)
    rows = [[[1.0, 2.0], [0.0, 1.0]], [[3.0, 0.0]], [[2.0, 2.0], [1.0, 1.0], [4.0, 5.0]]]
    batches = [torch.tensor(row, dtype=torch.float64) * (rank + 1) for row in rows]
    window(model, batches, RANKS * sum(map(len, batches)), quiet)
    assert network.weight.grad is not None
    return network.weight.grad.flatten().tolist(), len(sent)


def main(rank: int, meeting_place: str) -> None:
    """One process: both ways, compared with each other and with the sum over all rows."""
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=RANKS)
    (loud, often), (quiet, once) = gradient(rank, quiet=False), gradient(rank, quiet=True)
    assert (often, once) == (PASSES, 1)
    assert torch.allclose(torch.tensor(loud), torch.tensor(quiet))
    assert torch.allclose(torch.tensor(quiet), torch.tensor([33.0 / 12, 33.0 / 12]))
    if rank == 0:
        print(f"every pass synchronised: {often} all-reduces, the last alone: {once}, the same gradient")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(str(Path(folder) / "meeting"),), nprocs=RANKS)
