"""atomlearn: structured sparse models by column generation, with a proof of accuracy.

``solve`` is the functional face, the estimators follow scikit-learn; ``norms``, ``losses``,
``designs`` and ``solvers`` are the parts they are made of. Heavy parts load on first
use; ``__init__.pyi`` tells type checkers where they are.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: Where a public name lives, if not among the estimators.
_HOMES = {
    "KnockoffSelector": "findings",
    "StabilitySelector": "findings",
    "report": "reports",
    "solve": "solvers",
    "solve_subset": "subsets",
}

__all__ = [
    "AtomicClassifier",
    "AtomicClassifierCV",
    "AtomicRegressor",
    "AtomicRegressorCV",
    "AtomicSurvival",
    "AtomicSurvivalCV",
    "FeatureGenerator",
    "KnockoffSelector",
    "MatrixCompletion",
    "MatrixPursuit",
    "MultipleKernelClassifier",
    "MultipleKernelRegressor",
    "SparseLowRank",
    "SparsePCA",
    "StabilitySelector",
    "SubsetClassifier",
    "SubsetRegressor",
    "__version__",
    "datasets",
    "designs",
    "findings",
    "interop",
    "losses",
    "masters",
    "norms",
    "paths",
    "report",
    "reports",
    "solve",
    "solve_subset",
    "solvers",
    "subsets",
]


def __getattr__(name: str) -> Any:
    """Import parts on first use, so that ``import atomlearn`` is instant."""
    if name not in __all__:
        raise AttributeError(f"module 'atomlearn' has no attribute {name!r}")
    if name.islower() and name not in _HOMES:
        return importlib.import_module(f"atomlearn.{name}")
    home = _HOMES.get(name, "estimators")
    return getattr(importlib.import_module(f"atomlearn.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
