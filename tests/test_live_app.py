"""The switch to live, without a browser: what it says, what it runs, what it shows, and what it refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from live_runs import needs_torch
from streamlit.testing.v1 import AppTest
from test_app import page_text, plain
from test_lab import control, fine, stage

from dpsim.as_run import as_run
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.edits import on_one_device
from dpsim.fit import Points, fit_line
from dpsim.forms import preset, to_query
from dpsim.hardware import Hardware
from dpsim.live.calibrate import Calibration
from dpsim.live.devices import Machine
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.together import Together, run_together
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.ui.background import Background
from dpsim.ui.lab_state import Shown
from dpsim.ui.live_state import LiveState, Measured

APP = str(Path(__file__).resolve().parents[1] / "app.py")
PAGES = {"step": "stage", "lab": "lab.stage"}


def opened(page: str = "lab", **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    app.switch_page(f"pages/{page}.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def state(app: AppTest) -> LiveState:
    found: LiveState = app.session_state["live"]
    return found


def switched(app: AppTest, key: str = "lab.stage", to: str = "live") -> AppTest:
    app.session_state[f"{key}.live"] = to
    return app.run()


def through(app: AppTest, seconds: float = 120.0) -> AppTest:
    """Wait until what goes on in the background has ended, and let the page take it."""
    end = time.monotonic() + seconds
    while state(app).running is not None and time.monotonic() < end:
        time.sleep(0.05)
        app.run()
    assert state(app).running is None, "it has ended"
    return app.run()


def source(app: AppTest) -> str:
    return str(stage(app)["source"])


@needs_torch
@pytest.mark.parametrize("where", PAGES)
def test_a_run_replaces_the_simulation_by_what_was_measured(where: str) -> None:
    key = PAGES[where]
    app = through(switched(opened(where, preset="accelerate-doc"), key))
    fine(app)
    assert source(app) == "simulated", "until it has run"
    assert any("Not run yet" in block.value for block in app.caption)
    through(app.button(key=f"{key}.run").click().run())
    fine(app)
    assert source(app) == "measured"
    found = state(app).kept[-1]
    ways, formula = found.ways, compare(preset("accelerate-doc"))
    for way in ("token_weighted", "mean_of_rank_means"):
        assert ways.schemes[way].gradient[0] == pytest.approx(formula.schemes[way].gradient[0], rel=1e-12)
    assert ways.one_device.parameters == pytest.approx(formula.one_device.parameters, rel=1e-12)
    said = plain(" ".join(block.value for block in (*app.caption, *app.markdown)))
    for part in ("no GPU: 2 CPU processes", "Gloo, float64".lower(), "SUM right", "equal bit for bit"):
        assert part.lower() in said.lower()
    switched(app, key, "simulated")
    assert source(app) == "simulated"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A run that lasts until it may end, without processes: it says what it does and can be called off."""
    may_end = threading.Event()

    def run(
        scenario: Scenario, mode: str, *, say: Callable[[str, float], None], cancel: threading.Event, **_: Any
    ) -> Together:
        say("token-weighted mean: step 1 of 1", 0.25)
        while not may_end.wait(0.01):
            if cancel.is_set():
                raise CancelledError("the run was cancelled")
        raise LiveError("rank 1 was killed by SIGKILL in forward of step 1")

    monkeypatch.setattr("dpsim.ui.live.run_together", run)
    monkeypatch.setattr("dpsim.ui.live.look", lambda cancel: pytest.fail("it was looked at already"))
    monkeypatch.setattr("dpsim.ui.live.machines", lambda: [_machine()])
    yield may_end
    may_end.set()


def _machine() -> Machine:
    return Machine("3.11", "2.13", "Linux x86_64", 2, (), gloo=True, nccl=False)


def test_a_torch_that_is_broken_costs_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []

    def look(cancel: threading.Event) -> None:
        looks.append(cancel)
        raise LiveError("torch cannot be used here (ImportError: no torch); all that is simulated works")

    seen: list[Machine] = []
    monkeypatch.setattr("dpsim.ui.live.machines", lambda: seen)
    monkeypatch.setattr("dpsim.ui.live.look", look)
    app = through(switched(opened()))
    assert "torch cannot be used here" in plain(app.error[0].value)
    control(app, "number_input", "world_size").set_value(3).run()
    assert (source(app), stage(app)["world"]) == ("simulated", 3)
    assert len(looks) == 1, "nobody looks again and again"


