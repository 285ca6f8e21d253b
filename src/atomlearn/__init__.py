"""atomlearn: structured sparse models by column generation, with a proof of accuracy.

``solve`` fits a model by one function call, and the estimators follow scikit-learn. Both combine
``norms``, ``losses``, ``designs`` and ``solvers``. Large modules load on first use;
``__init__.pyi`` lists them for type checkers.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: The module of each public name that is no module itself.
_HOMES = {
    "AtomicClassifier": "estimators.classifier",
    "AtomicClassifierCV": "estimators.cross_validated",
    "AtomicRegressor": "estimators.regressor",
    "AtomicRegressorCV": "estimators.cross_validated",
    "AtomicSurvival": "estimators.survival",
    "AtomicSurvivalCV": "estimators.cross_validated_survival",
    "FeatureGenerator": "estimators.feature_generator",
    "KnockoffSelector": "findings.knockoffs",
    "MatrixCompletion": "estimators.matrices.completion",
    "MatrixPursuit": "estimators.matrices.matrix_models",
    "MultipleKernelClassifier": "estimators.kernel_models",
    "MultipleKernelRegressor": "estimators.kernel_models",
    "SparseLowRank": "estimators.matrices.components",
    "SparsePCA": "estimators.matrices.components",
    "StabilitySelector": "findings.stability",
    "SubsetClassifier": "estimators.subsets",
    "SubsetRegressor": "estimators.subsets",
    "report": "reports.page",
    "solve": "core.solve",
    "solve_subset": "subsets.solve",
    "verify": "verification.answers",
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
    "papers",
    "paths",
    "report",
    "reports",
    "solve",
    "solve_subset",
    "solvers",
    "subsets",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Return a public name, imported on first use, so that ``import atomlearn`` is instant."""
    if name not in __all__:
        raise AttributeError(f"module 'atomlearn' has no attribute {name!r}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"atomlearn.{_HOMES[name]}"), name)
    return importlib.import_module(f"atomlearn.{name}")


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)
