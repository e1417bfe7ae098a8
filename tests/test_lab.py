"""The lab without a browser: every control edits the scenario, the address says it, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from streamlit.testing.v1 import AppTest
from test_app import ODD_TITLE, plain

from dpsim.forms import from_query, preset, preset_names, to_query, to_toml
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.ui.lab_state import Shown
from dpsim.ui.opening import opened_trace

GROUPS = ("Batch", "Model and optimizer", "Compute and network", "Buckets", "Own weights")
APP = str(Path(__file__).resolve().parents[1] / "app.py")


def opened(query: dict[str, str] | str = "") -> AppTest:
    """The lab as it is after opening a link with this query."""
    app = AppTest.from_file(APP, default_timeout=30)
    app.switch_page("pages/lab.py")
    for group in GROUPS:
        app.session_state[f"lab.group.{group}"] = True
    for key, value in parse_qsl(query) if isinstance(query, str) else query.items():
        app.query_params[key] = value
    return app.run()


def fine(app: AppTest) -> None:
    assert [block.value for block in (*app.exception, *app.error)] == []


def address(app: AppTest) -> dict[str, str]:
    """What the address bar says, without the beat."""
    return {k: v[0] if isinstance(v, list) else v for k, v in app.query_params.items() if k != "beat"}


def shown(app: AppTest) -> Scenario:
    """The scenario that the lab shows, by its own address."""
    query = address(app)
    return preset(query["preset"]) if set(query) == {"preset"} else from_query(query)


def address_becomes(app: AppTest, query: dict[str, str]) -> None:
    """The next run is sent with this address."""
    for key in list(app.query_params):
        del app.query_params[key]
    for key, value in query.items():
        app.query_params[key] = value


@pytest.fixture
def back(monkeypatch: pytest.MonkeyPatch) -> Callable[[AppTest, dict[str, str]], None]:
    """The browser's Back or Forward, to an address."""

    def go(app: AppTest, query: dict[str, str]) -> None:
        address_becomes(app, query)
        with monkeypatch.context() as patch:
            patch.setattr("dpsim.ui.lab_state.has_navigated", lambda: True)
            app.run()

    return go


def control(app: AppTest, kind: str, key: str) -> Any:
    """The widget that is this control now: its key ends with a number."""
    (found,) = [w for w in getattr(app, kind) if w.key and w.key.rpartition(".")[0] == f"lab.{key}"]
    return found


def stage(app: AppTest) -> dict[str, Any]:
    """The stage's data; the token editor is a component too."""
    found = [json.loads(c.proto.json) for c in app.get("bidi_component")]
    (data,) = [d for d in found if "beats" in d]
    assert isinstance(data, dict)
    return data


def test_the_lab_opens_with_a_picture_and_no_message() -> None:
    app = opened()
    fine(app)
    assert stage(app)["title"] == preset("next-token").title
    assert not app.button(key="lab.undo").value
    assert app.button(key="lab.undo").disabled


CHANGES: list[tuple[str, str, Any, str, Any]] = [
    ("number_input", "world_size", 6, "world_size", 6),
    ("selectbox", "reduction", "mean_of_rank_means", "reduction", "mean_of_rank_means"),
    ("selectbox", "collective", "tree", "collective", "tree"),
    ("number_input", "slowest", 50.0, "speeds", (1.0, 1.0, 1.0, 0.5)),
    ("number_input", "steps", 3, "steps", 3),
    ("text_input", "batch.lengths", "4, 5, 6, 7", "batch.lengths", (4, 5, 6, 7)),
    ("text_input", "batch.valid", "0, 8, 1, 2", "batch.valid", (0, 8, 1, 2)),
    ("number_input", "seed", 11, "seed", 11),
    ("selectbox", "batch.shard", "longest_first", "batch.shard", "longest_first"),
    ("text_input", "batch.micro_batches", "2", "micro_batches", (2, 2, 2, 2)),
    ("text_input", "batch.micro_batches", "1 2 1 1", "micro_batches", (1, 2, 1, 1)),
    ("toggle", "batch.drawn", True, "batch.sequences", 4),
    ("selectbox", "model.kind", "scalar", "model.kind", "scalar"),
    ("selectbox", "model.kind", "given", "model.kind", "given"),
    ("number_input", "model.vocabulary", 6, "model.vocabulary", 6),
    ("number_input", "model.width", 2, "model.width", 2),
    ("text_input", "model.parameters", " ".join("1" * 12), "model.parameters", (1.0,) * 12),
    ("selectbox", "optimizer.kind", "adam", "optimizer.kind", "adam"),
    ("number_input", "optimizer.learning_rate", 0.25, "optimizer.learning_rate", 0.25),
    ("toggle", "optimizer.clips", True, "optimizer.clip_norm", 1.0),
    ("number_input", "compute.forward_s_per_token", 1.0, "compute.forward_s_per_token", 0.001),
    ("number_input", "compute.backward_s_per_token", 2.0, "compute.backward_s_per_token", 0.002),
    ("number_input", "compute.optimizer_s", 3.0, "compute.optimizer_s", 0.003),
    ("number_input", "network.latency_s", 250.0, "network.latency_s", 0.00025),
    ("number_input", "network.bandwidth_bytes_per_s", 25.0, "network.bandwidth_bytes_per_s", 25e9),
    ("number_input", "network.gradient_bytes", 100.0, "network.gradient_bytes", 100e6),
    ("text_input", "compute.speed", "1, 1, 0.5, 1", "compute.speed", (1.0, 1.0, 0.5, 1.0)),
    ("toggle", "buckets.capped", True, "buckets.cap_bytes", 20e6),
    ("toggle", "buckets.overlap", False, "buckets.overlap", False),
    ("toggle", "buckets.sync_every_micro_batch", True, "buckets.sync_every_micro_batch", True),
    ("text_area", "weights", "0.1\n0.2\n0.3\n0.4", "reduction", ((0.1,), (0.2,), (0.3,), (0.4,))),
]  # fmt: skip


