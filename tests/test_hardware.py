"""Hardware entries: checked, kept in files, put into scenarios as a live run on them behaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Capture, answer, complaint
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import law, numbers, scenarios

from dpsim import hardware
from dpsim.batch import global_batch
from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.cli import main
from dpsim.forms import preset, preset_names
from dpsim.hardware import Hardware, at_real_size, from_toml, predicted, to_toml
from dpsim.metrics import step_metrics
from dpsim.scenario import Batch, Buckets, Compute, Model, Network, Scenario
from dpsim.simulate import simulate
from dpsim.timeline import buckets

SHEET = Hardware(
    name="data-sheet",
    source="stated",
    latency_s=0.001,
    bandwidth_bytes_per_s=1000.0,
    forward_s=0.5,
    forward_s_per_token=0.25,
    backward_s=1.0,
    backward_s_per_token=0.125,
    optimizer_s=0.0625,
    dtype="float64",
)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's entries, which is not there yet."""
    monkeypatch.setenv("DPSIM_HARDWARE", str(tmp_path / "a" / "hardware"))
    return tmp_path / "a" / "hardware"


positive = st.floats(0.001, 1e12)
costs = st.floats(0, 3600)
words = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, categories=("L", "N", "P", "Zs")), max_size=9
)
entries = st.builds(
    Hardware,
    name=st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True),
    source=st.sampled_from(hardware.SOURCES),
    latency_s=costs,
    bandwidth_bytes_per_s=positive,
    forward_s=costs,
    forward_s_per_token=costs,
    backward_s=costs,
    backward_s_per_token=costs,
    optimizer_s=costs,
    dtype=st.sampled_from(tuple(hardware.ELEMENT_BYTES)),
    message_error=st.none() | positive,
    ranks=st.none() | st.integers(1, 16),
    machine=words.filter(str.isprintable),
)


@law(100)
@given(entries)
def test_an_entry_survives_its_file(entry: Hardware) -> None:
    assert from_toml(to_toml(entry)) == entry


@law(100)
@given(scenarios(), entries, st.integers(1, 50))
def test_predicting_twice_changes_nothing_more_and_buckets_and_speeds_stay(
    scenario: Scenario, entry: Hardware, work: int
) -> None:
    scenario = replace(scenario, compute=replace(scenario.compute, work_factor=work))
    entry = replace(entry, forward_s=0, forward_s_per_token=1e-6, backward_s=1e-5, backward_s_per_token=1e-6)
    if scenario.buckets.cap_bytes is None:
        assume(len(buckets(scenario, 1)) == 1)
    made = predicted(scenario, entry)
    assert predicted(made, entry) == made
    assert buckets(made, 1) == buckets(scenario, 1)
    assert (made.speeds, made.passes, made.batch) == (scenario.speeds, scenario.passes, scenario.batch)
    assert made.bytes_per_element == hardware.ELEMENT_BYTES[entry.dtype]


@law(60)
@given(scenarios(max_steps=1), numbers(0, 1e-3), numbers(1e-6, 1e-3), st.integers(1, 30))
def test_the_rank_that_takes_longest_takes_as_long_as_its_passes(
    scenario: Scenario, fixed_s: float, each_s: float, work: int
) -> None:
    """A live rank makes max(1, round(work / speed)) passes of fixed + each x tokens for every micro-batch."""
    compute = replace(scenario.compute, work_factor=work)
    scenario = replace(scenario, compute=compute, buckets=Buckets(), network=Network())
    entry = replace(
        SHEET, forward_s=fixed_s, forward_s_per_token=each_s, backward_s=0, backward_s_per_token=0
    )
    batch = global_batch(scenario)
    longest = 0.0
    for r, row in enumerate(batch.assignment):
        passes = max(1, round(work / scenario.speeds[r]))
        took = [fixed_s + each_s * sum(len(batch.tokens[i]) for i in cell) for cell in row]
        longest = max(longest, passes * sum(took))
    assume(sum(map(len, batch.tokens)))
    found = step_metrics(simulate(predicted(scenario, entry)), 0)
    assert found.compute_s.max() == pytest.approx(longest, rel=1e-9)


