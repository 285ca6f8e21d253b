"""One small class a solver of these problems: its tolerances, and how it is called.

All minimize the sum of losses plus the penalty without intercept, from w = 0; packages that take
the mean loss get level / n.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.accuracies.problems import QUANTILE, RIDGE, K
from benchmarks.harness.contest import Array, Rival

PENALTIES = ("elastic net", "nonnegative lasso")
ALL = (*PENALTIES, "squared hinge", "Huber", "quantile", "k-support")


class Atomlearn(Rival):
    """Ours, to a proved gap."""

    name, package, losses = "atomlearn", "atomlearn", ALL

    def fit(self, tolerance: float) -> Array:
        from tests.oracles.sums import solve_sum

        result = solve_sum(self.X, self.y, level=self.level, tol=tolerance, **settings(self))
        self.passes = result.passes
        return np.asarray(result.coef)


class Fista(Rival):
    """FISTA with restarts over all columns, of our room of rivals, with our proximal maps."""

    name, package, losses = "FISTA", "atomlearn", ("k-support", "squared hinge", "Huber")

    def fit(self, tolerance: float) -> Array:
        from atomlearn import solvers
        from tests.oracles.sums import solve_sum

        result = solve_sum(
            self.X, self.y, level=self.level, tol=tolerance, solver=solvers.FISTA(),
            time_limit=20.0, **settings(self),
        )  # fmt: skip
        return np.asarray(result.coef)


def settings(rival: Rival) -> dict[str, Any]:
    """Return what `solve` is told of the problem beside its level."""
    from atomlearn import losses, norms

    told: dict[str, dict[str, Any]] = {
        "elastic net": {"tau": RIDGE * len(rival.y)},
        "nonnegative lasso": {"norm": norms.L1(lower=0.0)},
        "squared hinge": {"loss": "squared_hinge"},
        "Huber": {"loss": losses.Huber(1.0)},
        "quantile": {"loss": losses.Quantile(QUANTILE)},
        "k-support": {"norm": norms.KSupport(K), "form": "squared"},
    }
    return told[rival.loss]


class Scikit(Rival):
    """scikit-learn: coordinate descent, LIBLINEAR, or the linear program by HiGHS."""

    name, package = "scikit-learn", "sklearn"
    losses = (*PENALTIES, "squared hinge", "quantile")

    def fit(self, tolerance: float) -> Array:
        from sklearn import linear_model, svm

        silent = {"fit_intercept": False, "max_iter": 100_000, "tol": tolerance}
        if self.loss == "elastic net":
            both = self.alpha + RIDGE
            model: Any = linear_model.ElasticNet(both, l1_ratio=self.alpha / both, **silent)
        elif self.loss == "nonnegative lasso":
            model = linear_model.Lasso(self.alpha, positive=True, **silent)
        elif self.loss == "squared hinge":
            model = svm.LinearSVC(
                penalty="l1", dual=False, C=1 / (2 * self.level), random_state=0, **silent
            )
        else:
            precise = {f"{side}_feasibility_tolerance": tolerance for side in ("primal", "dual")}
            model = linear_model.QuantileRegressor(
                quantile=QUANTILE, alpha=self.alpha, fit_intercept=False,
                solver_options=precise if tolerance >= 1e-10 else None,
            )  # fmt: skip
        return coefficients(model, self.X, self.y)


class Celer(Rival):
    """celer: working sets with dual extrapolation."""

    name, package, losses = "celer", "celer", PENALTIES

    def fit(self, tolerance: float) -> Array:
        import celer

        silent = {"fit_intercept": False, "max_iter": 1000, "tol": tolerance}
        if self.loss == "elastic net":
            both = self.alpha + RIDGE
            model = celer.ElasticNet(both, l1_ratio=self.alpha / both, **silent)
        else:
            model = celer.Lasso(self.alpha, positive=True, **silent)
        return coefficients(model, self.X, self.y)


class Skglm(Rival):
    """skglm: working sets with Anderson acceleration, compiled at the first call."""

    name, package, losses = "skglm", "skglm", (*PENALTIES, "Huber")

    def fit(self, tolerance: float) -> Array:
        import skglm
        from skglm import datafits, penalties, solvers

        silent = {"fit_intercept": False, "max_iter": 1000, "tol": tolerance}
        if self.loss == "elastic net":
            both = self.alpha + RIDGE
            model = skglm.ElasticNet(both, l1_ratio=self.alpha / both, **silent)
        elif self.loss == "nonnegative lasso":
            model = skglm.Lasso(self.alpha, positive=True, **silent)
        else:
            model = skglm.GeneralizedLinearEstimator(
                datafits.Huber(1.0),
                penalties.L1(self.alpha),
                solvers.AndersonCD(tol=tolerance, fit_intercept=False, max_iter=1000),
            )
        return coefficients(model, self.X, self.y)


class Glum(Rival):
    """glum: IRLS with coordinate descent on an active set."""

    name, package, losses = "glum", "glum", ("elastic net",)

    def fit(self, tolerance: float) -> Array:
        import glum

        both = self.alpha + RIDGE
        model = glum.GeneralizedLinearRegressor(
            family="normal", alpha=both, l1_ratio=self.alpha / both, fit_intercept=False,
            gradient_tol=tolerance, max_iter=1000, solver="irls-cd",
        )  # fmt: skip
        return coefficients(model, self.X, self.y)


class Adelie(Rival):
    """adelie, along ten levels down to the one."""

    name, package, losses = "adelie, path of ten", "adelie", ("elastic net",)
    tolerances = tuple(10.0**-e for e in range(4, 15))

    def fit(self, tolerance: float) -> Array:
        import adelie as ad

        both = self.alpha + RIDGE
        mixed = self.alpha / both
        path = np.geomspace(both / self.problem.fraction, both, 11)[1:]
        state = ad.grpnet(
            ad.matrix.dense(self.X, method="naive", n_threads=self.threads),
            ad.glm.gaussian(self.y), alpha=mixed, penalty=np.ones(self.X.shape[1]), lmda_path=path,
            tol=tolerance, intercept=False, early_exit=False, progress_bar=False,
            n_threads=self.threads,
        )  # fmt: skip
        return np.asarray(state.betas[-1].toarray()).ravel()


class Clarabel(Rival):
    """Clarabel's interior points on the model that CVXPY makes."""

    name, package = "CVXPY, Clarabel", "cvxpy"
    losses = ("quantile", "nonnegative lasso", "Huber")

    def fit(self, tolerance: float) -> Array:
        import cvxpy as cp

        w = cp.Variable(self.X.shape[1], nonneg=self.loss == "nonnegative lasso")
        left = self.y - self.X @ w
        fits = {
            "quantile": lambda: cp.sum(cp.maximum(QUANTILE * left, (QUANTILE - 1) * left)),
            "Huber": lambda: 0.5 * cp.sum(cp.huber(left, 1.0)),
            "nonnegative lasso": lambda: 0.5 * cp.sum_squares(left),
        }
        problem = cp.Problem(cp.Minimize(fits[self.loss]() + self.level * cp.norm1(w)))
        exact = {f"tol_{what}": tolerance for what in ("gap_abs", "gap_rel", "feas")}
        problem.solve(solver="CLARABEL", **exact)
        return np.asarray(w.value)


def coefficients(model: Any, X: Any, y: Array) -> Array:
    """Fit an estimator in silence: what it reached is measured, not believed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64).ravel()


SOLVERS: tuple[type[Rival], ...] = (
    Atomlearn, Celer, Skglm, Adelie, Glum, Scikit, Clarabel, Fista,
)  # fmt: skip