def value_of(scenario: Scenario, dotted: str) -> Any:
    value: Any = scenario
    for name in dotted.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("kind", "key", "value", "dotted", "expected"), CHANGES, ids=lambda v: str(v)[:24])
def test_every_control_edits_its_part_of_the_scenario(
    kind: str, key: str, value: Any, dotted: str, expected: Any
) -> None:
    app = opened()
    control(app, kind, key).set_value(value).run()
    fine(app)
    scenario = shown(app)
    assert value_of(scenario, dotted) == expected
    assert control(app, kind, key).value == value or kind == "text_input"
    assert stage(app)["world"] == scenario.world_size
    app.button(key="lab.undo").click().run()
    fine(app)
    assert shown(app) == preset("next-token"), "undo leads back"
    assert app.button(key="lab.undo").disabled


def test_controls_that_belong_to_a_choice_come_with_it() -> None:
    app = opened()
    control(app, "toggle", "batch.drawn").set_value(True).run()
    control(app, "number_input", "batch.sequences").set_value(6).run()
    control(app, "number_input", "batch.max_length").set_value(5).run()
    control(app, "selectbox", "batch.shard").select("by_hand").run()
    control(app, "text_area", "batch.assignment").set_value("0 1\n2\n3 4\n5").run()
    control(app, "toggle", "optimizer.clips").set_value(True).run()
    control(app, "selectbox", "optimizer.clip").select("before").run()
    control(app, "number_input", "optimizer.clip_norm").set_value(0.25).run()
    control(app, "toggle", "buckets.capped").set_value(True).run()
    control(app, "number_input", "buckets.cap_bytes").set_value(8.0).run()
    fine(app)
    scenario = shown(app)
    assert (scenario.batch.sequences, scenario.batch.max_length) == (6, 5)
    assert scenario.batch.assignment == (((0, 1),), ((2,),), ((3, 4),), ((5,),))
    assert (scenario.optimizer.clip, scenario.optimizer.clip_norm) == ("before", 0.25)
    assert scenario.buckets.cap_bytes == 8e6


def test_given_gradients_are_typed_in() -> None:
    app = opened({"preset": "chapter-19-2"})
    control(app, "text_area", "model.gradient_sums").set_value("1 3\n−3, 1").run()
    fine(app)
    assert shown(app).model.gradient_sums == (((1.0, 3.0),), ((-3.0, 1.0),))


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_start_and_a_link(name: str) -> None:
    chosen = opened()
    control(chosen, "selectbox", "preset").select(name).run()
    fine(chosen)
    assert shown(chosen) == preset(name)
    linked = opened({"preset": name})
    fine(linked)
    assert stage(linked)["id"] == stage(chosen)["id"]
    assert control(linked, "selectbox", "preset").value == name


