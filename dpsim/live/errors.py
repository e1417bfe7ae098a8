"""What went wrong in a live run, in one sentence."""

from __future__ import annotations

from dpsim.checks import InputError


class LiveError(InputError):
    """A live run that could not be carried out; the sentence names the rank where one is to blame."""

    def __init__(self, sentence: str) -> None:
        ValueError.__init__(self, f"live: {sentence}")
        self.field, self.rule, self.value = "live", sentence, None


class CancelledError(LiveError):
    """A live run that whoever asked for it has called off."""
