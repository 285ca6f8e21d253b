"""polars, where it is installed and may be used: it parses text many times faster than we do.

Its threads do not survive a fork: in a child of a process that had loaded it, its next call would
wait for ever. Such a child (joblib's "multiprocessing", ``multiprocessing`` on Linux before Python
3.14) does without.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

_left_behind = False


def _after_fork() -> None:
    global _left_behind
    _left_behind = _left_behind or "polars" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def polars() -> Any:
    """Return the module; None where it is not installed, or its threads stayed in the parent."""
    if _left_behind or importlib.util.find_spec("polars") is None:
        return None
    return importlib.import_module("polars")
