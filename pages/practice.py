"""Practice: the exercises of the bank."""

from dpsim.ui.practice_view import practice_page

practice_page()
