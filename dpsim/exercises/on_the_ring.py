"""The ring by hand: which chunk goes where, and the whole schedule as a puzzle."""

from __future__ import annotations

from functools import partial
from random import Random

from dpsim.exercises.items import Drawn, Item
from dpsim.exercises.scenes import given, link
from dpsim.questions import Asked, Option
from dpsim.scenario import Scenario

RINGS = (3, 4, 5, 6)


def _scene(name: str, ranks: int, draw: Random) -> Scenario:
    """One chunk is one element, and every rank brings numbers of its own."""
    sums = [[[draw.randint(1, 9) for _ in range(ranks)]] for _ in range(ranks)]
    return given(name, f"A ring of {ranks} ranks, chunk by chunk", sums, [1] * ranks)


def _before(round_number: int) -> str:
    """The beat before a round, where nothing of it is given away."""
    return f"allreduce.b0.r{round_number - 1}" if round_number else "backward"


def _cell(draw: Random) -> Drawn:
    ranks = draw.randint(3, 8)
    rank, place = draw.randrange(ranks), draw.randrange(ranks - 1)  # rounds are numbered from 1 on the stage
    scene = _scene("x-cell-ring", ranks, draw)
    cells, question, solution, beat = draw.choice((_sent, _received, _owned, _passed_on))(ranks, rank, place)
    options: dict[int, Option] = {}
    for (
        chunk,
        feedback,
    ) in cells:  # the first is right; where two mistakes lead to one cell, the first explains it
        text = f"{rank}.{chunk % ranks}"
        options.setdefault(chunk % ranks, Option(text, feedback, right=not options))
    return Drawn(
        Asked(
            "cell",
            question,
            tuple(options.values()),
            answer=ranks,
            other=f"Look among rank {rank}'s own cells. Chunks move to the right neighbour, one place a "
            "round, and a rank starts the reduce-scatter with the chunk of its own number.",
            solution="\n\n".join(solution),
            link=link(scene, beat),
        )
    )


Cell = tuple[tuple[tuple[int, str], ...], str, tuple[str, ...], str]


def _sent(ranks: int, rank: int, place: int) -> Cell:
    """What a rank sends in a round of the reduce-scatter."""
    n, right = place + 1, (rank - place) % ranks
    return (
        (
            (right, f"Rank {rank} starts with chunk {rank} and goes one back in every round: chunk {right} "
            "now."),
            (rank - n, "That chunk arrives in this round. It is sent on in the next one."),
            (rank + place, "Forwards instead of backwards: chunks go to the right, so the next one to send "
            "on is the one that came from the left."),
            (rank - place + 1, "One round too early: this chunk has just been sent.") if place else
            (rank + 1, f"That is the chunk that rank {rank} will own at the end. It comes back to it last."),
        ),
        f"A ring of {ranks} ranks. Which chunk does rank {rank} send in round {n} of the reduce-scatter? "
        "Choose its cell.",
        (
            "In round 1 rank r sends chunk r; then always the one that it received the round before.",
            "In round $s + 1$ that is chunk $(r - s) \\bmod R$.",
            f"$({rank} - {place}) \\bmod {ranks} = {right}$.",
        ),
        _before(place),
    )  # fmt: skip


def _received(ranks: int, rank: int, place: int) -> Cell:
    """What changes on a rank in a round of the reduce-scatter."""
    n, left = place + 1, (rank - 1) % ranks
    right = (left - place) % ranks
    return (
        (
            (right, f"Rank {left} sends it chunk {right} in this round, and rank {rank} adds its own number "
            "to it."),
            (rank - place, "That is what the rank sends in this round. Sending changes nothing on the "
            "sender."),
            (rank - n - 1, "One round too late: this chunk is still on its way."),
            (rank + n, "That comes from the wrong side: what a rank receives is from its left neighbour."),
        ),
        f"A ring of {ranks} ranks. Which chunk is added to on rank {rank} in round {n} of the "
        "reduce-scatter? Choose its cell.",
        (
            f"Rank {rank} receives from its left neighbour, rank {left}.",
            f"In round $s + 1$ rank r sends chunk $(r - s) \\bmod R$; for rank {left} that is "
            f"$({left} - {place}) \\bmod {ranks} = {right}$.",
            f"So chunk {right} on rank {rank} grows by rank {rank}'s own number.",
        ),
        _before(place),
    )  # fmt: skip


