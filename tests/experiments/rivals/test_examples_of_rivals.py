"""Every Example of a rival runs as it stands."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from experiments import rivals


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(rivals.__path__)])
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"experiments.rivals.{name}")).failed == 0
