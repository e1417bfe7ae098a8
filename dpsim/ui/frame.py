"""What every page shares: the icon and the few rules of style that Streamlit's theme cannot say."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

ICON = str(Path(__file__).parent / "icon.png")

# Streamlit's empty header would lie over the first line of the page and swallow clicks there.
STYLE = """<style>
.stMainBlockContainer { padding: 1rem clamp(1rem, 3vw, 3rem) 2rem; }
.st-key-title .stText { font-size: 1.5rem; font-weight: 600; line-height: 1.25; white-space: normal; }
.stAppHeader { background: none; left: auto; width: 4rem; }
</style>"""


def frame() -> None:
    """Apply the frame; call it first on every page."""
    st.html(STYLE)
