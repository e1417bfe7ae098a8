"""A page for the tests of the puzzle and of pointing at a cell: the link says `kind` and `ranks`."""

from __future__ import annotations

import streamlit as st

from dpsim.questions import Asked, Option
from dpsim.ui.answers import answers
from dpsim.ui.asking import form, in_words, refused, right_in_words, verdict

ranks = int(st.query_params.get("ranks", "3"))
kind = st.query_params.get("kind", "ring")
asked = (
    Asked("ring", f"Compose an all-reduce for {ranks} ranks.", answer=ranks)
    if kind == "ring"
    else Asked(
        "cell", "Which cell is complete first?", answer=ranks,
        options=(Option("0.1", "Yes, there.", right=True), Option("0.0", "That is where it starts.")),
        other="Follow the chunk round the ring.",
    )
)  # fmt: skip
place = f"try/{kind}/{ranks}"
form(asked, place, "Check my answer", ":material/check:")
given = answers().get(place)
if given is not None and not refused(place):
    verdict(asked, given)
    st.caption(f"You gave {in_words(asked, given)}; right is {right_in_words(asked)}.")
st.text_input("Something else", key="else")
