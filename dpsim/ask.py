"""At any beat of any trace: a question about what comes next on this very screen, answered by the trace.

What is asked about hangs on what the next beat is; the rank and the chunk are drawn, with the beat as seed.
What the stage shows at this beat, or says of it in words, is never the answer.
"""

from __future__ import annotations

import random

import numpy as np

from dpsim.ahead import Ahead
from dpsim.ask_rounds import about_round, about_whole
from dpsim.batch import global_batch
from dpsim.beat import Beat
from dpsim.metrics import synchronisations
from dpsim.questions import Asked, Slip
from dpsim.reduction import reduction
from dpsim.replicas import differ
from dpsim.trace import Trace
from dpsim.wording import bracketed, duration, listed, number, plural, short

DEALT = {
    "contiguous": "in runs, in the order of their numbers",
    "strided": "in turn, one to each rank, as a distributed sampler does",
    "longest_first": "the longest first, each to the rank with the fewest tokens so far",
    "balance_valid": "the one with the most valid tokens first, each to the rank with the fewest so far",
}
MOST_SHOWN = 4  # parameters that the stage shows


def ask(trace: Trace, told: tuple[Beat, ...], beat_id: str) -> Asked | None:
    """A question at the beat with this id about the one after it; None at the last beat. The same beat of the
    same trace gets the same question."""
    at = next((i for i, beat in enumerate(told) if beat.id == beat_id), len(told))
    if at + 1 >= len(told):
        return None
    ahead = Ahead(trace, told, at, random.Random(beat_id))
    by_phase = {
        "scatter": _scatter,
        "count": _count,
        "forward": _forward,
        "backward": _backward,
        "barrier": _barrier,
        "optimizer": _optimizer,
    }
    if ahead.next.phase in ("reduce", "gather") and ahead.place[1] >= 0:  # else a beat about all of it
        way = about_round if ahead.place[2] >= 0 else about_whole
    else:
        way = by_phase.get(ahead.next.phase, _which_beat)
    return way(ahead) or _which_beat(ahead)


def _which_beat(a: Ahead) -> Asked:
    """What comes, by its title: there is always one, and always another that it might be."""
    later = [(b.title, "That comes later.") for b in a.told[a.at + 2 :] if b.title != a.beat.title]
    earlier = [(b.title, "That has happened already.") for b in reversed(a.told[: a.at])]
    now = [(a.beat.title, "That is where the stage rests now.")]
    wrong = [*later[:1], *earlier[:1], *later[-1:], *now]
    asked = a.choose("What comes next?", (a.next.title, a.next.sentence), wrong)
    assert asked is not None  # two beats in a row never have one title
    return asked


