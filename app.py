"""The app: the page list and the frame, nothing else. Start it with ``streamlit run app.py``."""

import streamlit as st

from dpsim.ui.frame import ICON

st.set_page_config(page_title="dpsim: one data-parallel step", page_icon=ICON, layout="wide")

st.navigation([st.Page("pages/step.py", title="One step", default=True)], position="hidden").run()
