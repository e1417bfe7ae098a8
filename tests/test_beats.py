"""A trace told as beats: a stable id, a sentence whose numbers are the trace's, the arithmetic written out.

Every transfer is carried out again here from what the ranks brought and the trace's own payloads, and the
sentences are read back: who sends what to whom, what is added, what is held then, who is still missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from strategies import law, scenarios

from dpsim.beats import Beat, beats, beats_as_text
from dpsim.forms import preset, preset_names
from dpsim.replay import all_reduces
from dpsim.scenario import Batch, Buckets, Compute, Network, Optimizer, Scenario
from dpsim.simulate import simulate
from dpsim.timeline import buckets
from dpsim.trace import RECEIVE, Trace
from dpsim.wording import number, ranks, vector

FIRST_SCREEN = [
    "start",
    "scatter",
    "count",
    "forward",
    "backward",
    *(f"allreduce.b0.r{n}" for n in range(6)),
    "barrier",
    "optimizer",
]

NUMBER = r"−?[\d.]+(?:e−?\d+)?"
VALUE = rf"(?:{NUMBER}|\[{NUMBER}(?:, {NUMBER})*(?:, …)?\])"
ADDED = re.compile(
    rf"Rank (?P<source>\d+) sends (?:chunk (?P<chunk>\d+)|the whole vector) \((?P<came>{VALUE}), "
    rf"(?P<made>its own|made of .+)\) to rank (?P<rank>\d+)\. Rank (?P=rank) adds "
    rf"(?:its own (?P<own>{VALUE})|the (?P<held>{VALUE}) it holds) and now holds (?P<now>{VALUE}); "
    r"(?P<missing>every rank is in it|only rank \d+ is missing|.+ are missing)"
    r"(?P<more>, and more comes to it in this round)?\."
)
KEPT = re.compile(
    rf"Rank (?P<source>\d+) sends (?:chunk (?P<chunk>\d+)|the whole vector), "
    rf"complete with (?P<came>{VALUE}), "
    r"to rank (?P<rank>\d+), which keeps it\."
)
STEP = re.compile(rf"θ(\d): ({NUMBER}) − ({NUMBER}) × \(?({NUMBER})\)? = ({NUMBER})")

every_preset = pytest.mark.parametrize("name", preset_names())


def told(scenario: Scenario) -> tuple[Trace, tuple[Beat, ...]]:
    trace = simulate(scenario)
    return trace, beats(trace)


def read(written: str) -> np.ndarray:
    """The numbers of a written value."""
    return np.array([float(n.replace("−", "-")) for n in re.findall(NUMBER, written)])


@dataclass(frozen=True)
class Transfer:
    """One receive event, carried out: what came, was there and is there now, whose parts these are, and
    whether more comes there in the same round."""

    event: int
    came: np.ndarray
    held: np.ndarray
    now: np.ndarray
    inside: frozenset[int]
    there: frozenset[int]
    more: bool

    @property
    def adds(self) -> bool:
        """Whether what came is new; else it replaces a part of the same sum."""
        return self.there.isdisjoint(self.inside)


def transfers(trace: Trace, step: int) -> Iterator[tuple[str, list[Transfer]]]:
    """The rounds of a step's gradients by the id of their beat."""
    scenario, events = trace.scenario, trace.events
    receives = np.flatnonzero(events.kind == RECEIVE)
    payloads = dict(zip(receives.tolist(), np.split(trace.payload, trace.payload_stops[:-1]), strict=False))
    each, size = scenario.buckets.sync_every_micro_batch, scenario.world_size
    several = max(scenario.micro_batches) > 1
    pieces = {"ring": size, "halving-doubling": 2 ** (size.bit_length() - 1)}.get(scenario.collective, 1)
    for k in range(max(scenario.micro_batches)) if each else [-1]:
        window = trace.scaled[step, :, k] if each else trace.scaled[step].sum(axis=1)
        for b, bucket in enumerate(buckets(scenario, step)):
            chunks = [
                np.array_split(window[r, bucket.start : bucket.stop].copy(), pieces) for r in range(size)
            ]
            who = [[frozenset([r])] * pieces for r in range(size)]
            rows = events.where(step=step, kind=RECEIVE, micro_batch=k, bucket=b)
            for n in sorted(set(events.round[rows].tolist())):
                before = [row[:] for row in who]
                done = []
                of_round = rows[events.round[rows] == n].tolist()
                places = [(events.rank[i], events.chunk[i]) for i in of_round]
                for turn, i in enumerate(of_round):
                    rank, source, c = int(events.rank[i]), int(events.peer[i]), int(events.chunk[i])
                    came, held, inside, there = payloads[i], chunks[rank][c], before[source][c], who[rank][c]
                    adds = there.isdisjoint(inside)
                    chunks[rank][c] = held + came if adds else came
                    who[rank][c] = there | inside
                    more = places[turn] in places[turn + 1 :]
                    done.append(Transfer(i, came, held, chunks[rank][c], inside, there, more))
                prefix = f"s{step}." if step else ""
                yield f"{prefix}allreduce{f'.m{k}' if several and each else ''}.b{b}.r{n}", done


