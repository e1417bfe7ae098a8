"""Memory and sharding: what every GPU holds, and what it costs to hold less."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, Drawn, Item, near, numeric, series
from dpsim.questions import Slip
from dpsim.wording import number


def _y1(draw: Random) -> Drawn:
    ranks, billions = draw.choice((2, 4, 8, 16)), draw.choice((0.5, 0.75, 1.3, 1.5, 2, 3, 6, 7, 13, 20))
    answer = 16 * billions
    return Drawn(
        numeric(
            f"A model has {number(billions)} billion parameters and is trained with Adam in mixed precision "
            f"(16 bit, with parameters and both moments also kept in fp32) under DDP on {ranks} GPUs. How "
            "many GB do parameters, gradients and optimizer state take on each GPU? Leave activations and "
            "buckets out.",
            answer,
            "GB",
            (
                Slip(
                    2 * billions,
                    "Two bytes each are the 16-bit parameters alone. Gradients, the fp32 copy and Adam's two "
                    "moments are missing.",
                ),
                Slip(
                    4 * billions,
                    "Four bytes each are parameters and gradients in 16 bit. Most of the memory is the "
                    "optimizer's state, twelve bytes for each parameter.",
                ),
                Slip(
                    answer / ranks,
                    f"DDP divides the data over {ranks} GPUs, nothing of the model. Every GPU holds all of "
                    "it.",
                    "M13",
                ),
            ),
            tolerance=near(answer),
            feedback="Sixteen bytes for every parameter, on every GPU.",
            other="Add the bytes for one parameter: itself, its gradient, its fp32 copy, two moments.",
            solution=(
                "For each parameter: 2 bytes itself, 2 for its gradient, 4 for its fp32 copy, 4 for each of "
                "two moments.",
                "Together 16 bytes, and under DDP every GPU holds all of them.",
                rf"$16 P = 16 \cdot {number(billions)} = {number(answer)}$ GB, whatever the number of GPUs.",
            ),
        ),
        series(
            "Memory on each GPU under DDP, Adam in mixed precision",
            "parameters, billions",
            "GB",
            (0.5, 1, 2, 4, 7, 10, 13, 20),
            lambda p: 16 * p,
            billions,
        ),
    )


def _y3(draw: Random) -> Drawn:
    ranks, millions = (
        draw.choice((2, 4, 8)),
        draw.choice((12, 25, 44, 60, 86, 110, 125, 150, 220, 340, 355, 770)),
    )
    answer = 4 * millions
    return Drawn(
        numeric(
            f"A model of {millions} million fp32 parameters is wrapped in DistributedDataParallel on {ranks} "
            "GPUs, with `gradient_as_bucket_view=False`. About how many MB does each GPU need for the "
            "buckets, on top of its gradients?",
            answer,
            "MB",
            (
                Slip(
                    0,
                    "Without the view the buckets are memory of their own: each gradient is copied into its "
                    "bucket, and the sum back.",
                    "M14",
                ),
                Slip(
                    answer / ranks,
                    f"Nothing is divided over the {ranks} GPUs: every one of them sends and receives the "
                    "whole gradient.",
                    "M13",
                ),
                Slip(
                    25,
                    "25 MiB is the size of one bucket. There are as many as the gradient fills, and all of "
                    "them stay allocated.",
                    "M20",
                ),
            ),
            tolerance=near(answer),
            feedback="The buckets hold one copy of the whole gradient.",
            other="What do all buckets hold together? Count its bytes.",
            solution=(
                "All buckets together hold the gradient of every parameter once.",
                "In fp32 that is 4 bytes for each.",
                rf"$4 P = 4 \cdot {millions} = {answer}$ MB. With `gradient_as_bucket_view=True` the "
                "gradients live in the buckets, and this is saved.",
            ),
        ),
        series(
            "Memory for buckets, fp32, no view",
            "parameters, millions",
            "MB",
            (10, 50, 100, 200, 400, 800),
            lambda p: 4 * p,
            millions,
        ),
    )


def _z1(draw: Random) -> Drawn:
    ranks, billions = draw.choice((4, 8, 16, 32, 64)), draw.choice((0.5, 1.3, 1.5, 2, 3, 6, 7, 7.5, 13, 20))
    answer = 4 * billions + 12 * billions / ranks
    return Drawn(
        numeric(
            f"A model of {number(billions)} billion parameters is trained with Adam in mixed precision on "
            f"{ranks} GPUs, with ZeRO stage 1. A parameter takes 2 bytes, its gradient 2, its optimizer "
            "state 12. How many GB of these does each GPU hold?",
            answer,
            "GB",
            (
                Slip(
                    16 * billions / ranks,
                    f"That divides everything by {ranks}, which is stage 3. Stage 1 divides only the "
                    "optimizer state.",
                    "M19",
                ),
                Slip(
                    16 * billions,
                    f"That is plain DDP. Stage 1 leaves each GPU only 1/{ranks} of the optimizer state.",
                    "M19",
                ),
                Slip(
                    2 * billions + 14 * billions / ranks,
                    "That divides the gradients too, which is stage 2.",
                    "M19",
                ),
            ),
            tolerance=near(answer),
            feedback=f"Parameters and gradients whole, and 1/{ranks} of the optimizer state.",
            other="Which of the 2 + 2 + 12 bytes does stage 1 divide over the GPUs?",
            solution=(
                rf"Parameters and gradients stay whole: $(2 + 2) \cdot {number(billions)} = "
                f"{number(4 * billions)}$ GB.",
                rf"The optimizer state is divided: $12 \cdot {number(billions)} / {ranks} = "
                rf"{number(12 * billions / ranks)}$ GB.",
                rf"$4 P + 12 P/R = {number(answer)}$ GB, against ${number(16 * billions)}$ GB under DDP.",
            ),
        ),
        series(
            f"Memory on each GPU with ZeRO stage 1, {number(billions)} billion parameters",
            "GPUs",
            "GB",
            (1, 2, 4, 8, 16, 32, 64),
            lambda r: 4 * billions + 12 * billions / r,
            ranks,
        ),
    )


def _z3(draw: Random) -> Drawn:
    ranks, size = draw.choice((4, 8, 16, 32)), draw.choice((2, 3, 4, 6, 8, 12, 14, 26, 40))
    once = (ranks - 1) * size / ranks
    answer = 3 * once
    return Drawn(
        numeric(
            f"The 16-bit parameters of a model take {size} GB, and so do its gradients. It is trained with "
            f"ZeRO stage 3 on {ranks} GPUs. How many GB does each GPU send in a step, by ring collectives?",
            answer,
            "GB",
            (
                Slip(
                    2 * once,
                    "That is an all-reduce, as under DDP or in stages 1 and 2. Stage 3 has to collect the "
                    "parameters for forward and once more for backward.",
                    "M19",
                ),
                Slip(
                    once,
                    "That is one collective. There are three of this size: two all-gathers and a "
                    "reduce-scatter.",
                ),
                Slip(
                    3 * (ranks - 1) * size,
                    f"In each round of a ring only 1/{ranks} of the {size} GB travels, not all of it.",
                    "M15",
                ),
            ),
            tolerance=near(answer),
            feedback="Two all-gathers of the parameters and one reduce-scatter of the gradients.",
            other="Which collectives does a step need where nobody holds all parameters, nor all gradients?",
            solution=(
                f"A ring all-gather or reduce-scatter sends $(R-1)S/R = {number(once)}$ GB per GPU.",
                "Stage 3 gathers the parameters before forward and again before backward, and "
                "reduce-scatters the gradients.",
                rf"$3(R-1)S/R = 3 \cdot {number(once)} = {number(answer)}$ GB: half as much again as an "
                "all-reduce.",
            ),
        ),
        series(
            f"What each GPU sends with ZeRO stage 3, {size} GB of parameters",
            "GPUs",
            "GB",
            (2, 4, 8, 16, 32, 64),
            lambda r: 3 * (r - 1) * size / r,
            ranks,
        ),
    )


ITEMS = (
    Item("x-Y1", "Memory under DDP", "memory", NUMBER, _y1),
    Item("x-Y3", "Memory for the buckets", "memory", NUMBER, _y3),
    Item("x-Z1", "Memory with ZeRO stage 1", "memory", NUMBER, _z1),
    Item("x-Z3", "Traffic with ZeRO stage 3", "memory", NUMBER, _z3),
)
