"""The independent reference: torch's cross-entropy and autograd, in float64, on tokens and labels.

Nothing here knows a rank, a micro-batch or a collective: it is one device that sees some sequences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as functional

from dpsim.scenario import Model

torch.set_num_threads(1)  # these tensors are tiny


def loss_sum(
    model: Model, parameters: torch.Tensor, tokens: Sequence[object], labels: Sequence[object]
) -> torch.Tensor:
    """The loss summed over valid tokens; labels of -100 are torch's to ignore."""
    x = torch.tensor(np.concatenate([np.asarray(t) for t in tokens]), dtype=torch.int64)
    y = torch.tensor(np.concatenate([np.asarray(t) for t in labels]), dtype=torch.int64)
    if model.kind == "bigram":
        v, d = model.vocabulary, model.width
        embedding, out, bias = torch.split(parameters, [v * d, d * v, v])
        logits = functional.embedding(x, embedding.view(v, d)) @ out.view(d, v) + bias
    else:
        logits = torch.outer(x.to(torch.float64), parameters)
    return functional.cross_entropy(logits, y, ignore_index=-100, reduction="sum")


def sums(
    model: Model, start: Sequence[float], tokens: Sequence[object], labels: Sequence[object]
) -> tuple[float, np.ndarray]:
    """Loss sum and gradient sum over the valid tokens of these sequences."""
    parameters = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    if not len(tokens):
        return 0.0, np.zeros(len(start))
    loss = loss_sum(model, parameters, tokens, labels)
    (gradient,) = torch.autograd.grad(loss, parameters)
    return loss.item(), gradient.numpy()


def valid(labels: Sequence[object]) -> int:
    """How many labels count."""
    return sum(int((np.asarray(y) != -100).sum()) for y in labels)