def test_progress_and_cancel(quick: threading.Event) -> None:
    app = switched(opened())
    app.button(key="lab.stage.run").click().run()
    assert app.button(key="lab.stage.run").disabled
    assert "step 1 of 1" in plain(app.get("progress")[0].proto.text)
    app.button(key="live.cancel").click().run()
    through(app)
    assert "the run was cancelled" in plain(app.error[0].value)
    assert source(app) == "simulated"
    assert not app.button(key="lab.stage.run").disabled


def test_a_rank_that_dies_is_a_sentence_and_the_page_goes_on(quick: threading.Event) -> None:
    app = switched(opened())
    app.button(key="lab.stage.run").click().run()
    quick.set()
    through(app)
    assert "rank 1 was killed by SIGKILL" in plain(app.error[0].value)
    control(app, "number_input", "world_size").set_value(3).run()
    assert stage(app)["world"] == 3


def test_what_is_measured_cannot_be_set_while_live(quick: threading.Event) -> None:
    app = opened()
    app.session_state["lab.group.Compute and network"] = True
    app.run()
    measured = [
        "compute.forward_s_per_token",
        "compute.backward_s_per_token",
        "compute.optimizer_s",
        "network.latency_s",
        "network.bandwidth_bytes_per_s",
        "network.gradient_bytes",
    ]
    assert not any(control(app, "number_input", key).disabled for key in measured)
    switched(app)
    assert all(control(app, "number_input", key).disabled for key in measured)
    assert not control(app, "number_input", "slowest").disabled
    said = plain(" ".join(block.value for block in app.caption))
    assert "passes of each rank: rank 0 20, rank 1 20, rank 2 20 and rank 3 29." in said


def test_what_cannot_run_live_is_told_before_anything_starts(quick: threading.Event) -> None:
    app = switched(opened(preset="ring-64"))
    app.button(key="lab.stage.run").click().run()
    assert "world_size: must be a whole number from 1 to 16" in plain(app.error[0].value)
    assert state(app).running is None


def test_an_operator_can_switch_live_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSIM_LIVE", "off")
    app = opened()
    switch = app.get("button_group")[0]
    assert switch.proto.disabled
    assert "switched off by its operator" in plain(" ".join(block.value for block in app.caption))
    assert not [b for b in app.button if b.key == "lab.stage.run"]
    switched(app)
    assert source(app) == "simulated"


def test_what_was_measured_for_another_scenario_is_not_shown(quick: threading.Event) -> None:
    app = switched(opened())
    ran = preset("next-token")
    app.session_state["live"].kept = (_simulated(ran),)
    app.run()
    assert source(app) == "measured"
    control(app, "number_input", "world_size").set_value(5).run()
    assert source(app) == "simulated"
    app.button(key="lab.undo").click().run()
    assert source(app) == "measured"
    app.query_params["present"] = "1"
    app.run()
    assert source(app) == "measured", "also for the projector"


def test_what_belongs_to_one_scenario_is_not_told_at_another(quick: threading.Event) -> None:
    app = switched(opened(preset="ring-64"))
    app.button(key="lab.stage.run").click().run()
    assert "world_size" in plain(app.error[0].value)
    control(app, "number_input", "world_size").set_value(4).run()
    fine(app)


def test_the_passes_told_are_those_that_were_made(quick: threading.Event) -> None:
    app = switched(opened())
    ran = preset("next-token")
    made = replace(_simulated(ran), trace=replace(_simulated(ran).trace, scenario=_with_work(ran, 7)))
    app.session_state["live"].kept = (made,)
    app.number_input(key="lab.stage.work").set_value(1000).run()
    said = plain(" ".join(block.value for block in app.caption))
    assert "rank 0 7, rank 1 7, rank 2 7 and rank 3 10." in said
    assert "7 passes" in page_text(app), "the prediction is for as many"
    assert "| passes for one | 7 |" in page_text(app)


def _with_work(scenario: Scenario, work: int) -> Scenario:
    return replace(scenario, compute=replace(scenario.compute, work_factor=work))


def test_a_scenario_that_cannot_be_predicted_says_so_and_the_rest_stays(quick: threading.Event) -> None:
    plainly = preset("next-token")
    ran = replace(plainly, network=replace(plainly.network, gradient_bytes=14e9))
    app = switched(opened(**dict(parse_qsl(to_query(ran)))))
    app.session_state["live"].kept = (_simulated(ran),)
    app.run()
    assert not app.exception
    assert "bandwidth_bytes_per_s" in plain(app.error[0].value)
    assert "| buckets |" in page_text(app)


def test_another_exchange_has_other_beats_and_nothing_to_complain_of(quick: threading.Event) -> None:
    app = switched(opened("step", preset="first-screen"), "stage")
    app.query_params["beat"] = "allreduce.b0"  # where a stage rested whose messages nobody saw
    app.session_state["live"].kept = (_simulated(preset("first-screen")),)
    app.run()
    fine(app)
    assert source(app) == "measured"


