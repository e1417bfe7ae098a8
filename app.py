"""The app. Start it with ``streamlit run app.py``; its page list is in `dpsim.ui.frame`.

Streamlit reads this file twice over: once as a module, for the server with its routes, and again for every
run of a page.
"""

from streamlit import App
from streamlit.runtime.scriptrunner import get_script_run_ctx

if get_script_run_ctx(suppress_warning=True) is None:
    from dpsim.ui.routes import routes

    app = App(__file__, routes=routes())
else:
    from dpsim.ui.frame import navigation

    navigation().run()
