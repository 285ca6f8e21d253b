"""One small class a solver: its tolerances, loosest first, and how its path is called.

All get the alphas, one thread, columns in Fortran order and of unit variance. Those without a
cross-validation on given folds run their path on each of them, then on all rows.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from benchmarks.glm_paths.problems import Array, Data, Fitted, PathProblem


class Solver(ABC):
    """A package that fits whole paths. ``path`` fits one, from nothing."""

    name: ClassVar[str]
    package: ClassVar[str]
    losses: ClassVar[tuple[str, ...]]
    tolerances: ClassVar[tuple[float, ...]] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
    groups = False
    weights = False
    free = False
    sparse = False

    def __init__(self, problem: PathProblem) -> None:
        self.problem = problem
        self.loss = problem.loss

    @classmethod
    def takes_part(cls, problem: PathProblem) -> bool:
        """Return whether the package is installed and has such a path."""
        return (
            find_spec(cls.package) is not None
            and problem.loss in cls.losses
            and (cls.groups or problem.group == 1)
            and (cls.weights or not problem.weighted)
            and (cls.free or not problem.free)
            and (cls.sparse or not problem.density)
            and cls.can(problem)
        )

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """Return whether it can do the rest of it."""
        return problem.strata == 1 and not problem.entry

    @abstractmethod
    def path(self, data: Data, tolerance: float) -> Fitted:
        """Return intercepts and coefficients at the alphas."""

    def paths(self, data: Data, tolerance: float) -> list[Fitted]:
        """Return the paths of all folds, and that of all rows."""
        parts = [data.part(rows) for rows in data.folds]
        return [self.path(part, tolerance) for part in (*parts, data)]


class Atomlearn(Solver):
    """Ours."""

    name, package = "atomlearn", "atomlearn"
    losses = ("squared", "logistic", "poisson", "gamma", "huber", "multinomial", "cox")
    tolerances = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
    groups = weights = free = sparse = True

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """All of it."""
        return True

    def path(self, data: Data, tolerance: float) -> Fitted:
        from atomlearn import designs, paths

        problem = self.problem
        X, y, alphas = data.X, self._target(data), data.alphas
        if self.loss == "multinomial":
            # The mean of as many losses as there are rows of X, not rows times classes.
            X, alphas = designs.Tasks(X, problem.classes), alphas / problem.classes
            y = np.eye(problem.classes)[y.astype(int)].ravel()
        found = paths.path(
            X, y, loss=self._loss(), norm=self._norm(), alphas=alphas, tol=tolerance,
            fit_intercept=problem.intercept,
            sample_weight=data.weight if problem.weighted else None,
            unpenalized=np.arange(problem.free) if problem.free else None,
        )  # fmt: skip
        return self._fitted(found)

    def paths(self, data: Data, tolerance: float) -> list[Fitted]:
        """Its cross-validation scores the folds too, and all share what is read and formed."""
        path = self.path(data, tolerance)
        if not data.folds:
            return [path]
        from atomlearn import paths
        from atomlearn.core.paths.folds import held_out_loss
        from atomlearn.core.paths.settings import Settings
        from atomlearn.designs import as_design
        from atomlearn.problem import Problem, Regularizer

        problem = Problem.build(
            as_design(data.X), self._target(data), self._loss(),
            Regularizer(self._norm(), "penalized", 1.0), fit_intercept=self.problem.intercept,
            sample_weight=np.full(len(data.y), 1.0 / len(data.y)),
        )  # fmt: skip
        rows = np.arange(len(data.y))
        folds = [(train, np.setdiff1d(rows, train)) for train in data.folds]
        search = paths.cross_validate(
            [problem], [self._norm()], data.alphas[None], folds, held_out_loss([problem]),
            Settings(tolerance),
        )  # fmt: skip
        return [*(self._fitted(of_fold) for (of_fold,) in search.paths[0]), path]

    def _loss(self) -> Any:
        from atomlearn import losses
        from atomlearn.core.losses.registry import as_loss

        if self.loss == "multinomial":
            return losses.Multinomial(self.problem.classes)
        return losses.Cox(ties="breslow") if self.loss == "cox" else as_loss(self.loss)

    def _norm(self) -> Any:
        from atomlearn import norms

        size = self.problem.group
        return norms.Groups(np.arange(self.problem.p) // size) if size > 1 else norms.L1()

    def _target(self, data: Data) -> Any:
        if self.loss == "cox":
            from atomlearn.losses import survival_target

            time, event, entry, stratum = data.y.T
            problem = self.problem
            return survival_target(
                event > 0, time, entry if problem.entry else None,
                stratum.astype(int) if problem.strata > 1 else None,
            )  # fmt: skip
        return 2 * data.y - 1 if self.loss == "logistic" else data.y

    def _fitted(self, found: Any) -> Fitted:
        coefs = np.zeros((found.alphas.size, found.n_features))
        coefs[:, found.columns] = found.coefs
        if self.loss == "multinomial":
            coefs = coefs.reshape(found.alphas.size, self.problem.p, -1)
        return np.asarray(found.intercepts), coefs


class Pybiglasso(Solver):
    """pybiglasso: coordinate descent in Rust, or compiled by numba."""

    name, package, losses = "pybiglasso", "pybiglasso", ("logistic",)
    free = True
    tolerances = (1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """It scales the columns to unit variance, which those of folds do not have."""
        return not problem.folds

    def path(self, data: Data, tolerance: float) -> Fitted:
        import pybiglasso

        found = pybiglasso.biglasso(
            data.X, data.y, lambdas=data.alphas, n_threads=1, eps=tolerance, max_iter=100_000,
            stop_on_saturation=False, penalty_factor=data.factors if self.problem.free else None,
        )  # fmt: skip
        return np.ravel(found.intercept), np.asarray(found.coef.toarray().T)


class Glmnet(Solver):
    """glmstar: the official glmnet."""

    name, package = "glmnet", "glmnet"
    losses = ("squared", "logistic", "poisson", "multinomial", "cox")
    tolerances = (1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12, 1e-14)
    weights = free = sparse = True

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """It has strata and entry too."""
        return True

    def path(self, data: Data, tolerance: float) -> Fitted:
        import pandas as pd
        from glmnet import CoxNet, FishNet, GaussNet, LogNet, MultiClassNet
        from glmnet.cox import CoxFamily
        from glmnet.paths.fastnet import FastNetControl

        problem = self.problem
        control = FastNetControl(thresh=tolerance, fdev=0.0, devmax=0.999999, maxit=10**8)
        settings: dict[str, Any] = {
            "lambda_values": data.alphas, "standardize": False, "control": control,
        }  # fmt: skip
        if problem.free:
            settings["penalty_factor"] = data.factors * problem.p / data.factors.sum()
            settings["lambda_values"] = data.alphas * data.factors.sum() / problem.p
        y: Any = data.y
        if self.loss == "cox":
            y = pd.DataFrame(data.y, columns=["event", "status", "start", "stratum"])
            y["status"] = y["status"].astype(int)
            family = CoxFamily(
                tie_breaking="breslow", start_id="start" if problem.entry else None,
                strata_id="stratum" if problem.strata > 1 else None,
            )  # fmt: skip
            model = CoxNet(family=family, **settings)
        else:
            kinds = {"squared": GaussNet, "logistic": LogNet, "poisson": FishNet}
            kind = kinds.get(self.loss, MultiClassNet)
            if problem.weighted:
                y = pd.DataFrame({"y": y, "weight": data.weight})
                settings |= {"response_id": "y", "weight_id": "weight"}
            model = kind(fit_intercept=problem.intercept, **settings)
        model.fit(data.X, y)
        return _complete(model.intercepts_, np.asarray(model.coefs_), data)


class Adelie(Solver):
    """adelie: its groups of one column are the lasso."""

    name, package = "adelie", "adelie"
    losses = ("squared", "logistic", "poisson", "multinomial", "cox")
    tolerances = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14)
    groups = weights = free = sparse = True

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """It has strata and entry too."""
        return True

    def path(self, data: Data, tolerance: float) -> Fitted:
        import adelie as ad
        from scipy.sparse import csc_matrix

        problem, p = self.problem, self.problem.p
        X: Any = data.X
        if problem.density:
            X = ad.matrix.sparse(csc_matrix(X), method="naive", n_threads=1)
        starts = np.arange(0, p, problem.group)
        several = problem.classes or 1
        if several > 1:
            starts = np.arange(p * several).view(_Coordinates)
        penalty = np.repeat(data.factors, several)[np.asarray(starts)]
        state = ad.grpnet(
            X, self._glm(ad, data), groups=starts, penalty=penalty,
            lmda_path=data.alphas / several, tol=tolerance, irls_tol=tolerance,
            intercept=problem.intercept, early_exit=False, progress_bar=False, n_threads=1,
        )  # fmt: skip
        coefs = np.asarray(state.betas.toarray())
        if several > 1:
            coefs = coefs.reshape(len(coefs), p, several)
        return _complete(state.intercepts, coefs, data)

    def _glm(self, ad: Any, data: Data) -> Any:
        weights = data.weight / data.weight.sum() if self.problem.weighted else None
        if self.loss == "cox":
            time, event, entry, stratum = (np.ascontiguousarray(column) for column in data.y.T)
            labels = stratum.astype(int) if self.problem.strata > 1 else None
            return ad.glm.cox(entry, time, event, strata=labels, tie_method="breslow")
        if self.loss == "multinomial":
            return ad.glm.multinomial(np.eye(self.problem.classes)[data.y.astype(int)])
        kinds = {"squared": ad.glm.gaussian, "logistic": ad.glm.binomial}
        return kinds.get(self.loss, ad.glm.poisson)(data.y, weights=weights)


class _Coordinates(np.ndarray[Any, Any]):
    """Starts of groups as they are: adelie multiplies them by the number of classes."""

    def __mul__(self, classes: int) -> Any:
        return np.asarray(self)


class Skglm(Solver):
    """skglm, alpha by alpha, each from the solution before; compiled by numba."""

    name, package = "skglm", "skglm"
    losses = ("squared", "logistic", "poisson", "gamma", "huber")
    tolerances = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    groups = sparse = True

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """Its groups are of the squared and the logistic loss."""
        return problem.group == 1 or problem.loss in ("squared", "logistic")

    def path(self, data: Data, tolerance: float) -> Fitted:
        from skglm import GeneralizedLinearEstimator, penalties, solvers
        from skglm import datafits as fits
        from skglm.utils.data import grp_converter

        problem = self.problem
        settings: dict[str, Any] = {
            "tol": tolerance, "fit_intercept": problem.intercept, "warm_start": True,
            "max_iter": 1000,
        }  # fmt: skip
        y = 2 * data.y - 1 if self.loss == "logistic" else data.y
        if problem.group > 1:
            indices, pointers = grp_converter(problem.group, problem.p)
            kind = fits.QuadraticGroup if self.loss == "squared" else fits.LogisticGroup
            datafit = kind(pointers, indices)
            weights = np.ones(problem.p // problem.group)
            penalty: Any = penalties.WeightedGroupL2(data.alphas[0], weights, pointers, indices)
            newton = self.loss != "squared"
            solver: Any = (solvers.GroupProxNewton if newton else solvers.GroupBCD)(**settings)
        else:
            kinds = {
                "squared": fits.Quadratic, "logistic": fits.Logistic, "poisson": fits.Poisson,
                "gamma": fits.Gamma,
            }  # fmt: skip
            datafit = fits.Huber(1.345) if self.loss == "huber" else kinds[self.loss]()
            penalty = penalties.L1(data.alphas[0])
            newton = self.loss not in ("squared", "huber")
            solver = (solvers.ProxNewton if newton else solvers.AndersonCD)(**settings)
        model = GeneralizedLinearEstimator(datafit, penalty, solver)
        intercepts, coefs = [], []
        for alpha in data.alphas:
            penalty.alpha = alpha
            _quietly(model, data.X, y)
            coefs.append(np.ravel(model.coef_).copy())
            intercepts.append(float(np.ravel(model.intercept_)[0]) if problem.intercept else 0.0)
        return np.array(intercepts), np.array(coefs)


class Glum(Solver):
    """glum: IRLS with coordinate descent on an active set, along its own path."""

    name, package = "glum", "glum"
    losses = ("logistic", "poisson", "gamma")
    tolerances = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
    weights = free = sparse = True

    def path(self, data: Data, tolerance: float) -> Fitted:
        import glum

        family = {"logistic": "binomial"}.get(self.loss, self.loss)
        model = glum.GeneralizedLinearRegressor(
            family=family, link="logit" if family == "binomial" else "log", l1_ratio=1.0,
            alphas=data.alphas, alpha_search=True, gradient_tol=tolerance, max_iter=1000,
            solver="irls-cd", copy_X=False, P1=data.factors if self.problem.free else "identity",
        )  # fmt: skip
        weight = data.weight if self.problem.weighted else None
        _quietly(model, data.X, data.y, **({} if weight is None else {"sample_weight": weight}))
        return np.asarray(model.intercept_path_), np.asarray(model.coef_path_)


class Celer(Solver):
    """celer: working sets with dual extrapolation; its paths have no intercept."""

    name, package, losses = "celer", "celer", ("squared",)
    groups = True
    tolerances = (1e-3, 1e-4, 1e-6, 1e-8, 1e-10)

    def path(self, data: Data, tolerance: float) -> Fitted:
        from celer import celer_path

        # The columns have mean zero: the intercept is the mean of the targets.
        shift = float(data.y.mean())
        settings: dict[str, Any] = {"alphas": data.alphas, "tol": tolerance, "max_iter": 1000}
        size = self.problem.group
        if size > 1:
            settings |= {"groups": size, "weights": np.ones(self.problem.p // size)}
        kind = "grouplasso" if size > 1 else "lasso"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = celer_path(data.X, data.y - shift, kind, **settings)
        return np.full(data.alphas.size, shift), np.asarray(found[1]).T

    @classmethod
    def can(cls, problem: PathProblem) -> bool:
        """Its columns must have mean zero: that holds for all rows."""
        return not problem.folds


class Liblinear(Solver):
    """scikit-learn's liblinear, alpha by alpha; it penalizes the intercept too."""

    name, package, losses = "liblinear", "sklearn", ("logistic",)
    tolerances = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    sparse = True

    def path(self, data: Data, tolerance: float) -> Fitted:
        from sklearn.linear_model import LogisticRegression

        intercepts, coefs = [], []
        for alpha in data.alphas:
            model = LogisticRegression(
                l1_ratio=1, C=1.0 / (len(data.y) * alpha), solver="liblinear", tol=tolerance,
                intercept_scaling=1000.0, max_iter=10_000,
            )  # fmt: skip
            _quietly(model, data.X, data.y)
            coefs.append(model.coef_[0])
            intercepts.append(model.intercept_[0])
        return np.array(intercepts), np.array(coefs)


