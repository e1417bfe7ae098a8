"""The examples: each runs as it is, alone, checks itself, and prints what the lessons say."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpsim.figures import figure
from dpsim.forms import preset

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
HELD = "rank {} now holds: [4.8, 4.8]"


def printed(name: str, folder: Path) -> list[str]:
    """What a copy of the example prints, far from the clone."""
    if name.endswith("_torch.py"):
        pytest.importorskip("torch")
    shutil.copy(FOLDER / name, folder)
    command = [sys.executable, name]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_one_step_prints_the_book_s_numbers(tmp_path: Path) -> None:
    assert printed("one_step.py", tmp_path) == ["mean gradient: [2.0, 2.0]", HELD.format(0), HELD.format(1)]
    assert figure(preset("chapter-19-2"), "after").text == "[4.8, 4.8]"


def test_one_step_in_two_processes_prints_the_same(tmp_path: Path) -> None:
    assert printed("one_step_torch.py", tmp_path) == [HELD.format(0), HELD.format(1)]


def test_whose_tokens_count_prints_the_lesson_s_numbers(tmp_path: Path) -> None:
    scenario = preset("two-and-eight")
    lines = printed("whose_tokens_count.py", tmp_path)
    for line, way in zip(lines, ("mean_of_rank_means", "token_weighted"), strict=True):
        values = [float(value) for value in re.findall(r"-?[0-9.]+", line)]
        wanted = [figure(scenario, f"gradient.{way}.{i}").value for i in range(2)]
        assert values == pytest.approx(wanted)


def test_the_ring_by_hand_prints_the_lesson_s_sum_and_factor(tmp_path: Path) -> None:
    total, factor = printed("ring_by_hand.py", tmp_path)
    ring = preset("collective-ring")
    assert [float(v) for v in re.findall(r"-?[0-9.]+", total)] == [
        figure(ring, f"sum.{i}").value for i in range(4)
    ]
    assert factor == f"each rank sent its gradient {figure(ring, 'sent_factor').text} times"


def test_distributed_data_parallel_is_one_device_on_the_whole_batch(tmp_path: Path) -> None:
    assert printed("ddp_torch.py", tmp_path) == ["replicas equal, and equal to one device on the whole batch"]


def test_who_sees_what_prints_the_lesson_s_hands_and_means(tmp_path: Path) -> None:
    scenario = preset("sampler")
    *hands, mean, dealt = printed("who_sees_what.py", tmp_path)
    assert hands == [f"rank {r} sees: [{figure(scenario, f'hand.{r}').text}]" for r in range(4)]
    assert mean.endswith(f" {figure(scenario, 'mean_number').text}")
    assert dealt.endswith(f" {figure(scenario, 'mean_dealt').text}")


def test_accumulation_prints_the_lesson_s_numbers(tmp_path: Path) -> None:
    scenario = preset("accumulation")
    lines = printed("accumulation.py", tmp_path)
    for line, name in zip(lines, ("micro_mean.0.0", "mean.0.0"), strict=True):
        assert float(line.split()[-1]) == pytest.approx(figure(scenario, name).value, abs=0.001)


def test_accumulation_in_two_processes_counts_its_all_reduces(tmp_path: Path) -> None:
    (line,) = printed("accumulation_torch.py", tmp_path)
    assert line == "every pass synchronised: 3 all-reduces, the last alone: 1, the same gradient"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_needs_python_or_torch_alone_and_checks_itself(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {name.partition(".")[0] for name in imported}
    assert names <= set(sys.stdlib_module_names) | ({"torch"} if path.stem.endswith("_torch") else set())
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    assert len(re.findall("# region: ", path.read_text("utf-8"))) == path.read_text("utf-8").count(
        "# endregion"
    )
