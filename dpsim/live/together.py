"""One press of Run: the scenario as it is, and beside it the naive mean, the token-weighted mean and one
device, each as a run of its own on the same devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsim.checks import InputError
from dpsim.edits import on_one_device
from dpsim.live.errors import CancelledError
from dpsim.live.launch import run_live
from dpsim.live.watch import Progress
from dpsim.reduction import AS_EXCHANGED, NAMES, ONE_DEVICE
from dpsim.scenario import Scenario
from dpsim.trace import Trace

DEADLINE_S = 60.0  # of each run: between two of them others in the queue have their turn
BESIDE = ("mean_of_rank_means", "token_weighted")


@dataclass(frozen=True, eq=False)
class Together:
    """What came of every way of reducing that was run, and of `one_device`: its measured trace, or the reason
    why there is none. `chosen` is the scenario's own way, whose trace there is."""

    runs: dict[str, Trace | str]
    chosen: str

    @property
    def trace(self) -> Trace:
        """The measured trace of the scenario as it is."""
        trace = self.runs[self.chosen]
        assert isinstance(trace, Trace)
        return trace


def run_together(
    scenario: Scenario,
    mode: str,
    *,
    devices: str = "auto",
    say: Callable[[str, float], None] = lambda text, share: None,
    cancel: threading.Event | None = None,
) -> Together:
    """Run `scenario` in `mode`, then what it is compared with. `say` hears what goes on and its share of the
    whole, 0 to 1. InputError and LiveError as from `run_live`; a way that does not go through beside it
    says why in its place."""
    chosen = scenario.reduction if isinstance(scenario.reduction, str) else "custom"
    if scenario.exchange.edit:
        chosen = AS_EXCHANGED
    runs = {chosen: scenario}
    plain = replace(scenario, collective=scenario.algorithm)
    runs |= {way: replace(plain, reduction=way) for way in BESIDE if way != chosen}
    runs |= {ONE_DEVICE: on_one_device(scenario)}
    done: dict[str, Trace | str] = {}
    for number, (name, each) in enumerate(runs.items()):
        label = "one device" if name == ONE_DEVICE else NAMES[name]

        def heard(progress: Progress, number: int = number, label: str = label) -> None:
            within = progress.done / max(progress.total, 1) if progress.stage == "step" else 0.0
            say(f"{label}: {progress.text}", (number + within) / len(runs))

        try:
            done[name] = run_live(
                each, mode=mode, devices=devices, on_progress=heard, cancel=cancel, deadline_s=DEADLINE_S
            )
        except CancelledError:
            raise
        except InputError as error:  # a LiveError too: it must not cost what was measured already
            if name == chosen:
                raise
            done[name] = str(error)
    return Together(done, chosen)
