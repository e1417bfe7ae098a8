"""The misconceptions: all of them there, each with what is right; and their file is read strictly."""

from __future__ import annotations

import re

import pytest

from dpsim.checks import InputError
from dpsim.misconceptions import Misconception, misconceptions, read_misconceptions
from dpsim.prose import check_markdown

GOOD = '[M1]\nname = "a"\nright = "b"\nsources = ["x#1"]\n'


def test_they_are_numbered_through_and_say_what_is_right() -> None:
    found = misconceptions()
    assert list(found) == [f"M{i}" for i in range(1, 23)]
    for name, entry in found.items():
        assert entry.id == name
        assert entry.name[0].islower() or entry.name.split()[0] in {
            "DDP",
            "DataParallel",
            "BatchNorm's",
            "ZeRO",
        }
        assert 1 <= len(re.findall(r"[.?!](?= |$)", entry.right)) <= 3
        check_markdown(name, f"{entry.name} {entry.right}")
    assert len({entry.name for entry in found.values()}) == len({e.right for e in found.values()}) == 22


def test_who_voiced_it_is_a_thread_that_can_be_found() -> None:
    cited = [source for entry in misconceptions().values() for source in entry.sources]
    assert "Lightning#9784" in cited
    assert "PyTorch forum 34260" in cited
    for source in cited:
        assert re.fullmatch(r"[\w.-]+#\d+|PyTorch forum \d+|Accelerate guide", source), source
    assert [name for name, entry in misconceptions().items() if not entry.sources] == ["M19", "M21"]


def test_what_is_written_is_what_is_read() -> None:
    assert read_misconceptions(GOOD) == {"M1": Misconception("M1", "a", "b", ("x#1",))}
    assert read_misconceptions(GOOD.replace('["x#1"]', "[]"))["M1"].sources == ()


@pytest.mark.parametrize(
    ("written", "field"),
    [
        (GOOD.replace("M1", "X1"), "misconceptions"),
        (GOOD.replace("M1", "M01"), "misconceptions"),
        ("M1 = 3", "misconceptions.M1"),
        (GOOD + "more = 1", "misconceptions.M1.more"),
        (GOOD.replace('right = "b"\n', ""), "misconceptions.M1.right"),
        (GOOD.replace('"b"', '" "'), "misconceptions.M1.right"),
        (GOOD.replace('"b"', "3"), "misconceptions.M1.right"),
        (GOOD.replace('"b"', '"' + "b" * 401 + '"'), "misconceptions.M1.right"),
        (GOOD.replace('["x#1"]', '"x#1"'), "misconceptions.M1.sources"),
        (GOOD.replace('["x#1"]', "[1]"), "misconceptions.M1.sources[0]"),
        ("[M1", "misconceptions"),
    ],
)
def test_what_breaks_a_rule_is_an_input_error(written: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_misconceptions(written)
    assert caught.value.field == field
