"""What a page shows of a scenario: the stage's data and the beats, made once and kept for all who look."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from dpsim.beats import Beat, beats, count_beats
from dpsim.checks import InputError
from dpsim.comparison import Comparison
from dpsim.forms import from_query
from dpsim.replicas import beside
from dpsim.scenario import Scenario, check_app_bounds
from dpsim.simulate import count_events, simulate
from dpsim.trace import Trace
from dpsim.ui.ask_me import ask_me, went_on
from dpsim.ui.frame import rests_on
from dpsim.ui.stage import stage
from dpsim.ui.stage.payload import WITH_NUMBERS, Data, stage_data
from dpsim.ui.text import beats_markdown

MAX_BEATS = 1000
MAX_WITH_NUMBERS = 20_000  # every message of up to 16 ranks is told with its arithmetic

Picture = tuple[Data, str, tuple[str, ...]]


def check_shown(scenario: Scenario) -> Scenario:
    """`scenario`, if it is small enough to be shown on a school's server."""
    check_app_bounds(scenario)
    if count_beats(scenario) > MAX_BEATS:
        rule = f"must have at most {MAX_BEATS} beats in the app (steps x buckets x rounds)"
        raise InputError("scenario", rule, count_beats(scenario))
    if scenario.world_size <= WITH_NUMBERS and count_events(scenario) > MAX_WITH_NUMBERS:
        rule = f"must have at most {MAX_WITH_NUMBERS} events in the app where numbers are shown"
        raise InputError("scenario", rule, count_events(scenario))
    return scenario


@lru_cache(maxsize=64)
def run_of(query: str) -> tuple[Trace, Comparison]:
    """The trace of the scenario in `query`, and every reduction beside one device."""
    scenario = from_query(query)
    trace = simulate(scenario)
    return trace, beside(trace)


@lru_cache(maxsize=64)
def picture(query: str) -> Picture:
    """The stage's data for the scenario in `query`, its beats as Markdown, and their ids.

    Whoever looks gets the same object: it is only read. (`st.cache_data` would copy it for everyone.)
    """
    return pictured(*run_of(query))


@lru_cache(maxsize=8)
def picture_of(trace: Trace) -> Picture:
    """The same of a trace that was opened."""
    return pictured(trace, beside(trace))


def pictured(trace: Trace, ways: Comparison) -> Picture:
    """The stage's data of a trace, its beats as Markdown and their ids."""
    told = beats(trace, ways)
    data = stage_data(trace, told, ways, told[0].id)
    return data, beats_markdown(told), tuple(b.id for b in told)


@lru_cache(maxsize=8)
def beats_of(trace: Trace) -> tuple[Beat, ...]:
    """The beats of a trace: only whoever is asked a question needs them again."""
    return beats(trace)


@st.fragment
def play(data: Data, key: str, trace: Trace | None = None) -> None:
    """The stage in a fragment of its own, so that stopping at a beat reruns nothing else; below it, with the
    trace that it shows, the question about what comes next."""
    stage(data | went_on(key), key=key)
    if trace is not None:
        ids = tuple(beat["id"] for beat in data["beats"])
        ask_me(key, ids, rests_on(key, ids) or data["first"], lambda: beats_of(trace), trace)
