"""``python -m dpsim.content_check``: every file of content loads, runs and can be told."""

from __future__ import annotations

import sys

from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.forms import preset, preset_names
from dpsim.scenario import check_app_bounds
from dpsim.simulate import simulate


def check() -> list[str]:
    """What is wrong with the content, a line each."""
    names = preset_names()
    wrong = [] if names else ["content/scenarios: there are no presets"]
    for name in names:
        try:
            scenario = check_app_bounds(preset(name))
            told = beats(simulate(scenario))
            compare(scenario)
        except InputError as error:
            wrong.append(f"content/scenarios/{name}.toml: {error}")
            continue
        if scenario.name != name or not scenario.title:
            wrong.append(f"content/scenarios/{name}.toml: needs the file's name as its name, and a title")
        if len(told) < 2:
            wrong.append(f"content/scenarios/{name}.toml: tells no beats")
    return wrong


if __name__ == "__main__":
    found = check()
    print("\n".join(found) if found else f"content: {len(preset_names())} presets load, run and are told")
    sys.exit(bool(found))