def _owned(ranks: int, rank: int, place: int) -> Cell:
    """Which chunk is complete on a rank after the reduce-scatter."""
    right = (rank + 1) % ranks
    return (
        (
            (right, f"It came to rank {rank} in the last round, and all {ranks} ranks are in it."),
            (rank, f"Chunk {rank} is where rank {rank} began. It has gone round since then, and is complete "
            "one rank to the left."),
            (rank - 1, "That is one to the wrong side: the chunk that arrives last has started right of this "
            "rank."),
            (rank + 2, "That chunk was sent on in the last round, with one rank still missing in it."),
        ),
        f"A ring of {ranks} ranks has just finished its reduce-scatter. Which chunk is complete on rank "
        f"{rank}? Choose its cell.",
        (
            f"Chunk c starts on rank c and moves one rank to the right in each of $R - 1 = {ranks - 1}$ "
            "rounds.",
            "It ends on rank $(c + R - 1) \\bmod R$, which is the one left of where it began.",
            f"On rank {rank} that is chunk $({rank} + 1) \\bmod {ranks} = {right}$.",
        ),
        _before(ranks - 2),
    )  # fmt: skip


def _passed_on(ranks: int, rank: int, place: int) -> Cell:
    """What a rank sends in a round of the all-gather."""
    n, right = place + 1, (rank + 1 - place) % ranks
    return (
        (
            (right, "It starts with the chunk it owns, and sends on in each round what came in the one "
            f"before: chunk {right} now."),
            (rank - place, "That would be right if the rank owned the chunk of its own number. After the "
             "reduce-scatter it owns the next one."),
            (rank + 1 + place, "Forwards instead of backwards: what it can send on has come from the left."),
            (rank + 2 - place, "One round too early: this chunk has just been sent."),
        ),
        f"A ring of {ranks} ranks. Which chunk does rank {rank} send in round {n} of the all-gather? "
        "Choose its cell.",
        (
            "After the reduce-scatter rank r owns chunk $(r + 1) \\bmod R$, complete; round 1 sends that.",
            "In round $s + 1$ it sends chunk $(r + 1 - s) \\bmod R$.",
            f"$({rank} + 1 - {place}) \\bmod {ranks} = {right}$.",
        ),
        _before(ranks - 1 + place),
    )  # fmt: skip


def _puzzle(ranks: int, draw: Random) -> Drawn:
    rounds = 2 * (ranks - 1)
    scene = _scene(f"x-ring-{ranks}", ranks, draw)
    return Drawn(
        Asked(
            "ring",
            f"{ranks} ranks stand in a ring, each with a gradient of {ranks} chunks. Say for every round "
            "which chunk each rank sends to its right neighbour, until every rank holds the whole sum of "
            "every chunk, with every rank in it exactly once. Use as few rounds as you can.",
            answer=ranks,
            feedback=f"Every chunk is complete on every rank after {rounds} rounds, and no link was ever "
            "idle.",
            other="Not every rank holds every chunk with all ranks in it exactly once.",
            solution="\n\n".join(
                (
                    f"Reduce-scatter, {ranks - 1} rounds: in round $s = 0, 1, \\dots$ rank r sends chunk "
                    "$(r - s) \\bmod R$, and its neighbour adds.",
                    "Then rank r owns chunk $(r + 1) \\bmod R$ complete.",
                    f"All-gather, {ranks - 1} rounds: rank r sends chunk $(r + 1 - s) \\bmod R$, and its "
                    "neighbour keeps it.",
                )
            ),
            link=link(scene, "start"),
        )
    )


ITEMS = (
    Item("x-cell-ring", "Which chunk, and when", "ring", ("cell",), _cell),
    *(
        Item(f"x-ring-{ranks}", f"A ring of {ranks} by hand", "ring", ("ring",), partial(_puzzle, ranks))
        for ranks in RINGS
    ),
)
