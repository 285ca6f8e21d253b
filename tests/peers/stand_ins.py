"""Subclasses of the estimators of other packages whose ``fit`` is ours.

A stand-in keeps the constructor, the parameters and the methods of the original. Its ``fit`` reads
the parameters, fits one of our estimators, and sets the attributes that the original sets.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    losses,
    norms,
)
from atomlearn.losses import survival_target

#: Tighter than most of the tests ask for; ``tol`` of the others has another meaning.
TOL = 1e-11


def shape_of(X: Any) -> tuple[int, ...]:
    """Return the shape of an array, a sparse matrix, or anything like an array."""
    shape: tuple[int, ...] = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return shape


def fitted(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit, whatever is proved: the tests compare the numbers themselves."""
    weight = (
        None
        if sample_weight is None
        else np.broadcast_to(np.asarray(sample_weight), shape_of(X)[:1])
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(X, y, weight)


def tolerance(theirs: float) -> float:
    """Return the relative gap for an error ``theirs`` of coefficients, which is the square."""
    return max(min(TOL, theirs**2), 1e-15)


class Stand:
    """What the fits have in common."""

    def _took(self: Any, model: Any) -> Any:
        """Set the attributes of a fitted model of ours, and keep the model."""
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.n_iter_, self.n_features_in_ = model.n_iter_, model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.dual_gap_ = model.gap_
        self.our_model_ = model
        return self

    def _norm(self: Any, n_features: int) -> Any:
        """Return our norm of their parameters."""
        bounds = {"lower": 0.0} if getattr(self, "positive", False) else {}
        weights = getattr(self, "weights", None)
        if "MultiTask" in type(self).__name__:
            return "rows"
        if hasattr(self, "groups"):
            norm: Any = norms.Groups(lists_of(self.groups, n_features), weights=weights)
            return norms.Nonnegative(norm) if bounds else norm
        if weights is None and not bounds:
            return "l1"
        return norms.L1(weights=weights, **bounds)


def lists_of(groups: Any, n_features: int) -> list[Any]:
    """Return groups as lists: of one size, of consecutive sizes, or lists already."""
    if np.ndim(groups) == 0:
        return np.split(np.arange(n_features), n_features // int(groups))
    if all(np.ndim(group) == 0 for group in groups):
        return np.split(np.arange(n_features), np.cumsum(groups)[:-1])
    return list(groups)


class Net(Stand):
    """ElasticNet and Lasso, also of several targets and of groups."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        model = AtomicRegressor(
            self._norm(shape_of(X)[-1]),
            self.alpha,
            l1_ratio=getattr(self, "l1_ratio", 1.0),
            fit_intercept=self.fit_intercept,
            tol=tolerance(self.tol),
        )
        self._took(fitted(model, X, y, sample_weight))
        if "MultiTask" in type(self).__name__ and np.ndim(y) == 2:
            self.coef_ = self.coef_.reshape(np.shape(y)[1], -1)
        return self


class NetCV(Stand):
    """ElasticNetCV and LassoCV, also of several targets."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "tol": TOL}
        counted = isinstance(self.alphas, int | str) or self.alphas is None
        if counted:
            number = self.alphas if isinstance(self.alphas, int) else 100
            options |= {"n_alphas": getattr(self, "n_alphas", number), "alpha_ratio": self.eps}
            if isinstance(options["n_alphas"], str):
                options["n_alphas"] = number
        else:
            options["alphas"] = self.alphas
        ratio = getattr(self, "l1_ratio", 1.0)
        norm = self._norm(shape_of(X)[-1])
        model = AtomicRegressorCV(norm, l1_ratio=ratio, cv=self.cv or 5, **options)
        self._took(fitted(model, X, y, sample_weight))
        self.alpha_, self.l1_ratio_, self.alphas_ = model.alpha_, model.l1_ratio_, model.alphas_
        results = model.cv_results_
        splits = [results[key] for key in results if key.startswith("split")]
        self.mse_path_ = -2.0 * np.transpose(splits).reshape(*self.alphas_.shape, -1)
        if not counted:
            self.alphas_ = np.ravel(self.alphas_)[: len(self.alphas)]
        return self


class Classes(Stand):
    """LogisticRegression, and the sparse one of skglm."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        weight = compute_sample_weight(getattr(self, "class_weight", None), y)
        weight = weight if sample_weight is None else weight * sample_weight
        penalty = getattr(self, "penalty", None)
        ratio = {"l1": 1.0, "l2": 0.0}.get(penalty, getattr(self, "l1_ratio", 1.0))
        alpha = self.alpha if hasattr(self, "alpha") else 1.0 / (self.C * weight.sum())
        model = AtomicClassifier(
            alpha=alpha,
            l1_ratio=ratio,
            fit_intercept=self.fit_intercept,
            class_weight=getattr(self, "class_weight", None),
            multi_class="multinomial",
            tol=1e-9,
        )
        self._took(fitted(model, X, y, sample_weight))
        self.classes_ = model.classes_
        self.n_iter_ = np.array([model.n_iter_])
        return self


class Quantile(Stand):
    """QuantileRegressor."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        free = {"unpenalized": range(shape_of(X)[-1])} if self.alpha == 0 else {}
        model = AtomicRegressor(
            alpha=self.alpha or 1.0,
            loss=losses.Quantile(self.quantile),
            fit_intercept=self.fit_intercept,
            tol=1e-9,
            **free,
        )
        return self._took(fitted(model, X, y, sample_weight))


class Generalized(Stand):
    """PoissonRegressor, GammaRegressor and TweedieRegressor with a log link: ridge penalty."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(type(self).__name__)
        power = self.power if power is None else power
        loss: Any = {0: "squared", 1: "poisson", 2: "gamma"}.get(power)
        free = {"unpenalized": range(shape_of(X)[-1])} if self.alpha == 0 else {}
        model = AtomicRegressor(
            alpha=self.alpha or 1.0,
            l1_ratio=0.0,
            loss=losses.Tweedie(power) if loss is None else loss,
            fit_intercept=self.fit_intercept,
            tol=1e-14,
            **free,
        )
        self._base_loss = self._get_loss()
        return self._took(fitted(model, X, y, sample_weight))


class Hazards(Stand):
    """skglm's CoxEstimator; its y has a column of times and one of events."""

    def fit(self: Any, X: Any, y: Any) -> Any:
        events = np.ones(len(y)) if np.ndim(y) == 1 else y[:, 1]
        target = survival_target(events == 1, np.ravel(y) if np.ndim(y) == 1 else y[:, 0])
        model = AtomicSurvival(
            alpha=self.alpha, l1_ratio=self.l1_ratio, ties=self.method, tol=tolerance(self.tol)
        )
        self._took(fitted(model, X, target))
        self.intercept_ = 0.0
        return self


#: For each module of others, the stand-in of each of its classes.
OF_MODULES: dict[str, dict[type[Stand], tuple[str, ...]]] = {
    "sklearn.linear_model": {
        Net: ("ElasticNet", "Lasso", "MultiTaskElasticNet", "MultiTaskLasso"),
        NetCV: ("ElasticNetCV", "LassoCV", "MultiTaskElasticNetCV", "MultiTaskLassoCV"),
        Classes: ("LogisticRegression",),
        Quantile: ("QuantileRegressor",),
        Generalized: ("PoissonRegressor", "GammaRegressor", "TweedieRegressor"),
    },
    "skglm.estimators": {
        Net: ("Lasso", "WeightedLasso", "ElasticNet", "MultiTaskLasso", "GroupLasso"),
        Classes: ("SparseLogisticRegression",),
        Hazards: ("CoxEstimator",),
    },
    "celer": {
        Net: ("Lasso", "ElasticNet", "MultiTaskLasso", "GroupLasso"),
        NetCV: ("LassoCV", "ElasticNetCV", "MultiTaskLassoCV", "GroupLassoCV"),
        Classes: ("LogisticRegression",),
    },
}


def stand_ins(module: ModuleType) -> dict[str, type]:
    """Return a subclass of each class of a module, whose fit is ours."""
    classes = OF_MODULES[module.__name__].items()
    return {
        name: type(name, (ours, getattr(module, name)), {})
        for ours, names in classes
        for name in names
    }


def fit_by_ours(module: ModuleType) -> None:
    """Replace the fit of each class of a module by ours."""
    for ours, names in OF_MODULES[module.__name__].items():
        for name in names:
            for method in ("_took", "_norm", "fit"):
                setattr(getattr(module, name), method, getattr(ours, method))
