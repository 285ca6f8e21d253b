"""Settings of maps as one module sees them, changed for a test."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest


def change(patch: pytest.MonkeyPatch, module: str, **fields: Any) -> None:
    """Set these fields of the SETTINGS of ``atomlearn.maps.<module>``, until the patch ends."""
    owner = import_module(f"atomlearn.maps.{module}")
    patch.setattr(owner, "SETTINGS", replace(owner.SETTINGS, **fields))
