"""The command line, whose keys other programs read: `simulate`, `presets`, `beats`, `app`, and as a program.

Numbers are worked out by hand or held against the scenario's own comparison; NaN is never printed. The other
subcommands are in test_cli_reduce.py and test_cli_collectives.py, wrong calls in test_cli_bad_input.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import Capture, answer, strict_json

from dpsim import app
from dpsim.beats import beats, beats_as_text
from dpsim.cli import main
from dpsim.forms import preset, preset_names, to_toml
from dpsim.scenario import SCHEMES
from dpsim.simulate import simulate
from dpsim.trace_files import load

PUBLISHED = json.loads((Path(__file__).parent / "reference" / "token_weighting.json").read_text("utf-8"))
ALL_MASKED = 'name = "masked"\nworld_size = 2\n[batch]\nlengths = [3, 2]\nvalid = [0, 0]\n'


@pytest.mark.parametrize("name", preset_names())
def test_simulate_answers_every_key_for_every_preset(name: str, capsys: Capture) -> None:
    found, scenario = answer(capsys, "simulate", name), preset(name)
    keys = {"source", "metrics", "parameters_before", "parameters_after", "gradient", "loss", "comparison"}
    assert keys <= set(found)
    assert found["source"] == "simulated"
    assert found["metrics"]["step_time_s"] > 0
    for key in ("parameters_before", "parameters_after", "gradient"):
        assert len(found[key]) == scenario.model.size
    comparison = found["comparison"]
    assert set(SCHEMES) <= set(comparison)
    chosen, right = comparison[scenario.reduction], comparison["one_device"]  # a sampler may repeat
    for key in ("gradient", "parameters_after", "loss"):
        assert found[key] == pytest.approx(chosen[key], rel=1e-9, abs=1e-12)
    for scheme in SCHEMES:
        outcome = comparison[scheme]
        assert {"gradient", "parameters_after", "loss", "relative_l2_error", "cosine"} <= set(outcome)
        if outcome["gradient"] is None:
            assert outcome["relative_l2_error"] is None
            continue
        mine, reference = np.array(outcome["gradient"]), np.array(right["gradient"])
        norms = np.linalg.norm(mine), np.linalg.norm(reference)
        gap = np.linalg.norm(mine - reference) / norms[1]
        assert outcome["relative_l2_error"] == pytest.approx(gap, rel=1e-9, abs=1e-9)
        assert outcome["cosine"] == pytest.approx(mine @ reference / (norms[0] * norms[1]), abs=1e-9)


def test_simulate_chapter_19_2_by_hand(capsys: Capture) -> None:
    """([1, 3] + [3, 1]) / 2 tokens = [2, 2]; 5 - 0.1 x 2 = 4.8, and 0.2 less with every further step."""
    found = answer(capsys, "simulate", "chapter-19-2")
    assert found["parameters_before"] == [5.0, 5.0]
    assert found["gradient"] == [2.0, 2.0]
    assert found["parameters_after"] == pytest.approx([4.8, 4.8], rel=1e-15)
    assert found["loss"] == 20.0  # theta . g is 5 + 15 on one replica, 15 + 5 on the other
    third = answer(capsys, "simulate", "chapter-19-2", "--steps", 3)
    assert third["parameters_before"] == pytest.approx([4.6, 4.6], rel=1e-15)
    assert third["parameters_after"] == pytest.approx([4.4, 4.4], rel=1e-15)


def test_simulate_accelerate_doc_gives_the_weights_of_the_guide(capsys: Capture) -> None:
    expected = PUBLISHED["end_to_end"][0]["expect"]
    found = answer(capsys, "simulate", "accelerate-doc")
    assert [round(w, 4) for w in found["parameters_after"]] == [0.2117, 0.3172]
    for scheme in set(SCHEMES) & set(expected["weights_after"]):
        size, outcome = expected["gradient"][scheme], found["comparison"][scheme]
        assert outcome["parameters_after"] == pytest.approx(expected["weights_after"][scheme], rel=1e-9)
        assert outcome["gradient"] == pytest.approx([-size, size], rel=1e-9)
        assert outcome["loss"] == pytest.approx(expected.get(f"loss_{scheme}", outcome["loss"]), rel=1e-9)


# The gradient sums and the counts 7, 2, 5, 2 of the first screen, weighted as each scheme does.
BY_HAND = {
    "token_weighted": [10 / 16, 2 / 16, 0, 12 / 16],
    "mean_of_rank_means": [
        (3 / 7 + 5 / 2 - 2 / 5 + 4 / 2) / 4,
        (-1 / 7 - 4 / 2 + 7 / 5 + 0 / 2) / 4,
        (8 / 7 - 3 / 2 + 1 / 5 - 6 / 2) / 4,
        (2 / 7 + 6 / 2 + 9 / 5 - 5 / 2) / 4,
    ],
    "token_weighted_not_compensated": [10 / 64, 2 / 64, 0, 12 / 64],
    "sum_over_world_size": [10 / 4, 2 / 4, 0, 12 / 4],
}


@pytest.mark.parametrize("scheme", BY_HAND)
def test_simulate_with_a_reduction_takes_that_one(scheme: str, capsys: Capture) -> None:
    found = answer(capsys, "simulate", "first-screen", "--reduction", scheme)
    assert found["gradient"] == pytest.approx(BY_HAND[scheme], rel=1e-12, abs=1e-15)
    after = np.array([0.5, -0.25, 1.0, 0.1]) - 0.1 * np.array(BY_HAND[scheme])
    assert found["parameters_after"] == pytest.approx(after.tolist(), rel=1e-12)


def test_simulate_an_undefined_reduction_gives_null_and_says_why(capsys: Capture) -> None:
    found = answer(capsys, "simulate", "empty-rank", "--reduction", "mean_of_rank_means")
    assert (found["gradient"], found["loss"]) == (None, None)
    assert found["undefined"] == "rank 0 has no valid token"
    assert found["parameters_after"] == found["parameters_before"] == [2.0]
    assert found["comparison"]["mean_of_rank_means"]["parameters_after"] == [2.0]
    assert found["comparison"]["token_weighted"]["gradient"] == [1.75]


def test_simulate_a_batch_without_a_valid_token_skips_the_step(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "masked.toml").write_text(ALL_MASKED, "utf-8")
    found = answer(capsys, "simulate", tmp_path / "masked.toml")
    assert (found["gradient"], found["loss"]) == (None, None)
    assert found["parameters_after"] == found["parameters_before"]
    assert {outcome["gradient"] for outcome in found["comparison"].values()} == {None}


@pytest.mark.parametrize("name", ["first-screen", "overlap"])
def test_simulate_a_file_says_the_same_as_the_preset(name: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(to_toml(preset(name)), "utf-8")
    assert answer(capsys, "simulate", tmp_path / "scenario.toml") == answer(capsys, "simulate", name)


def test_simulate_saves_a_trace_that_opens_again_and_one_for_perfetto(
    capsys: Capture, tmp_path: Path
) -> None:
    saved, perfetto = tmp_path / "trace.json", tmp_path / "perfetto.json"
    found = answer(capsys, "simulate", "accumulation", "--out", saved, "--perfetto", perfetto)
    trace = load(saved)
    assert trace.to_json() == simulate(preset("accumulation")).to_json()
    assert trace.parameters[1, 0].tolist() == found["parameters_after"]
    drawn = strict_json(perfetto.read_text("utf-8"))["traceEvents"]
    assert sum(event["ph"] == "X" for event in drawn) == len(trace.events)


def test_presets_lists_names_and_titles(capsys: Capture) -> None:
    found = answer(capsys, "presets")["presets"]
    assert [p["name"] for p in found] == preset_names()
    assert [p["title"] for p in found] == [preset(name).title for name in preset_names()]


@pytest.mark.parametrize("name", ["first-screen", "overlap", "empty-rank"])
def test_beats_prints_the_text_version_and_under_json_its_parts(name: str, capsys: Capture) -> None:
    told = beats(simulate(preset(name)))
    assert main(["beats", name]) == 0
    text = capsys.readouterr().out
    assert text == beats_as_text(told) + "\n"
    found = answer(capsys, "beats", name)
    assert [b["id"] for b in found["beats"]] == [b.id for b in told]
    assert [b["sentence"] for b in found["beats"]] == [b.sentence for b in told]
    assert found["text"] + "\n" == text


def test_app_serves_the_app_at_the_wanted_place(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(app, "run", lambda command: started.append(command) or 7)
    assert main(["app", "--port", "8123", "--address", "0.0.0.0", "--json"]) == 7
    assert strict_json(capsys.readouterr().out)["url"] == "http://0.0.0.0:8123"
    (command,) = started
    assert Path(command[command.index("run") + 1]).is_file()
    assert {"8123", "0.0.0.0"} <= set(command)


COST = ("--world-size", "8", "--bytes", "1e8", "--latency", "0", "--bandwidth", "1e10")
READABLE = [
    (["reduce", "FILE"], "mean_of_rank_means: 3.0"),
    (["schedule", "tree", "--world-size", "3", "--elements", "5"], "bytes_sent_per_rank: [40, 20, 20]"),
    (
        ["cost", "ring", *COST],
        "time_s: 0.0175",
    ),
    (["simulate", "chapter-19-2"], "parameters_after: [4.8, 4.8]"),
    (["simulate", "empty-rank", "--reduction", "mean_of_rank_means"], "gradient: undefined"),
    (["presets"], "first-screen  Four ranks"),
    (["beats", "chapter-19-2"], "[5, 5] becomes [4.8, 4.8]"),
]


@pytest.mark.parametrize(("arguments", "phrase"), READABLE)
def test_without_json_a_command_prints_lines_for_people(
    arguments: list[str], phrase: str, capsys: Capture, tmp_path: Path
) -> None:
    written = '{"valid_tokens": [[1], [1023]], "gradient_sums": [[5], [1023]]}'
    (tmp_path / "input.json").write_text(written, "utf-8")
    assert main([str(tmp_path / "input.json") if a == "FILE" else a for a in arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert phrase in printed.out
    assert not re.search(r"[{}]|None|nan", printed.out)


def run(*arguments: str, written: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpsim", *arguments]
    return subprocess.run(command, input=written, capture_output=True, text=True, timeout=60, check=False)


def test_as_a_program_it_reads_standard_input_and_answers_on_standard_output() -> None:
    case = PUBLISHED["cases"][0]
    written = json.dumps({key: case[key] for key in ("gradient_sums", "valid_tokens")})
    done = run("reduce", "-", "--json", written=written)
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["mean_of_rank_means"] == case["expect"]["mean_of_rank_means"]


def test_as_a_program_it_tells_the_beats() -> None:
    done = run("beats", "first-screen")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == beats_as_text(beats(simulate(preset("first-screen")))) + "\n"


def test_as_a_program_a_wrong_call_is_one_line_on_standard_error_and_exit_code_2() -> None:
    done = run("cost", "ring", "--world-size", "0", *COST[2:])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dpsim: --world-size: must be a whole number from 1 to 1024, got 0\n"
