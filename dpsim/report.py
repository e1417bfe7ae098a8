"""What the command line answers of a trace: its last step, beside every way of reducing."""

from __future__ import annotations

from typing import Any

from dpsim.as_run import losses
from dpsim.comparison import Outcome
from dpsim.fit import Points
from dpsim.hardware import Hardware, to_dict
from dpsim.metrics import step_metrics
from dpsim.replicas import apart, beside, worst_rank
from dpsim.trace import Hang, Trace

Report = dict[str, Any]


def trace_report(trace: Trace) -> Report:
    """The last step of `trace`: its own numbers and metrics, and the comparison, which is by formula.

    Where replicas differ, gradient and parameters are those of the rank that is furthest from one device.
    """
    scenario, last, comparison = trace.scenario, trace.steps - 1, beside(trace)
    rank = worst_rank(trace, comparison.one_device.gradient)
    gradient = trace.gradient(last, rank)
    return {
        "scenario": scenario.name,
        "source": trace.source,
        "reduction": scenario.reduction if isinstance(scenario.reduction, str) else "custom",
        "steps": scenario.steps,
        "metrics": {
            name: value.tolist() if hasattr(value, "tolist") else value
            for name, value in vars(step_metrics(trace, last)).items()
        },
        "parameters_before": trace.parameters[last, rank].tolist(),
        "parameters_after": trace.parameters[last + 1, rank].tolist(),
        "gradient": None if gradient is None else gradient.tolist(),
        "loss": losses(trace)[last],
        "undefined": trace.undefined[last],
        "replicas": {"shown": rank, "largest_difference": apart(trace.parameters[last + 1])},
        "hangs": None if trace.hangs is None else _listed(trace.hangs),
        "comparison": {
            name: _outcome(outcome, last)
            for name, outcome in [*comparison.schemes.items(), ("one_device", comparison.one_device)]
        },
    }


def _listed(hang: Hang) -> Report:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(hang).items()}


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