def check_sentence(trace: Trace, sentence: str, done: Transfer) -> None:
    """One sentence against the transfer that it tells."""
    events, size = trace.events, trace.scenario.world_size
    found = (ADDED if done.adds else KEPT).fullmatch(sentence)
    assert found, sentence
    assert int(found["source"]) == events.peer[done.event]
    assert int(found["rank"]) == events.rank[done.event]
    assert int(found["chunk"] or 0) == events.chunk[done.event]
    assert found["came"] == vector(done.came.tolist())
    if not done.adds:
        assert len(done.inside) == size
        return
    held, source, rank = found["own"] or found["held"], int(found["source"]), int(found["rank"])
    assert held == vector(done.held.tolist())
    assert found["now"] == vector(done.now.tolist())
    came, was, now = read(found["came"]), read(held), read(found["now"])
    assert np.all(np.abs(came + was - now) <= 5.001e-4 * (np.abs(came) + np.abs(was) + np.abs(now)))
    assert (found["made"] == "its own") == (done.inside == {source})
    if found["made"] != "its own":
        assert found["made"] == f"made of {ranks(sorted(done.inside))}"
    assert (found["own"] is not None) == (done.there == {rank})
    missing = sorted(set(range(size)) - done.inside - done.there)
    expected = {0: "every rank is in it", 1: f"only {ranks(missing or [0])} is missing"}
    assert found["missing"] == expected.get(len(missing), f"{ranks(missing or [0])} are missing")
    assert (found["more"] is not None) == done.more


def check_rounds(trace: Trace, made: tuple[Beat, ...]) -> None:
    """Every round has a beat whose sentence, details, focus and moment are the trace's."""
    by_id = {beat.id: beat for beat in made}
    seen = set()
    for step in range(trace.steps):
        for name, done in transfers(trace, step):
            beat = by_id[name]
            seen.add(name)
            assert beat.moment_s == max(trace.events.end_s[d.event] for d in done)
            shown = next(d for d in done if focused(trace, beat, d))
            check_sentence(trace, beat.sentence, shown)
            if trace.scenario.world_size <= 16:
                assert len(beat.details) == len(done)
                for sentence, transfer in zip(beat.details, done, strict=True):
                    check_sentence(trace, sentence, transfer)
    assert seen == {name for name in by_id if "allreduce" in name}


def focused(trace: Trace, beat: Beat, done: Transfer) -> bool:
    events, i, focus = trace.events, done.event, beat.focus
    where = (events.rank[i], events.peer[i], events.bucket[i], events.chunk[i])
    return focus is not None and where == (focus.rank, focus.peer, focus.bucket, focus.chunk)


def check_order(trace: Trace, made: tuple[Beat, ...]) -> None:
    """Ids are unique and prefixed from the second step on; every step begins and ends as it should."""
    assert len({beat.id for beat in made}) == len(made)
    assert [beat.step for beat in made] == sorted(beat.step for beat in made)
    for step in range(trace.steps):
        own = [beat for beat in made if beat.step == step]
        moments = [beat.moment_s for beat in own]
        assert moments == sorted(moments)
        prefix = f"s{step}." if step else ""
        assert all(beat.id.startswith(prefix) for beat in own)
        assert (own[0].id, own[-1].id) == (f"{prefix}start", f"{prefix}optimizer")
        window = trace.step_window(step)
        assert (moments[0], moments[-1]) == window


