"""Where dpsim keeps what belongs to a user of this machine."""

from __future__ import annotations

import os
from pathlib import Path


def user_data() -> Path:
    """The folder dpsim in the user's data by the XDG base directory specification, which has relative paths
    ignored. It need not be there yet."""
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "dpsim"
