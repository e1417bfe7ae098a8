"""Verifying a certificate: by its id, its text or its file."""

from dpsim.ui.verify_view import verify_page

verify_page()
