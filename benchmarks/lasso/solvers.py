"""One small class a solver: its tolerances, loosest first, and how it is called.

All of them minimise sum loss + level ||w||_1 without intercept, from w = 0; packages that take the
mean loss get level / n.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.contest import Array, Rival


class Atomlearn(Rival):
    """Ours, at the loosest gap that does, as the rivals are."""

    name, package = "atomlearn", "atomlearn"

    def fit(self, tolerance: float) -> Array:
        from tests.oracles.sums import solve_sum

        result = solve_sum(self.X, self.y, loss=self.loss, level=self.level, tol=tolerance)
        self.passes = result.passes
        return np.asarray(result.coef)


class Certified(Atomlearn):
    """Ours, to a proved gap of 1e-6."""

    name = "atomlearn, gap 1e-6 proved"
    tolerances = (1e-6,)


class Celer(Rival):
    """celer: working sets with dual extrapolation; its gap is relative to the loss at zero."""

    name, package = "celer", "celer"

    def fit(self, tolerance: float) -> Array:
        import celer

        if self.loss == "squared":
            model = celer.Lasso(
                self.alpha, tol=tolerance, fit_intercept=False, max_iter=1000, max_epochs=100_000
            )
        else:
            model = celer.LogisticRegression(
                1 / self.level, tol=tolerance, fit_intercept=False, max_iter=1000
            )
        return _coefficients(model, self.X, self.y)


class Skglm(Rival):
    """skglm: working sets with Anderson acceleration, compiled at the first call."""

    name, package = "skglm", "skglm"

    def fit(self, tolerance: float) -> Array:
        import skglm

        if self.loss == "squared":
            model = skglm.Lasso(self.alpha, tol=tolerance, fit_intercept=False, max_iter=1000)
        else:
            model = skglm.SparseLogisticRegression(
                self.alpha, tol=tolerance, fit_intercept=False, max_iter=1000
            )
        return _coefficients(model, self.X, self.y)


class Adelie(Rival):
    """adelie, at the one level."""

    name, package = "adelie, one level", "adelie"
    tolerances = tuple(10.0**-e for e in range(4, 15))
    n_levels: ClassVar[int] = 1

    def fit(self, tolerance: float) -> Array:
        import adelie as ad

        dense = isinstance(self.X, np.ndarray)
        matrix = ad.matrix.dense if dense else ad.matrix.sparse
        X = matrix(self.X, method="naive", n_threads=self.threads)
        glm = ad.glm.gaussian(self.y)
        if self.loss == "logistic":
            glm = ad.glm.binomial(np.asarray(self.y > 0, dtype=np.float64))
        largest = np.abs(self.X.T @ self.y).max() * (0.5 if self.loss == "logistic" else 1.0)
        path = np.geomspace(largest / self.y.size, self.alpha, self.n_levels + 1)[1:]
        state = ad.grpnet(
            X, glm, penalty=np.ones(self.X.shape[1]), lmda_path=path, tol=tolerance,
            irls_tol=tolerance, intercept=False, early_exit=False, progress_bar=False,
            n_threads=self.threads,
        )  # fmt: skip
        return np.asarray(state.betas[-1].toarray()).ravel()


class AdeliePath(Adelie):
    """adelie, along ten levels down to the one."""

    name = "adelie, path of ten"
    n_levels = 10


class ScikitLasso(Rival):
    """scikit-learn's coordinate descent with screening; its gap is relative to ||y||^2."""

    name, package, losses = "scikit-learn Lasso", "sklearn", ("squared",)

    def fit(self, tolerance: float) -> Array:
        from sklearn.linear_model import Lasso

        model = Lasso(self.alpha, tol=tolerance, fit_intercept=False, max_iter=100_000)
        return _coefficients(model, self.X, self.y)


class ScikitLiblinear(Rival):
    """LIBLINEAR, through scikit-learn."""

    name, package, losses = "scikit-learn liblinear", "sklearn", ("logistic",)

    def fit(self, tolerance: float) -> Array:
        from sklearn.linear_model import LogisticRegression

        # Before 1.8 l1_ratio alone was passed over in silence.
        old = LogisticRegression().penalty == "l2"
        model = LogisticRegression(
            C=1 / self.level, solver="liblinear", tol=tolerance, fit_intercept=False,
            max_iter=10_000, random_state=0, **({"penalty": "l1"} if old else {"l1_ratio": 1.0}),
        )  # fmt: skip
        return _coefficients(model, self.X, self.y)


def _coefficients(model: Any, X: Any, y: Array) -> Array:
    """Fit an estimator in silence: what it reached is measured, not believed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64).ravel()


SOLVERS: tuple[type[Rival], ...] = (
    Atomlearn, Certified, Celer, Skglm, Adelie, AdeliePath, ScikitLasso, ScikitLiblinear,
)  # fmt: skip
