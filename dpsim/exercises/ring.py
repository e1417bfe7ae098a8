"""The ring all-reduce: rounds, bytes, time."""

from __future__ import annotations

from math import log2
from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric, series
from dpsim.exercises.scenes import clocked, link
from dpsim.questions import Slip
from dpsim.wording import number

SIZES_MB = (40, 60, 80, 100, 120, 200, 240, 300, 400, 600, 800)
RATES_GB_PER_S = (5, 10, 12.5, 20, 25, 50)


def _levels(ranks: int) -> int:
    """How often `ranks` have to be halved until one is left: the levels of a tree."""
    return (ranks - 1).bit_length()


def _c1(draw: Random) -> Drawn:
    ranks = draw.randint(3, 64)
    answer = 2 * (ranks - 1)
    scene = clocked("x-C1", f"A ring of {ranks} ranks", [0.01] * ranks, 40e6, latency_s=1e-5)
    return Drawn(
        numeric(
            f"How many rounds of messages does a ring all-reduce over {ranks} ranks take?",
            answer,
            "rounds",
            (
                Slip(
                    ranks - 1,
                    f"After {ranks - 1} rounds the reduce-scatter is through: every rank owns one complete "
                    "chunk, and lacks the others. The all-gather that hands them round takes as many again.",
                ),
                Slip(
                    2 * _levels(ranks),
                    f"That is a tree: up and down {_levels(ranks)} levels. In a ring a chunk passes from "
                    f"neighbour to neighbour, and there are {ranks - 1} of them to reach.",
                ),
                Slip(
                    ranks * (ranks - 1),
                    f"{ranks} × {ranks - 1} counts the messages of one half. All {ranks} ranks send at the "
                    f"same time, so {ranks} messages share a round.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"{ranks - 1} rounds of reduce-scatter and {ranks - 1} of all-gather.",
            other="Follow one chunk: how many neighbours must it pass to be complete, and then to be known "
            "to all?",
            solution=(
                f"In the reduce-scatter a chunk visits the other $R - 1 = {ranks - 1}$ ranks, one in each "
                "round.",
                "Then it is complete, and in the all-gather it goes round once more.",
                rf"$2(R-1) = 2 \cdot {ranks - 1} = {answer}$ rounds; all chunks travel at the same time.",
            ),
            link=link(scene, f"allreduce.b0.r{answer - 1}"),
        )
    )


def _c2(draw: Random) -> Drawn:
    ranks, size = draw.choice((3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64)), draw.choice(SIZES_MB)
    answer = 2 * (ranks - 1) * size / ranks
    scene = clocked("x-C2", f"{size} MB on a ring of {ranks}", [0.01] * ranks, size * 1e6)
    return Drawn(
        numeric(
            f"A gradient of {size} MB is all-reduced on a ring of {ranks} ranks. How much does each rank "
            "send?",
            answer,
            "MB",
            (
                Slip(
                    2 * (ranks - 1) * size,
                    f"That would be the whole {size} MB in every round. A rank sends one chunk a round, "
                    f"1/{ranks} of the gradient.",
                    "M15",
                ),
                Slip(
                    size,
                    f"{size} MB is the gradient once. It is nearly sent twice: {ranks - 1} of {ranks} chunks "
                    "while adding up, and as many while handing out.",
                ),
                Slip(
                    (ranks - 1) * size / ranks,
                    "That is the reduce-scatter alone. The all-gather behind it sends as much again.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{2 * (ranks - 1)} rounds, and 1/{ranks} of the gradient in each.",
            other="How many rounds are there, and how large is the chunk that a rank sends in each?",
            solution=(
                f"The gradient is cut into $R = {ranks}$ chunks of ${size}/{ranks} = {number(size / ranks)}$ "
                "MB.",
                f"A rank sends one of them in each of $2(R-1) = {2 * (ranks - 1)}$ rounds.",
                rf"$2(R-1) \, S/R = {2 * (ranks - 1)} \cdot {number(size / ranks)} = {number(answer)}$ MB: "
                "below twice the gradient, however many ranks there are.",
            ),
            link=link(scene, f"allreduce.b0.r{2 * ranks - 3}"),
        )
    )


def _c3(draw: Random) -> Drawn:
    ranks, size, rate = draw.choice((3, 4, 5, 8, 16, 32)), draw.choice(SIZES_MB), draw.choice(RATES_GB_PER_S)
    once = size / rate  # ms
    answer = 2 * (ranks - 1) * once / ranks
    scene = clocked("x-C3", f"{size} MB on a ring of {ranks}", [0.05] * ranks, size * 1e6, rate * 1e9)
    return Drawn(
        numeric(
            f"{ranks} ranks all-reduce {size} MB on a ring whose links carry {number(rate)} GB/s each. "
            "Latency does not count. How many milliseconds does it take?",
            answer,
            "ms",
            (
                Slip(
                    once,
                    f"{number(once)} ms is the gradient once over one link. Adding up and handing out take "
                    "it over every link nearly twice.",
                ),
                Slip(
                    ranks * once,
                    f"That lets the {ranks} ranks send one after another. On a ring all links are busy at "
                    "the same time.",
                    "M15",
                ),
                Slip(
                    2 * (ranks - 1) * once,
                    f"That sends all {size} MB in each of {2 * (ranks - 1)} rounds; only 1/{ranks} of it "
                    "travels in one.",
                    "M15",
                ),
            ),
            tolerance=near(answer),
            feedback=f"Every link carries {number(2 * (ranks - 1) * size / ranks)} MB at {number(rate)} "
            "GB/s.",
            other="How much does one rank send in all? Divide that by what its link carries.",
            solution=(
                f"A rank sends $2(R-1)S/R = {number(2 * (ranks - 1) * size / ranks)}$ MB.",
                f"Its link carries {number(rate)} GB/s, which is {number(rate)} MB in a millisecond.",
                rf"$\frac{{2(R-1)}}{{R}} \cdot \frac{{S}}{{W}} = {number(2 * (ranks - 1) * size / ranks)} / "
                rf"{number(rate)} = {number(answer)}$ ms.",
            ),
            link=link(scene, f"allreduce.b0.r{2 * ranks - 3}"),
        )
    )


def _c4(draw: Random) -> Drawn:
    few, factor = draw.choice((2, 3, 4, 5, 6, 8)), draw.choice((2, 3, 4, 8))
    many = few * factor

    def sent(ranks: float) -> float:
        return 2 * (ranks - 1) / ranks

    answer = sent(many) / sent(few)
    return Drawn(
        numeric(
            f"A ring all-reduce of a large gradient runs on {few} ranks. By which factor does it take longer "
            f"on {many} ranks with the same links, if bandwidth alone counts?",
            answer,
            "times",
            (
                Slip(
                    factor,
                    f"There are {factor} times as many ranks and rounds, but each chunk is {factor} times "
                    "smaller. The two nearly cancel.",
                    "M15",
                ),
                Slip(
                    1.0,
                    f"It is not constant: each rank sends {number(sent(few))} times the gradient on {few} "
                    f"ranks and {number(sent(many))} times on {many}.",
                    "M15",
                ),
                Slip(
                    log2(many) / log2(few),
                    "Logarithms belong to trees. On a ring the bytes per rank grow like (R − 1)/R, towards a "
                    "bound.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"From {number(sent(few))} to {number(sent(many))} times the gradient per rank.",
            other="How many times the gradient does each rank send, before and after?",
            solution=(
                "By bandwidth alone the time is proportional to $2(R-1)/R$.",
                f"That is {number(sent(few))} for $R = {few}$ and {number(sent(many))} for $R = {many}$.",
                rf"$\frac{{{many - 1}/{many}}}{{{few - 1}/{few}}} = {number(answer)}$. It can never exceed "
                rf"${number(2 / sent(few))}$, whatever the number of ranks.",
            ),
        ),
        series(
            f"Time of a ring against {few} ranks, by bandwidth alone",
            "ranks",
            "times as long",
            range(2, 65, 2),
            lambda r: sent(r) / sent(few),
            many,
        ),
    )


def _c5(draw: Random) -> Drawn:
    ranks, latency = (
        draw.choice((4, 5, 6, 8, 10, 12, 16, 24, 32, 64)),
        draw.choice((2, 3, 5, 8, 10, 15, 20, 30)),
    )
    answer = 2 * (ranks - 1) * latency
    scene = clocked(
        "x-C5", f"A tiny gradient on a ring of {ranks}", [0.001] * ranks, None, latency_s=latency * 1e-6
    )
    return Drawn(
        numeric(
            f"A gradient of a few bytes is all-reduced on a ring of {ranks} ranks. Every message takes "
            f"{latency} µs to get going; its bytes take no time to speak of. How many microseconds does it "
            "take?",
            answer,
            "µs",
            (
                Slip(
                    2 * latency,
                    f"That is one message there and one back, as if {ranks} ranks were two. Each round waits "
                    "for the one before it, since a rank sends on what it has just received.",
                    "M15",
                ),
                Slip(
                    2 * latency * _levels(ranks),
                    f"A tree would take that, with its {_levels(ranks)} levels up and down. Few bytes are "
                    "why libraries change over to one.",
                ),
                Slip(
                    (ranks - 1) * latency,
                    f"That is only the first half: after {ranks - 1} rounds each rank has one complete "
                    "chunk, and the all-gather is still to come.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{2 * (ranks - 1)} rounds, one after another, with {latency} µs each.",
            other="How many rounds follow each other? Each of them costs one latency.",
            solution=(
                f"A ring over $R = {ranks}$ ranks has $2(R-1) = {2 * (ranks - 1)}$ rounds.",
                f"None can start before the one before it has ended; each costs ${latency}$ µs.",
                rf"$2(R-1) \, \ell = {2 * (ranks - 1)} \cdot {latency} = {answer}$ µs: here it is latency "
                "that grows with the ranks.",
            ),
            link=link(scene, f"allreduce.b0.r{2 * ranks - 3}"),
        )
    )


ITEMS = (
    Item("x-C1", "Rounds of a ring", "ring", NUMBER, _c1),
    Item("x-C2", "What each rank sends", "ring", NUMBER, _c2),
    Item("x-C3", "How long a ring takes", "ring", NUMBER, _c3),
    Item("x-C4", "A ring with more ranks", "ring", NUMBER, _c4),
    Item("x-C5", "A ring for few bytes", "ring", NUMBER, _c5),
)
