"""The ring puzzle: somebody composes the transfers of an all-reduce, and the values interpreter judges them.

R ranks, R chunks. A transfer says who sends which chunk to whom, and whether it is added there or kept in
place of what was there; a round reads the state at its start. Two things may not be in one round, as their
outcome would hang on their order: a transfer that stands twice, and a chunk that is kept and gets something
else as well. Everything else may be, and only costs: a port passes one chunk at a time, so that a round in
which some rank sends or receives k chunks lasts k turns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.checks import InputError, whole
from dpsim.collectives import COPY, REDUCE, Schedule, build, contributions
from dpsim.questions import Asked, Verdict, grade
from dpsim.wording import plural, ranks

FEWEST_RANKS, MOST_RANKS = 3, 6
MOST_ROUNDS, MOST_TRANSFERS = 40, 400
ADD, KEEP = "+", "="
_OPS = {ADD: REDUCE, KEEP: COPY}
_TRANSFER = re.compile(r"([0-9])>([0-9])\.([0-9])([+=])", re.ASCII)
_LONGEST = MOST_TRANSFERS * len("0>1.0+;") + MOST_ROUNDS

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Transfer:
    """Rank `source` sends `chunk` to rank `destination`, which adds it ("+") or keeps it ("=")."""

    source: int
    destination: int
    chunk: int
    op: str

    def __str__(self) -> str:
        return f"{self.source}>{self.destination}.{self.chunk}{self.op}"

    @property
    def in_words(self) -> str:
        """As a clause: rank 0 sends chunk 2 to rank 1, which adds it."""
        done = "adds" if self.op == ADD else "keeps"
        return f"rank {self.source} sends chunk {self.chunk} to rank {self.destination}, which {done} it"


Rounds = tuple[tuple[Transfer, ...], ...]


def parse(world_size: int, given: str) -> Rounds:
    """The rounds that stand in a text such as "0>1.0+;1>2.1+|2>0.1=": at least one, and only the last may be
    empty (it is the one that is being composed). InputError where it breaks a rule."""
    size = whole("world_size", world_size, FEWEST_RANKS, MOST_RANKS)
    if not isinstance(given, str) or len(given) > _LONGEST:
        raise InputError("transfers", f"must be at most {MOST_TRANSFERS} transfers", given)
    rounds = given.split("|")
    if len(rounds) > MOST_ROUNDS:
        raise InputError("transfers", f"must be at most {MOST_ROUNDS} rounds", len(rounds))
    if "" in rounds[:-1]:
        raise InputError("transfers", "must have no empty round but the last", given)
    made = tuple(tuple(_transfer(size, part) for part in text.split(";") if text) for text in rounds)
    if sum(map(len, made)) > MOST_TRANSFERS:
        raise InputError("transfers", f"must be at most {MOST_TRANSFERS} transfers", sum(map(len, made)))
    return made


def _transfer(size: int, text: str) -> Transfer:
    found = _TRANSFER.fullmatch(text)
    if found is None:
        raise InputError("transfers", "must be written like 0>1.2+ or 0>1.2=", text)
    source, destination, chunk = (int(digit) for digit in found.groups()[:3])
    if max(source, destination, chunk) >= size:
        raise InputError("transfers", f"must name ranks and chunks from 0 to {size - 1}", text)
    if source == destination:
        raise InputError("transfers", "must go to another rank: a rank cannot send to itself", text)
    return Transfer(source, destination, chunk, found[4])


def written(rounds: Sequence[Sequence[Transfer]]) -> str:
    """The rounds as text, which `parse` reads back."""
    return "|".join(";".join(map(str, transfers)) for transfers in rounds)


def schedule_of(world_size: int, rounds: Sequence[Sequence[Transfer]]) -> Schedule:
    """The rounds as the schedule that every interpreter reads, one element a chunk."""
    rows = sorted(
        (n, t.source, t.destination, t.chunk, _OPS[t.op])
        for n, transfers in enumerate(rounds)
        for t in transfers
    )
    columns = np.array(rows, np.int32).reshape(-1, 5).T
    return Schedule("composed", world_size, np.arange(world_size + 1), len(rounds), *columns)


def state_after(world_size: int, given: str) -> Counts:
    """Who is in what after all rounds: how often the last axis' rank is in a chunk on a rank, [R, C, R]."""
    return _state(world_size, parse(world_size, given))


def _state(size: int, rounds: Rounds) -> Counts:
    return contributions(schedule_of(size, rounds))[0]


def solution(world_size: int) -> str:
    """The ring's own schedule, written out."""
    ring = build("ring", world_size, world_size)
    rounds: list[list[Transfer]] = [[] for _ in range(ring.rounds)]
    ops = {code: op for op, code in _OPS.items()}
    for n, *row, op in zip(ring.round, ring.source, ring.destination, ring.chunk, ring.op, strict=True):
        source, destination, chunk = map(int, row)
        rounds[n].append(Transfer(source, destination, chunk, ops[int(op)]))
    return written(rounds)


def in_lines(world_size: int, given: str) -> list[str]:
    """The rounds in words, a line each."""
    return [
        f"Round {n}: {'; '.join(t.in_words for t in transfers)}."
        for n, transfers in enumerate(parse(world_size, given), 1)
        if transfers
    ]


@dataclass(frozen=True)
class Cost:
    """What a schedule takes: rounds, the turns they last, and the most chunks that one rank sends."""

    rounds: int
    turns: int
    sent: int
    busiest: int


