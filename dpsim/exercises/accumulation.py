"""Accumulation: a larger batch from several micro-batches, its traffic, and the divisor that is forgotten."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric
from dpsim.exercises.scenes import given, link, samples
from dpsim.questions import Slip
from dpsim.wording import bracketed, number


def _a1(draw: Random) -> Drawn:
    ranks, each, micro = draw.randint(2, 8), draw.choice((4, 8, 16, 32)), draw.randint(2, 8)
    total = ranks * each * micro
    scene = samples("x-A1", f"{ranks} ranks, {micro} micro-batches of {each}", ranks, each, micro)
    return Drawn(
        numeric(
            f"{ranks} ranks each accumulate {micro} micro-batches of {each} samples before the optimizer "
            "takes its step. How large is the global batch?",
            total,
            "samples",
            (
                Slip(
                    each * micro,
                    f"{each * micro} is what one rank contributes. Each of the {ranks} ranks does so in the "
                    "same step, each with samples of its own.",
                    "M1",
                ),
                Slip(
                    ranks * each,
                    f"{ranks * each} is one micro-batch on each rank. The optimizer waits for {micro} of "
                    "them.",
                    "M1",
                ),
                Slip(
                    ranks * each / micro,
                    f"The {micro} micro-batches are not parts of the {each} samples: each of them has "
                    f"{each}.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"{ranks} ranks × {micro} micro-batches × {each} samples go into one optimizer step.",
            other="How many samples does one rank work through before its step, and how many ranks are "
            "there?",
            solution=(
                rf"A rank works through $b \, k = {each} \cdot {micro} = {each * micro}$ samples before the "
                "step.",
                f"Each of the $R = {ranks}$ ranks does so at the same time.",
                rf"$R \, b \, k = {ranks} \cdot {each} \cdot {micro} = {total}$ samples.",
            ),
            link=link(scene, "scatter"),
        )
    )


def _a2(draw: Random) -> Drawn:
    ranks, micro, base = draw.choice((2, 4, 8)), draw.randint(3, 8), draw.choice((50, 90, 120, 150, 300, 420))
    answer = micro * base
    scene = samples(
        "x-A2", f"{micro} micro-batches, an all-reduce after each", ranks, 4, micro, sync_every=True,
        gradient_bytes=base * 1e6 * ranks / (2 * (ranks - 1)),
    )  # fmt: skip
    return Drawn(
        numeric(
            f"Each of {ranks} ranks accumulates {micro} micro-batches. With `no_sync` on all but the last of "
            f"them a rank sends {base} MB of gradient per optimizer step. The script forgets `no_sync`. How "
            "much does a rank send now?",
            answer,
            "MB",
            (
                Slip(
                    base,
                    f"{base} MB is a single all-reduce. DDP starts one in every backward unless it is told "
                    f"not to, and here there are {micro}.",
                    "M7",
                ),
                Slip(
                    (micro - 1) * base,
                    f"{micro - 1} all-reduces have come on top, but the one after the last micro-batch is "
                    "still there.",
                ),
                Slip(
                    base / micro,
                    f"The gradient of a micro-batch is not smaller than that of all {micro}: it has an entry "
                    "for every parameter, however few samples it comes from.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{micro} all-reduces of the whole gradient instead of one.",
            other=f"How many all-reduces of {base} MB are there now in one optimizer step?",
            solution=(
                f"Without `no_sync` each of the $k = {micro}$ backward passes ends in an all-reduce.",
                f"Each moves the whole gradient, {base} MB per rank.",
                rf"$k \cdot {base} = {answer}$ MB. The result is the same as with one all-reduce of the "
                "accumulated gradient.",
            ),
            link=link(scene),
        )
    )


def _a3(draw: Random) -> Drawn:
    ranks, micro = draw.choice((2, 3, 4)), draw.choice((2, 3, 4, 5, 6, 8))
    mean = draw.choice((-6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7))
    cells = [mean + draw.randint(-5, 5) for _ in range(ranks * micro - 1)]
    cells.append(ranks * micro * mean - sum(cells))
    sums = [[[g] for g in cells[r * micro : (r + 1) * micro]] for r in range(ranks)]
    table = ((1 / ranks,) * micro,) * ranks
    scene = given("x-A3", f"{micro} micro-batches, not divided", sums, [1] * (ranks * micro), table)
    answer = micro * mean
    return Drawn(
        numeric(
            f"{ranks} ranks under DDP each accumulate {micro} equally large micro-batches and call "
            "`backward()` on the mean loss of each, without dividing it by their number. The mean gradient "
            f"of one weight over the whole global batch is {number(mean)}. Which gradient does the "
            "optimizer get?",
            answer,
            "",
            (
                Slip(
                    mean,
                    f"`.grad` adds up over backward passes. Nobody divides by {micro} unless the loss was, "
                    "so it is no mean over the micro-batches.",
                ),
                Slip(
                    ranks * answer,
                    f"That also multiplies by the {ranks} ranks. DDP divides by their number itself; only "
                    "the accumulation adds without dividing.",
                    "M3",
                ),
                Slip(
                    answer / ranks,
                    f"That divides by the {ranks} ranks once more than DDP did: {number(mean)} is a mean "
                    "over them already.",
                    "M3",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"The {micro} mean gradients are added up, and their sum is {micro} times their mean.",
            other="What does `.grad` do with the gradient of each backward pass? And what does DDP do over "
            "ranks?",
            solution=(
                f"Over its $k = {micro}$ backward passes a rank's `.grad` becomes the sum of {micro} mean "
                "gradients.",
                f"DDP takes the mean over the $R = {ranks}$ ranks, so that factor is right.",
                rf"$k \, \bar g = {micro} \cdot {bracketed(mean)} = {number(answer)}$. Dividing each loss by "
                f"{micro} before `backward()` repairs it.",
            ),
            link=link(scene, "optimizer"),
        )
    )


ITEMS = (
    Item("x-A1", "The global batch under accumulation", "accumulation", NUMBER, _a1),
    Item("x-A2", "Synchronising every micro-batch", "accumulation", NUMBER, _a2),
    Item("x-A3", "A loss that was not divided", "accumulation", NUMBER, _a3),
)
