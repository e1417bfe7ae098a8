"""Real runs: what is local although it looks global."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, numeric, series
from dpsim.exercises.scenes import given, link
from dpsim.questions import Slip
from dpsim.wording import listed, number


def _w1(draw: Random) -> Drawn:
    ranks, each = draw.choice((2, 4, 8, 16)), draw.choice((4, 8, 12, 16, 24, 32, 48, 64))
    total = ranks * each
    return Drawn(
        numeric(
            "An image classifier with plain BatchNorm layers is trained under DistributedDataParallel: a "
            f"global batch of {total} images, dealt evenly to {ranks} GPUs. Over how many images does a "
            "layer take its mean and variance?",
            each,
            "images",
            (
                Slip(
                    total,
                    f"The gradients of all {total} images meet, but no activations do. A plain BatchNorm "
                    "layer sees those of its own GPU.",
                    "M10",
                ),
                Slip(
                    1,
                    "Statistics of a single image would be another layer. BatchNorm takes them over all "
                    "images that its GPU works on together.",
                ),
                Slip(
                    each / ranks,
                    f"That divides by the {ranks} GPUs twice. {total} is the global batch, so one division "
                    "makes a GPU's part.",
                    "M1",
                ),
            ),
            tolerance=WHOLE,
            feedback="Each GPU normalises by its own part; only a synchronised BatchNorm would exchange "
            "statistics.",
            other=f"How many of the {total} images does one GPU get? A plain layer knows no others.",
            solution=(
                f"A GPU gets $B/R = {total}/{ranks} = {each}$ images.",
                "A plain BatchNorm layer normalises by what it gets; DDP exchanges gradients, no statistics.",
                f"So it is {each} images. `SyncBatchNorm` would take all {total}.",
            ),
        ),
        series(
            f"Images in a plain BatchNorm's statistics, global batch {total}",
            "GPUs",
            "images",
            (1, 2, 4, 8, 16),
            lambda r: total / r,
            ranks,
        ),
    )


def _w2(draw: Random) -> Drawn:
    counts = [draw.choice((4, 5, 8, 10, 16, 20)) for _ in range(4)]
    means = [draw.randint(8, 40) / 10 for _ in counts]
    sums = [round(n * mean, 6) for n, mean in zip(counts, means, strict=True)]
    scene = given("x-W2", "Four ranks, four losses", [[[s]] for s in sums], counts, parameters=(1.0,))
    return Drawn(
        numeric(
            f"After their forward passes the ranks hold loss sums of {listed([number(s) for s in sums])} "
            f"over {listed(counts)} tokens. Each takes its mean loss, and the script prints `loss.item()` "
            "where `rank == 0`. Which number appears?",
            means[0],
            "",
            (
                Slip(
                    sum(means) / 4,
                    "That is the mean of the four losses. DDP moves gradients and no losses; to print this "
                    "one would have to all-reduce it.",
                    "M9",
                ),
                Slip(
                    sum(means),
                    "That adds up four means. Nobody collects them, and as a sum they would be no loss of "
                    "anything.",
                ),
                Slip(
                    max(means),
                    f"{number(max(means))} is the largest of the four. Rank 0 prints its own, large or "
                    "small.",
                ),
            ),
            tolerance=0.005,
            feedback="Rank 0 knows its own loss alone; the others are not asked.",
            other="Which losses does rank 0 know? Its mean is its sum over its own tokens.",
            solution=(
                f"Rank 0 has the sum {number(sums[0])} over {counts[0]} tokens.",
                f"Its mean loss is ${number(sums[0])}/{counts[0]} = {number(means[0])}$, and that is what it "
                "prints.",
                f"The mean over all tokens would be ${number(sum(sums))}/{sum(counts)} = "
                f"{number(sum(sums) / sum(counts))}$, if it were all-reduced.",
            ),
            link=link(scene, "forward"),
        )
    )


ITEMS = (
    Item("x-W1", "What BatchNorm sees", "real-runs", NUMBER, _w1),
    Item("x-W2", "What rank 0 prints", "real-runs", NUMBER, _w2),
)