def cost_of(world_size: int, rounds: Rounds) -> Cost:
    """The cost of the rounds that have a transfer."""
    sent = Counter(t.source for transfers in rounds for t in transfers)
    turns = 0
    for transfers in rounds:
        ports = Counter((end, rank) for t in transfers for end, rank in enumerate((t.source, t.destination)))
        turns += max(ports.values(), default=0)
    busiest = max(range(world_size), key=lambda r: sent[r])
    return Cost(sum(map(bool, rounds)), turns, sent[busiest], busiest)


def target(world_size: int) -> int:
    """2 (R - 1): the ring's rounds, and the chunks each of its ranks sends. No schedule does with less: a
    chunk takes R - 1 transfers to be added up and R - 1 to come to the others, and R ranks share R chunks."""
    return 2 * (world_size - 1)


def judge(world_size: int, given: str) -> Verdict:
    """Whether every contribution is in every chunk on every rank exactly once, or the first thing wrong."""
    rounds = parse(world_size, given)
    if not rounds[0]:
        said = "Nothing is sent yet: every rank has its own contribution alone."
        return Verdict(False, said)
    wrong = clash(rounds) or _wrong(world_size, rounds)
    return Verdict(not wrong, wrong or _praise(world_size, cost_of(world_size, rounds)))


def clash(rounds: Rounds) -> str:
    """What in one of the rounds hangs on an order that rounds do not have; empty where nothing does."""
    for n, transfers in enumerate(rounds, 1):
        for t in transfers:
            if transfers.count(t) > 1:
                return f"In round {n} a transfer stands twice: {t.in_words}."
            others = [o for o in transfers if o != t and (o.destination, o.chunk) == (t.destination, t.chunk)]
            if t.op == KEEP and others:
                also = "kept" if others[0].op == KEEP else "added to"
                return (
                    f"In round {n} rank {t.destination} keeps chunk {t.chunk} from rank {t.source}, and the "
                    f"same chunk is {also} from rank {others[0].source}: what is kept replaces what was "
                    "there, so nothing else can come into it in that round."
                )
    return ""


def _wrong(size: int, rounds: Rounds) -> str:
    counts = _state(size, rounds)
    for rank, chunk, who in np.argwhere(counts > 1).tolist()[:1]:
        times = {2: "twice"}.get(counts[rank, chunk, who], f"{counts[rank, chunk, who]} times")
        return (
            f"On rank {rank} chunk {chunk} ends with the contribution of rank {who} in it {times}. "
            f"{_again(size, rounds, chunk, who)}"
        )
    incomplete = [c for c in range(size) if (counts[:, c] == 0).any()]
    if not incomplete:
        return ""
    nowhere = [c for c in incomplete if (counts[:, c] == 0).any(axis=1).all()]
    chunk = (nowhere or incomplete)[0]
    lacks = (counts[:, chunk] == 0).sum(axis=1)
    if nowhere:
        rank = int(lacks.argmin())
        begin = f"No rank has all of chunk {chunk}: even on rank {rank}"
        end = ""
    else:
        rank, has = int(np.flatnonzero(lacks)[0]), int(np.flatnonzero(lacks == 0)[0])
        begin = f"Chunk {chunk} is not complete on rank {rank}: there"
        end = f" Rank {has} has all of it, and could send it to be kept."
    missing = np.flatnonzero(counts[rank, chunk] == 0).tolist()
    whose, verb = ("contribution", "is") if len(missing) == 1 else ("contributions", "are")
    return f"{begin} the {whose} of {ranks(missing)} {verb} missing.{end}{_too_early(rounds, chunk)}"


def _again(size: int, rounds: Rounds, chunk: int, who: int) -> str:
    """Where a contribution comes into a chunk that it was in already."""
    after = (_state(size, rounds[: n + 1])[:, chunk, who] for n in range(len(rounds)))
    n, rank = next((n, int(now.argmax())) for n, now in enumerate(after) if now.max() > 1)
    from_whom = [
        t.source for t in rounds[n] if (t.destination, t.chunk, t.op) == (rank, chunk, ADD)
    ]  # what was kept brings nothing together
    what = f"rank {rank} adds what comes from {ranks(from_whom)}" if from_whom else f"rank {rank} keeps it so"
    return f"In round {n + 1} {what}, though rank {who} is in both."


def _too_early(rounds: Rounds, chunk: int) -> str:
    """Where a chunk is sent on in the very round in which something comes into it."""
    for n, transfers in enumerate(rounds, 1):
        comes = {t.destination for t in transfers if t.chunk == chunk}
        for t in transfers:
            if t.chunk == chunk and t.source in comes:
                return (
                    f" A round reads what was there at its start: in round {n} rank {t.source} sends chunk "
                    f"{chunk} on without what it gets in that same round."
                )
    return ""


def _praise(size: int, cost: Cost) -> str:
    best = target(size)
    share = Fraction(cost.sent, size)
    said = "Every contribution is in every chunk on every rank, exactly once."
    if (cost.turns, cost.sent) == (best, best):
        return (
            f"{said} {plural(best, 'round')}, and every rank sends {best} chunks, {share} of the gradient: "
            "no schedule does with less."
        )
    more = []
    if cost.turns > best:
        queued = f" that last {cost.turns} turns, as a port passes one chunk at a time"
        more.append(plural(cost.rounds, "round") + (queued if cost.turns > cost.rounds else ""))
    if cost.sent > best:
        more.append(f"rank {cost.busiest} sends {plural(cost.sent, 'chunk')}, {share} of the gradient")
    return (
        f"It works: {said[0].lower()}{said[1:]} It takes more than it has to: {', and '.join(more)}. A ring "
        f"needs only {best} rounds of one turn each, and {best} chunks sent by each rank."
    )


def judged(asked: Asked, given: str) -> Verdict:
    """The verdict on an answer of any kind; InputError where it is malformed."""
    return judge(int(asked.answer), given) if asked.kind == "ring" else grade(asked, given)
