"""What a learner has learned, what is due, and everything that is kept about it."""

from dpsim.ui.progress_view import progress_page

progress_page()
