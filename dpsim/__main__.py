"""``python -m dpsim``: the command line."""

import sys

from dpsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
