"""One rank's replica: the model, its parameters as one vector, its forward and backward passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from dpsim.batch import GlobalBatch
from dpsim.live.job import Job
from dpsim.live.models import Inputs, flat, inputs, module
from dpsim.model import initial_parameters
from dpsim.optimizer import RUNAWAY
from dpsim.parts import Optimizer
from dpsim.scenario import MASKED

Gradients = tuple[torch.Tensor, ...]


class Replica:
    """The model on one rank. Every rank draws its own start, and only rank 0's is the scenario's."""

    def __init__(self, job: Job, rank: int) -> None:
        scenario = job.scenario
        self.device = torch.device(job.devices[rank])
        # Gloo carries what lies in host memory: a device's values are staged through it.
        self.wire = self.device if job.backend == "nccl" else torch.device("cpu")
        self.dtype: torch.dtype = getattr(torch, job.dtype)
        torch.manual_seed(scenario.seed + rank)
        self.module = module(scenario.model, self.dtype, self.device)
        self.parameters: list[nn.Parameter] = list(self.module.parameters())
        stops = accumulate((p.numel() for p in self.parameters), initial=0)
        self.parts = [slice(start, stop) for start, stop in pairwise(stops)]
        if rank == 0:
            self.load(torch.from_numpy(initial_parameters(scenario)))
        self.own_start: list[float] = self.vector().tolist()
        self.repeats = scenario.passes[rank]

    def vector(self) -> torch.Tensor:
        """All parameters [P], a copy."""
        return flat(list(self.parameters))

    def load(self, vector: torch.Tensor) -> None:
        """Take these parameters [P]."""
        with torch.no_grad():
            for parameter, part in zip(self.parameters, self.parts, strict=True):
                parameter.copy_(vector[part].view_as(parameter))

    def take_from_rank_0(self) -> None:
        """Every rank goes on from rank 0's parameters."""
        vector = self.vector().to(self.wire)
        dist.broadcast(vector, 0)
        self.load(vector)

    def inputs(self, job: Job, batch: GlobalBatch, rank: int) -> list[Inputs]:
        """This rank's micro-batches, on its device."""
        micro = job.scenario.micro_batches[rank]
        return [inputs(job.scenario, batch, rank, k, self.parameters[0]) for k in range(micro)]

    def forward(
        self, model: nn.Module, given: Inputs, repeats: int, tick: Callable[[int], None]
    ) -> torch.Tensor:
        """The loss sum by `model`, which may wrap the module, after as many passes as this rank makes."""
        for i in range(repeats - 1):
            self.module(*given)
            tick(i)
        loss: torch.Tensor = model(*given)
        return loss

    def repeat_backward(self, loss: torch.Tensor, repeats: int, tick: Callable[[int], None]) -> None:
        """All but the last of this rank's backward passes: real ones, whose gradients go nowhere."""
        for i in range(repeats - 1):
            self.gradients(loss)
            tick(i)

    def gradients(self, loss: torch.Tensor) -> Gradients:
        """The gradient of `loss`, which can be taken again."""
        return torch.autograd.grad(loss, self.parameters, retain_graph=True)

    def set_gradient(self, vector: torch.Tensor) -> None:
        """Hand `vector` [P] to the optimizer."""
        for parameter, part in zip(self.parameters, self.parts, strict=True):
            parameter.grad = vector[part].view_as(parameter)

    def forget_gradient(self) -> None:
        """Start a new sum of gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def ran_away(self) -> bool:
        """Whether a parameter is beyond what can be computed with."""
        return not bool(torch.all(self.vector().abs() <= min(RUNAWAY, torch.finfo(self.dtype).max)))


def valid_tokens(batch: GlobalBatch, rank: int) -> int:
    """The valid tokens of one rank's part of the batch, counted in its own labels."""
    return sum(int(np.sum(batch.labels[i] != MASKED)) for cell in batch.assignment[rank] for i in cell)


def optimizer(chosen: Optimizer, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The scenario's optimizer, torch's own."""
    if chosen.kind == "adam":
        betas = (chosen.beta1, chosen.beta2)
        return torch.optim.Adam(parameters, chosen.learning_rate, betas, chosen.epsilon)
    momentum = chosen.momentum if chosen.kind == "momentum" else 0.0
    return torch.optim.SGD(parameters, chosen.learning_rate, momentum)


def clip_factor(vector: torch.Tensor, limit: float) -> float:
    """min(1, limit / norm). torch's clip_grad_norm_ adds 1e-6 to the norm, which would hide a real difference
    from the formula."""
    norm = float(torch.linalg.vector_norm(vector))
    return min(1.0, limit / norm) if norm > 0 else 1.0
