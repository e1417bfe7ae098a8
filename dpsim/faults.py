"""What goes wrong in data-parallel training, to be switched on: eight faults, each an edit of a scenario.

None of them is a field of its own. A wrong divisor and a forgotten factor are reductions, counted padding is
a choice of labels, clipping too early is the optimizer's, uneven batches are micro-batches, and the rest is
how the collective is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpsim.batch import global_batch
from dpsim.checks import InputError, choice
from dpsim.collectives import REDUCE, build, run_values
from dpsim.comparison import Outcome
from dpsim.edited import NOT_AWAITED, TWICE, WITHOUT
from dpsim.edits import changed, with_marks, with_micro_batches, with_sequence_count
from dpsim.mishaps import waits_for_ever, what_a_run_prints
from dpsim.optimizer import clip
from dpsim.reduction import cosine, norm, relative_l2_error
from dpsim.replicas import apart, differ, worst_rank
from dpsim.run_figures import Run, run
from dpsim.scenario import Scenario
from dpsim.trace import RECEIVE, SEND, Floats, Trace
from dpsim.wording import duration, number

EQUAL = 1e-9  # two gradients that lie closer are one


@dataclass(frozen=True)
class Fault:
    """A fault: what it is called, what is done wrong in one sentence, and which part of a scenario it is."""

    name: str
    title: str
    says: str
    part: str


FAULTS = (
    Fault(
        "wrong-divisor",
        "Wrong divisor",
        "The gradient sums are averaged over the ranks, not divided by the number of valid tokens.",
        "reduction",
    ),
    Fault(
        "factor-forgotten",
        "A factor forgotten",
        "Every rank divides by the valid tokens of all ranks, and nobody makes up for the all-reduce that "
        "averages over the ranks once more.",
        "reduction",
    ),
    Fault(
        "padding-counted",
        "Padding counted",
        "No label is masked: padding is learned, and counts like every other token.",
        "batch",
    ),
    Fault(
        "no-barrier",
        "No barrier",
        "The optimizer reads its buffer before the all-reduce is waited for.",
        "collective",
    ),
    Fault(
        "dropped-chunk",
        "A chunk is dropped",
        "One transfer of the all-reduce is left out, and the receiver goes on without it.",
        "collective",
    ),
    Fault(
        "doubled-chunk",
        "A chunk is added twice",
        "One transfer of the all-reduce is made twice, and the receiver adds both.",
        "collective",
    ),
    Fault(
        "uneven-batches",
        "Uneven numbers of batches",
        "One rank has a batch less than the others, which wait for it in an all-reduce that it never enters.",
        "batch.micro_batches",
    ),
    Fault(
        "clipped-before",
        "Clipped before the average",
        "Every rank clips its own gradient before the all-reduce, not the average behind it.",
        "optimizer.clip",
    ),
)
NAMED = {fault.name: fault for fault in FAULTS}


def broken(scenario: Scenario, name: str) -> Scenario:
    """`scenario` with this fault in it; InputError says why it cannot be, or would not be seen."""
    name = choice("fault", name, NAMED)
    if fault_of(scenario) == NAMED[name]:
        raise InputError("fault", "is in this scenario already", name)
    return BREAK[name](scenario)


def fault_of(scenario: Scenario) -> Fault | None:
    """The fault in `scenario`; None where none shows: labels may be meant as they are."""
    exchange, optimizer = scenario.exchange, scenario.optimizer
    clips = optimizer.clip == "before" and optimizer.clip_norm is not None
    several = scenario.world_size > 1
    found = {
        "uneven-batches": scenario.hangs,
        "no-barrier": exchange.edit == NOT_AWAITED,
        "dropped-chunk": exchange.edit == WITHOUT,
        "doubled-chunk": exchange.edit == TWICE,
        "wrong-divisor": scenario.reduction == "sum_over_world_size",
        "factor-forgotten": scenario.reduction == "token_weighted_not_compensated" and several,
        "clipped-before": clips and several,
    }
    return next((NAMED[name] for name, is_in in found.items() if is_in), None)


def mended(scenario: Scenario) -> Scenario:
    """`scenario` without the faults that show in it."""
    if scenario.hangs:
        scenario = with_micro_batches(scenario, max(scenario.micro_batches))
    wrong = ("sum_over_world_size", "token_weighted_not_compensated")
    return replace(
        scenario,
        collective=scenario.algorithm,
        reduction="token_weighted" if scenario.reduction in wrong else scenario.reduction,
        optimizer=replace(scenario.optimizer, clip="after"),
    )


def healthy_of(scenario: Scenario, before: Scenario | None = None) -> tuple[Fault, Scenario] | None:
    """The fault in `scenario` and the scenario without it; None where there is none.

    `before` is what was there earlier: where breaking it gives this scenario, it is what is healthy. That
    also tells padding that was counted from labels that are meant as they are.
    """
    found = fault_of(scenario)
    for fault in (found,) if found else (NAMED["padding-counted"],):
        if before is not None and _breaks_to(before, fault.name, scenario):
            return fault, before
    return (found, mended(scenario)) if found else None


def _breaks_to(before: Scenario, name: str, scenario: Scenario) -> bool:
    try:
        made = broken(before, name)
    except InputError:
        return False
    return replace(made, name=scenario.name, title=scenario.title) == scenario


# -- how each is made ------------------------------------------------------------------------------------


def _wrong_divisor(scenario: Scenario) -> Scenario:
    _has_gradient(scenario)
    made = changed(scenario, "reduction", "sum_over_world_size")
    return _seen(made, scenario, "divides by the same number here")


def _factor_forgotten(scenario: Scenario) -> Scenario:
    _has_several(scenario, "with one rank there is no factor to forget")
    _has_gradient(scenario)
    return changed(scenario, "reduction", "token_weighted_not_compensated")


def _padding_counted(scenario: Scenario) -> Scenario:
    if scenario.model.kind == "given":
        rule = "cannot be: the gradient sums are given, whatever the labels say"
        raise InputError("fault", rule, "padding-counted")
    batch = global_batch(scenario)
    if batch.valid_total == int(batch.lengths.sum()):
        raise InputError("fault", "cannot be: every token counts already", "padding-counted")
    return with_marks(scenario, tuple("1" * n for n in batch.lengths.tolist()))


def _no_barrier(scenario: Scenario) -> Scenario:
    _has_several(scenario, "one rank has nobody to wait for")
    _has_gradient(scenario)
    return replace(scenario, collective=f"{scenario.algorithm}, {NOT_AWAITED}")


def _dropped_chunk(scenario: Scenario) -> Scenario:
    return _with_row(scenario, WITHOUT)


def _doubled_chunk(scenario: Scenario) -> Scenario:
    return _with_row(scenario, TWICE)


def _with_row(scenario: Scenario, edit: str) -> Scenario:
    """The edit at the transfer nearest to the middle of the reducing rounds that carries anything."""
    _has_several(scenario, "one rank sends nothing")
    _has_gradient(scenario)
    size = scenario.world_size
    plain = replace(scenario, collective=scenario.algorithm)
    scaled = run(plain).trace.scaled[0]
    brought = scaled[:, 0] if scenario.buckets.sync_every_micro_batch else scaled.sum(axis=1)
    schedule = build(scenario.algorithm, size, brought.shape[1])
    _, payloads = run_values(schedule, brought)
    columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk)
    carried = {tuple(row): p for row, p in zip(np.stack(columns, axis=1).tolist(), payloads, strict=True)}
    whole = build(scenario.algorithm, size, size)  # with every row that an edit may name
    middle = (whole.rounds // 2 - 1) // 2
    rows = np.flatnonzero(whole.op == REDUCE)
    for row in sorted(rows.tolist(), key=lambda row: (abs(int(whole.round[row]) - middle), row)):
        key = tuple(int(c[row]) for c in (whole.round, whole.source, whole.destination, whole.chunk))
        if np.any(carried.get(key, np.zeros(0))):
            return replace(scenario, collective=f"{scenario.algorithm}, {edit} {row}")
    raise InputError("fault", "would not be seen: all that travels is 0", edit)


def _uneven_batches(scenario: Scenario) -> Scenario:
    """Every rank but the last has at least two batches, and the last one less. Where there are too few
    sequences for that, the batch gets some more: the same ones again."""
    _has_several(scenario, "one rank has nobody to wait for")
    most = max(2, *scenario.micro_batches)
    micro = (*(most for _ in range(scenario.world_size - 1)), most - 1)
    made = with_micro_batches(scenario, micro)
    if made.batch.shard != "contiguous":
        made = changed(made, "batch.shard", "contiguous")
    if made.batch.count < sum(micro):
        made = with_sequence_count(made, sum(micro))
    return changed(made, "buckets.sync_every_micro_batch", True)


def _clipped_before(scenario: Scenario) -> Scenario:
    """To the norm that is chosen; where none is, to one near that of one device's gradient."""
    _has_several(scenario, "one rank's gradient is the average")
    _has_gradient(scenario)
    reference = run(scenario).ways.one_device.gradient[0]
    known = scenario.optimizer.clip_norm
    length = 1.0 if reference is None else norm(reference)
    for limit in (known,) if known is not None else (length, length / 2, length / 4):
        optimizer = replace(scenario.optimizer, clip_norm=float(f"{limit:.2g}") or None)
        after = replace(scenario, optimizer=replace(optimizer, clip="after"))
        before = replace(scenario, optimizer=replace(optimizer, clip="before"))
        if _gap(before, after) > EQUAL:
            return before
    raise InputError("fault", "would not be seen: it clips the average to the same", "clipped-before")


