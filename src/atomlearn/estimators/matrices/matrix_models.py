"""MatrixModel: what the estimators over matrices share. They check, call, and report."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from atomlearn.core.data.convert import readable
from atomlearn.core.interfaces import Array, Form, Solver
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.checks import positive
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result, Status
from atomlearn.core.solvers.observers import PrintProgress
from atomlearn.estimators.checks import as_solver, whole


class MatrixModel(BaseEstimator):
    """An estimator of a matrix made of X alone; not for direct use.

    Subclasses have the parameters form, tol, max_iter, solver and verbose.
    """

    form: Form
    tol: float
    max_iter: int
    solver: str | Solver
    verbose: int

    def _checked(self, X: Any, *, reset: bool, least: int = 1) -> NDArray[Any]:
        """Return X as a finite array in float32 or float64, its names and width compared."""
        checked: NDArray[Any] = validate_data(
            self,
            readable(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=least,
        )
        return np.require(checked, requirements="A")

    def _settings(self) -> Settings:
        tol = positive("tol", self.tol, "relative duality gap to prove, for example 1e-6")
        return Settings(tol, whole("max_iter", self.max_iter), as_solver(self.solver, tol))

    def _solved(self, problem: Problem) -> Result:
        settings = self._settings()
        if self.verbose:
            settings = replace(settings, observers=(PrintProgress(every=1),))
        result = settings.run(problem)
        result.state = None
        return result

    def _report(self, result: Result) -> None:
        """Set what is known of the fit; warn where it fell short of its own doing."""
        self.result_ = result
        self.objective_, self.gap_ = float(result.objective), float(result.gap)
        self.status_ = result.status
        self.n_passes_ = float(result.passes)
        self.n_iter_ = max(len(result.history), 1)
        self.history_ = result.history
        # A search that is NP-hard ends this way as a rule: status and search gap say so.
        if not (result.converged or result.status is Status.SEARCH_RELATIVE):
            warnings.warn(
                f"{type(self).__name__}: {self.status_}. Relative gap proved: "
                f"{result.relative_gap:.2e}, asked for: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=3,
            )


class MatrixTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MatrixModel):
    """A MatrixModel with ``components_``, one for each column that it makes; not for direct use."""

    components_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def amount(estimator: Any, default: float | None = None) -> float:
    """Return radius where the form is constrained, else alpha, or the default where it is None."""
    if isinstance(estimator.form, str) and estimator.form == "constrained":
        return positive("radius", estimator.radius, "bound on the gauge")
    if estimator.alpha is None and default is not None:
        return default
    return positive("alpha", estimator.alpha, "weight of the penalty")


def double(X: NDArray[Any]) -> Array:
    """Return X in float64, in rows."""
    return np.ascontiguousarray(X, dtype=np.float64)
