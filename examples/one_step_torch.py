"""The same step as one_step.py with two real processes and torch.distributed, on any machine's CPU.

Run it: ``python one_step_torch.py``. It needs torch, starts its two processes itself and checks itself.
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

GRADIENTS = ([1.0, 3.0], [3.0, 1.0])
RANKS = len(GRADIENTS)


# region: step
def step(rank: int) -> torch.Tensor:
    """This rank's weights after one step."""
    weights = torch.tensor([5.0, 5.0], dtype=torch.float64)
    gradient = torch.tensor(GRADIENTS[rank], dtype=torch.float64)
    dist.all_reduce(gradient, op=dist.ReduceOp.SUM)
    return weights - 0.1 * gradient / RANKS


# endregion


def main(rank: int, meeting_place: str) -> None:
    """One process: join the others, take the step, compare with them."""
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=RANKS)
    weights = step(rank)
    everyone = [torch.empty_like(weights) for _ in range(RANKS)]
    dist.all_gather(everyone, weights)
    assert torch.allclose(weights, torch.tensor([4.8, 4.8], dtype=torch.float64))
    assert all(torch.equal(weights, other) for other in everyone)
    print(f"rank {rank} now holds:", [round(entry, 6) for entry in weights.tolist()], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(str(Path(folder) / "meeting"),), nprocs=RANKS)
