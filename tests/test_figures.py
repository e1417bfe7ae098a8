"""Named figures: what they are is checked against the trace, and what is not known is named."""

from __future__ import annotations

import pytest

from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.figures import FAMILIES, UNDEFINED, figure
from dpsim.forms import from_toml, preset, preset_names, to_toml
from dpsim.metrics import step_metrics
from dpsim.scenario import SCHEMES, Scenario
from dpsim.simulate import simulate
from dpsim.wording import duration

BOOK = [
    ("R", "2"),
    ("N", "2"),
    ("valid.0", "1"),
    ("S.0", "[1, 3]"),
    ("mean.1", "[3, 1]"),
    ("gradient.token_weighted", "[2, 2]"),
    ("gradient.one_device.1", "2"),
    ("before", "[5, 5]"),
    ("after", "[4.8, 4.8]"),
    ("after.0", "4.8"),
    ("parameters.one_device", "[4.8, 4.8]"),
    ("learning_rate", "0.1"),
    ("alone.0", "[4.9, 4.7]"),
    ("summed", "[4.6, 4.6]"),
    ("uphill", "[5.2, 5.2]"),
    ("error.mean_of_rank_means", "0 %"),
]

UNEVEN = [
    ("N", "10"),
    ("gradient.token_weighted", "[−0.2, −1.4]"),
    ("gradient.mean_of_rank_means", "[1, −0.5]"),
    ("weight.mean_of_rank_means.0", "2.5"),
    ("weight.mean_of_rank_means.1", "0.625"),
    ("weight.token_weighted.1", "1"),
    ("ratio.mean_of_rank_means.0.1", "4"),
    ("factor.mean_of_rank_means.1", "0.0625"),
    ("share.1", "0.8"),
    ("error.mean_of_rank_means", "106 %"),
    ("all_tokens", "16"),
    ("tokens.0", "8"),
]


@pytest.mark.parametrize(("name", "text"), BOOK)
def test_figures_of_the_book_s_example(name: str, text: str) -> None:
    assert figure(preset("chapter-19-2"), name).text == text


@pytest.mark.parametrize(("name", "text"), UNEVEN)
def test_figures_of_two_and_eight_tokens(name: str, text: str) -> None:
    assert figure(preset("two-and-eight"), name).text == text


def test_figures_of_time_come_from_the_metrics() -> None:
    scenario = preset("first-screen")
    measured = step_metrics(simulate(scenario), 0)
    for name, seconds in [
        ("step_time", measured.step_time_s),
        ("wait.0", float(measured.wait_s[0])),
        ("exposed", measured.exposed_communication_s),
    ]:
        found = figure(scenario, name)
        assert found.value == seconds
        assert found.text == duration(seconds)
    assert figure(scenario, "straggler").text == "3"


def test_what_is_undefined_is_said_to_be_undefined_and_the_parameters_stay() -> None:
    scenario = preset("empty-rank")
    for name in ("mean.0", "gradient.mean_of_rank_means", "weight.mean_of_rank_means.1", "alone.0"):
        found = figure(scenario, name)
        assert (found.text, found.value) == (UNDEFINED, None)
    assert figure(scenario, "parameters.mean_of_rank_means") == figure(scenario, "before")


def test_what_only_rounding_makes_is_no_error() -> None:
    scenario = from_toml(to_toml(preset("two-and-eight")).replace("\n    2,\n    8,\n", "\n    5,\n    5,\n"))
    assert scenario.batch.valid == (5, 5)
    assert compare(scenario).schemes["mean_of_rank_means"].relative_l2_error[0] != 0
    assert figure(scenario, "error.mean_of_rank_means").text == "0 %"


def test_a_list_has_no_value_and_its_entries_have_one() -> None:
    assert figure(preset("chapter-19-2"), "after").value is None
    assert figure(preset("chapter-19-2"), "after.1").value == pytest.approx(4.8)


KEYS = {
    "published": "resnet_gpus",
    "stage": "stage1",
    "count": "2",
    "epoch": "0",
    "micro": "0",
    "recording": "two-processes",
    "part": "step",
    "algorithm": "tree",
    "rank": "0",
    "scheme": SCHEMES[0],
    "way": "one_device",
}


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("family", FAMILIES)
def test_every_figure_of_the_table_exists_for_every_preset(name: str, family: str) -> None:
    written = ".".join((family, *(KEYS[kind] for kind in FAMILIES[family].keys)))
    assert figure(preset(name), written).text


MISTAKES = [
    ("colour", "figure: must be one of R, N, "),
    ("valid", "figure: must be written valid.RANK"),
    ("valid.2", "figure: must name a rank from 0 to 1, got '2'"),
    ("valid.-1", "figure: must name a rank from 0 to 1"),
    ("valid.00", "figure: must name a rank from 0 to 1"),
    ("gradient.mine", "figure: must be one of token_weighted, "),
    ("weight.one_device.0", "figure: must be one of token_weighted, "),
    ("gradient.custom", "figure: must be one of token_weighted, "),
    ("after.2", "figure: must end behind its keys, or with an entry from 0 to 1"),
    ("after.0.0", "figure: must end behind its keys"),
    ("R.__class__", "figure: must end behind its keys"),
    ("__class__", "figure: must be one of R, N, "),
    ("", "figure: must be one of R, N, "),
]


@pytest.mark.parametrize(("name", "message"), MISTAKES)
def test_a_figure_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        figure(preset("chapter-19-2"), name)
    assert str(caught.value).startswith(message)


def test_an_own_table_of_weights_has_figures_too() -> None:
    scenario: Scenario = from_toml(
        to_toml(preset("chapter-19-2")).replace('name = "', 'reduction = [[1], [0]]\nname = "')
    )
    assert figure(scenario, "gradient.custom").text == "[1, 3]"
    assert figure(scenario, "factor.custom.0").text == "1"
    assert compare(scenario).chosen == "custom"
