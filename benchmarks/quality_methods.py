"""The methods of benchmarks/quality.py, ours and others, each choosing its own parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, FeatureGenerator, norms
from benchmarks.quality_data import Table

Array = Any


@dataclass(frozen=True)
class Model:
    """decide : scores of rows, the larger the likelier class 1; columns : those of X in use, None
    where they are not columns of X; size : how many columns or terms are in use."""

    decide: Callable[[Array], Array]
    classes: bool
    columns: Array | None
    size: int

    def score(self, X: Array, y: Array) -> float:
        """Return the area under the ROC curve, or R^2."""
        return float((roc_auc_score if self.classes else r2_score)(y, self.decide(X)))


@dataclass(frozen=True)
class Method:
    """A method by name; suits : the data it is for."""

    name: str
    make: Callable[[Table, Array, Array], Model]
    suits: Callable[[Table], bool] = lambda data: True

    def fit(self, data: Table, X: Array, y: Array) -> Model:
        """Return the model of these rows."""
        return self.make(data, X, y)


def searched(
    candidates: Callable[[Table], list[Any]], form: str = "penalized", **settings: Any
) -> Callable[[Table, Array, Array], Model]:
    """Return the search over norms and levels by 5-fold cross-validation."""

    def fit(data: Table, X: Array, y: Array) -> Model:
        kind = AtomicClassifierCV if data.classes else AtomicRegressorCV
        given = {"form": form, "n_alphas": 10, "tol": 1e-4, "time_limit": 30.0, **settings}
        model = kind(candidates(data), **given).fit(X, y)
        decide = model.decision_function if data.classes else model.predict
        linear = settings.get("features", "linear") == "linear"
        columns = np.flatnonzero(np.asarray(model.coef_).ravel()) if linear else None
        size = columns.size if columns is not None else len(np.asarray(model.selected_))
        return Model(decide, data.classes, columns, size)

    return fit


def generated(**settings: Any) -> Callable[[Table, Array, Array], Model]:
    """Return feature generation with the number of features by cross-validation."""

    def fit(data: Table, X: Array, y: Array) -> Model:
        loss = "logistic" if data.classes else "squared"
        model = FeatureGenerator("auto", loss=loss, standardize=False, **settings).fit(X, y)
        decide = model.decision_function if data.classes else model.predict
        columns = np.sort(model.selected_) if not settings else None
        return Model(decide, data.classes, columns, int(model.n_selected_))

    return fit


def hierarchical(data: Table, X: Array, y: Array) -> Model:
    """Products of two features, only beside their main effects."""
    expand = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit(X)
    center, scale = (f(expand.transform(X), axis=0) for f in (np.mean, np.std))

    def products(X: Array) -> Array:
        return (expand.transform(X) - center) / np.where(scale > 0, scale, 1.0)

    inner = searched(lambda _: [norms.Hierarchy("weak")])(data, products(X), y)
    return Model(lambda X: inner.decide(products(X)), data.classes, None, inner.size)


def best_subset(data: Table, X: Array, y: Array) -> Model:
    """abess, with its own cross-validation."""
    import abess

    kind = abess.LogisticRegression if data.classes else abess.LinearRegression
    varied = np.flatnonzero(X.std(axis=0) > 0)  # it refuses constant columns
    most = min(X.shape[0] // 3, varied.size, 60)
    model = kind(support_size=range(1, most + 1), cv=5, thread=1).fit(X[:, varied], y)
    coef, intercept = np.zeros(X.shape[1]), float(np.ravel(model.intercept_)[0])
    coef[varied] = np.ravel(model.coef_)
    columns = np.flatnonzero(coef)
    return Model(lambda X: X @ coef + intercept, data.classes, columns, columns.size)


def boosted(data: Table, X: Array, y: Array) -> Model:
    """EBM without products: a sum of curves, boosted."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if data.classes else ExplainableBoostingRegressor
    model = kind(interactions=0, outer_bags=4, n_jobs=1, random_state=0).fit(X, y)
    decide = (lambda X: model.predict_proba(X)[:, 1]) if data.classes else model.predict
    return Model(decide, data.classes, None, X.shape[1])


def peers(classifier: Any, regressor: Any) -> Callable[[Table, Array, Array], Model]:
    """Return a method of scikit-learn, which has all columns in use."""

    def fit(data: Table, X: Array, y: Array) -> Model:
        model = clone(classifier if data.classes else regressor).fit(X, y)
        decides = hasattr(model, "decision_function")
        decide = model.decision_function if decides else model.predict
        if data.classes and not decides:
            decide = lambda X: model.predict_proba(X)[:, 1]  # noqa: E731
        return Model(decide, data.classes, None, X.shape[1])

    return fit


STRENGTHS = np.geomspace(1e-1, 1e5, 13)


def ks(data: Table) -> list[int]:
    """Return the candidates for k."""
    return [k for k in (3, 20) if k <= data.X.shape[1]]


def few(data: Table) -> bool:
    """Whether there are few enough columns for curves and products of them all."""
    return data.X.shape[1] <= 20 and data.truth is None


METHODS = (
    Method("l1", searched(lambda data: ["l1"])),
    Method("elastic net", searched(lambda d: [norms.ElasticNetNorm(k) for k in ks(d)], "squared")),
    Method("k-support", searched(lambda d: [norms.KSupport(k) for k in ks(d)], "squared")),
    Method("k-support, k searched", searched(lambda data: ["ksupport"], "squared", n_alphas=20)),
    Method("generation", generated()),
    Method(
        "latent groups",
        searched(lambda d: [norms.LatentGroups(d.groups, "sqrt_size")]),
        lambda d: d.groups is not None,
    ),
    Method("hierarchy", hierarchical, few),
    Method("products, generated", generated(features="polynomial"), few),
    Method("curves", searched(lambda d: ["groups"], features="splines"), few),
    Method("steps", searched(lambda d: ["groups"], features="intersection"), few),
    Method("l1, relaxed", searched(lambda d: ["l1"], relax=(0.0, 0.5, 1.0))),
    Method("best subset (abess)", best_subset),
    Method("EBM", boosted, few),
    Method(
        "ridge",
        peers(
            LogisticRegressionCV(
                Cs=1 / STRENGTHS,
                cv=5,
                scoring="neg_log_loss",
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            ),
            RidgeCV(STRENGTHS),
        ),
    ),
    Method(
        "linear SVM",
        peers(
            GridSearchCV(LinearSVC(), {"C": 1 / STRENGTHS}, scoring="roc_auc"),
            # Its steps do not come to an end on targets far from one in size.
            TransformedTargetRegressor(
                GridSearchCV(LinearSVR(), {"C": 1 / STRENGTHS}, scoring="r2"),
                transformer=StandardScaler(),
            ),
        ),
    ),
    Method(
        "random forest",
        peers(
            RandomForestClassifier(300, random_state=0), RandomForestRegressor(300, random_state=0)
        ),
    ),
    Method(
        "gradient boosting",
        peers(
            HistGradientBoostingClassifier(random_state=0),
            HistGradientBoostingRegressor(random_state=0),
        ),
    ),
)
