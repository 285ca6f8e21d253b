"""The core is tested without the packages above it: their settings are not needed here."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_halves() -> None:
    """Change nothing of ``atomlearn.reports``."""


@pytest.fixture(autouse=True)
def one_split() -> None:
    """Change nothing of ``atomlearn.findings``."""
