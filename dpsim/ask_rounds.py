"""Questions about the next round of an all-reduce: which chunk goes, to whom, who is in it, which number."""

from __future__ import annotations

import numpy as np

from dpsim.ahead import Ahead
from dpsim.origins import inside_text
from dpsim.questions import Asked, Slip
from dpsim.replay import AllReduce
from dpsim.rounds import rule
from dpsim.telling import MOST_TOLD
from dpsim.trace import Ints
from dpsim.wording import number, plural


def about_round(a: Ahead) -> Asked | None:
    """A question about the round that comes; None where all of it is shown already."""
    part, n = a.all_reduce, a.place[2]
    low, high = part.schedule.round_starts[n : n + 2].tolist()
    fresh = [i for i in range(low, high) if a.comes(part.arrivals[i].event)]
    if not fresh:
        return None
    ways = [_which_chunk, _who_is_in, _which_number, _to_whom]
    a.draw.shuffle(ways)
    return next((asked for way in ways if (asked := way(a, part, n, fresh))), None)


def about_whole(a: Ahead) -> Asked | None:
    """A question about an all-reduce of which no message is known."""
    part = a.all_reduce
    fresh = [i for i, event in enumerate(part.whole.tolist()) if a.comes(event)]
    size = a.trace.scenario.world_size
    if not fresh or size == 1:
        return None
    rank = a.draw.choice(fresh)
    return a.choose(
        f"A whole all-reduce comes next. Whose contributions will be in the gradient on rank {rank} then?",
        (f"those of all {size} ranks", "An all-reduce leaves the sum over all ranks on every one of them."),
        [
            (f"that of rank {rank} alone", "That is so before it: the all-reduce brings the others' in."),
            (
                f"those of ranks {rank} and {(rank + 1) % size}",
                "Two neighbours are a single transfer; an all-reduce is over when everybody's is everywhere.",
            ),
            (
                f"those of all ranks but rank {rank}",
                "A rank's own contribution is part of the sum as well.",
            ),
        ],
    )


def _called(a: Ahead, part: AllReduce, chunk: int) -> str:
    """A chunk by name, with its bucket where there are several."""
    made = a.trace.buckets(a.step)
    of = f" of the bucket with {', '.join(made[part.bucket].names)}" if len(made) > 1 else ""
    return f"{_chunk(part, chunk)}{of}"


def _chunk(part: AllReduce, chunk: int) -> str:
    return "the whole vector" if len(part.schedule.bounds) == 2 else f"chunk {chunk}"


def _said(part: AllReduce, n: int) -> str:
    """The rule of a round as a sentence, where it has one."""
    lines = rule(part.schedule, n) if part.schedule.algorithm == "ring" else []
    return f" In this round {lines[0]}." if lines else ""


def _which_chunk(a: Ahead, part: AllReduce, n: int, fresh: list[int]) -> Asked | None:
    s = part.schedule
    rows = slice(*s.round_starts[n : n + 2])
    senders = s.source[rows].tolist()
    alone = [i for i in fresh if senders.count(int(s.source[i])) == 1]
    if not alone or len(s.bounds) == 2:
        return None
    row = a.draw.choice(alone)
    rank, chunk = int(s.source[row]), int(s.chunk[row])
    by = dict(zip(s.chunk[rows].tolist(), senders, strict=True))
    before = s.chunk[(s.round == n - 1) & (s.source == rank)].tolist()
    gets = s.chunk[rows][s.destination[rows] == rank].tolist()

    def why(other: int) -> str:
        if other in gets:
            return f"Chunk {other} comes to rank {rank} in this round; it sends what it had before."
        if other in before:
            return f"Rank {rank} sent chunk {other} in the round before."
        if other in by:
            return f"Chunk {other} is sent by rank {by[other]} in this round."
        return f"Nobody sends chunk {other} in this round."

    sizes = s.chunk_elements
    count = len(sizes)
    likely = [*gets, *before, rank % count, (chunk + 1) % count, (chunk - 1) % count, *range(count)]
    wrong = [(f"chunk {c}", why(c)) for c in likely if c != chunk and sizes[c] > 0]
    right = f"Rank {rank} sends chunk {chunk} to rank {s.destination[row]}.{_said(part, n)}"
    many = len(a.trace.buckets(a.step)) > 1
    of = f", of the bucket with {', '.join(a.trace.buckets(a.step)[part.bucket].names)}" if many else ""
    return a.choose(
        f"Which chunk does rank {rank} send in the next round{of}?", (f"chunk {chunk}", right), wrong
    )


def _to_whom(a: Ahead, part: AllReduce, n: int, fresh: list[int]) -> Asked | None:
    s = part.schedule
    size = s.world_size
    if size < 3 or (s.algorithm == "ring" and n):  # round a ring it is always the same neighbour
        return None
    rows = slice(*s.round_starts[n : n + 2])
    goes: dict[int, set[int]] = {}
    for source, destination in zip(s.source[rows].tolist(), s.destination[rows].tolist(), strict=True):
        goes.setdefault(source, set()).add(destination)
    idle = [r for r in range(size) if r not in goes]
    single = [int(s.source[i]) for i in fresh if len(goes[int(s.source[i])]) == 1]
    if not single and not idle:
        return None
    rank = a.draw.choice(single if single and (not idle or a.draw.random() < 0.7) else idle)
    to = min(goes[rank]) if rank in goes else None
    comes = {d: source for source, ends in goes.items() for d in ends}

    def why(other: int) -> str:
        return (
            f"Rank {other} gets something in this round, but from rank {comes[other]}."
            if other in comes
            else f"Nobody sends to rank {other} in this round."
        )

    likely = [(rank + 1) % size, (rank - 1) % size, 0, rank ^ 1, rank ^ 2, *range(size)]
    others = [r for r in likely if r not in (rank, to) and r < size]
    if rank not in goes:
        others = [r for r in others if comes.get(r) != rank]
    wrong = [(f"to rank {r}", why(r)) for r in others]
    none = ("to none: it sends nothing", f"Rank {rank} does send in this round, to rank {to}.")
    if to is None:
        right = (none[0], f"Rank {rank} sends nothing in this round{_gets(rank, comes)}.")
    else:
        right = (f"to rank {to}", f"Rank {rank} sends to rank {to}.{_said(part, n)}")
        wrong.insert(2, none)
    return a.choose(f"To which rank does rank {rank} send in the next round?", right, wrong)


