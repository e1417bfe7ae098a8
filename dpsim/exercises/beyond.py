"""Asynchrony, compression, topology."""

from __future__ import annotations

from random import Random

from dpsim.exercises.items import NUMBER, WHOLE, Drawn, Item, near, numeric, series
from dpsim.exercises.scenes import clocked, link, ring_bytes
from dpsim.questions import Slip
from dpsim.wording import number


def _d1(draw: Random) -> Drawn:
    ranks = draw.randint(4, 32)
    return Drawn(
        numeric(
            f"{ranks} equally fast workers train asynchronously: each takes the parameters, computes a "
            "gradient and applies it, and they do so in turn. How many updates of others lie between a "
            "worker's reading and its own update: how stale is its gradient?",
            ranks - 1,
            "updates",
            (
                Slip(
                    0,
                    "Without staleness nobody else would have updated in the meantime. That is the "
                    "synchronous step, which waits for all.",
                ),
                Slip(
                    1,
                    f"That would fit two workers. Here all {ranks} take their turn before the first one is "
                    "back.",
                ),
                Slip(
                    (ranks - 1) / 2,
                    "The mean is no half: each worker's gradient is equally stale, since all others update "
                    "exactly once while it computes.",
                ),
            ),
            tolerance=WHOLE,
            feedback="While one worker computes, each of the others updates once.",
            other="How many workers get their turn between two turns of the same one?",
            solution=(
                "In turn and equally fast means: after its update a worker reads, and comes back one full "
                "turn later.",
                f"In between each of the other $R - 1 = {ranks - 1}$ workers has updated once.",
                f"Its gradient belongs to parameters that are {ranks - 1} updates old.",
            ),
        ),
        series(
            "Staleness of equal asynchronous workers in turn",
            "workers",
            "updates",
            (1, 2, 4, 8, 16, 32),
            lambda r: r - 1,
            ranks,
        ),
    )


def _k1(draw: Random) -> Drawn:
    percent = draw.choice((0.5, 1, 2, 2.5, 4, 5, 8, 10, 20))
    fraction = percent / 100
    answer = 1 / (2 * fraction)
    return Drawn(
        numeric(
            f"Top-k compression keeps the largest {number(percent)} % of a gradient's entries and sends each "
            "as an fp32 value with an int32 index. By which factor does a rank's message become smaller?",
            answer,
            "times",
            (
                Slip(
                    1 / fraction,
                    f"That counts the values alone. Whoever gets {number(percent)} % of the entries must be "
                    "told which they are: an index for each, as large as the value.",
                    "M21",
                ),
                Slip(
                    1 / (1 - fraction),
                    f"That would be right if {number(percent)} % were left out. They are what is kept.",
                ),
                Slip(
                    1 / fraction**2,
                    "The fraction counts once, for the entries. The index does not multiply the gain, it "
                    "halves it.",
                ),
            ),
            tolerance=near(answer),
            feedback="Few entries, but eight bytes for each instead of four.",
            other="How many bytes are sent for an entry that is kept, against four for every entry before?",
            solution=(
                "Before: 4 bytes for every entry.",
                f"Now: $4 + 4 = 8$ bytes for ${number(fraction)}$ of the entries, ${number(8 * fraction)}$ "
                "bytes for each of all.",
                rf"$\frac{{4}}{{8 k}} = \frac{{1}}{{2k}} = {number(answer)}$. And the gradient is no longer "
                "the same.",
            ),
        ),
        series(
            "How much smaller top-k makes a message",
            "entries kept, %",
            "times",
            (0.5, 1, 2, 3, 5, 8, 10, 15, 20),
            lambda p: 50 / p,
            percent,
        ),
    )


