"""Ask me: at every beat but the last there is a question, and the next beat alone says what is right.

What every option claims is read from its own words, and held against the events and arrays of the trace.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from strategies import law, scenarios

from dpsim.ask import ask
from dpsim.batch import global_batch
from dpsim.beat import Beat
from dpsim.beats import beats
from dpsim.edits import with_world_size
from dpsim.faults import FAULTS, broken
from dpsim.forms import preset, preset_names
from dpsim.questions import Asked, grade
from dpsim.scenario import COLLECTIVES, SCHEMES, Scenario
from dpsim.simulate import simulate
from dpsim.trace import ALL_REDUCE, BACKWARD, KINDS, OPTIMIZER, RECEIVE, SEND, Events, Trace

EVERY: dict[str, Scenario] = {name: preset(name) for name in preset_names()}
EVERY |= {f"first-screen on {n}": with_world_size(preset("first-screen"), n) for n in (1, 2, 3, 5, 9, 16, 17)}
EVERY |= {
    f"{name} by {how}": replace(preset(name), collective=how)
    for name in ("ring-8", "overlap", "accumulation")
    for how in COLLECTIVES
}
EVERY |= {f"accumulation with {s}": replace(preset("accumulation"), reduction=s) for s in SCHEMES}
EVERY |= {
    f"by {kind}": replace(
        preset("first-screen"), steps=2, optimizer=replace(preset("first-screen").optimizer, kind=kind)
    )
    for kind in ("momentum", "adam")
}
each = pytest.mark.parametrize("name", EVERY)


@lru_cache
def told(name: str) -> tuple[Trace, tuple[Beat, ...]]:
    trace = simulate(EVERY[name])
    return trace, beats(trace)


def as_measured_whole(trace: Trace) -> Trace:
    """The same step as a library's all-reduces are measured: one event a rank, no message of them known."""
    e = trace.events
    keep = np.flatnonzero((e.bucket < 0) | ~np.isin(e.kind, (SEND, RECEIVE)))
    columns = {name: list(getattr(e, name)[keep]) for name in vars(e) if name in Events.__dataclass_fields__}
    sent = np.flatnonzero((e.bucket >= 0) & (e.kind == RECEIVE))
    for t, k, b in sorted({(e.step[i], e.micro_batch[i], e.bucket[i]) for i in sent}):
        own = [i for i in sent if (e.step[i], e.micro_batch[i], e.bucket[i]) == (t, k, b)]
        for r in range(trace.scenario.world_size):
            row = {"step": t, "micro_batch": k, "bucket": b, "rank": r, "kind": ALL_REDUCE, "bytes": 4.0}
            row |= {"start_s": e.start_s[own].min(), "end_s": e.end_s[own].max()}
            for name, column in columns.items():
                column.append(row.get(name, -1))
    arrays = {
        n: np.array(c, np.float64 if n in ("start_s", "end_s", "bytes") else np.int64)
        for n, c in columns.items()
    }
    count = np.flatnonzero((e.kind == RECEIVE) & (e.bucket < 0))
    payload = [trace.payload_of(int(i)) for i in count]
    machine = {"hardware": "x", "versions": "x", "date": "x", "process_ids": "x"}
    return replace(
        trace, source="measured", machine=machine, events=Events(**arrays),
        payload=np.concatenate(payload), payload_stops=np.cumsum([len(p) for p in payload], dtype=np.int64),
    )  # fmt: skip


# -- every option held against the trace ---------------------------------------------------------------------