def _scatter(a: Ahead) -> Asked | None:
    batch = global_batch(a.trace.scenario)
    how = DEALT.get(a.trace.scenario.batch.shard)
    holds = [[i for cell in row for i in cell] for row in batch.assignment]
    size = len(holds)
    once = [s for s in range(len(batch.tokens)) if sum(row.count(s) for row in holds) == 1]
    if how is None or size == 1 or not once:
        return None
    which = a.draw.choice(once)
    right = next(r for r, row in enumerate(holds) if which in row)

    def why(rank: int) -> str:
        mine = holds[rank]
        if len(mine) > 8:
            return f"Rank {rank} gets {len(mine)} others."
        if not mine:
            return f"Rank {rank} gets no sequence at all."
        return f"Rank {rank} gets {'sequence' if len(mine) == 1 else 'sequences'} {listed(mine)}."

    likely = [which % size, which * size // len(batch.tokens), (right + 1) % size, (right - 1) % size]
    likely += a.draw.sample(range(size), min(size, 5))
    return a.choose(
        f"{plural(len(batch.tokens), 'sequence')}, dealt {how}: which rank gets sequence {which}?",
        (f"rank {right}", why(right)),
        [(f"rank {r}", why(r)) for r in likely if r != right],
    )


def _count(a: Ahead) -> Asked | None:
    valid = a.trace.valid_tokens[a.step].sum(axis=1)
    batch = global_batch(a.trace.scenario)
    tokens = batch.shard_counts(batch.lengths).sum(axis=1)
    total, size = int(valid.sum()), len(valid)
    rank = a.draw.randrange(size)
    wrong = [
        (int(valid[rank]), "its own valid tokens", "That is what it brings; all counts are added up."),
        (int(tokens.sum()), "all tokens", "Masked tokens have no loss, so they do not count."),
        (size, "the world size", "Then every rank would count alike, however few tokens it has."),
        (int(tokens[rank]), "all its own tokens", "The count is over all ranks, of valid tokens alone."),
    ]  # fmt: skip
    return a.choose(
        f"The counts are added up next. Which number will rank {rank} hold as the divisor then?",
        (
            f"{total}: the valid tokens of all ranks",
            f"Every rank knows N = {total} then, before it has computed anything.",
        ),
        _apart(total, wrong),
    )


def _apart(right: int, wrong: list[tuple[int, str, str]]) -> list[tuple[str, str]]:
    """Options for numbers, each number once: what it would be the number of, and why it is not that."""
    known, kept = {right}, []
    for n, what, why in wrong:
        if n not in known:
            known.add(n)
            kept.append((f"{n}: {what}", why))
    return kept


def _forward(a: Ahead) -> Asked | None:
    k = max(a.place[0], 0)
    micro = a.trace.scenario.micro_batches
    batch = global_batch(a.trace.scenario)
    valid, tokens = a.trace.valid_tokens[a.step], batch.shard_counts(batch.lengths)
    rank = a.draw.choice([r for r, n in enumerate(micro) if n > k])
    n = int(valid[rank, k])
    several = f" of micro-batch {k + 1}" if max(micro) > 1 else ""
    wrong = [
        (int(tokens[rank, k]), f"all its tokens{several}", "Masked tokens are computed, but have no loss."),
        (int(valid.sum()), "the valid tokens of the whole batch", "A rank sees its own part of it alone."),
        (int(valid[rank].sum()), "those of all its micro-batches", "One micro-batch passes at a time."),
        (int(valid[:, k].sum()), f"those{several} on all ranks", "Nothing has travelled between ranks yet."),
        (0, "none: it waits for its turn", "No rank waits for another here: all compute at the same time."),
    ]  # fmt: skip
    return a.choose(
        f"Over how many tokens does rank {rank} sum its loss in the forward pass that comes next?",
        (
            f"{n}: its own valid tokens{several}",
            f"The loss sum of rank {rank} is over {plural(n, 'valid token')}.",
        ),
        _apart(n, wrong),
    )


def _backward(a: Ahead) -> Asked | None:
    micro, bucket, _ = a.place
    made = a.trace.buckets(a.step)
    if bucket >= 0 and len(made) > 1:
        return _which_bucket(a, bucket, [", ".join(b.names) for b in made])
    scenario = a.trace.scenario
    k, size = max(micro, 0), scenario.world_size
    rank = a.draw.choice([r for r, n in enumerate(scenario.micro_batches) if n > k])
    if k and not scenario.buckets.sync_every_micro_batch:
        return _added_up(a, rank, k)
    if size == 1:
        return None
    left = (rank - 1) % size
    return a.choose(
        f"Whose contribution will be in the chunks of rank {rank}, right after the backward pass?",
        (f"that of rank {rank} alone", "Backward computes it from a rank's own tokens; nothing travels."),
        [
            (f"those of all {size} ranks", "Only the all-reduce brings them together, and it comes later."),
            (f"those of ranks {left} and {rank}", f"Rank {left} has sent nothing yet."),
            ("nobody's", "Each rank's own gradient is there as soon as backward has computed it."),
        ],
    )  # fmt: skip


def _which_bucket(a: Ahead, bucket: int, names: list[str]) -> Asked | None:
    def why(other: int) -> str:
        if other < bucket:
            return (
                f"The gradient of {names[other]} is complete before: backward reaches the last layers first."
            )
        return f"Backward reaches the last layers first, and {names[other]} lies further to the front."

    said = f"The last layers come first: bucket {bucket + 1} of {len(names)} is ready then."
    return a.choose(
        "Backward goes on. The gradient of which parameters is complete next?",
        (names[bucket], said),
        [(names[b], why(b)) for b in range(len(names)) if b != bucket],
    )


def _added_up(a: Ahead, rank: int, k: int) -> Asked | None:
    """What accumulation leaves; an option is left out where its numbers are the right ones by chance."""
    own = a.trace.scaled[a.step, rank]
    total = own[: k + 1].sum(axis=0)
    ways = [
        (own[k], f"that of micro-batch {k + 1} alone", "It is added to what is there already."),
        (total / (k + 1), f"the mean over {k + 1} micro-batches", "Nothing is divided here."),
        (own[:k].sum(axis=0), "what it held before", "The backward pass of this micro-batch comes on top."),
    ]  # fmt: skip
    return a.choose(
        f"Which gradient will rank {rank} hold after the backward pass of its micro-batch {k + 1}?",
        (f"the sum over its {k + 1} micro-batches", "Each micro-batch's gradient is added to those before."),
        [(text, why) for value, text, why in ways if not np.allclose(value, total, rtol=1e-9, atol=0)],
    )  # fmt: skip


def _barrier(a: Ahead) -> Asked | None:
    return _who_waits(a) or _divisor(a)


def _who_waits(a: Ahead) -> Asked | None:
    """Who has waited longest: on the timeline to those who compare lengths, and nowhere in words."""
    size = a.trace.scenario.world_size
    synced = synchronisations(a.trace, a.step)
    wait = next(s.wait_s for s in synced if s.micro_batch in (max(a.place[0], 0), -1))
    order = np.argsort(-wait, kind="stable").tolist()
    if size < 3 or len({duration(float(w)) for w in wait[order[:2]]}) < 2:
        return None
    longest, last = order[0], order[-1]

    def why(rank: int) -> str:
        if wait[rank] == 0:
            return f"Rank {rank} is last itself: the others wait for it."
        return f"Rank {rank} waits {duration(float(wait[rank]))}."

    wrong = [last, *order[1:3], *order[-3:-1]]
    return a.choose(
        "The barrier comes. Which rank has waited longest for the last one?",
        (f"rank {longest}", f"It was through first, and waited {duration(float(wait[longest]))}."),
        [(f"rank {r}", why(r)) for r in wrong if r != longest],
    )


def _divisor(a: Ahead) -> Asked | None:
    valid, scenario = a.trace.valid_tokens[a.step], a.trace.scenario
    table = reduction(scenario.reduction, valid, scenario.micro_batches)
    last = max(scenario.micro_batches) - 1
    if a.trace.undefined[a.step] or table.name == "custom" or a.place[0] not in (-1, last):
        return None
    total, size = int(valid.sum()), scenario.world_size
    rank = a.draw.randrange(size)
    divisor = total if table.name == "token_weighted" else size
    named = {total: f"N = {total}, all valid tokens", size: f"R = {size}, the world size"}
    why = {
        total: "N belongs to the token-weighted mean; this run reduces in another way.",
        size: "R divides means of ranks; these are plain sums over tokens.",
    }
    wrong = [(named[n], why[n]) for n in (total, size) if n != divisor]
    own = int(valid[rank].sum())
    if own != divisor:
        wrong.append((f"{own}, the valid tokens of rank {rank}", "The divisor is the same on every rank."))
    if divisor != 1:
        wrong.append(("by nothing: the sum is the gradient", "The sum still has to become a mean."))
    return a.choose(
        "Every rank holds the sum. By what is it divided to give the gradient?",
        (
            named[divisor],
            f"That makes it the gradient of this run, the same on every rank, by {named[divisor]}.",
        ),
        wrong,
    )


def _optimizer(a: Ahead) -> Asked | None:
    if differ(a.trace.parameters[a.step + 1]):
        return None  # there is no one number to ask for
    before, after = a.trace.parameters[a.step, 0], a.trace.parameters[a.step + 1, 0]
    gradient = a.trace.gradient(a.step)
    if gradient is None:
        return a.choose(
            "There is no gradient here. What happens to the parameters next?",
            ("They stay as they are: the step is skipped", "Nothing undefined may reach the parameters."),
            [
                ("They become NaN", "That is what a careless division leads to; here the step is skipped."),
                ("They move by what the other ranks have", "The mean is undefined as a whole: nobody steps."),
            ],
        )  # fmt: skip
    i = a.draw.choice(np.argsort(-np.abs(after - before)[:MOST_SHOWN])[:2].tolist())
    chosen = a.trace.scenario.optimizer
    if chosen.kind == "sgd" and (chosen.clip_norm is None or chosen.clip == "before"):
        asked = _new_parameter(i, float(before[i]), float(gradient[i]), float(after[i]), chosen.learning_rate)
        if asked is not None:
            return asked
    return _direction(a, i, float(before[i]), float(gradient[i]), float(after[i]))


def _new_parameter(i: int, held: float, gradient: float, after: float, rate: float) -> Asked | None:
    """The number after a plain step; None where the step is too small to be seen in the digits shown."""

    def gap(value: float) -> float:
        return abs(value - float(short(value).replace("\u2212", "-")))

    step = rate * gradient
    tolerance = max(gap(after), 5e-4 * abs(after)) + 5e-4 * (abs(held) + abs(step))
    if abs(step) <= 4 * tolerance:
        return None
    slips = [
        (held + step, "The step goes against the gradient: it is taken off, not added."),
        (held - gradient, "The gradient is multiplied by the learning rate first."),
        (-step, "That is the step alone: it goes from the parameter as it is."),
        (held, "The step changes it: that is what it is now."),
    ]
    wrong: list[Slip] = []
    for value, feedback in slips:
        if all(abs(value - other) > 2 * tolerance for other in (after, *(slip.value for slip in wrong))):
            wrong.append(Slip(value, feedback))
    done = f"{number(held)} − {number(rate)} × {bracketed(gradient)} = {number(after)}"
    return Asked(
        "number",
        f"θ{i} is {number(held)}, its gradient is {number(gradient)}, and the learning rate {number(rate)}. "
        f"What will θ{i} be after the optimizer's step?",
        answer=after,
        tolerance=tolerance,
        wrong=tuple(wrong),
        feedback=f"θ{i}: {done}.",
        other="The new value is the old one less the learning rate times the gradient.",
        written=number(after),
    )


def _direction(a: Ahead, i: int, held: float, gradient: float, after: float) -> Asked | None:
    moved = int(np.sign(after - held))
    says = {
        1: ("It rises", f"θ{i} goes from {number(held)} up to {number(after)}."),
        -1: ("It falls", f"θ{i} goes from {number(held)} down to {number(after)}."),
        0: ("It stays as it is", f"θ{i} stays {number(held)}."),
    }
    against = "The step goes against the gradient" + (
        "." if moved * gradient <= 0 else ", unless what is left of earlier steps is stronger, as here."
    )
    options = [(text, against) for way, (text, _) in says.items() if way != moved]
    return a.choose(
        f"θ{i} is {number(held)}, and its gradient {number(gradient)}. What does the optimizer do to it?",
        says[moved],
        options,
    )
