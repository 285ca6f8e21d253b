"""Selections of these tests make no fits to halves of the rows, but for those that look at them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atomlearn.cli import evidence
from atomlearn.cli.limits import LIMITS


@pytest.fixture(autouse=True)
def no_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten more fits a selection would be half of this room's time: see ``test_cli_halves.py``."""
    monkeypatch.setattr(evidence, "LIMITS", replace(LIMITS, halves=0))