BREAK: dict[str, Callable[[Scenario], Scenario]] = {
    "wrong-divisor": _wrong_divisor,
    "factor-forgotten": _factor_forgotten,
    "padding-counted": _padding_counted,
    "no-barrier": _no_barrier,
    "dropped-chunk": _dropped_chunk,
    "doubled-chunk": _doubled_chunk,
    "uneven-batches": _uneven_batches,
    "clipped-before": _clipped_before,
}


def _has_several(scenario: Scenario, why: str) -> None:
    if scenario.world_size == 1:
        raise InputError("fault", f"cannot be: {why}", scenario.world_size)


def _has_gradient(scenario: Scenario) -> None:
    if reason := run(scenario).trace.undefined[0]:
        raise InputError("fault", "would not be seen: there is no gradient here", reason)


def _seen(made: Scenario, scenario: Scenario, why: str) -> Scenario:
    if _gap(made, scenario) <= EQUAL:
        raise InputError("fault", f"would not be seen: it {why}", made.reduction)
    return made


def _gap(one: Scenario, other: Scenario) -> float:
    """The relative L2 error of the first gradient that the optimizer is given."""
    found = [used(run(scenario).trace, 0, 0) for scenario in (one, other)]
    if found[0] is None or found[1] is None:
        return 0.0
    error = relative_l2_error(found[0], found[1])
    return 1.0 if error is None else error


