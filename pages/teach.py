"""For teachers: the bank for a learning platform, exercises of one's own, and what a class can share."""

from dpsim.ui.teach_view import teach_page

teach_page()
