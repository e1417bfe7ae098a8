"""How a collective is written: its algorithm, and at most one thing that is done wrong in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.collectives import build, contributions
from dpsim.edited import checked, fitted, parsed, rows_of
from dpsim.edits import on_one_device, with_algorithm, with_world_size
from dpsim.forms import from_dict, from_query, from_toml, preset, to_dict, to_query, to_toml
from dpsim.scenario import COLLECTIVES

EDITS = ("", ", without 3", ", twice 3", ", not awaited")


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_it_survives_every_written_form(algorithm: str, edit: str) -> None:
    scenario = replace(preset("first-screen"), collective=algorithm + edit)
    assert scenario.algorithm == algorithm
    assert str(scenario.exchange) == scenario.collective == algorithm + edit
    assert from_toml(to_toml(scenario)) == scenario
    assert from_query(to_query(scenario)) == scenario
    assert from_dict(to_dict(scenario, full=True)) == scenario


@pytest.mark.parametrize(
    "written",
    ["", "rng", "ring,without 3", "ring, without", "ring, without -1", "ring, without 03",
     "ring, without 1.0", "ring, twice 3, twice 4", "ring, not awaited ", "Ring", "without 3", "ring\n", 3,
     None],
)  # fmt: skip
def test_anything_else_is_refused_and_the_forms_are_named(written: object) -> None:
    with pytest.raises(InputError, match="collective: must be one of ring, tree") as refused:
        parsed(written)
    assert "not awaited" in refused.value.rule


@given(algorithm=st.sampled_from(COLLECTIVES), ranks=st.integers(2, 40))
@law(60)
def test_the_rows_of_a_schedule_are_counted_right(algorithm: str, ranks: int) -> None:
    assert rows_of(algorithm, ranks) == len(build(algorithm, ranks, 10_000).round)


@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_a_row_that_is_not_there_is_refused_with_the_range(algorithm: str) -> None:
    for ranks in (2, 3, 4, 7):
        last = rows_of(algorithm, ranks) - 1
        assert checked(f"{algorithm}, without {last}", ranks).row == last
        with pytest.raises(InputError, match=f"a row from 0 to {last}: {algorithm} on {ranks} ranks"):
            checked(f"{algorithm}, without {last + 1}", ranks)


def test_one_rank_has_nothing_to_do_wrong() -> None:
    for edit in EDITS[1:]:
        with pytest.raises(InputError, match="an algorithm alone on one rank"):
            checked("ring" + edit, 1)


def test_a_dropped_row_stays_away_and_a_doubled_one_comes_twice_whatever_the_bucket() -> None:
    for algorithm in COLLECTIVES:
        for elements in (1, 2, 3, 9):  # some chunks are empty where the vector is short
            plain, whole = build(algorithm, 4, elements), build(algorithm, 4, 100)
            for row in range(len(whole.round)):
                key = tuple(int(c[row]) for c in (whole.round, whole.source, whole.destination, whole.chunk))
                for edit, times in (("without", 0), ("twice", 2)):
                    made = build(f"{algorithm}, {edit} {row}", 4, elements)
                    columns = (made.round, made.source, made.destination, made.chunk)
                    rows = list(zip(*(c.tolist() for c in columns), strict=True))
                    there = int(plain.chunk_elements[key[3]] > 0)
                    assert rows.count(key) == times * there
                    assert len(rows) == len(plain.round) + there * (times - 1)
                    assert all(a <= b for a, b in pairwise(made.round.tolist()))


def test_only_a_broken_schedule_breaks_law_3() -> None:
    whole = contributions(build("ring, not awaited", 4, 8))[0]
    assert np.all(whole == 1)
    lost = contributions(build("ring, without 0", 4, 8))[0]
    double = contributions(build("ring, twice 0", 4, 8))[0]
    assert lost.min() == 0
    assert lost.max() == 1
    assert double.min() == 1
    assert double.max() == 2


def test_an_edit_is_dropped_where_it_fits_no_longer() -> None:
    scenario = replace(preset("first-screen"), collective="ring, without 20")
    assert with_world_size(scenario, 8).collective == "ring, without 20"
    assert with_world_size(scenario, 3).collective == "ring"
    assert with_algorithm(scenario, "tree").collective == "tree"
    assert with_algorithm(scenario, "halving-doubling").collective == "halving-doubling, without 20"
    assert with_algorithm(replace(scenario, collective="ring, not awaited"), "tree").exchange.awaited is False
    assert on_one_device(scenario).collective == "ring"
    assert fitted("ring, not awaited", 1) == "ring"
