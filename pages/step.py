"""The first screen: one training step on the stage, number by number."""

from dpsim.ui.step_view import step_page

step_page()
