"""Scenarios from files, links and programs: whatever comes in is a scenario or raises InputError.

The message names the field and is one short line, however strange the input.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import BASE, changed, law, scenarios

from dpsim.checks import InputError
from dpsim.forms import PARTS, from_dict, from_query, from_toml, preset, to_dict, to_toml
from dpsim.scenario import Scenario
from dpsim.simulate import simulate


def is_one_short_line(error: InputError) -> None:
    message = str(error)
    assert message.startswith(f"{error.field}: ") or not error.field.isprintable()
    assert message.isprintable()
    assert len(message) < 1000


def error_of(data: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        from_dict(data)
    return caught.value


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('name = "x"\ncolour = 1\n[batch]\nlengths = [1]', "colour"),
        ('name = "x"\n[batch]\nlengths = [1]\n[model]\nlayers = 3', "model.layers"),
        ("name = ", "TOML"),
        ('name = "x"\nname = "y"', "TOML"),
        ("\x00", "TOML"),
        ('name = "x"\nseed = ' + "1" * 5000, "TOML"),
        ('name = "x"\nseed = 0x' + "f" * 5000 + "\n[batch]\nlengths = [1]", "seed"),
        ('name = 1979-05-27\n[batch]\nlengths = [1]', "name"),
        ("x = " + "[" * 5000 + "]" * 5000, "TOML"),
        ("#" * 1_000_001, "TOML"),
    ],
    ids=lambda text: text[:24].encode("unicode_escape").decode(),
)  # fmt: skip
def test_a_toml_file_that_is_no_scenario(text: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        from_toml(text)
    assert str(caught.value).startswith(f"{field}: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("name=x&batch.lengths=[1]&colour=1", "colour"),
        ("name=x&batch.lengths=[1]&model.layers=3", "model.layers"),
        ("name=x&batch.lengths=[1]&a.b.c=3", "a.b.c"),
        ("name=x&batch={}", "batch"),
        ("name=x&batch.lengths=[1", "batch.lengths"),
        ("name=x&batch.lengths=" + "[" * 9000 + "]" * 9000, "batch.lengths"),
        ("name=x&batch.lengths=[1]&world_size=two", "world_size"),
        ("name=x&batch.lengths=[1]&world_size=0", "world_size"),
        ("name=x&batch.lengths=[1]&optimizer.learning_rate=NaN", "optimizer.learning_rate"),
        ("name=x&batch.lengths=[1]&seed=" + "1" * 5000, "seed"),
        ("name=" + "x" * 50_000, "URL"),
        ("", "name"),
    ],
    ids=lambda text: text[:40],
)
def test_a_link_that_is_no_scenario(query: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        from_query(query)
    # How deep JSON may nest depends on Python's version: the list itself may be refused, or its first entry.
    assert str(caught.value).startswith((f"{field}: ", f"{field}[0]: "))
    assert len(str(caught.value).splitlines()) == 1


def test_a_link_changes_only_what_it_names() -> None:
    base = preset("first-screen")
    changed_one = from_query("network.latency_s=0&collective=tree", base)
    expected = to_dict(base, full=True)
    expected["network"]["latency_s"], expected["collective"] = 0.0, "tree"
    assert to_dict(changed_one, full=True) == expected


@pytest.mark.parametrize("key", ["a\nb", "a\u2028b", "a\r\x1b[2J", "k" * 100_000])
def test_an_unknown_key_is_shown_in_one_short_line(key: str) -> None:
    for data in ({key: 1}, changed({"model": {key: 1}})):
        with pytest.raises(InputError) as caught:
            from_dict(data)
        message = str(caught.value)
        assert message.isprintable()
        assert len(message) < 1000


@pytest.mark.parametrize("field", ["seed", "optimizer.learning_rate"])
def test_a_number_of_five_thousand_digits(field: str) -> None:
    assert str(error_of(changed({field: 10**5000}))).startswith(f"{field}: ")


@law(40)
@given(scenarios())
def test_a_scenario_is_frozen_and_hashable(scenario: Scenario) -> None:
    assert hash(scenario) == hash(from_toml(to_toml(scenario)))
    with pytest.raises(AttributeError):
        scenario.steps = 2


PATHS = [f.name for f in fields(Scenario)]
PATHS += [f"{part}.{f.name}" for part, cls in PARTS.items() for f in fields(cls)]
KEYS = sorted({path.rpartition(".")[2] for path in PATHS})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70) | st.integers(0, 9).map(float)
    | st.integers() | st.floats() | st.text(max_size=4)
    | st.sampled_from(["given", "bigram", "scalar", "by_hand", "strided", "tree", "adam", "ring"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@law(500)
@given(st.dictionaries(st.sampled_from(PATHS), VALUES, max_size=4))
@example({"world_size": 2.0})
def test_whatever_is_written_is_a_scenario_or_an_input_error(changes: dict[str, Any]) -> None:
    try:
        data = changed(changes)
    except (AttributeError, TypeError):  # a part was replaced by something without keys
        return
    try:
        made = from_dict(data)
        assert made == from_dict(to_dict(made, full=True))
        if made.world_size * made.steps * max(made.micro_batches) < 200:
            with np.errstate(all="ignore"):
                simulate(made)
    except InputError as error:
        is_one_short_line(error)


@law(300)
@given(VALUES)
def test_whatever_replaces_the_whole_scenario_is_an_input_error(data: Any) -> None:
    with pytest.raises(InputError):
        from_dict(data)


@law(300)
@given(st.dictionaries(st.sampled_from(PATHS) | st.text(max_size=5), st.text(max_size=8), max_size=4))
def test_whatever_a_link_says_is_a_scenario_or_an_input_error(query: dict[str, str]) -> None:
    base = from_dict(BASE)
    try:
        from_query(query, base)
    except InputError as error:
        is_one_short_line(error)
