"""The barrier: who waits for whom, and what a slow or an early rank costs."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric, series
from dpsim.exercises.scenes import clocked, link, ring_bytes
from dpsim.questions import Slip
from dpsim.wording import listed, number


def _b1(draw: Random) -> Drawn:
    ranks = draw.randint(3, 6)
    usual = draw.randrange(40, 200, 5)
    each = [usual + draw.randint(-4, 6) for _ in range(ranks)]
    each[draw.randrange(ranks)] += draw.randrange(20, 90, 5)
    reduce_ms = draw.randrange(8, 60, 2)
    slowest, mean = max(each), sum(each) / ranks
    answer = slowest + reduce_ms
    scene = clocked(
        "x-B1", "Who comes last decides", [t / 1e3 for t in each], ring_bytes(ranks, reduce_ms / 1e3)
    )
    return Drawn(
        numeric(
            f"The ranks compute for {listed(each)} ms. Then comes the all-reduce, which takes {reduce_ms} ms "
            "and does not overlap. How many milliseconds is a step?",
            answer,
            "ms",
            (
                Slip(
                    mean + reduce_ms,
                    f"{number(mean)} ms is the mean of the ranks. Nobody can finish the sum while one "
                    f"gradient is still missing, and the last comes after {slowest} ms.",
                ),
                Slip(
                    min(each) + reduce_ms,
                    f"After {min(each)} ms the first rank is done, but the sum needs the gradients of all.",
                ),
                Slip(
                    slowest,
                    f"{slowest} ms is when the last rank has its gradient. The all-reduce of {reduce_ms} ms "
                    "only starts then, since nothing overlaps.",
                ),
            ),
            tolerance=max(0.5, near(answer)),
            feedback=f"All wait for the rank that takes {slowest} ms; then comes the all-reduce.",
            other="When can the sum be complete at the earliest? Add the all-reduce to that.",
            solution=(
                f"The barrier is passed when the slowest rank has come: after {slowest} ms.",
                f"The others have waited up to ${slowest} - {min(each)} = {slowest - min(each)}$ ms.",
                rf"$\max_r t_r + a = {slowest} + {reduce_ms} = {answer}$ ms.",
            ),
            link=link(scene, "barrier"),
        )
    )


def _b2(draw: Random) -> Drawn:
    ranks, more = draw.choice((4, 8, 16, 32)), draw.choice((0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8))
    answer = 1 / (1 + more)
    scene = clocked("x-B2", f"One of {ranks} ranks is slower", [0.1] * (ranks - 1) + [0.1 * (1 + more)], None)
    return Drawn(
        numeric(
            f"One of {ranks} ranks takes {number(100 * more)} % longer for its batch than the others; the "
            "all-reduce takes hardly any time. Which fraction of its throughput does the whole job keep? "
            "Give a number between zero and one.",
            answer,
            "",
            (
                Slip(
                    1 - more / ranks,
                    f"That spreads the loss over {ranks} ranks, as if the others went on. They stand at the "
                    "barrier until the slow one comes, in every step.",
                ),
                Slip(
                    1 - more,
                    f"A step that takes {number(1 + more)} times as long leaves 1/{number(1 + more)} of the "
                    f"throughput: {number(100 * more)} % more time is not {number(100 * more)} % less work.",
                ),
                Slip(
                    1 / (1 + more * ranks),
                    f"That adds up the delay for all {ranks} ranks. They wait at the same time, for the one "
                    "rank.",
                ),
            ),
            tolerance=0.005,
            feedback=f"Every step of the job is now {number(1 + more)} times as long.",
            other="How long is a step of the job now, against before? The throughput is the inverse.",
            solution=(
                f"All wait for the slow rank, so a step takes $1 + s = {number(1 + more)}$ times as long.",
                "It brings as many samples as before.",
                rf"$\frac{{1}}{{1 + s}} = 1/{number(1 + more)} = {number(answer)}$, whatever the number of "
                "ranks.",
            ),
            link=link(scene, "barrier"),
        )
    )


def _b3(draw: Random) -> Drawn:
    ranks, chance = draw.choice((4, 8, 12, 16, 24, 32, 64)), draw.choice((0.02, 0.03, 0.04, 0.05, 0.08, 0.1))
    answer = 1 - (1 - chance) ** ranks
    above = f", and {number(ranks * chance)} is no probability at all" if ranks * chance > 1 else ""
    return Drawn(
        numeric(
            f"In each step every one of {ranks} ranks is slow with probability {number(chance)}, "
            "independently of the others. With which probability is the step slow? Give a number between "
            "zero and one.",
            answer,
            "",
            (
                Slip(
                    chance,
                    f"{number(chance)} is the probability for one rank. The step is slow as soon as any of "
                    f"the {ranks} is.",
                ),
                Slip(
                    ranks * chance,
                    f"Adding {ranks} times {number(chance)} counts steps with two slow ranks twice{above}.",
                ),
                Slip(
                    chance**ranks,
                    f"That is the probability that all {ranks} ranks are slow at the same time. One is "
                    "enough.",
                ),
            ),
            tolerance=0.005,
            feedback="The step is quick only if every rank is, and that becomes rare.",
            other="With which probability are all of them quick? The step is slow in every other case.",
            solution=(
                f"One rank is quick with probability $1 - p = {number(1 - chance)}$.",
                rf"All {ranks} are with ${number(1 - chance)}^{{{ranks}}} = {number(1 - answer)}$.",
                rf"$1 - (1 - p)^R = {number(answer)}$: what is rare on a rank is common in a large job.",
            ),
        ),
        series(
            f"Probability of a slow step, each rank slow with {number(chance)}",
            "ranks",
            "probability",
            (1, 2, 4, 8, 12, 16, 24, 32, 48, 64),
            lambda r: 1 - (1 - chance) ** r,
            ranks,
        ),
    )


def _b4(draw: Random) -> Drawn:
    ranks, each = draw.randint(3, 5), draw.choice((8, 16, 32))
    batches = [draw.randint(10, 60) for _ in range(ranks)]
    fewest = min(batches)
    return Drawn(
        numeric(
            f"By a mistake the ranks hold {listed([k * each for k in batches])} samples, and each loads "
            f"{each} of its own in every step, without join. How many steps does the job complete?",
            fewest,
            "steps",
            (
                Slip(
                    max(batches),
                    f"{max(batches)} is what the rank with most data has batches for. In step {fewest + 1} "
                    "it waits for an all-reduce that a rank without data never enters.",
                    "M12",
                ),
                Slip(
                    sum(batches) / ranks,
                    f"{number(sum(batches) / ranks)} is the mean. Batches do not pass from one rank to "
                    "another: who has run out has run out.",
                ),
                Slip(
                    sum(batches),
                    f"{sum(batches)} counts the batches of all ranks. Each step uses one from every rank at "
                    "the same time.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"The rank with {fewest * each} samples has no further batch, and no step goes on "
            "without it.",
            other="How many batches does each rank have? A step needs one from every rank.",
            solution=(
                f"The ranks have {listed(batches)} batches of {each}.",
                f"A step needs a gradient from every rank, so it takes the fewest: $\\min_r k_r = {fewest}$ "
                "steps.",
                "The others then hang in their next all-reduce until a timeout. `join` or `drop_last` avoids "
                "it.",
            ),
        ),
        series("Batches on each rank", "rank", "batches", range(ranks), lambda r: batches[int(r)],
               batches.index(fewest)),
    )  # fmt: skip


ITEMS = (
    Item("x-B1", "Who comes last", "barrier", NUMBER, _b1),
    Item("x-B2", "One slow rank", "barrier", NUMBER, _b2),
    Item("x-B3", "How often a step is slow", "barrier", NUMBER, _b3),
    Item("x-B4", "When a rank runs out of data", "barrier", NUMBER, _b4),
)