class Next:
    """What the next beat brings, from the trace's events and arrays alone."""

    def __init__(self, trace: Trace, at: Beat, beat: Beat) -> None:
        self.trace, self.at, self.beat, self.step = trace, at, beat, beat.step
        found = re.fullmatch(r"(?:s\d+\.)?[a-z]+(?:\.m(\d+))?(?:\.b(\d+))?(?:\.r(\d+))?", beat.id)
        assert found
        self.micro, self.bucket, self.round = (None if g is None else int(g) for g in found.groups())
        self.valid = trace.valid_tokens[self.step]

    def rows(self, kind: int, **equal: int) -> list[int]:
        if self.micro is not None and self.trace.scenario.buckets.sync_every_micro_batch:
            equal["micro_batch"] = self.micro
        return list(self.trace.events.where(step=self.step, kind=kind, bucket=self.bucket or 0, **equal))

    def contents(self) -> tuple[dict[tuple[int, int], Counter[int]], dict[tuple[int, int], float]]:
        """Who is in the cells of the beat's all-reduce once the beat is over, and their first numbers: the
        receives played in the order of their rounds, additions in the first half of them."""
        trace, e = self.trace, self.trace.events
        part = trace.buckets(self.step)[self.bucket or 0]
        each = trace.scenario.buckets.sync_every_micro_batch
        window = trace.scaled[self.step][:, self.micro or 0] if each else trace.scaled[self.step].sum(axis=1)
        rows = self.rows(RECEIVE)
        sizes = {int(e.chunk[i]): len(trace.payload_of(i)) for i in rows}
        bounds = {c: sum(n for d, n in sizes.items() if d < c) for c in sizes}
        world = trace.scenario.world_size
        who = {(r, c): Counter({r: 1}) for r in range(world) for c in sizes}
        first = {(r, c): float(window[r, part.start + bounds[c]]) for r in range(world) for c in sizes}
        rounds = 1 + max((int(e.round[i]) for i in rows), default=-1)
        for n in range((self.round or 0) + 1):
            sent = {cell: Counter(inside) for cell, inside in who.items()}
            for i in (i for i in rows if e.round[i] == n):
                cell, came = (int(e.rank[i]), int(e.chunk[i])), sent[int(e.peer[i]), int(e.chunk[i])]
                number = float(trace.payload_of(i)[0])
                if n < rounds / 2:
                    who[cell], first[cell] = who[cell] + came, first[cell] + number
                else:
                    who[cell], first[cell] = Counter(came), number
        return who, first


def number_in(text: str) -> int:
    found = re.search(r"\d+", text)
    assert found
    return int(found[0])


def members(text: str, world: int, own: int = 0) -> set[int]:
    """The ranks that an option names: "rank 3 alone", "ranks 0–1, 3", "all 4 ranks", "nobody's"."""
    if "all ranks but" in text:
        return set(range(world)) - {number_in(text)}
    if "all" in text:
        return set(range(world))
    runs = re.findall(r"(\d+)(?:–(\d+))?", text)
    return {r for low, high in runs for r in range(int(low), int(high or low) + 1)}


