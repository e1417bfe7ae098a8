"""The app without a browser: every page run through app.py, what it draws, and what it says to bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from dpsim.beats import Beat, beats
from dpsim.checks import shown
from dpsim.comparison import compare
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.ui.stage.payload import stage_data

APP = str(Path(__file__).resolve().parents[1] / "app.py")
NAMES = preset_names()
ODD_TITLE = r"$x$ <b>bold</b> `_a_` ~~s~~ \ :smile: [l](http://x) :red[r] **b** &amp; # 1. - x"


def opened(query: dict[str, str] | str = "") -> AppTest:
    """The app as it is after opening a link with this query."""
    app = AppTest.from_file(APP, default_timeout=30)
    for key, value in parse_qsl(query) if isinstance(query, str) else query.items():
        app.query_params[key] = value
    return app.run()


def payload(app: AppTest) -> dict[str, Any]:
    """The data of the one stage on the page."""
    found = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    (data,) = [data for data in found if "beats" in data]
    assert isinstance(data, dict)
    return data


def plain(markdown: str) -> str:
    """What a reader sees of text that was escaped for Markdown; a word joiner is not seen."""
    markdown = markdown.replace("\u2060", "")
    return unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown))


def page_text(app: AppTest) -> str:
    """All text on the page, as a reader sees it."""
    return "\n".join(plain(block.value) for block in (*app.text, *app.markdown))


@lru_cache
def told(name: str) -> tuple[Beat, ...]:
    """The beats of a preset."""
    return beats(simulate(preset(name)), compare(preset(name)))


def identity(scenario: Scenario) -> str:
    """The id of the picture of a scenario: a hash of all that it shows."""
    trace = simulate(scenario)
    ways = compare(scenario)
    found = beats(trace, ways)
    return str(stage_data(trace, found, ways, found[0].id)["id"])


def is_fine(app: AppTest) -> None:
    """No exception, no message of any kind."""
    assert [block.value for block in (*app.exception, *app.error, *app.warning)] == []


def test_the_first_screen_shows_four_ranks_with_uneven_valid_tokens() -> None:
    app = opened()
    is_fine(app)
    data = payload(app)
    assert data["source"] == "simulated"
    assert data["world"] == 4
    assert [rank["valid"] for rank in data["ranks"]] == [7, 2, 5, 2]
    assert [rank["tokens"] for rank in data["ranks"]] == [8, 8, 8, 8]
    assert data["first"] == data["beats"][0]["id"] == "start"
    assert data["title"] in page_text(app)


def test_the_first_screen_has_one_straggler() -> None:
    (step,) = payload(opened())["steps"]
    last = max(step["arrivals"])
    assert [rank for rank, at in enumerate(step["arrivals"]) if at == last] == [3]
    assert "Rank 3 is last" in page_text(opened())


def test_every_preset_can_be_chosen_with_the_control() -> None:
    app = opened()
    control = app.selectbox(key="preset")
    assert control.options == [preset(name).title for name in NAMES]
    assert control.value == "first-screen"
    for name in NAMES:
        app.selectbox(key="preset").select(name).run()
        is_fine(app)
        data = payload(app)
        assert data["title"] == preset(name).title
        assert [beat["id"] for beat in data["beats"]] == [beat.id for beat in told(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_link_with_a_preset_opens_it(name: str) -> None:
    app = opened({"preset": name})
    is_fine(app)
    assert app.selectbox(key="preset").value == name
    assert payload(app)["id"] == identity(preset(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_beat_is_on_the_page_as_text(name: str) -> None:
    text = page_text(opened({"preset": name}))
    place = 0
    for beat in told(name):
        for part in (beat.title, beat.sentence, *beat.arithmetic, *beat.details):
            place = text.find(part, place)
            assert place >= 0, f"{beat.id}: {part!r} is not on the page, or not in its order"
            place += len(part)


def test_every_beat_of_the_first_screen_can_be_opened_by_a_link() -> None:
    for beat in told("first-screen"):
        app = opened({"beat": beat.id})
        is_fine(app)
        assert payload(app)["first"] == beat.id


@pytest.mark.parametrize("beat", ["nope", "allreduce.b0.r6", "START", "<b>", "x" * 100_000])
def test_a_beat_that_is_not_there_is_named(beat: str) -> None:
    app = opened({"beat": beat})
    assert not app.exception
    (message,) = [*app.warning, *app.error]
    assert plain(message.value).startswith("beat: must be one of ")
    assert beat[:40] in plain(message.value)
    assert len(message.value) < 1000
    assert payload(app)["first"] == "start"


LONG = "1" * 100_000
BAD: list[tuple[dict[str, str], str]] = [
    ({"preset": "nope"}, "preset: must be one of first-screen, "),
    ({"preset": LONG}, "preset: must be one of first-screen, "),
    ({"colour": "1"}, "colour: unknown key; known are name, "),
    ({"network.colour": "1"}, "network.colour: unknown key; known are latency_s, "),
    ({"net.latency_s": "1"}, "net.latency_s: unknown key; known are name, "),
    ({"network": "1"}, "network: must be "),
    ({"world_size": "0"}, "world_size: must be a whole number from 1 to "),
    ({"world_size": "2.5"}, "world_size: must be a whole number from 1 to "),
    ({"world_size": "four"}, "world_size: must be "),
    ({"world_size": LONG}, "world_size: must be "),
    ({"preset": "ring-64", "world_size": "65"}, "world_size: must be a whole number from 1 to 64"),
    ({"steps": "201"}, "steps: must be a whole number from 1 to 200"),
    ({"network.latency_s": "-1"}, "network.latency_s: must be a finite number of at least 0"),
    ({"network.latency_s": "NaN"}, "network.latency_s: must be "),
    ({"network.bandwidth_bytes_per_s": "0"}, "network.bandwidth_bytes_per_s: must be a finite number"),
    ({"reduction": "foo"}, "reduction: must be one of token_weighted, "),
    ({"reduction": LONG}, "reduction: must be one of token_weighted, "),
    ({"batch.valid": "[9,2,5,2]"}, "batch.valid[0]: must be a whole number from 0 to 8"),
    ({"batch.lengths": "[8,[8],8,8]"}, "batch.lengths[1]: must be a whole number"),
    ({"model.gradient_sums": "[[[3]],[[5]],[[1e999]],[[2]]]"}, "model.gradient_sums[2][0][0]: must be "),
    ({"title": LONG}, "title: must be one line of at most 200 characters"),
    ({"seed": LONG}, "seed: must be "),
    ({"batch.lengths": "[" * 100_000}, "batch.lengths: must be "),
    ({"preset": "ring-64", "steps": "100"}, ""),
]  # fmt: skip


def short_id(value: object) -> str:
    return str(value)[:60]


@pytest.mark.parametrize(("query", "expected"), BAD, ids=short_id)
def test_bad_input_is_told_and_the_picture_stays(query: dict[str, str], expected: str) -> None:
    app = opened(query)
    assert not app.exception
    (error,) = app.error
    message = plain(error.value)
    assert message.startswith(expected)
    assert ", got " in message
    assert len(message) < 1000
    assert "Traceback" not in message
    assert payload(app)["id"] == identity(preset("first-screen"))


@pytest.mark.parametrize("world_size", ["65", "1024", "1025"])
def test_a_world_size_alone_that_does_not_fit_is_told(world_size: str) -> None:
    app = opened({"world_size": world_size})
    assert not app.exception
    (error,) = app.error
    assert re.match(r"[a-z_.]+: must .*, got ", plain(error.value))
    assert payload(app)["id"] == identity(preset("first-screen"))


def test_the_last_good_picture_stays_not_the_first_one() -> None:
    app = opened({"preset": "chapter-19-2"})
    app.query_params["optimizer.learning_rate"] = "-1"
    app.run()
    assert not app.exception
    (error,) = app.error
    assert plain(error.value).startswith("optimizer.learning_rate: must be ")
    assert payload(app)["id"] == identity(preset("chapter-19-2"))
    app.query_params["optimizer.learning_rate"] = "0.2"
    app.run()
    is_fine(app)
    first = preset("chapter-19-2")
    changed = replace(first, optimizer=replace(first.optimizer, learning_rate=0.2))
    assert payload(app)["id"] == identity(changed)


def changed_preset(name: str) -> Scenario:
    scenario = preset(name)
    network = replace(scenario.network, latency_s=0.0005)
    return replace(scenario, title="A changed scenario", network=network, steps=2)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_with_a_preset_and_a_changed_scenario_is_drawn(name: str) -> None:
    scenario = changed_preset(name)
    app = opened(f"preset={name}&{to_query(scenario)}")
    is_fine(app)
    assert payload(app)["id"] == identity(scenario)


@pytest.mark.parametrize("name", ["first-screen", "chapter-19-2", "collective-tree", "ring-8", "ring-64"])
def test_a_link_with_a_changed_scenario_alone_is_drawn(name: str) -> None:
    scenario = changed_preset(name)
    assert from_query(to_query(scenario)) == scenario
    app = opened(to_query(scenario))
    is_fine(app)
    assert payload(app)["id"] == identity(scenario)


def test_a_preset_chosen_after_a_scenario_from_a_link_is_that_preset() -> None:
    app = opened(f"preset=ring-8&{to_query(changed_preset('ring-8'))}")
    app.selectbox(key="preset").select("chapter-19-2").run()
    is_fine(app)
    assert payload(app)["id"] == identity(preset("chapter-19-2"))


def test_a_title_is_shown_as_it_was_typed() -> None:
    app = opened({"title": ODD_TITLE})
    is_fine(app)
    assert payload(app)["title"] == ODD_TITLE
    assert [block.value for block in app.text] == [ODD_TITLE], "in a block that knows no Markdown"


def test_a_message_shows_what_was_typed() -> None:
    (message,) = opened({"reduction": ODD_TITLE}).error
    assert plain(message.value).endswith(f"got {shown(ODD_TITLE)}")
    left = re.sub(r"\\[!-/:-@\[-`{-~]|&(?:lt|gt|amp);", "", message.value)
    assert not re.findall(r"[\\`*_$<>\[\]~:&#]", left), f"not escaped for Markdown: {left!r}"


@pytest.mark.parametrize("value", ["allreduce.b0.r1", None, 5, "nope", ["start"], {"x": 1}])
def test_what_the_stage_reports_does_not_break_a_rerun(value: object) -> None:
    app = opened()
    before = payload(app)
    app.session_state["stage"] = {"beat": value}
    app.run()
    is_fine(app)
    assert payload(app) == before, "the stage's data must not change when it reports a beat"


def test_all_tokens_masked_is_shown_and_told() -> None:
    app = opened({"batch.valid": "[0,0,0,0]"})
    is_fine(app)
    assert [rank["valid"] for rank in payload(app)["ranks"]] == [0, 0, 0, 0]
    assert "optimizer step is skipped" in page_text(app)
