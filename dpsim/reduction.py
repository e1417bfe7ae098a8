"""Reductions as tables of weights, right and wrong, and how far each is from the reference.

A reduction is a table w[r][k]; the gradient is the sum of w[r][k] S[r][k]. Each table is a factor before
the all-reduce, on the rank, times a factor after it, the same for all: that is where frameworks put them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.scenario import SCHEMES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Schemes whose factors hold N, the valid tokens of all ranks: their count is all-reduced too.
NEEDS_COUNT = ("token_weighted", "token_weighted_not_compensated")

AS_EXCHANGED = "as_exchanged"  # what a run comes to whose exchange goes wrong: in no formula
ONE_DEVICE = "one_device"  # what every reduction is held against: the whole batch on one device

NAMES = {
    "token_weighted": "token-weighted mean",
    "mean_of_rank_means": "naive mean of rank means",
    "mean_of_micro_batch_means": "mean of micro-batch means",
    "token_weighted_not_compensated": "token-weighted, average not compensated",
    "sum_over_world_size": "raw sums over world size",
    "custom": "own table of weights",
    AS_EXCHANGED: "as it was exchanged",
}


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction on given counts. `before` [R, K] is 0 where a rank has nothing that could travel;
    `undefined` says why there is no result, and is None where there is one."""

    name: str
    before: Floats
    after: float
    undefined: str | None = None

    @property
    def weights(self) -> Floats:
        """The table w [R, K]."""
        return self.before * self.after

    def combine(self, sums: Floats) -> Floats:
        """The weighted sum of `sums` [R, K, ...] over ranks and micro-batches."""
        return np.tensordot(self.weights, sums, axes=([0, 1], [0, 1]))


def _reciprocal(values: Floats) -> Floats:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)


def reduction(
    scheme: str | tuple[tuple[float, ...], ...],
    valid_tokens: Ints,
    micro_batches: tuple[int, ...] | None = None,
) -> Reduction:
    """The table of `scheme` (a name or a table w) for counts [R, K].

    `micro_batches` says how many of the K columns each rank really has; absent, all of them.
    """
    ranks, columns = valid_tokens.shape
    per_rank = micro_batches or (columns,) * ranks
    real = (np.arange(columns)[None, :] < np.array(per_rank)[:, None]).astype(np.float64)
    n = valid_tokens.astype(np.float64)
    total = float(n.sum())
    if not isinstance(scheme, str):
        table = np.zeros((ranks, columns))
        for r, row in enumerate(scheme):
            table[r, : len(row)] = row
        return Reduction("custom", table, 1.0)
    if scheme == "sum_over_world_size":
        return Reduction(scheme, real, 1.0 / ranks)
    if total == 0 and scheme in NEEDS_COUNT:
        return Reduction(scheme, real, 1.0, "no rank has a valid token: N = 0")
    if scheme == "token_weighted":
        return Reduction(scheme, real, 1.0 / total)
    if scheme == "token_weighted_not_compensated":
        return Reduction(scheme, real / total, 1.0 / ranks)
    if scheme == "mean_of_rank_means":
        own = n.sum(axis=1, keepdims=True)
        empty = [f"rank {r} has no valid token" for r in np.flatnonzero(own[:, 0] == 0)]
        return Reduction(scheme, real * _reciprocal(own), 1.0 / ranks, _listed(empty))
    if scheme != "mean_of_micro_batch_means":
        raise ValueError(f"reduction: must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    k = np.array(per_rank, np.float64)[:, None]
    empty = [
        f"micro-batch {c} of rank {r} has no valid token"
        for r, c in np.argwhere((real == 1) & (valid_tokens == 0))
    ]
    return Reduction(scheme, real * _reciprocal(n) / k, 1.0 / ranks, _listed(empty))


def _listed(reasons: list[str]) -> str | None:
    if not reasons:
        return None
    rest = len(reasons) - 4
    return "; ".join(reasons[:4]) + (f"; and {rest} more" if rest > 0 else "")


def token_weight(table: Reduction, valid_tokens: Ints) -> Floats | None:
    """w N: the factor by which one valid token counts on each rank and micro-batch, 1 being right."""
    total = int(valid_tokens.sum())
    return None if table.undefined or total == 0 else table.weights * total


def norm(vector: Floats) -> float:
    """The L2 norm, scaled first so that small numbers do not vanish when squared."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


def relative_l2_error(value: Floats, reference: Floats) -> float | None:
    """|value - reference| / |reference|; None where that is no finite number, as against a zero reference."""
    size, gap = norm(reference), norm(value - reference)
    if size == 0:
        return 0.0 if gap == 0 else None
    return gap / size if size > gap * 1e-300 else None


def cosine(value: Floats, reference: Floats) -> float | None:
    """The cosine of the angle between two vectors; None where one of them is zero."""
    a, b = norm(value), norm(reference)
    if a == 0 or b == 0:
        return None
    return float(np.clip(np.dot(value.ravel() / a, reference.ravel() / b), -1.0, 1.0))
