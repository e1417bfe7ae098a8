"""The app. Start it with ``streamlit run app.py``; its page list is in `dpsim.ui.frame`."""

from dpsim.ui.frame import navigation

navigation().run()