def _k2(draw: Random) -> Drawn:
    forward, backward = draw.randrange(10, 80, 2), draw.randrange(20, 160, 2)
    reduce_ms = draw.randrange(20, 200, 4)
    answer = forward + backward + reduce_ms / 2
    compute = forward + backward
    scene = clocked(
        "x-K2", "A gradient of half the bytes", [compute / 1e3] * 4, ring_bytes(4, reduce_ms / 2e3),
        forward=forward / compute,
    )  # fmt: skip
    return Drawn(
        numeric(
            f"Forward takes {forward} ms, backward {backward} ms, the all-reduce in fp32 {reduce_ms} ms; "
            "nothing overlaps. A hook sends the gradient as fp16; bandwidth alone counts, and converting "
            "takes no time. How many milliseconds does a step take, without the optimizer?",
            answer,
            "ms",
            (
                Slip(
                    (compute + reduce_ms) / 2,
                    f"Only what travels is halved. Forward and backward compute as before, {compute} ms.",
                    "M21",
                ),
                Slip(
                    compute,
                    f"The gradient still travels, with half its bytes: {number(reduce_ms / 2)} ms are left "
                    f"of {reduce_ms}.",
                    "M21",
                ),
                Slip(
                    compute + reduce_ms / 4,
                    "From four bytes to two is a half, not a quarter.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"Half the bytes take {number(reduce_ms / 2)} ms, and computing stays.",
            other="Which of the three times depends on how many bytes an entry has?",
            solution=(
                f"Computing is as before: $f + b = {forward} + {backward} = {compute}$ ms.",
                f"Half the bytes take half the time: $a/2 = {number(reduce_ms / 2)}$ ms.",
                rf"$f + b + a/2 = {number(answer)}$ ms.",
            ),
            link=link(scene, "optimizer"),
        )
    )


def _p1(draw: Random) -> Drawn:
    ranks, size = draw.choice((8, 16, 32)), draw.choice((100, 200, 400, 800))
    fast, slow = draw.choice((100, 150, 200, 300, 450)), draw.choice((10, 12.5, 20, 25, 50))
    sent = 2 * (ranks - 1) * size / ranks

    def time(rate: float) -> float:
        return sent / rate  # MB over GB/s: ms

    answer = time(slow)
    return Drawn(
        numeric(
            f"A ring of {ranks} ranks reduces {size} MB. Within a machine its links carry {fast} GB/s; "
            f"between two machines it passes links of {number(slow)} GB/s. Latency does not count. How many "
            "milliseconds does it take?",
            answer,
            "ms",
            (
                Slip(
                    time(fast),
                    "That takes all links for fast ones. Every chunk passes the slow one too, and the "
                    f"{fast} GB/s wait for it.",
                    "M16",
                ),
                Slip(
                    time((fast + slow) / 2),
                    "A mean of the bandwidths would need the fast links to take over traffic of the slow "
                    "one. Each link carries the same bytes.",
                    "M16",
                ),
                Slip(
                    2 * (ranks - 1) * size / slow,
                    f"That sends all {size} MB in each round. Only a chunk travels, 1/{ranks} of it.",
                    "M15",
                ),
            ),
            tolerance=near(answer),
            feedback=f"{number(sent)} MB have to pass the slow link, and nothing is done before they have.",
            other="How many bytes pass each link of a ring? On which of them does that take longest?",
            solution=(
                f"Every link carries $2(R-1)S/R = {number(sent)}$ MB, the slow one too.",
                "In every round the neighbours of the slow link come last, and the next round needs what it "
                "brings.",
                rf"$\frac{{2(R-1)S}}{{R \, W}} = {number(sent)}/{number(slow)} = {number(answer)}$ ms, with "
                "the slow $W$.",
            ),
        ),
        series(
            f"Time of a ring of {ranks} ranks for {size} MB",
            "slowest link, GB/s",
            "ms",
            (10, 15, 20, 30, 50, 100, 200),
            time,
            slow,
        ),
    )


def _p2(draw: Random) -> Drawn:
    machines, nics, size = (
        draw.choice((2, 3, 4, 8)),
        draw.choice((2, 4, 8)),
        draw.choice((120, 240, 480, 960)),
    )
    whole = 2 * (machines - 1) * size / machines
    answer = whole / nics
    ranks = machines * nics
    return Drawn(
        numeric(
            f"{machines} machines hold {nics} GPUs each, and each GPU has a network card of its own. {size} "
            "MB are reduced in a hierarchy: first a reduce-scatter within each machine, then a ring "
            "between the machines for each part, then an all-gather within. How many MB does each card "
            "send?",
            answer,
            "MB",
            (
                Slip(
                    whole,
                    f"That is a ring of {machines} machines for all {size} MB. Each of the {nics} cards "
                    f"carries only the part that its GPU has reduced, 1/{nics} of it.",
                    "M16",
                ),
                Slip(
                    2 * (ranks - 1) * size / ranks,
                    f"That is one flat ring over all {ranks} GPUs, as if there were no machines.",
                ),
                Slip(
                    answer / nics,
                    f"That divides by the {nics} cards twice: after the reduce-scatter each GPU holds "
                    f"1/{nics}, and its own card sends that.",
                ),
            ),
            tolerance=near(answer),
            feedback=f"Each card takes part in a ring of {machines} for {number(size / nics)} MB.",
            other="How large is the part that one GPU holds after the reduce-scatter within its machine?",
            solution=(
                f"After the reduce-scatter within a machine each GPU holds $S/g = {size}/{nics} = "
                f"{number(size / nics)}$ MB.",
                f"Its card takes part in a ring of $M = {machines}$ machines for that part.",
                r"$\frac{2(M-1)}{M} \cdot \frac{S}{g} = "
                rf"\frac{{2 \cdot {machines - 1}}}{{{machines}}} \cdot {number(size / nics)} = "
                f"{number(answer)}$ MB.",
            ),
        ),
        series(
            f"What each card sends between {machines} machines for {size} MB",
            "cards in a machine",
            "MB",
            (1, 2, 4, 8),
            lambda g: whole / g,
            nics,
        ),
    )


ITEMS = (
    Item("x-D1", "How stale a gradient is", "beyond", NUMBER, _d1),
    Item("x-K1", "What top-k saves", "beyond", NUMBER, _k1),
    Item("x-K2", "What half the bytes save", "beyond", NUMBER, _k2),
    Item("x-P1", "A ring over a slow link", "beyond", NUMBER, _p1),
    Item("x-P2", "Machine by machine", "beyond", NUMBER, _p2),
)
