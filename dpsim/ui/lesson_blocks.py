"""The blocks of a lesson's screen, each drawn where it stands."""

from __future__ import annotations

import streamlit as st

from dpsim.directives import (
    Break,
    Chart,
    Code,
    Collectives,
    Compare,
    Exercise,
    Practice,
    Predict,
    Recording,
    Stage,
)
from dpsim.figures import figure
from dpsim.forms import to_query
from dpsim.lessons import Prose, Screen
from dpsim.prose import literal
from dpsim.reduction import NAMES
from dpsim.scenario import Scenario
from dpsim.setting import Setting
from dpsim.ui.frame import present_button, presenting, rests_on
from dpsim.ui.lesson_break import break_it
from dpsim.ui.lesson_measured import collectives, recorded
from dpsim.ui.lesson_questions import exercise, predict
from dpsim.ui.live import live_bar
from dpsim.ui.live_state import measured
from dpsim.ui.picture import picture, play, run_of
from dpsim.ui.practice import drill
from dpsim.ui.text import explained

# On a card, where the other cards say what it is not.
SHORT = {
    "token_weighted": "token-weighted mean",
    "mean_of_rank_means": "naive mean",
    "one_device": "one device",
}
TEXT_WIDTH = 780  # pixels: lines that can be read; the stage takes all there is


def draw(screen: Screen, place: str, setting: Setting, asked: str | None) -> bool:
    """The blocks in order, up to the first prediction that is still open; whether none is. `asked` is the
    beat that the link names."""
    for n, block in enumerate(screen.blocks):
        if isinstance(block, Stage):
            _stage(block, place, setting, asked)
            continue
        if isinstance(block, Recording):
            recorded(block, place, setting)
            continue
        if isinstance(block, Break):
            break_it(block, place)
            _caption(block.caption, setting)
            continue
        with st.container(width=TEXT_WIDTH):
            if isinstance(block, Predict):
                if not predict(block, f"{place}/{block.question.id}", setting):
                    return False
            elif isinstance(block, Exercise):
                exercise(block, f"{place}/{block.question.id}", setting)
            elif isinstance(block, Practice):
                drill(block.item, f"{place}/{block.id}")
            else:
                _shown(block, f"{place}/{n}", setting)
    return True


def _shown(block: Prose | Compare | Chart | Collectives | Code, place: str, setting: Setting) -> None:
    """A block that asks nothing."""
    if isinstance(block, Prose):
        st.markdown(explained(setting.shown(block.text)), unsafe_allow_html=True)
        return
    if isinstance(block, Compare):
        _compare(block)
    elif isinstance(block, Chart):
        _chart(block, place)
    elif isinstance(block, Collectives):
        collectives(block)
    else:
        st.code(block.region, language="python", wrap_lines=True)
    _caption(block.caption, setting)
    if isinstance(block, Code):
        _download(block, place)


def _caption(text: str, setting: Setting) -> None:
    if text:
        st.markdown(f"*{setting.shown(text)}*")


def _stage(block: Stage, place: str, setting: Setting, asked: str | None) -> None:
    """The stage, and below it what it shows in words."""
    query, key = to_query(block.scenario), f"stage/{place}"
    found = measured(key, query)
    data, text, ids = found.picture if found else picture(query)
    live_bar(key, query)
    shown = found.trace if found else run_of(query)[0]
    play(data | {"first": _first(place, ids, block.beat, asked)}, key, shown)
    if found:
        from dpsim.ui.live_results import live_results  # only who has run waits for Plotly

        live_results(found)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        _caption(block.caption, setting)
        present_button(key, ids)
    with st.expander(f"The same step as text: {len(ids)} beats"):
        st.markdown(text)


def present(block: Stage, place: str, asked: str | None) -> bool:
    """Draw the stage alone, for the projector, if the link asks for it; whether it does."""
    query, key = to_query(block.scenario), f"stage/{place}"
    found = measured(key, query)
    data, _, ids = found.picture if found else picture(query)
    large = presenting(key, ids)
    if large:
        first = _first(place, ids, block.beat, asked)
        play(data | {"first": first, "present": True}, key=key)
    return large


def _first(place: str, ids: tuple[str, ...], beat: str, asked: str | None) -> str:
    """Where the stage rests; on a first look the beat that a link names, else the block's own."""
    opened: dict[str, str] = st.session_state.setdefault("lesson.opened", {})
    return rests_on(f"stage/{place}", ids) or opened.setdefault(place, asked if asked in ids else beat)


def _compare(block: Compare) -> None:
    """A card for each way of reducing."""
    chosen = block.scenario.reduction if isinstance(block.scenario.reduction, str) else "custom"
    for way, column in zip(block.ways, st.columns(len(block.ways)), strict=True):
        with column.container(border=True, height="stretch"):
            name = SHORT.get(way) or NAMES[way]
            facts = [
                f"{what} **{literal(said)}**" for what, said in _facts(block.scenario, way, block.weights)
            ]
            mark = [":gray-badge[this run]"] if way == chosen else []
            st.markdown("  \n".join([f"**{name[0].upper()}{name[1:]}**", *facts, *mark]))


def _facts(scenario: Scenario, way: str, weighed: bool) -> list[tuple[str, str]]:
    """What a card says of a way of reducing: name and figure."""
    facts = [("gradient", f"gradient.{way}"), ("weights after", f"parameters.{way}")]
    if way != "one_device":
        facts += [("relative L2 error", f"error.{way}"), ("cosine", f"cosine.{way}")]
    told = [(what, figure(scenario, name).text) for what, name in facts]
    if weighed and way != "one_device":
        weights = [figure(scenario, f"weight.{way}.{r}").text for r in range(scenario.world_size)]
        each = [f"{weight} on rank {rank}" for rank, weight in enumerate(weights)]
        told.append(("a token weighs", ", ".join(each) if len(set(weights)) > 1 else weights[0]))
    return told


def _chart(block: Chart, place: str) -> None:
    from dpsim.ui.lesson_charts import drawn  # only who draws a chart waits for Plotly

    drawing, said = drawn(block)
    st.plotly_chart(
        drawing,
        key=f"chart/{place}/{block.show}",
        theme="streamlit",
        alt=said,
        config={"displayModeBar": False},
    )


def _download(block: Code, place: str) -> None:
    st.download_button(
        f"Download {block.file}, complete",
        block.whole,
        block.file,
        "text/x-python",
        key=f"code/{place}/{block.file}",
        icon=":material/download:",
        on_click="ignore",
    )
