"""Charts of speed-up, memory and published figures: what they draw is what the figures say, also in words."""

from __future__ import annotations

import pytest

from dpsim.checks import InputError
from dpsim.directives import Chart, directive
from dpsim.figures import figure
from dpsim.forms import preset
from dpsim.published import published
from dpsim.setting import Setting
from dpsim.ui.lesson_charts import drawn

SETTING = Setting(preset("doubling"))


def chart(toml: str) -> Chart:
    made = directive("chart", toml, 1, "here", SETTING)
    assert isinstance(made, Chart)
    return made


def test_the_speed_up_is_drawn_for_both_ways_of_growing_beside_the_ideal() -> None:
    drawing, said = drawn(chart('show = "speedup"'))
    kept, divided, ideal = drawing.data
    for trace, family in ((kept, "speedup"), (divided, "speedup_same_batch")):
        wanted = [figure(SETTING.scenario, f"{family}.{ranks}") for ranks in trace.x]
        assert list(trace.y) == [one.value for one in wanted]
        assert all(f"{one.text} on {ranks} ranks" in said for one, ranks in zip(wanted, trace.x, strict=True))
    assert list(ideal.x) == list(ideal.y) == [1, 2, 4, 8, 16, 32, 64]


def test_a_batch_given_rank_by_rank_has_no_line_for_dividing_it() -> None:
    given = 'show = "speedup"\nscenario = "first-screen"'
    drawing, said = drawn(chart(given))
    assert [trace.name for trace in drawing.data] == ["each rank keeps its share", "as many as ranks"]
    assert drawing.data[0].y[3] is None  # four elements cannot be cut into eight chunks
    assert "undefined on 8 ranks" in said


def test_the_bars_of_a_rank_s_memory_add_up_to_the_figures() -> None:
    names = "zero_parameters.zero_ranks"
    drawing, said = drawn(chart('show = "memory"\nfigures = ["zero_parameters", "zero_ranks"]'))
    for i, stage in enumerate(("ddp", "stage1", "stage2", "stage3")):
        total = figure(SETTING.scenario, f"memory.{stage}.{names}")
        assert sum(bar.x[i] for bar in drawing.data) == pytest.approx(total.number)
        assert total.text in said


def test_published_figures_are_drawn_with_their_source_in_the_words() -> None:
    drawing, said = drawn(chart('show = "published"\nfigures = ["goyal_batches", "goyal_errors"]'))
    (line,) = drawing.data
    assert tuple(line.x) == published()["goyal_batches"].values
    assert tuple(line.y) == published()["goyal_errors"].values
    assert said.endswith(f"Source: {published()['goyal_errors'].source}.")
    assert "23.74 % at 8192" in said
    assert "33.96 % at 65,536" in said


MISTAKES = [
    ('show = "memory"', "here: chart.figures: is needed"),
    ('show = "memory"\nfigures = ["zero_ranks"]', "here: chart.figures: must name parameters and ranks"),
    (
        'show = "memory"\nfigures = ["goyal_batches", "goyal_errors"]',
        "here: chart.figures: must name parameters and ranks",
    ),
    (
        'show = "published"\nfigures = ["zero_parameters", "zero_ranks"]',
        "here: chart.figures: must name two lists of figures of one length",
    ),
    (
        'show = "published"\nfigures = ["goyal_batches", "zero_ranks"]',
        "here: chart.figures: must name two lists of figures of one length",
    ),
    (
        'show = "published"\nfigures = ["nobody", "goyal_errors"]',
        "here: chart.figures[0]: must be one of imagenet_images, ",
    ),
    ('show = "speedup"\nways = ["token_weighted"]', "here: chart.ways: unknown key; known are "),
]


@pytest.mark.parametrize(("toml", "message"), MISTAKES)
def test_a_chart_of_what_is_not_there_is_refused(toml: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        chart(toml)
    assert str(caught.value).startswith(message)