def test_a_prediction_by_hand() -> None:
    """Two ranks with 2 tokens each make every pass 3 times: forward 3 (0.5 + 2 / 4) = 3 s, backward
    3 (1 + 2 / 8) = 3.75 s. Parameters are 4 float64, 32 bytes, however many they stood for: a ring's chunk is
    16 bytes, so each of its 2 rounds takes 0.001 + 0.016 s."""
    scenario = Scenario(
        name="hand",
        world_size=2,
        reduction="mean_of_rank_means",
        model=Model(kind="given", gradient_sums=[[[1, 2, 3, 4]], [[4, 3, 2, 1]]]),
        batch=Batch(lengths=[2, 2]),
        compute=Compute(work_factor=3),
        network=Network(gradient_bytes=1e9),
    )
    found = step_metrics(simulate(predicted(scenario, SHEET)), 0)
    assert found.compute_s.tolist() == pytest.approx([6.75, 6.75])
    assert found.exposed_communication_s == pytest.approx(2 * 0.017)
    assert found.optimizer_s == pytest.approx(0.0625)
    assert found.bytes_sent is not None
    assert found.bytes_sent.tolist() == [32, 32]


def test_a_cap_is_reached_by_as_many_elements_as_before() -> None:
    scenario = preset("overlap")  # 2 MB an element, capped at 4 MB: b (4), W (4), E (4)
    for dtype, size in hardware.ELEMENT_BYTES.items():
        made = predicted(scenario, replace(SHEET, dtype=dtype))
        assert made.buckets.cap_bytes == 2 * size
        assert [b.names for b in buckets(made, 1)] == [("b",), ("W",), ("E",)]


def test_where_rounds_follow_backward_nothing_overlaps() -> None:
    scenario = preset("overlap")
    assert predicted(scenario, SHEET).buckets.overlap
    assert not predicted(scenario, replace(SHEET, mode="chunks")).buckets.overlap


@pytest.mark.parametrize("name", preset_names())
def test_a_gradient_at_its_real_size_has_the_same_buckets_and_takes_as_long_as_it_should(name: str) -> None:
    scenario, size = preset(name), 8
    made = at_real_size(scenario, "float64", "chunks")
    assert not made.buckets.overlap
    assert buckets(made, 1) == buckets(scenario, 1)
    network = made.network
    message_s = made.bytes_per_element / network.bandwidth_bytes_per_s
    assert message_s == pytest.approx(size / scenario.network.bandwidth_bytes_per_s)
    assert len(simulate(predicted(scenario, SHEET)).events)


def test_a_batch_without_tokens_has_a_prediction() -> None:
    empty = Scenario(name="empty", world_size=2, batch=Batch(lengths=[0, 0]))
    assert np.all(step_metrics(simulate(predicted(empty, SHEET)), 0).compute_s == 0)


def test_an_entry_is_kept_replaced_and_listed(kept: Path, capsys: Capture) -> None:
    assert answer(capsys, "hardware") == {"folder": str(kept), "hardware": {}}
    hardware.save(SHEET)
    hardware.save(replace(SHEET, name="a-laptop", source="measured"))
    faster = replace(SHEET, latency_s=1e-6)
    assert hardware.save(faster) == kept / "data-sheet.toml"
    assert hardware.names() == ["a-laptop", "data-sheet"]
    assert hardware.load("data-sheet") == faster
    assert sorted(p.name for p in kept.iterdir()) == [
        "a-laptop.toml",
        "data-sheet.toml",
    ]  # nothing half written
    listed = answer(capsys, "hardware")["hardware"]
    assert {name: Hardware(**entry) for name, entry in listed.items()}["data-sheet"] == faster
    assert main(["hardware"]) == 0
    assert "latency_s: 1e-06" in capsys.readouterr().out


