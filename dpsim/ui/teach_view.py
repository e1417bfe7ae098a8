"""The page for teachers: the bank's exercises for a learning platform, exercises of one's own, results."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpsim.checks import InputError
from dpsim.exercises import items, topics
from dpsim.exports import MOST_SEED, MOST_VARIANTS, Export, export
from dpsim.items_report import items_report
from dpsim.prose import literal
from dpsim.ui.frame import frame
from dpsim.ui.lesson_blocks import TEXT_WIDTH
from dpsim.ui.lesson_top import top
from dpsim.ui.slow_down import slow_down
from dpsim.wording import number, plural

MADE, YAML, REPORT, SAID = "teach.made", "teach.yaml", "teach.report", "teach.said"
FORMATS = {"moodle": ("Moodle XML", ".xml", "application/xml"), "gift": ("GIFT", ".gift.txt", "text/plain")}
MOST_YAML = 200_000  # characters
EXAMPLE = """- id: own-samples
  title: Samples in a step
  numbers:
    ranks: {from: 2, to: 16, step: 2}
    batch: [8, 16, 32]
  question: |
    {ranks} ranks load {batch} samples each. How many does one step learn from?
  answer: ranks * batch
  unit: samples
  tolerance: 0.1
  wrong:
    - formula: batch
      feedback: |
        That is the batch of one rank.
  feedback: |
    Every rank loads a batch of its own.
  other: |
    Add over the ranks.
  solution: |
    ${ranks} \\cdot {batch} = {answer}$
"""
STYLE = """<style>
.st-key-teach h2 { padding: 1.25rem 0 0.25rem; font-size: 1.3rem; font-weight: 600; }
</style>"""


def teach_page() -> None:
    """Draw the page."""
    frame()
    st.html(STYLE)
    with st.container(key="teach", width=TEXT_WIDTH):
        top("For teachers", "teach")
        if said := st.session_state.pop(SAID, ""):
            st.error(literal(said), icon=":material/error:")
        _class()
        _exports()
        _own()
        _results()


def _class() -> None:
    st.header("In class", anchor=False)
    st.markdown(
        "- Every stage has **Present**: large, and stepped by a remote; `present=1` in a link's query "
        "opens it so.\n"
        "- The address of a stage holds the scenario and the beat, that of an exercise the seed of its "
        "numbers: send it, and everybody sees the same.\n"
        "- **Break it** in the lab switches a fault on, to be found by the class."
    )
    st.page_link("pages/practice.py", label="Exercises, each with a link", icon=":material/exercise:")


def _exports() -> None:
    st.header("Exercises for a learning platform", anchor=False)
    st.markdown(
        "Frozen variants of the bank's exercises, with their tolerances, feedback and worked solutions. "
        "The same choice always gives the same questions, under the same names."
    )
    with st.form("teach.export"):
        st.radio(
            "Format", list(FORMATS), format_func=lambda f: FORMATS[f][0], horizontal=True, key="teach.format"
        )
        named = topics()
        st.multiselect(
            "Topics", list(named), format_func=named.__getitem__, placeholder="All topics", key="teach.topics"
        )
        left, right = st.columns(2)
        left.number_input("Variants of each", 1, MOST_VARIANTS, 3, key="teach.variants")
        right.number_input("First seed", 1, MOST_SEED, 1, key="teach.seed")
        st.form_submit_button(
            "Make the file", type="primary", icon=":material/quiz:", key="teach.go", on_click=_make
        )
    if made := st.session_state.get(MADE):
        _file(*made)


def _make() -> None:
    """The file of what is chosen, or why it cannot be made."""
    form, chosen, variants, seed = (
        st.session_state[f"teach.{name}"] for name in ("format", "topics", "variants", "seed")
    )
    if said := slow_down("file"):
        st.session_state[SAID] = said
        return
    ids = [item.id for item in items().values() if item.topic in chosen]
    made: Export | InputError
    try:
        made = export(form, ids, variants, seed)
    except InputError as error:
        made = error
    st.session_state[MADE] = (form, made)


def _file(form: str, made: Export | InputError) -> None:
    if isinstance(made, InputError):
        st.error(literal(f"{made}."), icon=":material/error:")
        return
    name, ending, mime = FORMATS[form]
    report = made.report
    st.markdown(
        f"**{plural(report['questions'], 'question')}** of {plural(report['items'], 'exercise')} as {name}."
    )
    for entry in report["left_out"]:
        st.caption(
            literal(f"{plural(entry['variants'], 'variant')} of {entry['item']} left out: {entry['why']}.")
        )
    st.download_button(
        f"Download the {name} file", made.text, f"dpsim-exercises{ending}", mime,
        icon=":material/download:", on_click="ignore", key="teach.file",
    )  # fmt: skip


def _own() -> None:
    st.header("Exercises of your own", anchor=False)
    st.markdown(
        "A text file in YAML, without Python: numbers to be drawn, a formula for the answer, and one for "
        "each known mistake. Paste it here to see what is wrong with it, and how a variant of it looks. "
        "Whoever runs this server puts such files into the folder that `DPSIM_ITEMS` names."
    )
    with st.form("teach.own"):
        st.text_area("Exercises as YAML", key=YAML, max_chars=MOST_YAML, height=240, placeholder=EXAMPLE)
        st.form_submit_button(
            "Check", type="primary", icon=":material/check:", key="teach.check", on_click=_check
        )
    if report := st.session_state.get(REPORT):
        _checked(report)


def _check() -> None:
    if said := slow_down("file"):
        st.session_state[SAID] = said
        return
    st.session_state[REPORT] = items_report({"pasted text": str(st.session_state[YAML])})


def _checked(report: dict[str, Any]) -> None:
    """What is wrong with the exercises, and a variant of each of the others."""
    for mistake in report["mistakes"]:
        st.error(literal(mistake), icon=":material/error:")
    for item in report["items"]:
        with st.container(border=True, key=f"teach.item.{item['id']}"):
            st.markdown(f"**{literal(item['title'])}** · {literal(item['id'])}")
            st.markdown(item["question"])
            lines = [f"- Right: **{_with_unit(item['answer'], item)}**. {item['feedback']}"]
            lines += [f"- Wrong: **{_with_unit(w['value'], item)}**. {w['feedback']}" for w in item["wrong"]]
            st.markdown("\n".join([*lines, f"- Any other: {item['other']}"]))
            st.markdown(item["solution"])
    if not report["mistakes"]:
        st.success(f"{plural(len(report['items']), 'exercise')}, no mistake.", icon=":material/check_circle:")


def _with_unit(value: float, item: dict[str, Any]) -> str:
    return literal(f"{number(value)} {item['unit']}".rstrip())


def _results() -> None:
    st.header("Results for a gradebook", anchor=False)
    st.markdown(
        "`python -m dpsim results --out results.csv`, on the machine that runs this server, writes every "
        "test that was handed in: score, date, the certificate's id, and the name on it where there is one. "
        "In the app nobody sees what others answered. `python -m dpsim revoke ID` revokes a certificate."
    )
    st.page_link("pages/verify.py", label="Verify a certificate", icon=":material/verified:")
