"""Where a step's results come from: its new parameters, the ways of reducing side by side, and what one
valid token weighs under each of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dpsim.batch import GlobalBatch
from dpsim.comparison import Comparison, Outcome
from dpsim.contrast import contrast
from dpsim.mishaps import counted
from dpsim.optimizer import State, clip, clip_factor, initial_state, norms
from dpsim.optimizer import step as optimizer_step
from dpsim.origins import FEW, SOME, Origin
from dpsim.reduction import AS_EXCHANGED, NAMES, norm, reduction
from dpsim.replicas import differ, exchanges_otherwise
from dpsim.trace import Floats, Trace
from dpsim.wording import MINUS, added, bracketed, number, signed

Lines = tuple[tuple[str, str], ...]

MASKED_TOKEN = Origin(
    "A masked token",
    "Its label is −100, for padding or because it is not to be learned: it is in no loss sum, in no gradient "
    "sum and in no count. So it has no weight under any reduction; it only costs time.",
)


class Derivations:
    """What follows from the gradients of `trace` on a rank, beside every other way of reducing them."""

    def __init__(self, trace: Trace, batch: GlobalBatch, ways: Comparison, rank: int = 0) -> None:
        self.trace, self.scenario, self.ways, self.rank = trace, trace.scenario, ways, rank
        self.size, self.micro = trace.scenario.world_size, trace.scenario.micro_batches
        valid = trace.valid_tokens[0]
        self.valid, self.total = valid, int(valid.sum())
        self.undealt = batch.valid_total  # less than the total where a sampler repeats sequences
        self.table = reduction(self.scenario.reduction, valid, self.micro)

    # -- parameters --------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> list[State]:
        """The optimizer's state before each step and after the last, taken along the trace's gradients."""
        states = [initial_state(self.trace.parameters[0, self.rank])]
        for t in range(self.trace.steps):
            used = self.used(t)
            if used is None:
                states.append(states[-1])
                continue
            held = self.trace.parameters[t, self.rank]
            states.append(optimizer_step(self.scenario.optimizer, held, used, states[-1])[1])
        return states

    def used(self, step: int) -> Floats | None:
        """The gradient that the optimizer is given: the step's, clipped where clipping comes after."""
        gradient, chosen = self.trace.gradient(step, self.rank), self.scenario.optimizer
        return (
            None if gradient is None else clip(gradient, chosen.clip_norm if chosen.clip == "after" else None)
        )

    def started(self, i: int) -> Origin:
        """A parameter before the first step."""
        value = number(float(self.trace.parameters[0, 0, i]))
        chosen = self.scenario.model.parameters is not None
        says = "Chosen in the scenario" if chosen else f"Drawn from the seed {self.scenario.seed}"
        says += ": every replica starts from the same." if self.size > 1 else "."
        return Origin(f"Parameter θ{i} at the start", says, ((f"θ{i}", value),), (), "start")

    def updated(self, step: int, i: int, sums: Origin | None) -> Origin:
        """A parameter after a step; `sums` is the finished chunk that its gradient stood in."""
        beat = f"s{step}.optimizer" if step else "optimizer"
        title = f"Parameter θ{i} after step {step + 1}"
        used, gradient = self.used(step), self.trace.gradient(step, self.rank)
        if used is None or gradient is None:
            says = f"Kept as it was: the optimizer step is skipped, since {self.trace.undefined[step]}."
            line = (f"θ{i}", number(float(self.trace.parameters[step, self.rank, i])))
            return Origin(title, says, (line,), (), beat)
        says = "The optimizer's step, from a gradient that every rank is in."
        if self.size > 1:
            says = (
                f"All {self.size} ranks take this step with the same gradient, so their replicas stay equal."
            )
        counts = (1,) * self.size
        if exchanges_otherwise(self.scenario):
            counts = sums.counts if sums else ()
            if odd := counted(np.array(counts)):
                says = f"The optimizer's step on rank {self.rank}, from a gradient that {odd}."
            if differ(self.trace.parameters[step + 1]):
                title += f" on rank {self.rank}"
                says += " The replicas are no longer equal."
        lines = (*self._gradient(gradient, i), *self._clipping(gradient, used, i), *self._step(step, used, i))
        return Origin(title, says, lines, counts, beat, (sums,) if sums else ())

    def _gradient(self, gradient: Floats, i: int) -> Lines:
        value = float(gradient[i])
        if self.table.name == "custom":
            return ((f"gradient g{i}, the sum of w × S", number(value)),)
        name, by = ("N", self.total) if self.table.name == "token_weighted" else ("R", self.size)
        return (
            (f"gradient g{i} = sum / {name}", f"{number(value / self.table.after)} / {by} = {number(value)}"),
        )

    def _clipping(self, gradient: Floats, used: Floats, i: int) -> Lines:
        chosen = self.scenario.optimizer
        if chosen.clip_norm is None or chosen.clip == "before":
            return ()
        length, limit = float(norms(gradient)), chosen.clip_norm
        if float(clip_factor(np.array(length), limit)) == 1.0:
            return (("not clipped", f"|g| = {number(length)}, not above {number(limit)}"),)
        cut = f"{number(float(gradient[i]))} × {number(limit)} / {number(length)} = {number(float(used[i]))}"
        return ((f"clipped: g{i} × limit / |g|", cut),)

    def _step(self, step: int, used: Floats, i: int) -> Lines:
        chosen, before, after = self.scenario.optimizer, self.states[step], self.states[step + 1]
        held, new = (number(float(self.trace.parameters[t, self.rank, i])) for t in (step, step + 1))
        rate, g = number(chosen.learning_rate), float(used[i])
        if chosen.kind == "sgd":
            return ((f"θ{i} − rate × g{i}", f"{held} − {rate} × {bracketed(g)} = {new}"),)
        m0, m1 = float(before.first[i]), float(after.first[i])
        if chosen.kind == "momentum":
            moment = f"{number(chosen.momentum)} × {bracketed(m0)} {signed(g)} = {number(m1)}"
            move = f"{held} − {rate} × {bracketed(m1)} = {new}"
            return (("velocity v, momentum × v + g", moment), (f"θ{i} − rate × v", move))
        v0, v1 = float(before.second[i]), float(after.second[i])
        b1, b2, n = chosen.beta1, chosen.beta2, after.taken
        first, second = m1 / (1 - b1**n), v1 / (1 - b2**n)
        rest1, rest2 = number(1 - b1), number(1 - b2)
        root = f"(√{number(second)} + {number(chosen.epsilon)})"
        return (
            ("first moment m", f"{number(b1)} × {bracketed(m0)} + {rest1} × {bracketed(g)} = {number(m1)}"),
            ("second moment v", f"{number(b2)} × {number(v0)} + {rest2} × {bracketed(g)}² = {number(v1)}"),
            ("m corrected", f"{number(m1)} / (1 − {number(b1)}^{n}) = {number(first)}"),
            ("v corrected", f"{number(v1)} / (1 − {number(b2)}^{n}) = {number(second)}"),
            (
                f"θ{i} − rate × m / (√v + ε)",
                f"{held} − {rate} × {bracketed(first)} / {root} = {new}",
            ),
        )

    # -- ways of reducing --------------------------------------------------------------------------------

    def compared(self, step: int) -> tuple[Origin, ...]:
        """The rows of `contrast`, worked out."""
        beat = f"s{step}.optimizer" if step else "optimizer"
        names = {NAMES[name]: name for name in self.ways.schemes}
        told = []
        for row in contrast(self.trace, step, self.ways):
            scheme = names.get(row.name, "")
            outcome = self.ways.schemes[scheme] if scheme else self.ways.one_device
            gradient, reference = outcome.gradient[step], self.ways.one_device.gradient[step]
            if gradient is None or reference is None:
                told.append(Origin(row.name, f"Undefined: {outcome.undefined}.", (), (), beat))
                continue
            lines = self._by_hand(step, scheme, gradient)
            if not scheme:
                says = (
                    f"One pass over the {self.total} valid tokens of the batch, by one device: the reference."
                )
                if self.total != self.undealt:
                    says = (
                        f"One pass over the batch before dealing, {self.undealt} valid tokens: the reference."
                    )
                told.append(Origin(row.name, says, lines, (), beat))
                continue
            says = (
                "The gradient of this run." if row.ours else "The same gradient sums, reduced in another way."
            )
            if step:
                says += (
                    " Every way follows its own parameters from the start, so its sums may be others by now."
                )
            told.append(Origin(row.name, says, (*lines, *_errors(outcome, step, reference)), (), beat))
        return tuple(told)

    def _by_hand(self, step: int, scheme: str, gradient: Floats) -> Lines:
        """The gradient's first elements from the ranks' sums, where those are this way's own."""
        chosen = self.scenario.optimizer
        clipped = chosen.clip == "before" and chosen.clip_norm is not None and scheme != ""
        own = step == 0 or scheme == self.ways.chosen
        if scheme == AS_EXCHANGED:
            return (("first element", number(float(gradient[0]))),)
        if clipped:
            return (("first element: each rank's share is clipped before", number(float(gradient[0]))),)
        if not own or self.size > SOME or (not scheme and self.total != self.undealt):
            return (("first element", number(float(gradient[0]))),)
        sums = self.trace.gradient_sums[step]
        shown = range(min(len(gradient), 4 if self.size <= FEW else 1))
        name = scheme or "token_weighted"
        return tuple(
            (f"g{e} = {FORMULAS[name]}", f"{self._terms(name, sums[:, :, e])} = {number(float(gradient[e]))}")
            for e in shown
        )

    def _terms(self, scheme: str, sums: Floats) -> str:
        per_rank = sums.sum(axis=1)
        if scheme in ("token_weighted", "sum_over_world_size", "token_weighted_not_compensated"):
            by = {
                "token_weighted": f"{self.total}",
                "sum_over_world_size": f"{self.size}",
                "token_weighted_not_compensated": f"({self.size} × {self.total})",
            }
            return f"({added(per_rank.tolist())}) / {by[scheme]}"
        if scheme == "mean_of_rank_means":
            counts = self.valid.sum(axis=1)
            terms = [f"{number(float(v))}/{n}" for v, n in zip(per_rank, counts, strict=True)]
            return f"({_chain(terms)}) / {self.size}"
        cells = [(r, k) for r in range(self.size) for k in range(self.micro[r])]
        if scheme == "custom":
            return _chain(
                [f"{number(float(self.table.weights[c]))} × {bracketed(float(sums[c]))}" for c in cells]
            )
        several = [f"{self.micro[r]} × " if self.micro[r] > 1 else "" for r, _ in cells]
        terms = [
            f"{number(float(sums[c]))}/({m}{self.valid[c]})"
            if m
            else f"{number(float(sums[c]))}/{self.valid[c]}"
            for c, m in zip(cells, several, strict=True)
        ]
        return f"({_chain(terms)}) / {self.size}"

    # -- tokens ------------------------------------------------------------------------------------------

    def token(self, rank: int, k: int) -> Origin:
        """What one valid token of a micro-batch weighs under every reduction."""
        where = f" in micro-batch {k + 1} of {self.micro[rank]}" if self.micro[rank] > 1 else ""
        says = (
            f"On rank {rank}{where}. How much it counts in this step against the right 1/N, under each way "
            "of reducing: w × N. 1 is right, 2 counts double, 0.5 half."
        )
        lines = tuple(self._weight(name, rank, k) for name in self._formulas)
        return Origin("A valid token", says, lines, self._one(rank), "scatter")

    def tokens(self, rank: int) -> Origin:
        """The same for all valid tokens of a rank: a number a micro-batch."""
        cells = range(self.micro[rank])
        written = [
            [self._weight(name, rank, k)[1].rpartition("= ")[2] for k in cells] for name in self._formulas
        ]
        names = [self._weight(name, rank, 0)[0] for name in self._formulas]
        lines = tuple(
            (name, values[0] if len(set(values)) == 1 else ", ".join(values))
            for name, values in zip(names, written, strict=True)
        )
        says = (
            f"On rank {rank}, micro-batch by micro-batch: w × N, the weight of a token against the right 1/N."
        )
        return Origin(f"The valid tokens of rank {rank}", says, tuple(lines), self._one(rank), "scatter")

    @property
    def _formulas(self) -> list[str]:
        return [name for name in self.ways.schemes if name != AS_EXCHANGED]

    def _one(self, rank: int) -> tuple[int, ...]:
        return tuple(int(r == rank) for r in range(self.size))

    def _weight(self, scheme: str, rank: int, k: int) -> tuple[str, str]:
        outcome = self.ways.schemes[scheme]
        name = NAMES[scheme] + (" (this run)" if scheme == self.ways.chosen else "")
        if outcome.token_weight is None:
            return name, f"undefined: {outcome.undefined}"
        n, whole, micro = int(self.valid[rank, k]), self.total, self.micro[rank]
        own = int(self.valid[rank].sum())
        by = {
            "token_weighted": f"1/{whole}",
            "mean_of_rank_means": f"1/({self.size} × {own})",
            "mean_of_micro_batch_means": f"1/({self.size} × {micro} × {n})"
            if micro > 1
            else f"1/({self.size} × {n})",
            "token_weighted_not_compensated": f"1/({self.size} × {whole})",
            "sum_over_world_size": f"1/{self.size}",
            "custom": number(float(self.table.weights[rank, k])),
        }[scheme]
        return name, f"{by} × {whole} = {number(float(outcome.token_weight[rank, k]))}"