def check_text(made: tuple[Beat, ...]) -> None:
    """The text version holds every beat whole, with no NaN and no hyphen for a minus sign."""
    text = beats_as_text(made)
    blocks = text.split("\n\n")
    for block, beat in zip(blocks, made, strict=True):
        assert f"[{beat.id}]" in block
        assert beat.title in block
        lines = [line.strip() for line in block.splitlines()]
        assert {beat.sentence, *beat.arithmetic, *(f"- {line}" for line in beat.details)} <= set(lines)
    assert not re.search(r"(?i)\b(nan|inf|none|null)\b", text)
    assert not re.search(r"-\d", text)


def check_optimizer(trace: Trace, made: tuple[Beat, ...]) -> None:
    """Plain SGD's lines can be recomputed; a skipped step says so, and why, and writes no numbers down."""
    chosen = trace.scenario.optimizer
    for beat in (b for b in made if b.phase == "optimizer"):
        before, after = trace.parameters[beat.step : beat.step + 2, 0]
        gradient = trace.gradient(beat.step)
        if gradient is None:
            assert "skipped" in beat.title
            assert "skipped" in beat.sentence
            assert str(trace.undefined[beat.step]) in beat.sentence
            assert np.array_equal(before, after)
            continue
        assert f"{vector(before.tolist())} becomes {vector(after.tolist())}" in beat.sentence
        if chosen.kind != "sgd" or chosen.clip_norm is not None:
            continue
        assert len(beat.arithmetic) == min(4, len(before))
        for i, line in enumerate(beat.arithmetic):
            found = STEP.fullmatch(line)
            assert found, line
            values = (before[i], chosen.learning_rate, gradient[i], after[i])
            assert found.groups() == (str(i), *map(number, values))
            old, rate, slope, new = (read(part)[0] for part in found.groups()[1:])
            assert abs(old - rate * slope - new) <= 1.1e-3 * (abs(old) + abs(rate * slope) + abs(new))


def check_arithmetic(made: tuple[Beat, ...]) -> None:
    """Both sides of every written equation of plain numbers agree within the rounding of its terms."""
    for line in (line for beat in made for line in beat.arithmetic):
        sides = line.rpartition(": ")[2].replace("−", "-").replace("×", "*").split(" = ")
        sides = [side for side in sides if re.fullmatch(r"[\d.e+*/() -]+", side)]
        if len(sides) < 2:
            continue
        values = [eval(side) for side in sides]
        terms = [eval(re.sub(r"(?<!e)-", "+", side)) for side in sides]  # what they are without their signs
        assert abs(values[0] - values[1]) <= 1.1e-3 * max(terms), line


@every_preset
def test_a_preset_is_told_in_order_and_every_number_is_the_trace_s(name: str) -> None:
    trace, made = told(preset(name))
    check_order(trace, made)
    check_text(made)
    check_rounds(trace, made)
    check_optimizer(trace, made)
    check_arithmetic(made)


@law(60)
@given(scenarios())
def test_any_scenario_is_told_in_order_with_its_skipped_steps(scenario: Scenario) -> None:
    trace, made = told(scenario)
    check_order(trace, made)
    check_text(made)
    check_optimizer(trace, made)
    check_arithmetic(made)


@law(60)
@given(scenarios(max_ranks=17, max_steps=2))
def test_any_round_names_numbers_of_the_trace_that_add_up(scenario: Scenario) -> None:
    check_rounds(*told(scenario))


def test_the_ids_of_the_first_screen_stay_since_links_name_them() -> None:
    assert [beat.id for beat in told(preset("first-screen"))[1]] == FIRST_SCREEN


def test_a_second_step_repeats_the_ids_with_a_prefix() -> None:
    made = told(replace(preset("first-screen"), steps=3))[1]
    prefixed = [f"s{step}.{name}" if step else name for step in range(3) for name in FIRST_SCREEN]
    assert [beat.id for beat in made] == prefixed


def test_micro_batches_and_buckets_have_parts_of_their_own_in_the_id() -> None:
    accumulated = [beat.id for beat in told(preset("accumulation"))[1]]
    assert [name for name in accumulated if name.startswith(("forward", "backward"))] == [
        f"{phase}.m{k}" for k in range(3) for phase in ("forward", "backward")
    ]
    second = {beat.id for beat in told(preset("overlap"))[1] if beat.step == 1}
    assert {f"s1.backward.b{b}" for b in range(3)} <= second
    assert {f"s1.allreduce.b{b}.r{n}" for b in range(3) for n in range(6)} <= second


