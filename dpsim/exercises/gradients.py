"""Gradients and learning rate: what DDP leaves in .grad, and which rate a batch asks for."""

from __future__ import annotations

from math import sqrt
from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric, series
from dpsim.exercises.scenes import given, link
from dpsim.questions import Slip
from dpsim.wording import added, listed, number


def _g1(draw: Random) -> Drawn:
    each = [draw.choice([-9, -7, -6, -5, -4, -3, -2, 1, 2, 3, 4, 5, 6, 7, 8, 9]) for _ in range(4)]
    total = sum(each)
    mean = total / 4
    scene = given("x-G1", "Four ranks, one weight", [[[g]] for g in each], [1] * 4)
    return Drawn(
        numeric(
            "Four ranks with equally large batches take the mean loss of their own samples. For one weight "
            f"their gradients are {listed([number(g) for g in each])}. What stands in its `.grad` on rank 0 "
            "after `backward()` under DistributedDataParallel?",
            mean,
            "",
            (
                Slip(
                    total,
                    f"{number(total)} is the sum. DDP also divides by the world size before it hands the "
                    "gradient back.",
                    "M3",
                ),
                Slip(
                    each[0],
                    f"{number(each[0])} is what rank 0 computed alone. While backward runs, the all-reduce "
                    "replaces it by what all four come to.",
                ),
                Slip(
                    mean / 4,
                    f"That divides twice: DDP has divided {number(total)} by 4 already, and {number(mean)} "
                    "is what you get from it.",
                    "M3",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"The sum {number(total)} divided by the four ranks, the same number on each of them.",
            other="DDP adds up the gradients of all ranks and divides by the number of ranks.",
            solution=(
                f"The all-reduce adds up: ${added(each)} = {number(total)}$.",
                "DDP divides by the world size $R = 4$.",
                rf"$\frac{{1}}{{R}} \sum_r g_r = {number(total)}/4 = {number(mean)}$, on every rank.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _g2(draw: Random) -> Drawn:
    ranks, rate = draw.choice((2, 4, 8, 16, 32)), draw.choice((0.01, 0.02, 0.03, 0.05, 0.1, 0.2))
    answer = ranks * rate
    return Drawn(
        numeric(
            f"A run on one GPU uses the learning rate {number(rate)}. Now {ranks} GPUs each keep the batch "
            "that the one GPU had. Which rate does the linear scaling rule give?",
            answer,
            "",
            (
                Slip(
                    rate,
                    f"With {number(rate)} unchanged each step is as long as before, but there are only "
                    f"1/{ranks} as many of them for the same samples.",
                    "M4",
                ),
                Slip(
                    rate / ranks,
                    "That is the wrong way round. DDP averages the gradient, so it gets no longer with "
                    f"{ranks} ranks; there is nothing to divide by.",
                    "M4",
                ),
                Slip(
                    ranks * answer,
                    f"That scales twice. The global batch is {ranks} times as large, not {ranks * ranks} "
                    "times.",
                    "M4",
                ),
            ),
            tolerance=near(answer),
            feedback=f"The global batch has grown by the factor {ranks}, and the rate with it.",
            other="By which factor has the global batch grown? The rule scales the rate by the same.",
            solution=(
                f"Each of {ranks} GPUs keeps its batch $b$, so the global batch grows from $b$ to ${ranks} "
                "b$.",
                "The linear scaling rule multiplies the rate by the same factor.",
                rf"$R \, \eta = {ranks} \cdot {number(rate)} = {number(answer)}$. It is a rule of thumb: "
                "large rates want a warm-up, and beyond some batch size it stops holding.",
            ),
        ),
        series(
            f"Rate by the linear scaling rule, from {number(rate)} on one GPU",
            "GPUs, each with the same batch",
            "learning rate",
            (1, 2, 4, 8, 16, 32),
            lambda r: r * rate,
            ranks,
        ),
    )


def _g3(draw: Random) -> Drawn:
    ranks, base = draw.choice((2, 4, 8, 16)), draw.choice((0.01, 0.02, 0.05, 0.1))
    batch = 256 * draw.choice((2, 4, 8, 16))
    rate = base * batch / 256
    return Drawn(
        numeric(
            f"A recipe asks for a learning rate of {number(base)} for every 256 samples in the global batch. "
            f"One GPU trained with a global batch of {batch}. Now {ranks} GPUs share that same global "
            f"batch, {batch // ranks} samples on each. Which rate belongs to it?",
            rate,
            "",
            (
                Slip(
                    ranks * rate,
                    f"That scales by the {ranks} GPUs as well. The global batch has not grown with them: it "
                    f"was {batch} before and still is.",
                    "M4",
                ),
                Slip(
                    rate / ranks,
                    f"That follows the {batch // ranks} samples of one rank. DDP averages over {ranks} "
                    f"ranks, so a step still goes along the mean of {batch} samples.",
                    "M4",
                ),
                Slip(
                    sqrt(ranks) * rate,
                    f"A square root of {ranks} is a rule for a batch that grows by {ranks}. This one does "
                    "not grow.",
                    "M4",
                ),
            ),
            tolerance=near(rate),
            feedback="The rate belongs to the global batch, and that is the same as on one GPU.",
            other="Whether the batch lies on one GPU or on many: what is averaged over, and has it changed?",
            solution=(
                f"The global batch is {batch} samples on one GPU, and ${ranks} \\cdot {batch // ranks} = "
                f"{batch}$ on {ranks}.",
                "The mean gradient over the same samples is the same gradient.",
                rf"${number(base)} \cdot {batch}/256 = {number(rate)}$, whatever the number of GPUs.",
            ),
        ),
        series(
            f"Rate for a global batch of {batch}",
            "GPUs that share it",
            "learning rate",
            (1, 2, 4, 8, 16),
            lambda _: rate,
            ranks,
        ),
    )


ITEMS = (
    Item("x-G1", "What DDP leaves in .grad", "gradients", NUMBER, _g1),
    Item("x-G2", "More GPUs, more samples: the rate", "gradients", NUMBER, _g2),
    Item("x-G3", "More GPUs, the same batch: the rate", "gradients", NUMBER, _g3),
)