def _gets(rank: int, comes: dict[int, int]) -> str:
    return f": it gets something from rank {comes[rank]}" if rank in comes else " and gets nothing"


def _cell(a: Ahead, part: AllReduce, n: int, fresh: list[int]) -> tuple[int, int, list[int], Ints]:
    """A cell that something of the round is still to come to: rank, chunk, the round's arrivals in it, and
    who was in it before the round."""
    s = part.schedule
    row = a.draw.choice(fresh)
    rank, chunk = int(s.destination[row]), int(s.chunk[row])
    into = np.flatnonzero((s.destination == rank) & (s.chunk == chunk))
    now, before = into[s.round[into] == n].tolist(), into[s.round[into] < n].tolist()
    own = np.arange(s.world_size) == rank
    return rank, chunk, now, part.arrivals[before[-1]].counts if before else own.astype(np.int64)


def _who(counts: Ints) -> str:
    inside = np.flatnonzero(counts)
    if len(inside) == len(counts):
        return f"all {len(counts)} ranks"
    return f"rank {inside[0]} alone" if len(inside) == 1 else f"ranks {inside_text(counts)}"


def _who_is_in(a: Ahead, part: AllReduce, n: int, fresh: list[int]) -> Asked | None:
    rank, chunk, now, before = _cell(a, part, n, fresh)
    if not a.comes(part.arrivals[now[-1]].event):
        return None
    last = part.arrivals[now[-1]]
    after, came = last.counts, last.payload_counts
    source = int(part.schedule.source[now[-1]])
    name = _called(a, part, chunk)
    everybody = np.ones_like(after)
    without = after.copy()
    without[rank] = 0
    done = "is kept in place of what was there"
    if last.adds:
        done = f"is added to what was there, of {_who(before)}"
    if len(now) > 1:
        done = f"is added, and {plural(len(now) - 1, 'more message')} of this round"
    wrong = [
        (_who(before), "That is who is in it now: the round changes it."),
        (_who(came), f"That is what comes, from rank {source}; what is there already stays in the sum."),
        (_who(everybody), "Not yet: more rounds have to follow before everybody is in it."),
        (_who(without), f"Rank {rank}'s own contribution is in the sum as well."),
    ]
    wrong = [(text, why) for text, why in wrong if text != "ranks "]
    right = f"Rank {source} sends {name}, made of {_who(came)}; on rank {rank} it {done}."
    return a.choose(
        f"Whose contributions will be in {name} on rank {rank} after the next round?",
        (_who(after), right),
        wrong,
    )


def _which_number(a: Ahead, part: AllReduce, n: int, fresh: list[int]) -> Asked | None:
    if part.schedule.world_size > MOST_TOLD:
        return None
    rank, chunk, now, _ = _cell(a, part, n, fresh)
    arrivals = [part.arrivals[i] for i in now]
    if not all(a.comes(arrival.event) for arrival in arrivals):
        return None
    held, answer = float(arrivals[0].held[0]), float(arrivals[-1].now[0])
    came = [float(arrival.payload[0]) for arrival in arrivals]
    seen = [held, *came] if arrivals[-1].adds else came
    tolerance = a.cell(answer)[1] + sum(a.cell(v)[1] for v in seen)  # whoever reckons with what is shown
    slips = [
        (held, "That is what the cell holds now: something comes to it in this round."),
        (came[-1], "That is what comes; the rank adds it to what it holds.")
        if arrivals[-1].adds
        else (held + came[-1], "What comes is the complete sum: it is kept as it is, and not added again."),
        ((held + sum(came)) / 2, "Sums travel, not means: nothing is divided on the way."),
    ]
    wrong: list[Slip] = []
    for value, feedback in slips:
        if all(abs(value - other) > 2 * tolerance for other in (answer, *(slip.value for slip in wrong))):
            wrong.append(Slip(value, feedback))
    if not wrong:
        return None
    name, first = _called(a, part, chunk), "" if len(arrivals[0].now) == 1 else "first "
    sources = sorted({int(part.schedule.source[i]) for i in now})
    by = f"rank {sources[0]}" if len(sources) == 1 else f"{len(sources)} ranks, one after another"
    terms = " + ".join(f"({number(v)})" if v < 0 else number(v) for v in seen)
    done = f"{terms} = {number(answer)}" if arrivals[-1].adds else f"{number(answer)} comes and is kept"
    return Asked(
        "number",
        f"In the next round rank {rank} gets {name} from {by}. Which {first}number will its cell hold then? "
        "Reckon with the numbers on the cards.",
        answer=answer,
        tolerance=tolerance,
        wrong=tuple(wrong),
        feedback=f"Yes: {done}.",
        other=f"Take what rank {rank} holds in {_chunk(part, chunk)}, and what the sender holds: is "
        "it added, or kept in its place?",
        written=number(answer),
    )
