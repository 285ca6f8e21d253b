"""One small class a solver: its tolerances, loosest first, and how it is called.

All of them minimize sum loss + level ||w||_1 without intercept, from w = 0 (of classes by rows
level sum_j ||W_j||_2); packages that take the mean loss get level / n.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.contest import Array, Rival
from benchmarks.responses.problems import CLASSES

ROWS = "multinomial rows"
ALL = ("poisson", "binomial", "multinomial", ROWS, "cox")


class Atomlearn(Rival):
    """Ours, at the loosest gap that does, as the rivals are."""

    name, package, losses = "atomlearn", "atomlearn", ALL

    def fit(self, tolerance: float) -> Array:
        from atomlearn import designs, losses, norms
        from tests.oracles.sums import solve_sum

        several, norm = self.loss.startswith("multinomial"), norms.L1()
        X, y, loss = self.X, self.y, {"binomial": "logistic"}.get(self.loss, self.loss)
        if loss == "cox":
            y = losses.survival_target(y[:, 1] > 0, y[:, 0])
        elif several:
            X, y = designs.Tasks(X, CLASSES), np.eye(CLASSES)[y.astype(int)].ravel()
            loss = losses.Multinomial(CLASSES)
            if self.loss == ROWS:
                norm = norms.RowGroups()
        result = solve_sum(X, y, loss=loss, norm=norm, level=self.level, tol=tolerance)
        self.passes, w = result.passes, np.asarray(result.coef)
        return w.reshape(-1, CLASSES) if several else w


class Certified(Atomlearn):
    """Ours, to a proved gap of 1e-6."""

    name = "atomlearn, gap 1e-6 proved"
    tolerances = (1e-6,)


class Celer(Rival):
    """celer: working sets with dual extrapolation."""

    name, package, losses = "celer", "celer", ("binomial",)

    def fit(self, tolerance: float) -> Array:
        import celer

        model = celer.LogisticRegression(
            1 / self.level, tol=tolerance, fit_intercept=False, max_iter=1000
        )
        return _coefficients(model, self.X, self.y)


class Skglm(Rival):
    """skglm: proximal Newton on working sets, compiled at the first call."""

    name, package, losses = "skglm", "skglm", ("poisson", "binomial", "cox")

    def fit(self, tolerance: float) -> Array:
        import skglm
        from skglm import datafits, penalties, solvers

        if self.loss == "cox":
            model = skglm.CoxEstimator(self.alpha, l1_ratio=1.0, tol=tolerance, max_iter=1000)
        elif self.loss == "binomial":
            model = skglm.SparseLogisticRegression(
                self.alpha, tol=tolerance, fit_intercept=False, max_iter=1000
            )
        else:
            model = skglm.GeneralizedLinearEstimator(
                datafits.Poisson(),
                penalties.L1(self.alpha),
                solvers.ProxNewton(tol=tolerance, fit_intercept=False, max_iter=1000),
            )
        return _coefficients(model, self.X, self.y)


class Coordinates(np.ndarray[Any, Any]):
    """Starts of groups as they are: adelie takes them times the classes, for groups of features."""

    def __mul__(self, classes: int) -> Any:
        return np.asarray(self)


class Adelie(Rival):
    """adelie, at the one level."""

    name, package, losses = "adelie, one level", "adelie", ALL
    tolerances = tuple(10.0**-e for e in range(4, 15))
    n_levels: ClassVar[int] = 1

    def fit(self, tolerance: float) -> Array:
        import adelie as ad

        several, rows = self.loss.startswith("multinomial"), self.loss == ROWS
        dense = isinstance(self.X, np.ndarray)
        matrix = ad.matrix.dense if dense else ad.matrix.sparse
        X = matrix(self.X, method="naive", n_threads=self.threads)
        # Levels are of the mean loss; the multinomial one is divided by the classes too.
        alpha = self.alpha / (CLASSES if several else 1)
        path = np.geomspace(alpha / self.problem.fraction, alpha, self.n_levels + 1)[1:]
        groups = np.arange(self.X.shape[1])
        if several and not rows:
            groups = np.arange(self.X.shape[1] * CLASSES).view(Coordinates)
        state = ad.grpnet(
            X, self._glm(ad), groups=groups, penalty=np.ones(groups.size), lmda_path=path,
            tol=tolerance, irls_tol=tolerance, intercept=False, early_exit=False,
            progress_bar=False, n_threads=self.threads,
        )  # fmt: skip
        w = np.asarray(state.betas[-1].toarray()).ravel()
        return w.reshape(-1, CLASSES) if several else w

    def _glm(self, ad: Any) -> Any:
        y = self.y
        if self.loss == "cox":
            return ad.glm.cox(np.zeros(len(y)), y[:, 0].copy(), y[:, 1].copy())
        if self.loss == "poisson":
            return ad.glm.poisson(y)
        if self.loss == "binomial":
            return ad.glm.binomial(np.asarray(y > 0, dtype=np.float64))
        return ad.glm.multinomial(np.eye(CLASSES)[y.astype(int)])


class AdeliePath(Adelie):
    """adelie, along ten levels down to the one."""

    name = "adelie, path of ten"
    n_levels = 10


class Glum(Rival):
    """glum: IRLS with coordinate descent on an active set."""

    name, package, losses = "glum", "glum", ("poisson", "binomial")

    def fit(self, tolerance: float) -> Array:
        import glum

        y = self.y if self.loss == "poisson" else np.asarray(self.y > 0, dtype=np.float64)
        model = glum.GeneralizedLinearRegressor(
            family=self.loss, alpha=self.alpha, l1_ratio=1.0, fit_intercept=False,
            gradient_tol=tolerance, max_iter=1000, solver="irls-cd",
        )  # fmt: skip
        return _coefficients(model, self.X, y)


class Coxnet(Rival):
    """scikit-survival's CoxnetSurvivalAnalysis (Simon et al. 2011), at the one level."""

    name, package, losses = "scikit-survival Coxnet", "sksurv", ("cox",)
    n_levels: ClassVar[int] = 1

    def fit(self, tolerance: float) -> Array:
        from sksurv.linear_model import CoxnetSurvivalAnalysis

        y = np.empty(len(self.y), dtype=[("event", bool), ("time", float)])
        y["event"], y["time"] = self.y[:, 1] > 0, self.y[:, 0]
        path = np.geomspace(self.alpha / self.problem.fraction, self.alpha, self.n_levels + 1)[1:]
        model = CoxnetSurvivalAnalysis(
            alphas=path, l1_ratio=1.0, tol=tolerance, max_iter=1_000_000, normalize=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.X, y)
        return np.array(model.coef_[:, -1], dtype=np.float64)


class CoxnetPath(Coxnet):
    """The same along ten levels down to the one."""

    name = "scikit-survival Coxnet, path of ten"
    n_levels = 10


class Saga(Rival):
    """scikit-learn's SAGA."""

    name, package, losses = "scikit-learn saga", "sklearn", ("multinomial",)

    def fit(self, tolerance: float) -> Array:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=1 / self.level, l1_ratio=1.0, penalty="elasticnet", solver="saga", tol=tolerance,
            fit_intercept=False, max_iter=10_000, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.X, self.y)
        return np.asarray(model.coef_.T, dtype=np.float64)


def _coefficients(model: Any, X: Any, y: Array) -> Array:
    """Fit an estimator in silence: what it reached is measured, not believed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64).ravel()


SOLVERS: tuple[type[Rival], ...] = (
    Atomlearn, Certified, Celer, Skglm, Adelie, AdeliePath, Glum, Coxnet, CoxnetPath, Saga,
)  # fmt: skip