def test_kept_results_are_bounded_by_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsim.ui.live_state.MOST_BYTES", 10_000)
    state = LiveState()
    for mode in ("chunks", "library", "ddp"):
        found = _simulated(preset("next-token"), mode)
        assert found.bytes > 5_000
        state.running = Background(result=found)
        state.running.done.set()
        state.collect()
    assert [m.mode for m in state.kept] == ["ddp"]


def test_an_opened_trace_is_what_the_stage_shows_until_something_is_measured(quick: threading.Event) -> None:
    app = switched(opened())
    trace = replace(_simulated(preset("next-token")).trace, source="recorded")
    app.session_state["lab"].shown = Shown(to_query(trace.scenario), trace)
    app.run()
    assert "the stage shows the trace that was opened" in plain(" ".join(b.value for b in app.caption))
    assert "A trace that was opened" in app.info[0].value
    app.session_state["live"].kept = (_simulated(preset("next-token")),)
    app.run()
    assert not app.info, "what is shown now was measured here"


@needs_torch
def test_the_lab_s_first_scenario_runs_under_ddp_too() -> None:
    app = through(switched(opened()))
    app.selectbox(key="lab.stage.mode").select("ddp").run()
    through(app.button(key="lab.stage.run").click().run())
    fine(app)
    assert source(app) == "measured"
    assert state(app).kept[-1].trace.machine["mode"] == "ddp"
    assert "| buckets | 1 |" in page_text(app)


def test_this_machine_is_calibrated_and_predicts(
    quick: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPSIM_HARDWARE", str(tmp_path))
    entry = Hardware("this-machine", "measured", 1e-3, 1e6, 1e-5, 2e-5, 3e-3, machine="a <b>bench</b>")
    points = Points((1, 2), (1.0, 2.0), fit_line("x", (1, 2), (1.0, 2.0)))
    monkeypatch.setattr(
        "dpsim.ui.live.calibrate", lambda *_, **__: Calibration(entry, points, points, points)
    )
    app = switched(opened())
    ran = preset("next-token")
    app.session_state["live"].kept = (_simulated(ran),)
    app.run()
    fine(app)
    assert "not this machine" in page_text(app)
    assert "| optimizer step | 500 µs | 500 µs | 1 |" in page_text(app)
    through(app.button(key="calibrate").click().run())
    fine(app)
    assert "Predicted with this-machine: a <b>bench</b>" in page_text(app)
    assert "| optimizer step | 3 ms | 500 µs | 0.17 |" in page_text(app)
    monkeypatch.setattr("dpsim.ui.live.save", lambda _: _raise(InputError("DPSIM_HARDWARE", "is full", "x")))
    through(app.button(key="calibrate").click().run())
    assert "DPSIM_HARDWARE: is full" in plain(app.error[0].value)
    (tmp_path / "this-machine.toml").write_text("latency_s = 'fast'", "utf-8")
    app.run()
    assert "this-machine.toml" in plain(app.error[-1].value)
    assert not app.exception


def _raise(error: Exception) -> None:
    raise error


def _simulated(scenario: Scenario, mode: str = "chunks") -> Measured:
    """What a run might have left: simulated numbers in the place of measured ones."""
    names = ("hardware", "versions", "date", "process_ids", "backend", "probe")
    machine = dict.fromkeys(names, "x") | {"mode": mode, "dtype": "float64"}

    def ran(one: Scenario) -> Any:
        return replace(simulate(one), source="measured", machine=machine)

    ways = {way: ran(replace(scenario, reduction=way)) for way in ("token_weighted", "mean_of_rank_means")}
    found = as_run(ways | {"one_device": ran(on_one_device(scenario))}, "token_weighted")
    return Measured(to_query(scenario), mode, ways["token_weighted"], found)


def test_a_way_that_runs_away_beside_the_chosen_one_says_so_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(scenario: Scenario, **_: Any) -> Any:
        if scenario.reduction == "mean_of_rank_means":
            raise InputError("optimizer.learning_rate", "must be small enough", 9.0)
        return simulate(scenario)

    monkeypatch.setattr("dpsim.live.together.run_live", run)
    done = run_together(preset("first-screen"), "chunks")
    found = as_run(done.runs, done.chosen)
    naive = found.schemes["mean_of_rank_means"]
    assert naive.undefined == "optimizer.learning_rate: must be small enough, got 9.0"
    assert found.schemes["token_weighted"].relative_l2_error[0] == pytest.approx(0, abs=1e-12)
