"""The lessons: a list of them, and each screen by screen."""

from dpsim.ui.lesson_view import lesson_page

lesson_page()