class Scikit(Solver):
    """scikit-learn's coordinate descent; its paths have no intercept."""

    name, package, losses = "scikit-learn", "sklearn", ("squared",)

    def path(self, data: Data, tolerance: float) -> Fitted:
        from sklearn.linear_model import lasso_path

        mean = data.X.mean(axis=0)
        shift = float(data.y.mean())
        X = np.asfortranarray(data.X - mean)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = lasso_path(
                X, data.y - shift, alphas=data.alphas, tol=tolerance, max_iter=100_000
            )
        coefs = np.asarray(found[1]).T
        return shift - coefs @ mean, coefs


def _quietly(model: Any, X: Array, y: Any, **settings: Any) -> None:
    """Fit without warnings: the accuracy is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **settings)


def _complete(intercepts: Any, coefs: Array, data: Data) -> Fitted:
    """Return a path; raise where the package ended it early."""
    if len(coefs) != data.alphas.size:
        raise RuntimeError(f"ended its path after {len(coefs)} of {data.alphas.size} alphas")
    if intercepts is None or np.size(intercepts) == 0:
        intercepts = np.zeros(len(coefs))
    return np.asarray(intercepts, dtype=np.float64), coefs


SOLVERS: tuple[type[Solver], ...] = (
    Atomlearn, Pybiglasso, Glmnet, Adelie, Skglm, Glum, Celer, Liblinear, Scikit,
)  # fmt: skip
