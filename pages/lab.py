"""The lab: free exploration of everything that a scenario holds."""

from dpsim.ui.lab import lab_page

lab_page()