def test_entries_live_in_the_user_s_data_where_nothing_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DPSIM_HARDWARE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert hardware.folder() == tmp_path / ".local" / "share" / "dpsim" / "hardware"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert hardware.folder() == tmp_path / "data" / "dpsim" / "hardware"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"name": "Mine"},
            "hardware.name: must be 1 to 40 of the characters a to z, 0 to 9 and -, got 'Mine'",
        ),
        ({"name": "../up"}, "hardware.name: must be 1 to 40"),
        ({"name": "x" * 41}, "hardware.name: must be 1 to 40"),
        ({"latency_s": -1}, "hardware.latency_s: must be a finite number of at least 0"),
        ({"latency_s": True}, "hardware.latency_s: must be a finite number"),
        (
            {"bandwidth_bytes_per_s": 0},
            "hardware.bandwidth_bytes_per_s: must be a finite number of at least 0.001",
        ),
        ({"backward_s": float("nan")}, "hardware.backward_s: must be a finite number"),
        ({"forward_error": -0.1}, "hardware.forward_error: must be a finite number of at least 0"),
        ({"source": "guessed"}, "hardware.source: must be one of measured, stated"),
        ({"dtype": "int8"}, "hardware.dtype: must be one of float32, float64"),
        ({"ranks": 0}, "hardware.ranks: must be a whole number from 1"),
        ({"machine": "two\nlines"}, "hardware.machine: must be one line of at most 300 characters"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        hardware.from_dict(hardware.to_dict(SHEET) | change)
    assert str(caught.value).startswith(message)


FIXED = to_toml(SHEET)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            FIXED.replace("latency_s", "latency"),
            "data-sheet.toml: hardware.latency: unknown key; known are name, ",
        ),
        (FIXED.replace("optimizer_s = 0.0625", ""), "data-sheet.toml: hardware.optimizer_s: is needed"),
        (
            FIXED.replace("data-sheet", "other"),
            "data-sheet.toml: hardware.name: must be the name of the file",
        ),
        (FIXED.replace("0.0625", '"much"'), "data-sheet.toml: hardware.optimizer_s: must be a finite number"),
        ("name =", "data-sheet.toml: hardware: must be TOML"),
        ("#" * 10_001, "data-sheet.toml: hardware: must have at most 10000 bytes"),
    ],
)
def test_a_file_that_breaks_a_rule_is_named(content: str, message: str, kept: Path, capsys: Capture) -> None:
    kept.mkdir(parents=True)
    (kept / "data-sheet.toml").write_text(content, "utf-8")
    for call in (["hardware"], ["simulate", "overlap", "--hardware", "data-sheet"]):
        assert complaint(capsys, *call).startswith(f"dpsim: {message}")


def test_wrong_names_and_places_are_one_line(
    kept: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    predict = ("simulate", "overlap", "--hardware")
    assert "hardware: must be kept by `dpsim calibrate` first, got 'x'" in complaint(capsys, *predict, "x")
    hardware.save(SHEET)
    assert "hardware: must be one of data-sheet, got '../x'" in complaint(capsys, *predict, "../x")
    assert "--name: must be 1 to 40 of" in complaint(capsys, "calibrate", "--name", "My Laptop")
    told = complaint(capsys, "beats", "trace.json", "--hardware", "data-sheet")
    assert "--hardware: must be left out where a saved trace is told" in told
    monkeypatch.setattr(hardware, "MAX_ENTRIES", 1)
    assert "--name: must be one of the 1 entries that are kept" in complaint(
        capsys, "calibrate", "--name", "x"
    )
    hardware.save(SHEET)  # which is one of them
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPSIM_HARDWARE", str(tmp_path / "file"))
    assert "DPSIM_HARDWARE: must be a folder that can be used" in complaint(capsys, "calibrate")


def test_simulate_and_beats_predict_on_hardware(capsys: Capture) -> None:
    hardware.save(SHEET)
    expected = simulate(predicted(preset("chapter-19-2"), SHEET))
    found = answer(capsys, "simulate", "chapter-19-2", "--hardware", "data-sheet")
    plain = answer(capsys, "simulate", "chapter-19-2")
    assert found["hardware"] == "data-sheet"
    assert found["metrics"]["step_time_s"] == step_metrics(expected, 0).step_time_s
    assert found["metrics"]["step_time_s"] != plain["metrics"]["step_time_s"]
    for key in ("gradient", "parameters_after", "comparison"):
        assert found[key] == plain[key]  # hardware takes time, and changes no number
    told = answer(capsys, "beats", "chapter-19-2", "--hardware", "data-sheet")
    assert told["hardware"] == "data-sheet"
    assert [b["moment_s"] for b in told["beats"]] == [b.moment_s for b in beats(expected)]
