"""The test after the lessons."""

from dpsim.ui.test_view import test_page

test_page()