REFUSED = [
    ("text_input", "batch.valid", "9, 2, 5, 3", "batch.valid[0]: must be a whole number from 0 to 8"),
    ("text_input", "batch.valid", "x", "batch.valid: must be numbers parted by spaces or commas"),
    ("text_input", "batch.lengths", "", "batch.lengths: "),
    ("text_input", "batch.micro_batches", "1, 2", "batch.micro_batches: must have 4 entries"),
    ("text_input", "compute.speed", "1 1 1 0", "compute.speed[3]: must be a finite number"),
    ("text_input", "model.parameters", "1 2", "model.parameters: must have 12 entries"),
    ("text_area", "weights", "1\n2", "reduction: must have 4 entries"),
    ("number_input", "steps", 200, "scenario: must have at most 1000 beats in the app"),
    ("number_input", "network.gradient_bytes", 0.0, "network.gradient_bytes: must be a finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "key", "value", "message"), REFUSED, ids=lambda v: str(v)[:24])
def test_what_cannot_be_is_told_at_its_control_and_loses_nothing(
    kind: str, key: str, value: Any, message: str
) -> None:
    app = opened()
    control(app, kind, key).set_value(value).run()
    assert not app.exception
    (error,) = app.error
    assert plain(error.value).startswith(message)
    assert ", got " in plain(error.value)
    assert control(app, kind, key).value == value, "what was typed can be mended"
    assert stage(app)["title"] == preset("next-token").title
    control(app, "selectbox", "collective").select("tree").run()
    assert shown(app).collective == "tree", "other controls go on"
    app.button(key="lab.undo").click().run()
    fine(app)


def test_a_change_keeps_the_place_and_the_result_before_it() -> None:
    app = opened()
    assert "ghost" not in stage(app)
    before = stage(app)
    control(app, "selectbox", "reduction").select("mean_of_rank_means").run()
    now = stage(app)
    assert now["keep"] is True
    assert now["ghost"]
    assert now["id"] != before["id"]


def test_undo_goes_back_change_by_change() -> None:
    app = opened()
    for ranks in (5, 6, 7):
        control(app, "number_input", "world_size").set_value(ranks).run()
    seen = []
    while not app.button(key="lab.undo").disabled:
        app.button(key="lab.undo").click().run()
        seen.append(shown(app).world_size)
    assert seen == [6, 5, 4]


def test_an_address_that_somebody_went_to_is_the_truth(back: Callable[..., None]) -> None:
    app = opened()
    control(app, "number_input", "world_size").set_value(6).run()
    first = address(app)
    control(app, "number_input", "world_size").set_value(7).run()
    back(app, first)
    fine(app)
    assert shown(app).world_size == control(app, "number_input", "world_size").value == 6


def test_a_click_sent_with_an_old_address_is_not_undone_by_it() -> None:
    app = opened()
    control(app, "number_input", "world_size").set_value(6).run()
    old = address(app)
    control(app, "selectbox", "collective").select("tree").run()
    address_becomes(app, old)
    app.run()
    assert shown(app).collective == "tree", "nor by something else that is sent with it"
    address_becomes(app, old)
    control(app, "number_input", "steps").set_value(2).run()
    fine(app)
    scenario = shown(app)
    assert (scenario.world_size, scenario.collective, scenario.steps) == (6, "tree", 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"preset": "nope"}, "preset: must be one of first-screen, "),
        ({"world_size": "65"}, "world_size: must be a whole number from 1 to 64"),
        ({"colour": "1"}, "colour: unknown key; known are name, "),
        ({"preset": "ring-64", "steps": "100"}, ""),
        ({"long": "9000"}, "scenario: was too long for a link"),
    ],
)
def test_a_bad_link_is_told_and_the_lab_is_there(query: dict[str, str], message: str) -> None:
    app = opened(query)
    assert not app.exception
    (error,) = app.error
    assert plain(error.value).startswith(message)
    assert stage(app)["title"] == preset("next-token").title


def test_a_scenario_too_long_for_an_address_lives_in_the_session() -> None:
    app = opened()
    control(app, "number_input", "world_size").set_value(64).run()
    lengths = ", ".join(["8"] * 1500)
    control(app, "text_input", "batch.lengths").set_value(lengths).run()
    fine(app)
    assert list(address(app)) == ["long"]
    control(app, "selectbox", "collective").select("tree").run()
    fine(app)
    assert stage(app)["collective"] == "tree"


def test_a_scenario_that_an_editor_saved_with_a_byte_order_mark_opens() -> None:
    app = opened({"preset": "ring-8"})
    text = to_toml(preset("two-and-eight"))
    app.get("file_uploader")[0].set_value(("mine.toml", b"\xef\xbb\xbf" + text.encode(), "text/plain")).run()
    fine(app)
    assert shown(app) == preset("two-and-eight")


def test_what_was_typed_is_shown_literally() -> None:
    app = opened({"title": ODD_TITLE})
    fine(app)
    assert stage(app)["title"] == ODD_TITLE


def test_a_hidden_fault_is_warned_of() -> None:
    app = opened({"preset": "first-screen", "optimizer.kind": "adam"})
    assert [plain(w.value)[:5] for w in app.warning] == ["Adam ", "Adam "]
    assert not opened({"preset": "first-screen"}).warning


def test_several_steps_have_curves_and_one_has_none() -> None:
    assert not opened().get("plotly_chart")
    assert len(opened({"steps": "3"}).get("plotly_chart")) == 2


