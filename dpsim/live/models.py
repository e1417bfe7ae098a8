"""The tiny models as torch modules: each gives the loss summed over valid tokens, autograd does the rest."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from dpsim.batch import GlobalBatch
from dpsim.model import tensors
from dpsim.parts import MASKED, Model
from dpsim.scenario import Scenario

Inputs = tuple[torch.Tensor, ...]


def _free(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).normal_(0.0, 0.5))


class Bigram(nn.Module):
    """logits = E[x] W + b."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.E = _free(model.vocabulary, model.width)
        self.W = _free(model.width, model.vocabulary)
        self.b = _free(model.vocabulary)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = self.E[x] @ self.W + self.b
        return cross_entropy(logits, y, ignore_index=MASKED, reduction="sum")


class Scalar(nn.Module):
    """logits = x w, for a number x."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.w = _free(model.vocabulary)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(torch.outer(x, self.w), y, ignore_index=MASKED, reduction="sum")


class Given(nn.Module):
    """The loss theta . g, whose gradient is the g that was given."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.theta = _free(model.size)

    def forward(self, g: torch.Tensor) -> torch.Tensor:
        return torch.dot(self.theta, g)


KINDS: dict[str, type[nn.Module]] = {"bigram": Bigram, "scalar": Scalar, "given": Given}


def module(model: Model, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """The model with parameters drawn from torch's generator, in the order of `dpsim.model.tensors`."""
    made = KINDS[model.kind](model).to(device, dtype)
    if [(n, p.numel()) for n, p in made.named_parameters()] != list(tensors(model)):
        raise ValueError(f"the parameters of {model.kind} must be {tensors(model)}")
    return made


def inputs(scenario: Scenario, batch: GlobalBatch, rank: int, micro_batch: int, like: torch.Tensor) -> Inputs:
    """What the model is given of one micro-batch of one rank, on the device and in the dtype of `like`."""
    if scenario.model.gradient_sums is not None:
        given = scenario.model.gradient_sums[rank][micro_batch]
        return (torch.tensor(given, dtype=like.dtype, device=like.device),)
    cell = batch.assignment[rank][micro_batch]
    x, y = (
        torch.from_numpy(np.concatenate([rows[i] for i in cell] or [np.zeros(0, np.int64)]))
        for rows in (batch.tokens, batch.labels)
    )
    if scenario.model.kind == "scalar":
        x = x.to(like.dtype)
    return x.to(like.device), y.to(like.device)


def flat(parts: list[torch.Tensor]) -> torch.Tensor:
    """Tensors as one vector, a copy."""
    return torch.cat([part.detach().reshape(-1) for part in parts])