def holds(next_: Next, question: str, text: str) -> bool:
    """Whether what an option says is so once the next beat is over."""
    trace, e, t, world = next_.trace, next_.trace.events, next_.step, next_.trace.scenario.world_size
    asked = [int(n) for n in re.findall(r"rank (\d+)", question)]
    rank = asked[0] if asked else 0
    micro = next_.micro or 0
    if question == "What comes next?":
        return text == next_.beat.title
    if "gets sequence" in question:
        which = int(question.rsplit(" ", 1)[1][:-1])
        return which in [i for cell in global_batch(trace.scenario).assignment[number_in(text)] for i in cell]
    if "as the divisor" in question:
        return number_in(text) == trace.counted[t, rank]
    if "sum its loss" in question:
        return number_in(text) == next_.valid[rank, micro]
    if "is complete next" in question:
        made = trace.buckets(t)[next_.bucket or 0]
        return text == ", ".join(made.names)
    if "after the backward pass of its" in question:
        own = trace.scaled[t, rank]
        claims = {
            "the sum": own[: micro + 1].sum(axis=0), "that of": own[micro],
            "the mean": own[: micro + 1].mean(axis=0), "what it held": own[:micro].sum(axis=0),
        }  # fmt: skip
        claim = next(v for words, v in claims.items() if text.startswith(words))
        return bool(np.allclose(claim, own[: micro + 1].sum(axis=0), rtol=1e-9, atol=0))
    if "right after the backward" in question:
        assert next_.beat.phase == "backward"
        return members(text, world) == {rank}
    if "A whole all-reduce" in question:
        assert next_.rows(ALL_REDUCE)
        return members(text, world) == set(range(world))
    if "Which chunk does" in question:
        sent = {int(e.chunk[i]) for i in next_.rows(SEND, rank=rank, round=next_.round or 0)}
        return sent == {number_in(text)}
    if "To which rank" in question:
        to = {int(e.peer[i]) for i in next_.rows(SEND, rank=rank, round=next_.round or 0)}
        return to == (set() if "none" in text else {number_in(text)})
    if "Whose contributions will be in" in question:
        found = re.search(r"chunk (\d+)", question)
        return members(text, world) == set(next_.contents()[0][rank, int(found[1]) if found else 0])
    if "waited longest" in question:
        arrival = np.zeros(world)
        rows = e.where(step=t, kind=BACKWARD)
        if next_.micro is not None and trace.scenario.buckets.sync_every_micro_batch:
            rows = rows[e.micro_batch[rows] == next_.micro]
        np.maximum.at(arrival, e.rank[rows], e.end_s[rows])
        return int(arrival.argmin()) == number_in(text)
    if "By what is it divided" in question:
        total, reduced = trace.scaled[t].sum(axis=(0, 1)), trace.reduced[t, 0]
        divisor = 1 if "nothing" in text else int(re.findall(r"\d+", text)[0])
        return bool(np.allclose(total, divisor * reduced, rtol=1e-9, atol=1e-12))
    if "There is no gradient" in question:
        assert not len(e.where(step=t, kind=OPTIMIZER))
        return text.startswith("They stay") and bool(np.all(trace.parameters[t] == trace.parameters[t + 1]))
    found = re.match(r"θ(\d) is", question)
    assert found, question
    moved = np.sign(trace.parameters[t + 1, 0] - trace.parameters[t, 0])[int(found[1])]
    return {"It rises": 1, "It falls": -1, "It stays as it is": 0}[text] == moved


def truth(next_: Next, question: str) -> float:
    """The number that is asked for."""
    if parameter := re.match(r"θ(\d) is", question):
        return float(next_.trace.parameters[next_.step + 1, 0, int(parameter[1])])
    rank = int(re.findall(r"rank (\d+)", question)[0])
    chunk = re.search(r"chunk (\d+)", question)
    return next_.contents()[1][rank, int(chunk[1]) if chunk else 0]


def check(trace: Trace, all_beats: tuple[Beat, ...], at: int) -> Asked:
    """The question at a beat, every part of it held against the trace."""
    beat, after = all_beats[at], all_beats[at + 1]
    asked = ask(trace, all_beats, beat.id)
    assert asked is not None
    next_ = Next(trace, beat, after)
    if asked.kind == "choose-one":
        assert 2 <= len(asked.options) <= 6
        assert len({o.text for o in asked.options}) == len(asked.options)
        for i, option in enumerate(asked.options):
            assert holds(next_, asked.question, option.text) == option.right, (asked.question, option)
            assert grade(asked, str(i)).right == option.right
            assert option.feedback
        assert len(asked.right_options) == 1
    else:
        true = truth(next_, asked.question)
        assert asked.answer == pytest.approx(true, rel=1e-9, abs=1e-12)
        assert grade(asked, repr(true)).right
        assert not any(grade(asked, repr(slip.value)).right for slip in asked.wrong)
        assert asked.tolerance <= 0.5 * max(abs(true), *(abs(s.value) for s in asked.wrong))
        assert asked.feedback
        assert asked.other
    return asked


@each
def test_at_every_beat_but_the_last_there_is_a_question_with_one_right_answer(name: str) -> None:
    trace, all_beats = told(name)
    every = 1 if trace.scenario.world_size <= 17 else 25  # one of 64 ranks takes seconds
    for at in range(0, len(all_beats) - 1, every):
        check(trace, all_beats, at)
    assert ask(trace, all_beats, all_beats[-1].id) is None
    assert ask(trace, all_beats, "no beat of it") is None


