"""Who may know whom: the design's arrows, read from the imports.

A module imports from earlier layers only; modules of one layer do not know each other. A new module has to be
given its place here.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LAYERS = (
    ("checks", "wording", "beat", "glossary", "user_data"),
    (
        "base_url",
        "csv_cells",
        "parts",
        "typed",
        "typed_number",
        "prose",
        "fit",
        "misconceptions",
        "recovery",
        "published",
        "rates",
        "one_file",
        "formula",
        "yaml_file",
    ),
    ("edited", "template"),
    ("scenario", "questions"),
    ("forms", "progress", "score", "own_items"),
    ("tables",),
    ("database",),
    ("kept_tests",),
    ("batch", "store", "credential"),
    ("model", "edits", "issuing"),
    ("reduction", "optimizer", "collectives", "network"),
    ("timeline", "puzzle"),
    ("trace", "hardware"),
    ("size", "trace_files"),
    ("simulate", "comparison", "metrics", "replay"),
    ("replicas", "scaling"),
    ("__init__",),
    ("mishaps",),
    (
        "rounds",
        "contrast",
        "hiding",
        "as_run",
        "differences",
        "origins",
        "reduce_input",
        "app",
        "run_figures",
    ),
    (
        "faults",
        "telling",
        "derivations",
        "figures_time",
        "figures_waits",
        "figures_data",
        "recordings",
        "report",
        "ahead",
    ),
    ("figures",),
    ("setting",),
    ("beats", "ask_rounds"),
    ("exercises", "ask"),
    ("exports",),
    ("keys",),
    ("directives",),
    ("lessons",),
    ("coverage", "final_test"),
    ("content_check", "live"),
    ("items_report",),
    ("commands", "credential_commands"),
    ("operator_commands",),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SCREENS = ("streamlit", "plotly")
CORE = sorted(path for path in (ROOT / "dpsim").glob("*.py"))
EXERCISES = sorted((ROOT / "dpsim" / "exercises").glob("*.py"))
CREDENTIAL = sorted((ROOT / "dpsim" / "credential").glob("*.py"))
EXPORTS = sorted((ROOT / "dpsim" / "exports").glob("*.py"))
LIVE = sorted((ROOT / "dpsim" / "live").rglob("*.py"))
UI = sorted((ROOT / "dpsim" / "ui").rglob("*.py"))
PAGES = [*(ROOT / "pages").rglob("*.py"), *(p for p in [ROOT / "app.py"] if p.exists())]


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """Dotted names that a file imports, and whether it does so as soon as it is loaded: neither in a function
    nor for the type checker alone."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    inside = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) or _for_types(outer)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        at_once = id(node) not in inside
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are written in full"
            yield str(node.module), at_once
            if node.module == "dpsim":
                yield from ((f"dpsim.{alias.name}", at_once) for alias in node.names)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def outside(path: Path) -> set[str]:
    """Top-level packages that a file imports and that are not Python's own."""
    names = {name.partition(".")[0] for name, _ in imported(path)}
    return names - set(sys.stdlib_module_names) - {"dpsim", "__future__"}


def known(path: Path) -> set[str]:
    """The modules of dpsim that a file imports; `__init__` where it takes a name from dpsim itself."""
    names = {name for name, _ in imported(path) if name.startswith("dpsim.")}
    first = {name.split(".")[1] for name in names}
    places = {"live", "ui", "exercises", "credential", "exports", *(p.stem for p in CORE)}
    return {name if name in places else "__init__" for name in first}


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_knows_only_earlier_layers(path: Path) -> None:
    assert path.stem in LEVEL, f"{path.name} has no place in LAYERS yet"
    above = {name for name in known(path) if LEVEL.get(name, len(LAYERS)) >= LEVEL[path.stem]}
    assert not above, f"{path.name} must not know {sorted(above)}"


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_the_exercises_know_only_earlier_layers_and_python_itself(path: Path) -> None:
    above = {name for name in known(path) if LEVEL.get(name, len(LAYERS)) >= LEVEL["exercises"]}
    assert above <= {"exercises"}, f"{path.name} must not know {sorted(above)}"
    assert outside(path) <= {"numpy"}