# -- what comes of it ------------------------------------------------------------------------------------


def used(trace: Trace, step: int, rank: int) -> Floats | None:
    """The gradient that a rank's optimizer is given: clipped where that comes after the average."""
    gradient, chosen = trace.gradient(step, rank), trace.scenario.optimizer
    return None if gradient is None else clip(gradient, chosen.clip_norm if chosen.clip == "after" else None)


def consequence(scenario: Scenario, healthy: Scenario) -> tuple[str, ...]:
    """What comes of a fault, in two or three sentences: `scenario` beside what it is as it should be."""
    wrong, right = run(scenario), run(healthy)
    if wrong.trace.hangs:
        return waits_for_ever(wrong.trace.hangs), what_a_run_prints()
    return (_off(wrong, right), *_drifted(wrong.trace), _timing(wrong.trace, right.trace))


def _off(wrong: Run, right: Run) -> str:
    """How far the first gradient is from one device's, on the rank where it is furthest."""
    reference = _of_one_device(right.ways.one_device, right.scenario)
    rank = worst_rank(wrong.trace, (reference, *[None] * (wrong.trace.steps - 1)))
    gradient = used(wrong.trace, 0, rank)
    if gradient is None or reference is None:
        return f"There is no gradient: {wrong.trace.undefined[0] or 'one device has none'}."
    whose = f" on rank {rank}, the furthest off," if differ(wrong.trace.reduced[0]) else ""
    error, angle = relative_l2_error(gradient, reference), cosine(gradient, reference)
    if error is None:
        return f"The gradient{whose} is {number(norm(gradient))} long, where one device's is 0."
    if error < EQUAL:
        return f"The first gradient{whose} is that of one device: the fault does not show in it."
    if angle is not None and angle > 1 - EQUAL:
        return (
            f"The gradient{whose} points where one device's does and is "
            f"{number(norm(gradient) / norm(reference))} times as long: it is off by {number(100 * error)} %."
        )
    turned = "" if angle is None else f", with a cosine of {number(angle)}"
    return f"The gradient{whose} is off by {number(100 * error)} % from one device's{turned}."


def _of_one_device(alone: Outcome, scenario: Scenario) -> Floats | None:
    gradient = alone.gradient[0]
    return None if gradient is None else clip(gradient, scenario.optimizer.clip_norm)


def _drifted(trace: Trace) -> tuple[str, ...]:
    """How far the replicas are from each other at the end."""
    if trace.scenario.world_size == 1:
        return ()
    last = trace.parameters[-1]
    if not differ(last):
        return ("All replicas hold the same parameters: comparing them would not find it.",)
    return (f"The replicas drift: two of them lie up to {number(apart(last))} apart in a parameter.",)


def _timing(wrong: Trace, right: Trace) -> str:
    """How long it takes beside how long it should."""
    took, should = (_until_last_step(trace) for trace in (wrong, right))
    if abs(took - should) <= 1e-6 * should:
        return f"It takes as long as it should, {duration(should)}: the clock shows nothing."
    if took < should:
        return f"The run looks faster by {duration(should - took)} of {duration(should)}, and is wrong."
    return f"It takes {duration(took - should)} longer than the {duration(should)} that it should."


def _until_last_step(trace: Trace) -> float:
    """From the beginning to the end of the last rank's last step, whatever is still on its way."""
    events = trace.events
    own = (events.kind != SEND) & (events.kind != RECEIVE)
    return float(events.end_s[own].max() - events.start_s.min())
