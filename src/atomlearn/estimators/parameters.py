"""The parameters of fits of columns, with their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import BaseEstimator

from atomlearn.core.interfaces import Form, Norm, Solver
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.stopping import StoppingRule


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters(BaseEstimator):
    """How a fit is made and watched; estimators add what they fit."""

    form: Form = "penalized"
    features: str = "linear"
    unpenalized: Any = None
    relax: Any = 0.0
    adaptive: float = 0.0
    tol: float = 1e-6
    max_iter: int = 1000
    solver: str | Solver = "auto"
    verbose: int = 0
    observers: Sequence[Observer] | None = None
    stop: StoppingRule | None = None
    time_limit: float | None = None


@dataclass(eq=False, repr=False)
class OneLevel(BaseEstimator):
    """What is fitted at one level: the others search for norm and alpha."""

    norm: str | Norm = "l1"
    alpha: float = 1.0
    _: KW_ONLY
    radius: float = 1.0
    warm_start: bool = False