@pytest.mark.parametrize("path", CREDENTIAL, ids=lambda path: path.stem)
def test_certificates_know_only_earlier_layers_and_what_signs_and_draws_them(path: Path) -> None:
    above = {name for name in known(path) if LEVEL.get(name, len(LAYERS)) >= LEVEL["credential"]}
    assert above <= {"credential"}, f"{path.name} must not know {sorted(above)}"
    drawn = path.stem in {"looks", "paper", "picture"}
    assert outside(path) <= ({"reportlab", "PIL"} if drawn else {"jwt", "cryptography"})


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_the_exports_know_only_earlier_layers_and_python_itself(path: Path) -> None:
    above = {name for name in known(path) if LEVEL.get(name, len(LAYERS)) >= LEVEL["exports"]}
    assert above <= {"exports"}, f"{path.name} must not know {sorted(above)}"
    assert not outside(path)


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_the_core_needs_numpy_alone_and_single_rooms_one_package_more(path: Path) -> None:
    allowed = {"numpy", "tomli_w"} if path.stem in {"forms", "hardware"} else {"numpy"}
    allowed |= {"sqlalchemy"} if path.stem in {"tables", "database", "kept_tests", "store"} else set()
    allowed |= {"limits"} if path.stem == "rates" else set()
    allowed |= {"yaml"} if path.stem == "yaml_file" else set()
    assert outside(path) <= allowed
    assert ("tomli_w", True) not in set(imported(path))  # only who writes TOML needs it


@pytest.mark.parametrize(
    "path", [*CORE, *EXERCISES, *EXPORTS, *CREDENTIAL, *LIVE], ids=lambda path: path.stem
)
def test_streamlit_and_plotly_stay_in_the_app_its_pages_and_ui(path: Path) -> None:
    assert not outside(path) & set(SCREENS)
    assert "ui" not in known(path)


def test_torch_stays_in_live() -> None:
    for path in (*CORE, *EXERCISES, *EXPORTS, *CREDENTIAL, *UI, *PAGES):
        assert "torch" not in outside(path), path.name


RANK = {"ddp", "exchange", "loop", "meeting", "models", "recorder", "replica", "synchronise"}


@pytest.mark.parametrize("path", LIVE, ids=lambda path: path.stem)
def test_only_the_ranks_own_modules_load_torch_and_only_ranks_load_them(path: Path) -> None:
    at_once = {name for name, now in imported(path) if now}
    loads = {name.split(".")[2] for name in at_once if name.startswith("dpsim.live.")} & RANK
    if path.stem in RANK:
        assert outside(path) <= {"numpy", "torch"}
    else:
        assert "torch" not in {name.partition(".")[0] for name in at_once}
        assert not loads


def test_live_and_simulate_do_not_know_each_other() -> None:
    above = {"simulate", "comparison", "metrics", "beats", "commands", "cli", "app", "__init__"}
    for path in LIVE:
        assert not known(path) & above, path.name
    assert "live" not in known(ROOT / "dpsim" / "simulate.py")


def test_nothing_in_dpsim_knows_a_page() -> None:
    for path in (*CORE, *CREDENTIAL, *EXPORTS, *LIVE, *UI):
        assert "pages" not in {name.partition(".")[0] for name, _ in imported(path)}, path.name


def test_every_module_of_the_list_exists() -> None:
    assert {"live", "exercises", "credential", "exports", *(path.stem for path in CORE)} >= set(LEVEL)


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after `statement`."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(made.stdout))


def test_importing_dpsim_loads_no_torch_no_streamlit_and_no_plotly() -> None:
    loaded = loaded_by("import dpsim")
    assert "dpsim.simulate" in loaded
    assert not loaded & {
        "torch",
        "streamlit",
        "plotly",
        "pandas",
        "tomli_w",
        "sqlalchemy",
        "yaml",
        "dpsim.ui",
        "dpsim.live",
    }


def test_only_who_has_items_of_their_own_waits_for_yaml() -> None:
    loaded = loaded_by("import dpsim.exercises; dpsim.exercises.items()")
    assert "dpsim.exercises.own" in loaded
    assert "yaml" not in loaded


def test_starting_live_runs_loads_no_torch() -> None:
    assert "torch" not in loaded_by("import dpsim.live.launch, dpsim.cli")


def test_the_command_line_loads_cryptography_only_where_it_is_needed() -> None:
    assert not loaded_by("import dpsim.cli") & {"jwt", "cryptography", "dpsim.credential"}


def test_simulating_a_preset_loads_no_torch_no_streamlit_and_no_plotly() -> None:
    loaded = loaded_by("import dpsim; dpsim.simulate(dpsim.forms.preset('first-screen'))")
    assert not loaded & {"torch", "streamlit", "plotly", "pandas"}
