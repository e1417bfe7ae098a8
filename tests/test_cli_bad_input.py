"""Wrong calls: exit code 2, nothing on standard output, one line that names field, rule and value.

Every row of the tables is one wrong call. Whatever finite input comes, what is printed is JSON or that line.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Capture, complaint, standard_input, strict_json
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.cli import main
from dpsim.reduce_input import reduce_report

COST = {"--world-size": "4", "--bytes": "8", "--latency": "0", "--bandwidth": "1"}
RANKS = "must be a whole number from 1 to 1024"
NAMES = "must be one of ring, tree, halving-doubling, parameter-server"


def cost(**changed: str) -> list[str]:
    options = COST | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return ["cost", "ring", *(f"{name}={value}" for name, value in options.items())]


def schedule(size: str, elements: str = "8", algorithm: str = "ring") -> list[str]:
    return ["schedule", algorithm, f"--world-size={size}", f"--elements={elements}"]


CALLS = [
    (schedule("0"), "--world-size", RANKS, "0"),
    (schedule("-4"), "--world-size", RANKS, "-4"),
    (schedule("1025"), "--world-size", RANKS, "1025"),
    (schedule("2.5"), "--world-size", RANKS, "2.5"),
    (schedule("four"), "--world-size", RANKS, "'four'"),
    (schedule("nan"), "--world-size", RANKS, "nan"),
    (schedule("inf"), "--world-size", RANKS, "inf"),
    (schedule(""), "--world-size", RANKS, "''"),
    (schedule("4", "0"), "--elements", "must be a whole number from 1 to", "0"),
    (schedule("4", "1.5"), "--elements", "must be a whole number from 1 to", "1.5"),
    (schedule("4", "1e30"), "--elements", "must be a whole number from 1 to", "1e+30"),
    (schedule("4", algorithm="star"), "algorithm", NAMES, "'star'"),
    (schedule("4", algorithm="Ring"), "algorithm", NAMES, "'Ring'"),
    (schedule("1024", "2000"), "--world-size", "must give at most 200000 transfers", "1024"),
    (cost(world_size="0"), "--world-size", RANKS, "0"),
    (cost(world_size="1025"), "--world-size", RANKS, "1025"),
    (cost(bytes="0"), "--bytes", "must be a finite number above 0", "0"),
    (cost(bytes="-1"), "--bytes", "must be a finite number above 0", "-1"),
    (cost(bytes="1e999"), "--bytes", "must be a finite number above 0", "inf"),
    (cost(bytes="8 MB"), "--bytes", "must be a finite number above 0", "'8 MB'"),
    (cost(latency="-1e-6"), "--latency", "must be a finite number of at least 0", "-1e-06"),
    (cost(latency="nan"), "--latency", "must be a finite number of at least 0", "nan"),
    (cost(bandwidth="0"), "--bandwidth", "must be a finite number of at least 0.001", "0"),
    (cost(bandwidth="-5"), "--bandwidth", "must be a finite number of at least 0.001", "-5"),
    (cost(bandwidth="inf"), "--bandwidth", "must be a finite number of at least 0.001", "inf"),
    (["cost", "star", *cost()[2:]], "algorithm", NAMES, "'star'"),
    (
        ["simulate", "nosuch"],
        "scenario",
        "must be a .toml file that exists, or one of first-screen",
        "'nosuch'",
    ),
    (["simulate", "no.toml"], "scenario", "must be a file that can be read (No such file", "'no.toml'"),
    (["simulate", "."], "scenario", "must be a .toml file that exists, or one of", "'.'"),
    (["simulate", ""], "scenario", "must be a .toml file that exists, or one of", "''"),
    (["beats", "nosuch"], "scenario", "must be a .toml file that exists, or one of", "'nosuch'"),
    (
        ["simulate", "ring-8", "--reduction", "mean"],
        "--reduction",
        "must be one of token_weighted,",
        "'mean'",
    ),
    (["simulate", "ring-8", "--steps", "0"], "--steps", "must be a whole number from 1 to 1000", "0"),
    (["simulate", "ring-8", "--steps", "1001"], "--steps", "must be a whole number from 1 to 1000", "1001"),
    (["simulate", "ring-8", "--steps", "2.5"], "--steps", "must be a whole number from 1 to 1000", "2.5"),
    (["simulate", "ring-64", "--steps", "9"], "scenario", "must have at most 200000 events", ""),
    (["reduce", "no.json"], "FILE", "must be a file that can be read (No such file", "'no.json'"),
    (["reduce", "."], "FILE", "must be a file that can be read (Is a directory)", "'.'"),
    (["app", "--port", "0"], "--port", "must be a whole number from 1 to 65535", "0"),
    ([], "arguments", "the following arguments are required: command (see dpsim --help)", "''"),
    (["nosuch"], "arguments", "argument command: invalid choice: 'nosuch'", "'nosuch'"),
    (["presets", "--bogus"], "arguments", "unrecognized arguments: --bogus", "'presets --bogus"),
    (["presets", "extra"], "arguments", "unrecognized arguments: extra", "'presets extra"),
    (["schedule", "ring"], "arguments", "the following arguments are required: --wor", "'schedule ring"),
    (["simulate"], "arguments", "the following arguments are required: PRESET|FILE.toml", "'simulate"),
    (["simulate", "ring-8", "--steps"], "arguments", "argument --steps: expected one argument", "'simulate"),
]


@pytest.mark.parametrize(
    ("call", "field", "rule", "value"),
    [pytest.param(*row, id=" ".join(row[0]) or "nothing") for row in CALLS],
)
@pytest.mark.parametrize("json_too", [False, True], ids=["text", "json"])
def test_a_wrong_call_is_told_in_one_line(
    call: list[str], field: str, rule: str, value: str, json_too: bool, capsys: Capture
) -> None:
    line = complaint(capsys, *call, *(["--json"] if json_too and call and call[0] != "nosuch" else []))
    assert line.startswith(f"dpsim: {field}: {rule}")
    assert f", got {value}" in line


COUNT = "must be a whole number from 0 to 1000000000000000"
FINITE = "must be a finite number between -1e+100 and 1e+100"
OBJECT = "must be a JSON object"
KEYS = "must have the keys gradient_sums and valid_tokens"

INPUTS = [
    ("", "input", OBJECT, "''"),
    ("not JSON", "input", OBJECT, "'not JSON'"),
    ('{"valid_tokens": [[1]], ', "input", OBJECT, "'{\"valid_tokens\": [[1]], '"),
    ("[" * 100_000, "input", OBJECT, "'[[[["),
    ('{"valid_tokens": ' + "[" * 100_000, "input", OBJECT, "'{"),
    ("null", "input", KEYS, "None"),
    ("[[1], [2]]", "input", KEYS, "[[1], [2]]"),
    ("{}", "input", KEYS, "[]"),
    ('{"valid_tokens": [[1]]}', "input", KEYS, "['valid_tokens']"),
    ('{"valid_tokens": [[1]], "gradient_sums": [[1]], "a\\nb": 1}', "input", KEYS, "['a\\nb', "),
]
INPUTS += [
    (f'{{"valid_tokens": {counts}, "gradient_sums": {sums}}}', field, rule, value)
    for counts, sums, field, rule, value in [
        ("[[2.5]]", "[[1]]", "valid_tokens[0][0]", COUNT, "2.5"),
        ("[[1], [-1]]", "[[1], [1]]", "valid_tokens[1][0]", COUNT, "-1"),
        ("[[1, true]]", "[[1, 1]]", "valid_tokens[0][1]", COUNT, "True"),
        ('[["3"]]', "[[1]]", "valid_tokens[0][0]", COUNT, "'3'"),
        ("[[null]]", "[[1]]", "valid_tokens[0][0]", COUNT, "None"),
        ("[[NaN]]", "[[1]]", "valid_tokens[0][0]", COUNT, "nan"),
        ("[[1e999]]", "[[1]]", "valid_tokens[0][0]", COUNT, "inf"),
        ("[[1e16]]", "[[1]]", "valid_tokens[0][0]", COUNT, "1e+16"),
        ("[[[1]]]", "[[1]]", "valid_tokens[0][0]", COUNT, "[1]"),
        ("[[1, 2], [3]]", "[[1, 2], [3, 4]]", "valid_tokens[1]", "must have 2 entries", "[3]"),
        ("[]", "[]", "valid_tokens", "must have 1 to 65536 entries", "[]"),
        ("[[]]", "[[]]", "valid_tokens[0]", "must have 1 to 65536 entries", "[]"),
        ("5", "[[1]]", "valid_tokens", "must be a list", "5"),
        ("[5]", "[[1]]", "valid_tokens[0]", "must be a list", "5"),
        ('{"0": [1]}', "[[1]]", "valid_tokens", "must be a list", "{'0': [1]}"),
        ("[[1], [1]]", "[[1]]", "gradient_sums", "must have 2 entries", "[[1]]"),
        ("[[1]]", "[]", "gradient_sums", "must have 1 entries", "[]"),
        ("[[1, 1]]", "[[1]]", "gradient_sums[0]", "must have 2 entries", "[1]"),
        ("[[1]]", "[[]]", "gradient_sums[0]", "must have 1 entries", "[]"),
        ("[[1]]", "[[[]]]", "gradient_sums[0][0]", "must have 1 to 1000000 entries", "[]"),
        ("[[1]]", "7", "gradient_sums", "must be a list", "7"),
        ("[[1, 1]]", "[[1, [2]]]", "gradient_sums[0][1]", "must be a number, as the first entry is", "[2]"),
        ("[[1, 1]]", "[[[1], 2]]", "gradient_sums[0][1]", "must be a vector, as the first entry is", "2"),
        ("[[1, 1]]", "[[[1, 2], [3]]]", "gradient_sums[0][1]", "must have 2 entries", "[3]"),
        ("[[1]]", "[[[1, [2]]]]", "gradient_sums[0][0][1]", FINITE, "[2]"),
        ("[[1]]", "[[NaN]]", "gradient_sums[0][0]", FINITE, "nan"),
        ("[[1]]", "[[-Infinity]]", "gradient_sums[0][0]", FINITE, "-inf"),
        ("[[1]]", "[[1e999]]", "gradient_sums[0][0]", FINITE, "inf"),
        ("[[1]]", "[[1" + "0" * 400 + "]]", "gradient_sums[0][0]", FINITE, "1000"),
        ("[[1]]", '[["1e999"]]', "gradient_sums[0][0]", FINITE, "inf"),
        ("[[1]]", '[["nan"]]', "gradient_sums[0][0]", FINITE, "'nan'"),
        ("[[1]]", '[["five"]]', "gradient_sums[0][0]", FINITE, "'five'"),
        ("[[1]]", "[[[2, true]]]", "gradient_sums[0][0][1]", FINITE, "True"),
        ("[[1]]", "[[null]]", "gradient_sums[0][0]", FINITE, "None"),
    ]
]


@pytest.mark.parametrize(
    ("written", "field", "rule", "value"), [pytest.param(*row, id=row[0][:70]) for row in INPUTS]
)
def test_reduce_names_what_is_wrong_in_its_input(
    written: str, field: str, rule: str, value: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, written)
    assert complaint(capsys, "reduce", "-").startswith(f"dpsim: {field}: {rule}, got {value}")


BATCH = "[batch]\nlengths = [8, 8, 8, 8]\n"
TOMLS = [
    ("", "name: is needed, got None"),
    ("name =", "TOML: must be TOML (Invalid value (at end of document)), got 'name ='"),
    ("a = 1\na = 2", "TOML: must be TOML (Cannot overwrite a value"),
    ("x = " + "[" * 100_000, "TOML: must be TOML ("),
    ("colour = 1\n" + BATCH, "colour: unknown key; known are name, batch, title, seed, steps, world_size"),
    (BATCH + "color = 'red'", "batch.color: unknown key; known are lengths, valid, tokens, labels"),
    ("[faults]\nx = 1\n" + BATCH, "faults: unknown key; known are"),
    ("batch = 3", "batch: must be a table of keys, got 3"),
    ("world_size = 0\n" + BATCH, f"world_size: {RANKS}, got 0"),
    ("world_size = true\n" + BATCH, f"world_size: {RANKS}, got True"),
    ("steps = nan\n" + BATCH, "steps: must be a whole number from 1 to 1000, got nan"),
    (BATCH + "valid = [8, 9, 1, 1]", "batch.valid[1]: must be a whole number from 0 to 8, got 9"),
    (BATCH + "valid = [8, 8]", "batch.valid: must have 4 entries, got [8, 8]"),
    (BATCH + "[network]\nlatency_s = -1e-4", "network.latency_s: must be a finite number of at least 0"),
    (
        BATCH + "[network]\nbandwidth_bytes_per_s = 0",
        "network.bandwidth_bytes_per_s: must be a finite number of at least 0.001",
    ),
    (BATCH + "[compute]\nspeed = [1, 1, inf, 1]", "compute.speed[2]: must be a finite number"),
    ("reduction = 'mean'\n" + BATCH, "reduction: must be one of token_weighted, mean_of_rank_means"),
    (
        "world_size = 1024\n[batch]\nsequences = 4\n",
        "scenario: must have at most 200000 events (ranks x rounds",
    ),
]


@pytest.mark.parametrize(("text", "start"), [pytest.param(*row, id=row[1][:50]) for row in TOMLS])
@pytest.mark.parametrize("command", ["simulate", "beats"])
def test_a_scenario_file_names_what_is_wrong_in_it(
    command: str, text: str, start: str, capsys: Capture, tmp_path: Path
) -> None:
    named = "" if text in ("", "name =") else 'name = "wrong"\n'
    (tmp_path / "scenario.toml").write_text(named + text, "utf-8")
    assert complaint(capsys, command, tmp_path / "scenario.toml").startswith(f"dpsim: {start}")


@pytest.mark.parametrize("command", ["reduce", "simulate", "beats"])
def test_a_binary_file_is_no_input_and_no_scenario(
    command: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("binary.toml").write_bytes(bytes(range(256)))
    line = complaint(capsys, command, "binary.toml")
    assert line.endswith("must be UTF-8 text, got 'binary.toml'")


def test_binary_standard_input_is_no_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input(monkeypatch, bytes(range(256)))
    assert "UTF-8" in complaint(capsys, "reduce", "-")


@pytest.mark.parametrize("option", ["--out", "--perfetto"])
def test_a_place_that_cannot_be_written_to(option: str, capsys: Capture, tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "trace.json", tmp_path):
        line = complaint(capsys, "simulate", "chapter-19-2", option, place)
        assert "must be a place one can write to" in line
        assert repr(str(place))[:40] in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["reduce", "simulate", "beats"])
def test_a_name_that_no_file_can_have(command: str, capsys: Capture) -> None:
    assert "must be a" in complaint(capsys, command, "a" * 300 + ".toml")


@pytest.mark.parametrize("command", ["reduce", "simulate"])
def test_a_file_that_may_not_be_read(
    command: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "secret.toml").write_text("{}", "utf-8")
    for name in ("read_text", "read_bytes", "open"):
        monkeypatch.setattr(Path, name, refuse)
    assert "secret.toml" in complaint(capsys, command, tmp_path / "secret.toml")


@pytest.mark.parametrize("name", ["new\nline", "clear\x1b[2J", "rück\u2028"])
def test_an_odd_key_or_file_name_stays_on_the_one_line(
    name: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key.toml").write_text(f'name = "k"\n{json.dumps(name)} = 1\n{BATCH}', "utf-8")
    assert "unknown key" in complaint(capsys, "simulate", "key.toml")
    Path(f"{name}.toml").write_bytes(b"\xff")
    assert "must be UTF-8 text" in complaint(capsys, "simulate", f"{name}.toml")


def answers_or_complains(capture: Capture, *arguments: object) -> None:
    """JSON and exit code 0, or one line and exit code 2: there is no third way."""
    code = main([*map(str, arguments), "--json"])
    printed = capture.readouterr()
    assert code in (0, 2)
    if code == 0:
        assert printed.err == ""
        strict_json(printed.out)
    else:
        assert (printed.out, printed.err.count("\n")) == ("", 1)


EXTREMES = [
    cost(bytes="1e18", bandwidth="1e-300"),
    cost(bytes="1e-320", bandwidth="1e18"),
    cost(bytes="1e-300", bandwidth="1e-300"),
    cost(bytes="1e18", bandwidth="5e-324", latency="3600"),
]


@pytest.mark.parametrize("call", EXTREMES, ids=" ".join)
def test_cost_of_extreme_but_finite_numbers_is_json_or_one_line(call: list[str], capsys: Capture) -> None:
    answers_or_complains(capsys, *call)


def test_reduce_of_extreme_but_finite_sums_is_json_or_one_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token-weighted mean is [0, 2.5e-301], the naive one [3.3e99, ...]: their ratio is no float."""
    standard_input(
        monkeypatch,
        '{"valid_tokens": [[1], [3]], "gradient_sums": [[[1e100, 1e-300]], [[-1e100, 0]]]}',
    )
    answers_or_complains(capsys, "reduce", "-")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("steps", [2, 40, 60, 1000])