EQUAL = 1e-12  # an error below is float64's rounding, as in `contrast`

FORMULAS = {
    "token_weighted": "Σ S / N",
    "mean_of_rank_means": "Σ (S/n) / R",
    "mean_of_micro_batch_means": "Σ S/(K n) / R",
    "token_weighted_not_compensated": "Σ S / (R N)",
    "sum_over_world_size": "Σ S / R",
    "custom": "Σ w S",
}


def _chain(terms: Sequence[str]) -> str:
    """Written terms as a sum: "3/7 + 5/2 − 2/5"."""
    return " + ".join(terms).replace(f"+ {MINUS}", f"{MINUS} ")


def _errors(outcome: Outcome, step: int, reference: Floats) -> Lines:
    """The error and the cosine against one device, with the lengths they are made of."""
    gradient, error, cosine = outcome.gradient[step], outcome.relative_l2_error[step], outcome.cosine[step]
    assert gradient is not None
    gap, size, own = (norm(v) for v in (gradient - reference, reference, gradient))
    lines = []
    if error is None:
        lines.append(("relative L2 error", "none: the reference is zero"))
    elif error < EQUAL:
        lines.append(("relative L2 error", "0 to within rounding: the two are equal"))
    else:
        how = f"{number(gap)} / {number(size)} = {number(error)}"
        lines.append(("relative L2 error = |g − reference| / |reference|", how))
    if cosine is None:
        lines.append(("cosine", "none: one of the two is zero"))
    else:
        dot = number(float(gradient @ reference))
        lines.append(
            (
                "cosine = g · reference / (|g| |reference|)",
                f"{dot} / ({number(own)} × {number(size)}) = {number(cosine)}",
            )
        )
    return tuple(lines)