def test_the_first_screen_tells_its_numbers() -> None:
    """Counts 7, 2, 5, 2; the sums [3, -1, 8, 2] + ... = [10, 2, 0, 12]; divided by 16; rate 0.1."""
    by_id = {beat.id: beat for beat in told(preset("first-screen"))[1]}
    assert "4 sequences with 32 tokens; 16 of them are valid" in by_id["start"].sentence
    assert "rank 0 gets 7 valid of 8 tokens; rank 1 gets 2 valid" in by_id["scatter"].sentence
    assert by_id["count"].arithmetic == ("N = 7 + 2 + 5 + 2 = 16",)
    assert "loss sums: 9.95 + 1.1 − 0.85 − 4.5 = 5.7" in by_id["forward"].arithmetic
    assert "Rank 3 is last, and the others wait up to 2.78 ms" in by_id["backward"].sentence
    assert by_id["allreduce.b0.r0"].sentence == (
        "Rank 0 sends chunk 0 (3, its own) to rank 1. Rank 1 adds its own 5 and now holds 8; "
        "ranks 2 and 3 are missing."
    )
    assert by_id["allreduce.b0.r3"].details[0] == (
        "Rank 0 sends chunk 1, complete with 2, to rank 1, which keeps it."
    )
    assert by_id["barrier"].arithmetic == (
        "token-weighted mean: sum / N = [10, 2, 0, 12] / 16 = [0.625, 0.125, 0, 0.75]",
    )
    assert by_id["optimizer"].arithmetic == (
        "θ0: 0.5 − 0.1 × 0.625 = 0.4375",
        "θ1: −0.25 − 0.1 × 0.125 = −0.2625",
        "θ2: 1 − 0.1 × 0 = 1",
        "θ3: 0.1 − 0.1 × 0.75 = 0.025",
    )


def test_an_undefined_naive_mean_names_the_rank() -> None:
    made = told(replace(preset("empty-rank"), reduction="mean_of_rank_means"))[1]
    assert made[-1].title == "Optimizer: skipped"
    assert made[-1].sentence == (
        "The optimizer step is skipped: the naive mean of rank means is undefined, since rank 0 has no valid "
        "token. The parameters stay as they are."
    )


def test_a_batch_without_a_valid_token_is_shown_and_its_optimizer_step_skipped() -> None:
    scenario = Scenario(name="masked", world_size=2, batch=Batch(lengths=[3, 2], valid=[0, 0]))
    trace, made = told(scenario)
    assert "0 of them are valid" in made[0].sentence
    assert {"scatter", "count", "forward", "backward", "reduce", "barrier"} <= {beat.phase for beat in made}
    assert "skipped" in made[-1].sentence
    assert "no rank has a valid token" in made[-1].sentence
    check_order(trace, made)
    check_text(made)


@pytest.mark.parametrize(
    ("count", "again"), [(5, "sequences 0, 1 and 2"), (6, "sequences 0 and 1"), (7, "sequence 0"), (8, None)]
)
def test_a_sampler_that_repeats_sequences_is_said(count: int, again: str | None) -> None:
    batch = Batch(lengths=[2] * count, shard="strided")
    sentence = told(Scenario(name="repeats", batch=batch))[1][1].sentence
    if again is None:
        assert "repeats" not in sentence
    else:
        assert sentence.endswith(f"the sampler repeats {again}.")


def test_a_rank_that_still_accumulates_is_not_said_to_be_done() -> None:
    """Rank 0 has one micro-batch and is done after it; rank 1 has two more, and nobody waits for it yet."""
    base = preset("chapter-19-2")
    scenario = replace(
        base,
        model=replace(base.model, gradient_sums=[[[1, 3]], [[3, 1], [2, 5], [7, 4]]]),
        batch=Batch(lengths=[1, 1, 1, 2, 2, 2], micro_batches=[1, 3]),
    )
    by_id = {beat.id: beat for beat in told(scenario)[1]}
    for k in range(2):
        assert "is last" not in by_id[f"backward.m{k}"].sentence
        assert "Every rank has the gradient sum" not in by_id[f"backward.m{k}"].sentence
    assert "Rank 1 is last" in by_id["backward.m2"].sentence
    for line in by_id["backward.m2"].arithmetic:
        assert "[1, 3]" not in line  # rank 0 brought that in its first and only micro-batch