def test_a_run_that_diverges_is_json_or_one_line(steps: int, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "steep.toml"
    file.write_text(f'name = "steep"\n{BATCH}[optimizer]\nlearning_rate = 1e6\n', "utf-8")
    answers_or_complains(capsys, "simulate", file, "--steps", steps, "--out", tmp_path / "trace.json")


def test_the_largest_counts_add_up_without_wrapping_round() -> None:
    """10,000 micro-batches of the largest count that is allowed: 1e19, more than an int64 holds."""
    case = {"valid_tokens": [[10**15] * 10_000], "gradient_sums": [[1] * 10_000]}
    try:
        found = reduce_report(json.dumps(case))
    except InputError:
        return  # a bound on the sum of the counts is as good
    assert found["valid_tokens_total"] == 10**19
    assert found["token_weight"]["token_weighted"][0][:3] == pytest.approx([1.0] * 3)


cells = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text("1.-eE+", max_size=4), st.just({})
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=12,
)


@law(300)
@given(cells, cells)
def test_whatever_is_reduced_gives_json_or_names_its_field(counts: object, sums: object) -> None:
    written = json.dumps({"valid_tokens": counts, "gradient_sums": sums})
    try:
        found = json.dumps(reduce_report(written))
    except InputError as error:
        if not re.match(r"(valid_tokens|gradient_sums)[\[\]\d]*: must .*, got ", str(error)):
            raise
    else:
        strict_json(found)


def test_as_a_program_binary_standard_input_has_no_traceback() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    command = [sys.executable, "-m", "dpsim", "reduce", "-"]
    done = subprocess.run(
        command, input=b"\xff\x00", capture_output=True, env=environment, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