@pytest.mark.parametrize("name", ["first-screen", "overlap", "next-token"])
@pytest.mark.parametrize("fault", [fault.name for fault in FAULTS if fault.name != "padding-counted"])
def test_a_run_with_a_fault_can_be_asked_about_at_every_beat(name: str, fault: str) -> None:
    trace = simulate(broken(preset(name), fault))
    all_beats = beats(trace)
    for beat in all_beats[:-1]:
        asked = ask(trace, all_beats, beat.id)
        assert asked is not None
        assert asked.kind == "number" or len(asked.right_options) == 1


@law(40)
@given(scenarios(max_ranks=6, max_steps=2))
def test_so_it_is_for_any_scenario(scenario: Scenario) -> None:
    trace = simulate(scenario)
    all_beats = beats(trace)
    for at in range(len(all_beats) - 1):
        check(trace, all_beats, at)


@pytest.mark.parametrize("name", ["first-screen", "overlap", "accumulation", "ring-8"])
def test_where_all_reduces_were_measured_as_a_whole(name: str) -> None:
    trace = as_measured_whole(told(name)[0])
    all_beats = beats(trace)
    questions = [check(trace, all_beats, at).question for at in range(len(all_beats) - 1)]
    assert any("A whole all-reduce" in q for q in questions)


@each
def test_the_same_beat_gets_the_same_question(name: str) -> None:
    trace, all_beats = told(name)
    again = simulate(EVERY[name])
    for beat in all_beats[:: max(1, len(all_beats) // 12)]:
        assert ask(trace, all_beats, beat.id) == ask(again, beats(again), beat.id)


def test_the_questions_vary_over_kinds_ranks_and_chunks() -> None:
    trace, all_beats = told("ring-64")
    asked = [ask(trace, all_beats, b.id) for b in all_beats if ".r" in b.id]
    questions = [a.question for a in asked if a]
    ranks = {int(r) for q in questions for r in re.findall(r"rank (\d+)", q)}
    assert len(ranks) > 20
    assert {q.split(" ")[0] for q in questions} >= {"Which", "Whose"}
    kinds = {a.kind for b in told("ring-8")[1] if (a := ask(*told("ring-8"), b.id))}
    assert kinds == {"choose-one", "number"}


# -- nothing that is shown already ---------------------------------------------------------------------------


@each
def test_no_transfer_that_is_asked_about_has_arrived_already(name: str) -> None:
    trace, all_beats = told(name)
    for beat, after in itertools.pairwise(all_beats):
        asked = ask(trace, all_beats, beat.id)
        assert asked
        found = re.search(r"(?:on|In the next round|Which chunk does) rank (\d+)", asked.question)
        if found is None or not re.search(r"\.r\d+$", after.id):
            continue
        next_ = Next(trace, beat, after)
        kind = SEND if "does" in asked.question else RECEIVE
        rows = next_.rows(kind, rank=int(found[1]), round=next_.round or 0)
        assert max(trace.events.end_s[i] for i in rows) > beat.moment_s


@each
def test_the_right_answer_does_not_stand_in_the_beats_own_words(name: str) -> None:
    trace, all_beats = told(name)
    for beat in all_beats[:-1]:
        asked = ask(trace, all_beats, beat.id)
        assert asked
        words = " ".join((beat.title, beat.sentence))
        if asked.kind == "choose-one" and not asked.question.startswith("What comes"):
            assert asked.right_options[0].text not in words.split(". ")


def test_a_parameter_is_right_to_the_digits_that_are_shown() -> None:
    trace, all_beats = told("chapter-19-2")
    asked = ask(
        trace,
        all_beats,
        next(b.id for b, a in itertools.pairwise(all_beats) if a.phase == "optimizer"),
    )
    assert asked
    assert asked.kind == "number"
    assert grade(asked, "4.8").right
    assert not grade(asked, "5.2").right
    assert "against the gradient" in grade(asked, "5.2").feedback
    assert KINDS[OPTIMIZER] == "optimizer"
