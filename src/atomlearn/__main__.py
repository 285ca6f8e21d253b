"""``python -m atomlearn``: runs the command line if its script is not on the path."""

from __future__ import annotations

import sys

from atomlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