def test_the_table_shows_every_reduction_with_its_numbers() -> None:
    app = opened({"preset": "first-screen"})
    (table,) = [m.value for m in app.markdown if m.value.startswith("| reduction")]
    rows = {line.split("|")[1].strip(): line for line in plain(table).splitlines()[2:]}
    assert len(rows) == 6
    naive = rows["naive mean of rank means"]
    assert "[1.132, −0.1857, −0.7893, 0.6464]" in naive
    assert "0.5714, 2, 0.8, 2" in naive  # N/(R n): 16/28, 16/8, 16/20, 16/8


def test_the_presenters_view_shows_the_stage_alone() -> None:
    app = opened({"present": "1"})
    fine(app)
    assert stage(app)["present"] is True
    assert not app.number_input
    app.button(key="leave").click().run()
    fine(app)
    assert "present" not in app.query_params
    assert app.number_input
    app.button(key="present").click().run()
    assert app.query_params["present"] == "1"
    assert stage(app)["present"] is True


def test_the_lab_that_was_left_is_one_undo_away() -> None:
    app = opened()
    control(app, "number_input", "world_size").set_value(6).run()
    app.switch_page("pages/step.py")
    address_becomes(app, {})
    app.run()
    app.switch_page("pages/lab.py").run()
    fine(app)
    assert stage(app)["world"] == 4
    app.button(key="lab.undo").click().run()
    assert shown(app).world_size == stage(app)["world"] == 6


def test_a_field_that_is_cleared_takes_the_scenario_s_value_again() -> None:
    app = opened({"preset": "ring-8"})
    control(app, "number_input", "world_size").set_value(None).run()
    fine(app)
    assert control(app, "number_input", "world_size").value == stage(app)["world"] == 8


@pytest.mark.parametrize(
    ("query", "controls"),
    [
        ("world_size=1", {"world_size": 1}),
        (
            "name=x&batch.sequences=300&batch.max_length=100&world_size=4",
            {"batch.sequences": 300, "batch.max_length": 100},
        ),
        ("compute.speed=[20,20,20,20]", {"slowest": 2000.0}),
    ],
)
def test_a_control_can_say_whatever_a_scenario_holds(query: str, controls: dict[str, float]) -> None:
    app = opened(query)
    fine(app)
    for key, value in controls.items():
        field = control(app, "number_input", key)
        assert field.value == value
        assert field.min <= value <= field.max, "a browser would take the bound instead"


def test_what_was_refused_is_still_there_when_its_group_is_opened_again() -> None:
    app = opened()
    control(app, "text_input", "batch.lengths").set_value("<b>8</b>").run()
    app.session_state["lab.group.Batch"] = False
    app.run()
    assert len(app.error) == 1, "told beside the groups"
    app.session_state["lab.group.Batch"] = True
    app.run()
    assert control(app, "text_input", "batch.lengths").value == "<b>8</b>"
    assert len(app.error) == 1


def test_an_opened_trace_comes_back_by_undo_and_cannot_write_markdown() -> None:
    data = json.loads(simulate(preset("first-screen")).to_json())
    data["undefined"] = ["x` ![i](https://example.org/x.png) [click](https://example.org) `"]
    data["machine"] = {"clock": "2 hosts, at most 0.03 ms wrong ![i](https://example.org/y.png)"}
    trace = opened_trace(json.dumps(data))
    app = opened()
    app.session_state["lab"].overrule(Shown(to_query(trace.scenario), trace))
    app.run()
    fine(app)
    (line,) = [m for m in "\n".join(b.value for b in app.markdown).split("\n") if "example.org" in m][-1:]
    assert line.strip().startswith("`` ")
    (told,) = [info.value for info in app.info]
    assert "Its clock: 2 hosts, at most 0.03 ms wrong" in told.replace("\\", "")
    assert "](" not in told
    control(app, "number_input", "seed").set_value(5).run()
    assert not app.info
    app.button(key="lab.undo").click().run()
    fine(app)
    assert app.info, "the trace, not a simulation of it"


def test_a_long_scenario_is_found_again_by_its_address(back: Callable[..., None]) -> None:
    app = opened()
    for count in (1500, 1600):
        control(app, "text_input", "batch.lengths").set_value(", ".join(["8"] * count)).run()
        fine(app)
        if count == 1500:
            first = address(app)
    assert address(app) != first
    back(app, {"long": first["long"]})
    fine(app)
    assert shown_in(app).batch.count == 1500


def shown_in(app: AppTest) -> Scenario:
    """What the session's lab shows."""
    scenario = app.session_state["lab"].shown.scenario
    assert isinstance(scenario, Scenario)
    return scenario


def test_a_shared_link_opens_the_same_stage() -> None:
    scenario = from_query(dict(parse_qsl("steps=2")), preset("first-screen"))
    app = opened(urlencode(parse_qsl(to_query(scenario))) + "&beat=s1.optimizer")
    fine(app)
    assert stage(app)["first"] == "s1.optimizer"
    assert simulate(shown(app)).to_json() == simulate(scenario).to_json()
