"""Scaling: speed-up, efficiency, and what it costs."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, Drawn, Item, near, numeric, series
from dpsim.exercises.scenes import clocked, link, ring_bytes
from dpsim.questions import Slip
from dpsim.wording import number


def _s1(draw: Random) -> Drawn:
    ranks, alone = draw.choice((2, 4, 8, 16)), draw.randrange(160, 1600, 80)
    together = round(alone / ranks * draw.uniform(1.1, 2.0))
    answer = alone / (ranks * together)
    own = alone / ranks
    scene = clocked(
        "x-S1",
        f"The same batch on {ranks} ranks",
        [own / 1e3] * ranks,
        ring_bytes(ranks, (together - own) / 1e3),
    )
    return Drawn(
        numeric(
            f"One GPU takes {alone} ms for a step. {ranks} GPUs that share the same global batch take "
            f"{together} ms. What is the scaling efficiency, as a number between zero and one?",
            answer,
            "",
            (
                Slip(
                    alone / together,
                    f"{number(alone / together)} is the speed-up. Efficiency compares it with the {ranks} "
                    "GPUs that were used for it.",
                    "M17",
                ),
                Slip(
                    together / alone,
                    f"That is the new step time over the old one. It says nothing of the {ranks} GPUs, and "
                    "gets smaller the better it goes.",
                ),
                Slip(
                    1 - together / alone,
                    "That is the part of the time that was saved. Even perfect scaling would not bring it to "
                    "one.",
                ),
            ),
            tolerance=0.005,
            feedback=f"{number(own)} ms would be perfect on {ranks} GPUs; it took {together} ms.",
            other=f"How long would a step take on {ranks} GPUs if nothing were lost? Compare that with "
            f"{together} ms.",
            solution=(
                rf"The speed-up is $T_1/T_R = {alone}/{together} = {number(alone / together)}$.",
                f"With nothing lost it would be $R = {ranks}$.",
                rf"$\frac{{T_1}}{{R \, T_R}} = \frac{{{alone}}}{{{ranks} \cdot {together}}} = "
                f"{number(answer)}$.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _s2(draw: Random) -> Drawn:
    ranks, alone = draw.choice((2, 4, 8, 16)), draw.randrange(80, 400, 10)
    together = round(alone * draw.uniform(1.05, 1.6))
    answer = ranks * alone / together
    scene = clocked(
        "x-S2", f"The same batch on each of {ranks} ranks", [alone / 1e3] * ranks,
        ring_bytes(ranks, (together - alone) / 1e3),
    )  # fmt: skip
    return Drawn(
        numeric(
            f"A step takes {alone} ms on one GPU. On {ranks} GPUs, each with as large a batch as the one "
            f"had, it takes {together} ms. How many times as many samples does the job get through in the "
            "same time?",
            answer,
            "times",
            (
                Slip(
                    alone / together,
                    f"The step has become no shorter, but it brings {ranks} times as many samples. Step time "
                    "alone is no speed-up here.",
                    "M17",
                ),
                Slip(
                    ranks,
                    f"{ranks} times would need steps of {alone} ms as before. Communication has made them "
                    f"{together} ms.",
                    "M17",
                ),
                Slip(
                    together / alone,
                    f"That is how much longer a step takes. Asked for is how many samples {ranks} GPUs get "
                    "through.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{ranks} times the samples in {number(together / alone)} times the time.",
            other="How many samples does a step bring now, against before, and how long does it take?",
            solution=(
                f"A step brings $R = {ranks}$ times as many samples.",
                f"It takes $t_R/t_1 = {together}/{alone} = {number(together / alone)}$ times as long.",
                rf"$R \, t_1/t_R = {ranks} \cdot {alone}/{together} = {number(answer)}$.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _s3(draw: Random) -> Drawn:
    ranks, size, rate = (
        draw.choice((4, 8, 16)),
        draw.choice((100, 200, 400, 800)),
        draw.choice((5, 10, 20, 25)),
    )
    compute = ranks * draw.randrange(20, 120, 5)
    exchange = 2 * (ranks - 1) * size / (ranks * rate)  # ms
    own = compute // ranks
    answer = own + exchange
    scene = clocked("x-S3", f"The same batch on {ranks} ranks", [own / 1e3] * ranks, size * 1e6, rate * 1e9)
    return Drawn(
        numeric(
            f"One GPU computes {compute} ms for a batch. {ranks} GPUs share that batch, then all-reduce "
            f"{size} MB on a ring of {rate} GB/s, without overlap and without latency. How many "
            "milliseconds is a step?",
            answer,
            "ms",
            (
                Slip(
                    own,
                    f"{own} ms is computing alone. The gradient of {size} MB still has to go round before "
                    "anybody can take the step.",
                    "M17",
                ),
                Slip(
                    (compute + exchange) / ranks,
                    f"Only computing is divided by {ranks}. The ring takes {number(exchange)} ms, and would "
                    "take no less with more GPUs.",
                ),
                Slip(
                    compute + exchange,
                    f"The batch is shared: each GPU computes a part of it, {own} ms instead of {compute}.",
                    "M17",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{own} ms of computing and {number(exchange)} ms of exchange.",
            other="Which part of the time becomes shorter with more GPUs, and which comes on top?",
            solution=(
                f"Computing is divided: $c/R = {compute}/{ranks} = {own}$ ms.",
                r"The ring comes on top: $\frac{2(R-1)S}{R \, W} = "
                rf"\frac{{{2 * (ranks - 1)} \cdot {size}}}{{{ranks} \cdot {rate}}} = {number(exchange)}$ ms.",
                rf"${own} + {number(exchange)} = {number(answer)}$ ms, against {compute} ms on one GPU.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _s4(draw: Random) -> Drawn:
    ranks, hours = draw.choice((4, 8, 16, 32)), draw.choice((40, 60, 100, 120, 200, 240, 300, 480))
    efficiency = draw.choice((0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9))
    answer = hours / efficiency
    return Drawn(
        numeric(
            f"A job needs {hours} hours on one GPU. On {ranks} GPUs it runs with a scaling efficiency of "
            f"{number(efficiency)}. How many GPU hours are billed?",
            answer,
            "h",
            (
                Slip(
                    hours,
                    f"{hours} GPU hours would be billed if nothing were lost. At {number(efficiency)} the "
                    "GPUs spend part of their time exchanging and waiting, which is billed too.",
                ),
                Slip(
                    hours / ranks,
                    f"That is how long you wait at best. All {ranks} GPUs are billed for that time.",
                    "M17",
                ),
                Slip(
                    hours * efficiency,
                    "Losses make it dearer, not cheaper: divide by the efficiency.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{number(answer / ranks)} hours of waiting, on {ranks} GPUs.",
            other=f"How long does the job take on {ranks} GPUs? All of them are billed for as long.",
            solution=(
                rf"It takes $\frac{{H}}{{R \, e}} = \frac{{{hours}}}{{{ranks} \cdot {number(efficiency)}}} = "
                rf"{number(answer / ranks)}$ hours.",
                f"All {ranks} GPUs are billed for that long.",
                f"$H/e = {hours}/{number(efficiency)} = {number(answer)}$ GPU hours: you get it sooner, and "
                "pay for what is lost.",
            ),
        ),
        series(
            f"GPU hours of a job of {hours} hours on one GPU",
            "scaling efficiency",
            "GPU hours",
            (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
            lambda e: hours / e,
            efficiency,
        ),
    )


ITEMS = (
    Item("x-S1", "Scaling efficiency", "scaling", NUMBER, _s1),
    Item("x-S2", "Speed-up with more samples", "scaling", NUMBER, _s2),
    Item("x-S3", "Step time with more GPUs", "scaling", NUMBER, _s3),
    Item("x-S4", "What is billed", "scaling", NUMBER, _s4),
)
