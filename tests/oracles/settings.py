"""Settings of maps as one module sees them, changed for a test."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest


def change(patch: pytest.MonkeyPatch, module: str, name: str = "SETTINGS", **fields: Any) -> None:
    """Set these fields of SETTINGS, or LIMITS, in ``atomlearn.maps.<module>`` for this patch."""
    owner = import_module(f"atomlearn.maps.{module}")
    patch.setattr(owner, name, replace(getattr(owner, name), **fields))
