"""What the command line answers of a trace: its last step, beside every way of reducing."""

from __future__ import annotations

from typing import Any

from dpsim.as_run import losses
from dpsim.comparison import Outcome, compare
from dpsim.fit import Points
from dpsim.hardware import Hardware, to_dict
from dpsim.metrics import step_metrics
from dpsim.trace import Trace

Report = dict[str, Any]


def trace_report(trace: Trace) -> Report:
    """The last step of `trace`: its own numbers and metrics, and the comparison, which is by formula."""
    scenario, last = trace.scenario, trace.steps - 1
    gradient, comparison = trace.gradient(last), compare(scenario)
    return {
        "scenario": scenario.name,
        "source": trace.source,
        "reduction": comparison.chosen,
        "steps": scenario.steps,
        "metrics": {
            name: value.tolist() if hasattr(value, "tolist") else value
            for name, value in vars(step_metrics(trace, last)).items()
        },
        "parameters_before": trace.parameters[last, 0].tolist(),
        "parameters_after": trace.parameters[last + 1, 0].tolist(),
        "gradient": None if gradient is None else gradient.tolist(),
        "loss": losses(trace)[last],
        "undefined": trace.undefined[last],
        "comparison": {
            name: _outcome(outcome, last)
            for name, outcome in [*comparison.schemes.items(), ("one_device", comparison.one_device)]
        },
    }


def _outcome(outcome: Outcome, step: int) -> Report:
    gradient = outcome.gradient[step]
    return {
        "gradient": None if gradient is None else gradient.tolist(),
        "parameters_after": outcome.parameters[step + 1].tolist(),
        "loss": outcome.loss[step],
        "relative_l2_error": outcome.relative_l2_error[step],
        "cosine": outcome.cosine[step],
        "undefined": outcome.undefined,
    }


def live_report(trace: Trace) -> Report:
    """Where and how a measured trace ran."""
    machine = dict(trace.machine)
    return {
        "mode": machine["mode"],
        "devices": machine["devices"].split(),
        "backend": machine["backend"],
        "dtype": machine["dtype"],
        "pids": [int(pid) for pid in machine["process_ids"].split()],
        "hardware": machine["hardware"],
        "versions": machine["versions"],
        "probe": machine["probe"],
    }


def calibration_report(hardware: Hardware, points: dict[str, Points]) -> Report:
    """What was found of a machine, beside every measurement and the line through it."""
    tables: Report = {}
    for name, found in points.items():
        amount = "bytes" if name == "messages" else "tokens"
        tables[name] = [
            {amount: n, "measured_s": seconds, "fitted_s": found.line.at(n)}
            for n, seconds in zip(found.amounts, found.seconds, strict=True)
        ]
    return to_dict(hardware) | tables
