"""Group lasso in each package; rivals get overlapping groups as duplicated columns.

All minimise 1/2 ||y - X L u||^2 + level sum_g ||u_g|| without intercept, from zero. Duplicating
the columns is not counted. group-lasso and SPAMS were tried once: hundreds of times slower.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.contest import Array, Rival


class Atomlearn(Rival):
    """Ours, at the loosest gap that does, as the rivals are."""

    name, package, losses = "atomlearn", "atomlearn", ("squared",)

    def fit(self, tolerance: float) -> Array:
        from atomlearn import norms
        from tests.oracles.sums import solve_sum

        problem = self.problem
        chains = problem.kind == "chains"
        norm = norms.Chains(8) if chains else norms.Groups(np.arange(problem.p) // 10)
        result = solve_sum(self.X, self.y, norm=norm, level=self.level, tol=tolerance)
        self.passes = result.passes
        if not chains:
            return np.asarray(result.coef)
        u = np.zeros(problem.members.size)
        u[result.lifted[0]] = result.lifted[1]
        return u


class Certified(Atomlearn):
    """Ours, to a proved gap of 1e-6."""

    name = "atomlearn, gap 1e-6 proved"
    tolerances = (1e-6,)


class Duplicated(Rival):
    """Rivals work on one column for each membership."""

    losses = ("squared",)

    def __init__(self, problem: Any, X: Any, y: Array, level: float, threads: int) -> None:
        super().__init__(problem, X, y, level, threads)
        if problem.kind == "chains":
            self.repeated = np.asfortranarray(X[:, problem.members])
        else:
            self.repeated = X


class Celer(Duplicated):
    """celer: working sets with dual extrapolation."""

    name, package = "celer", "celer"

    def fit(self, tolerance: float) -> Array:
        import celer

        model = celer.GroupLasso(
            groups=self.problem.size, alpha=self.alpha, tol=tolerance, fit_intercept=False,
            max_iter=1000, max_epochs=100_000,
        )  # fmt: skip
        return _coefficients(model, self.repeated, self.y)


class Skglm(Duplicated):
    """skglm: working sets with Anderson acceleration, compiled at the first call."""

    name, package = "skglm", "skglm"

    def fit(self, tolerance: float) -> Array:
        import skglm

        model = skglm.GroupLasso(
            groups=self.problem.size, alpha=self.alpha, tol=tolerance, fit_intercept=False,
            max_iter=1000,
        )  # fmt: skip
        return _coefficients(model, self.repeated, self.y)


class Adelie(Duplicated):
    """adelie, at the one level."""

    name, package = "adelie, one level", "adelie"
    tolerances = tuple(10.0**-e for e in range(4, 17))
    n_levels: ClassVar[int] = 1

    def fit(self, tolerance: float) -> Array:
        import adelie as ad

        size = self.repeated.shape[1]
        X = ad.matrix.dense(self.repeated, method="naive", n_threads=self.threads)
        z = self.repeated.T @ self.y
        starts = np.arange(0, size, self.problem.size)
        largest = np.sqrt(np.add.reduceat(z * z, starts)).max() / self.y.size
        path = np.geomspace(largest, self.alpha, self.n_levels + 1)[1:]
        state = ad.grpnet(
            X, ad.glm.gaussian(self.y), groups=starts, penalty=np.ones(starts.size),
            lmda_path=path, tol=tolerance, intercept=False, early_exit=False, progress_bar=False,
            n_threads=self.threads,
        )  # fmt: skip
        return np.asarray(state.betas[-1].toarray()).ravel()


class AdeliePath(Adelie):
    """adelie, along ten levels down to the one."""

    name = "adelie, path of ten"
    n_levels = 10


def _coefficients(model: Any, X: Any, y: Array) -> Array:
    """Fit an estimator in silence: what it reached is measured, not believed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64).ravel()


SOLVERS: tuple[type[Rival], ...] = (Atomlearn, Certified, Celer, Skglm, Adelie, AdeliePath)
