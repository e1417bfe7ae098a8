"""What the README says of the repository is so: its tree, its commands, its coverage table, its example."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from dpsim.forms import preset_names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
(TREE,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)


def tracked() -> list[Path]:
    """The files of the repository, without what tools leave behind."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines()]


def named() -> set[str]:
    """Every path that the tree names, a folder with its slash."""
    names, folder = set(), ""
    for line in TREE.splitlines():
        inside = line.startswith("  ")
        words = re.split(r"\s{2,}", line.strip())[0].split()
        folder = folder if inside else (words[0] if words[0].endswith("/") else "")
        names |= {(folder if inside else "") + word for word in words}
    return names


def test_every_path_in_the_tree_exists() -> None:
    assert [name for name in sorted(named()) if not (ROOT / name).exists()] == []


def test_every_file_at_the_top_and_every_module_is_in_the_tree() -> None:
    files = tracked()
    top = {p.parts[0] + ("/" if len(p.parts) > 1 else "") for p in files if not p.parts[0].startswith(".")}
    rooms = {f"dpsim/{p.name}" for p in files if p.parent == Path("dpsim")} - {"dpsim/__init__.py"}
    rooms |= {f"dpsim/{p.parts[1]}/" for p in files if p.parts[0] == "dpsim" and len(p.parts) > 2}
    assert sorted((top | rooms) - named() - {"README.md"}) == []


def test_the_two_commands_are_the_ones_that_ci_runs() -> None:
    run, test = re.findall(r"^(pip install .*?)\s+#", README, re.MULTILINE)
    assert run == "pip install -r requirements.txt && streamlit run app.py"
    assert test == "pip install -r requirements-dev.txt && pytest"
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert test.replace("pip install", "pip install -q") in script
    for step in ("ruff check", "mypy", "python -m dpsim.content_check", "DPSIM_REQUIRE_BROWSER=1"):
        assert step in script


def test_every_statement_has_a_row_that_says_where() -> None:
    rows = dict(re.findall(r"^\| ([SE]\d+) \| .+? \| (.+?) \|$", README, re.MULTILINE))
    assert list(rows) == [f"S{i}" for i in range(1, 14)] + [f"E{i}" for i in range(1, 13)]
    for where in rows.values():
        presets = re.findall(r"`([a-z0-9-]+)`", where)
        assert [p for p in presets if "-" in p and p not in preset_names()] == []


def test_the_example_prints_what_the_readme_says() -> None:
    ((command, first, second),) = re.findall(
        r"^\$ echo '(.+?)' \| python -m dpsim reduce - \| head -2\n(.+)\n(.+)$", README, re.MULTILINE
    )
    call = [sys.executable, "-m", "dpsim", "reduce", "-"]
    ran = subprocess.run(call, input=command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert ran.stdout.splitlines()[:2] == [first, second]


def test_the_repository_names_no_machine_and_no_registry() -> None:
    odd = re.compile(r"/w[o]rk/|/r[o]ot/|py[p]i\.org|n[p]mjs|deb\.d[e]bian|sub[a]gent")
    for path in tracked():
        if path.suffix not in {".png", ".ttf"} and path.name != "LICENSE":
            assert not odd.search((ROOT / path).read_text("utf-8")), path
