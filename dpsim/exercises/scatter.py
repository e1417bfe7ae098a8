"""Scatter and data: what one step and one epoch learn from, and what the sampler does."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, numeric, series
from dpsim.exercises.scenes import dealt, link, samples
from dpsim.questions import Slip
from dpsim.wording import number


def _r1(draw: Random) -> Drawn:
    ranks, each = draw.choice((2, 4, 8, 16)), draw.choice((8, 12, 16, 24, 32, 48))
    total = ranks * each
    return Drawn(
        numeric(
            f"A script written for one GPU loads its data with `batch_size={each}`. It is started on {ranks} "
            "ranks under DistributedDataParallel, each with a loader of its own, and nothing else is "
            "changed. How many samples does one step learn from?",
            total,
            "samples",
            (
                Slip(
                    each,
                    f"{each} is the batch of one rank. Nothing divides it: each of the {ranks} ranks loads "
                    f"{each} samples of its own.",
                    "M1",
                ),
                Slip(
                    each / ranks,
                    f"{number(each / ranks)} would be a rank's part if {each} were the batch of all ranks "
                    f"together. The loader of a rank knows of no other rank.",
                    "M1",
                ),
                Slip(
                    ranks * total,
                    f"That counts the ranks twice. {ranks} ranks of {each} samples are {ranks} × {each}; "
                    "each rank works on its own samples only.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"{ranks} ranks with {each} samples each: the batch size of a loader is that of its "
            "rank.",
            other="Count what every rank loads for one step, then add over the ranks.",
            solution=(
                f"Every rank runs the same script, so every rank's loader hands out $b = {each}$ samples.",
                f"A step learns from the samples of all $R = {ranks}$ ranks.",
                rf"$R \, b = {ranks} \cdot {each} = {total}$ samples.",
            ),
            link=link(samples("x-R1", f"{ranks} ranks, {each} samples on each", ranks, each), "scatter"),
        )
    )


def _r2(draw: Random) -> Drawn:
    ranks, each = draw.choice((2, 3, 4, 6, 8)), draw.choice((8, 12, 16, 24, 32, 48))
    total = ranks * each
    return Drawn(
        numeric(
            f"One process drove {ranks} GPUs with DataParallel and `batch_size={total}`. The script moves to "
            "DistributedDataParallel, one process for each GPU. Which `batch_size` does each loader need, so "
            "that a step learns from as many samples as before?",
            each,
            "samples",
            (
                Slip(
                    total,
                    f"With {total} on every rank a step learns from {ranks} × {total} = {ranks * total} "
                    "samples. DataParallel divided the one batch over the GPUs; here every process loads its "
                    "own.",
                    "M2",
                ),
                Slip(
                    ranks * total,
                    f"That multiplies where it should divide: {ranks} loaders of {ranks * total} make a step "
                    f"{ranks * ranks} times as large as before.",
                    "M2",
                ),
                Slip(
                    total / (ranks - 1),
                    f"All {ranks} GPUs compute, rank 0 too: it is no server that only collects. Divide by "
                    f"{ranks}, not by {ranks - 1}.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"DataParallel's batch was that of all {ranks} GPUs, a DDP loader's is that of one.",
            other="DataParallel's batch size is divided over the GPUs; that of a DDP process is not.",
            solution=(
                f"DataParallel loads $B = {total}$ samples in one process and divides them over {ranks} "
                "GPUs.",
                "Under DistributedDataParallel each process loads its own part, so its batch size is that "
                "part.",
                f"$B/R = {total}/{ranks} = {each}$ samples.",
            ),
            link=link(samples("x-R2", f"{total} samples on {ranks} ranks", ranks, each), "scatter"),
        )
    )


def _steps(data: int, ranks: int, each: int) -> int:
    """Steps of an epoch when nothing is dropped: both divisions are rounded up."""
    own = -(-data // ranks)
    return -(-own // each)


def _r3(draw: Random) -> Drawn:
    ranks, each = draw.choice((2, 4, 8, 16)), draw.choice((16, 32, 64))
    data = draw.randrange(900, 60_000)
    own = -(-data // ranks)
    answer = _steps(data, ranks, each)
    return Drawn(
        numeric(
            f"A data set has {number(data)} samples. {ranks} ranks share it by a distributed sampler, and "
            f"every loader has `batch_size={each}`; neither drops what is left over. How many steps has an "
            "epoch?",
            answer,
            "steps",
            (
                Slip(
                    -(-data // each),
                    f"{number(-(-data // each))} steps are needed where one rank reads everything. Here the "
                    f"sampler has given each rank {number(own)} samples only.",
                    "M1",
                ),
                Slip(
                    data // ranks // each,
                    "Nothing is dropped, so both divisions are rounded up: the sampler fills up the last "
                    "round, and the loader hands out a last batch that is not full.",
                ),
                Slip(
                    own,
                    f"{number(own)} is the number of samples of one rank. It takes {each} of them in each "
                    "step.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"Each rank has {number(own)} samples, which are {answer} batches of up to {each}.",
            other="First the samples of one rank, rounded up, then the batches they make, rounded up again.",
            solution=(
                f"The sampler gives every rank $\\lceil D/R \\rceil = \\lceil {data}/{ranks} \\rceil = "
                f"{own}$ samples, repeating a few where it must.",
                f"The loader makes batches of $b = {each}$ of them, the last one perhaps smaller.",
                f"$\\lceil {own}/{each} \\rceil = {answer}$ steps.",
            ),
        ),
        series(
            f"Steps in an epoch of {number(data)} samples, {each} per rank and step",
            "ranks",
            "steps",
            (1, 2, 4, 8, 16, 32),
            lambda r: _steps(data, int(r), each),
            ranks,
        ),
    )


def _r4(draw: Random) -> Drawn:
    ranks = draw.randint(3, 8)
    data = draw.randint(ranks + 1, 40)
    answer, rest = -data % ranks, data % ranks
    return Drawn(
        numeric(
            f"A distributed sampler with its default settings deals {data} samples to {ranks} ranks. How "
            "many indices does it hand out a second time?",
            answer,
            "",
            (
                Slip(
                    0,
                    f"{data} is no multiple of {ranks}, and every rank must get equally many. By default the "
                    "sampler starts again from the beginning to fill up; it repeats without a word.",
                    "M5",
                ),
                Slip(
                    rest,
                    f"{rest} samples are left over after {data // ranks} full rounds. It fills up the round "
                    f"that they begin: {ranks} − {rest} are missing in it.",
                ),
                Slip(
                    ranks - 1,
                    f"{ranks - 1} is the worst that can happen, when a single sample is left over. Here "
                    f"{rest} are.",
                ),
            ),
            tolerance=WHOLE,
            feedback=f"{data} + {answer} = {data + answer} is the next multiple of {ranks}.",
            other=f"All {ranks} ranks get equally many. Up to which multiple of {ranks} must it fill up?",
            solution=(
                f"Every rank gets $\\lceil {data}/{ranks} \\rceil = {-(-data // ranks)}$ indices, "
                f"which are {data + answer} in all.",
                f"The data set has {data}; the rest is taken from its beginning again.",
                f"$(-D) \\bmod R = {data + answer} - {data} = {answer}$. "
                "With `drop_last=True` the sampler would leave samples out instead.",
            ),
            link=link(dealt("x-R4", f"{data} samples dealt to {ranks} ranks", ranks, data), "scatter"),
        )
    )


def _r5(draw: Random) -> Drawn:
    ranks, epochs = draw.choice((2, 4, 8)), draw.choice((3, 5, 10, 12, 20, 30, 50))
    return Drawn(
        numeric(
            f"A distributed sampler shuffles for {ranks} ranks. The loop over {epochs} epochs never calls "
            "`set_epoch`. In how many different orders is the data set dealt?",
            1,
            "",
            (
                Slip(
                    epochs,
                    "The order is drawn from the sampler's seed and its epoch. Where nobody tells it the "
                    f"epoch, that stays 0, and all {epochs} epochs are drawn alike.",
                    "M6",
                ),
                Slip(
                    ranks,
                    f"All {ranks} ranks shuffle alike, from the same seed: otherwise two of them could get "
                    "the same sample. A rank takes its part of the one order.",
                ),
                Slip(
                    epochs * ranks,
                    f"Neither the {epochs} epochs nor the {ranks} ranks draw an order of their own: seed and "
                    "epoch are the same everywhere and every time.",
                ),
            ),
            tolerance=WHOLE,
            feedback="Every epoch deals the same order, so every rank sees the same samples again and again.",
            other="What does the sampler draw its order from, and which of it changes from epoch to epoch?",
            solution=(
                "The sampler draws a permutation from `seed + epoch`.",
                "`set_epoch(e)` is what tells it the epoch; without the call the sum never changes.",
                f"The {epochs} epochs are dealt in 1 order. Call `sampler.set_epoch(epoch)` before each one.",
            ),
        ),
        series(
            "Orders in which the data were dealt, without set_epoch",
            "epochs so far",
            "different orders",
            range(1, epochs + 1),
            lambda _: 1,
            epochs,
        ),
    )


ITEMS = (
    Item("x-R1", "Samples in one step", "scatter", NUMBER, _r1),
    Item("x-R2", "From DataParallel to DDP", "scatter", NUMBER, _r2),
    Item("x-R3", "Steps in an epoch", "scatter", NUMBER, _r3),
    Item("x-R4", "What the sampler repeats", "scatter", NUMBER, _r4),
    Item("x-R5", "Shuffling without set_epoch", "scatter", NUMBER, _r5),
)
