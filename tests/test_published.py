"""Figures from outside: each says what it is and where it is from, and is written as one reads it."""

from __future__ import annotations

import pytest

from dpsim.checks import InputError
from dpsim.figures import figure
from dpsim.forms import preset
from dpsim.published import Published, count, published, read

ENTRY = '[speed]\nvalue = 12.5\nunit = "GB/s"\nsays = "a link"\nsource = "somebody 2020"\n'


@pytest.mark.parametrize("name", published())
def test_every_figure_says_what_it_is_and_where_it_is_from(name: str) -> None:
    entry = published()[name]
    assert len(entry.says) > 5
    assert len(entry.source) > 10


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8, "8"), (2470, "2470"), (16621, "16,621"), (1281167, "1,281,167"), (7.5e9, "7.5 billion"),
        (330e6, "330 million"), (138357544, "138,357,544"), (1e6, "1 million"), (23.5, "23.5"), (0.1, "0.1"),
        (50000, "50,000"), (0, "0"),
    ],
)  # fmt: skip
def test_long_counts_stay_readable_and_exact(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("", 512, "512"),
        ("%", 68, "68 %"),
        ("B/s", 450e9, "450 GB/s"),
        ("s", 0.12, "120 ms"),
        ("B", 2, "2 B"),
        ("GB", 120, "120 GB"),
    ],
)
def test_a_figure_is_written_with_its_unit(unit: str, value: float, text: str) -> None:
    assert Published("x", (value,), unit, "says", "source").written(value) == text


def test_a_lesson_reads_the_figure_its_source_and_the_entries_of_a_list() -> None:
    scenario = preset("chapter-19-2")
    assert figure(scenario, "published.horovod_vgg16").text == "68 %"
    assert figure(scenario, "published.horovod_vgg16").unit == "%"
    assert figure(scenario, "published_source.horovod_vgg16").text == published()["horovod_vgg16"].source
    assert figure(scenario, "published_says.horovod_vgg16").text == published()["horovod_vgg16"].says
    assert figure(scenario, "published.goyal_errors.0").text == "23.6 %"
    assert figure(scenario, "published.goyal_errors.8").value == 33.96


def test_lists_that_belong_together_have_one_length() -> None:
    assert len(published()["goyal_batches"].values) == len(published()["goyal_errors"].values)


def test_a_file_is_read_as_it_is_written() -> None:
    assert read(ENTRY) == {"speed": Published("speed", (12.5,), "GB/s", "a link", "somebody 2020")}
    assert read(ENTRY.replace("12.5", "[1, 2]"))["speed"].values == (1.0, 2.0)


MISTAKES = [
    ('source = "somebody 2020"\n', "", "published.speed: must be a table of value, unit, says and source"),
    ("[speed]", "[speed]\nyear = 2020", "published.speed: must be a table of value, unit, says and source"),
    ("12.5", '"fast"', "published.speed.value: must be a finite number"),
    ("12.5", "inf", "published.speed.value: must be a finite number"),
    ("12.5", "[]", "published.speed.value: must have 1 to 40 entries"),
    ('"somebody 2020"', '" "', "published.speed.source: must say something"),
    ('"a link"', "3", "published.speed.says: must be one line"),
    ("[speed]", '["Speed.1"]', "published.Speed.1: must be named in small letters"),
    ("[speed]", "[speed", "published.toml: must be TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_named(old: str, new: str, message: str) -> None:
    assert old in ENTRY
    with pytest.raises(InputError) as caught:
        read(ENTRY.replace(old, new, 1))
    assert str(caught.value).startswith(message)


def test_a_list_is_no_number_to_calculate_with() -> None:
    with pytest.raises(InputError, match="goyal_errors: must be one number"):
        figure(preset("chapter-19-2"), "quotient.goyal_errors.resnet_gpus")
    with pytest.raises(InputError, match="figure: must be one of "):
        figure(preset("chapter-19-2"), "published.nobody")
