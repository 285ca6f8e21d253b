"""Where modules went: a pickle of before names its classes by where they stood."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Modules of which people keep objects, by their former names.
MOVED = {
    "atomlearn.core.losses.cox": "atomlearn.survival.cox",
    "atomlearn.core.norms.at_most": "atomlearn.papers.at_most",
    "atomlearn.core.solvers.feature_generation": "atomlearn.papers.feature_generation",
}


class _Former(MetaPathFinder, Loader):
    """Finds a module that has moved by its former name; asked last, so what is there costs none."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(MOVED[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it has run where it stands now."""


def install() -> None:
    """Have ``import`` find what has moved."""
    sys.meta_path.append(_Former())