def test_ranks_that_are_late_in_turn_are_told_one_after_the_other() -> None:
    """Synchronised after every micro-batch; rank 0 is late at the first, rank 1 at the second: both wait."""
    base = preset("chapter-19-2")
    scenario = replace(
        base,
        model=replace(base.model, gradient_sums=[[[1, 3], [2, 5]], [[3, 1], [7, 4]]]),
        batch=Batch(lengths=[4, 1, 1, 4], micro_batches=2),
        buckets=Buckets(sync_every_micro_batch=True),
    )
    trace, made = told(scenario)
    check_order(trace, made)
    check_text(made)
    by_id = {beat.id: beat for beat in made}
    assert "Rank 1 is last" not in by_id["backward.m0"].sentence
    assert "Rank 0 is last" not in by_id["backward.m1"].sentence


def test_ranks_with_equal_work_arrive_together_however_it_is_cut() -> None:
    """One micro-batch of 3 tokens or three of 1 token: the last digit of a float is no straggler."""
    base = preset("chapter-19-2")
    scenario = replace(
        base,
        model=replace(base.model, gradient_sums=[[[1, 3]], [[3, 1], [2, 5], [7, 4]]]),
        batch=Batch(lengths=[1] * 6, micro_batches=[1, 3]),
    )
    by_id = {beat.id: beat for beat in told(scenario)[1]}
    assert "nobody waits" in by_id["backward.m2"].sentence


def test_what_stays_on_its_rank_is_not_said_to_travel() -> None:
    for beat in told(preset("accumulation"))[1]:
        if beat.id in ("backward.m0", "backward.m1"):
            assert "nothing travels before the last micro-batch" in beat.sentence
            assert not [line for line in (*beat.arithmetic, *beat.details) if "travels" in line]


def test_beats_keep_their_order_where_messages_take_no_time() -> None:
    """8 bytes at 1e18 bytes a second are below the clock's last digit: rounds end when backward does."""
    scenario = replace(preset("chapter-19-2"), network=Network(latency_s=0, bandwidth_bytes_per_s=1e18))
    scenario = replace(scenario, compute=Compute(forward_s_per_token=1, backward_s_per_token=1))
    assert [beat.phase for beat in told(scenario)[1]] == [
        *("start", "scatter", "count", "forward", "backward", "reduce", "gather", "barrier", "optimizer")
    ]


def test_an_adam_step_and_a_clipped_one_say_how() -> None:
    base = preset("first-screen")
    for chosen, phrase in [
        (Optimizer(kind="adam"), "(Adam)"),
        (Optimizer(kind="momentum"), "(SGD with momentum)"),
        (Optimizer(clip_norm=0.5), "the gradient clipped first"),
    ]:
        beat = told(replace(base, optimizer=chosen))[1][-1]
        assert phrase in beat.sentence
        assert not STEP.search(" ".join(beat.arithmetic))  # old - rate x gradient is not what happened


@law(60)
@given(scenarios())
def test_after_an_all_reduce_every_rank_holds_the_sum_with_every_rank_in_it_once(scenario: Scenario) -> None:
    trace = simulate(scenario)
    for step in range(trace.steps):
        for part in all_reduces(trace, step):
            last = {}
            for row, arrival in enumerate(part.arrivals):
                last[int(part.schedule.destination[row]), int(part.schedule.chunk[row])] = arrival
            ends = [part.elements(c) for _, c in last]
            for (_, chunk), arrival in last.items():
                assert arrival.counts.tolist() == [1] * scenario.world_size
                where = part.elements(chunk)
                whole = part.brought[:, where.start - part.start : where.stop - part.start].sum(axis=0)
                assert arrival.now == pytest.approx(whole, rel=1e-9, abs=1e-9)
            width = part.brought.shape[1] if scenario.world_size > 1 else 0
            assert sum(e.stop - e.start for e in ends) == width * scenario.world_size


def test_all_reduces_come_in_the_order_in_which_they_ran() -> None:
    scenario = replace(preset("accumulation"), buckets=Buckets(sync_every_micro_batch=True))
    made = all_reduces(simulate(scenario), 0)
    assert [(part.micro_batch, part.bucket) for part in made] == [(-1, -2), (0, 0), (1, 0), (2, 0)]
    assert made[0].brought.tolist() == [[9.0], [14.0], [8.0], [10.0]]
    assert made[1].brought[0].tolist() == [-4.0, -6.0, 6.0, 2.0]
