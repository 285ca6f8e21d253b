"""Units, orders and repetitions of data change no selection, and an answer only in its units."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    AtomicSurvivalCV,
    FeatureGenerator,
    KnockoffSelector,
    SparseLowRank,
    SparsePCA,
    StabilitySelector,
    losses,
    norms,
)
from atomlearn.losses import survival_target
from atomlearn.testing.cases import each

RNG = np.random.default_rng(5)
N, P = 60, 8
#: Numbers that float32 holds.
X = RNG.standard_normal((N, P)).astype(np.float32).astype(float)
SIGNAL = X[:, :3] @ np.array([3.0, -2.0, 1.0])
Y = SIGNAL + RNG.standard_normal(N)
LABELS = np.where(SIGNAL + 2.0 * RNG.standard_normal(N) > 0.5, "yes", "no")
TIMES = survival_target(RNG.random(N) < 0.7, RNG.exponential(np.exp(-0.4 * SIGNAL)))
GROUPS = [[0, 1], [2, 3], [4, 5], [6, 7]]
#: y -> a y + b.
UNITS = [
    (1e6, 3e8), (1e-6, -0.1), (-2.0, 0.0), (1e-12, 1e-10), (1e12, 1e15), (1e-70, 0.0),
    (1e70, 1e71), (1e-130, 0.0), (1e-150, 1e-149), (1e150, 0.0),
]  # fmt: skip
SPLITS = [
    (np.arange(N)[np.arange(N) % 4 != k], np.arange(N)[np.arange(N) % 4 == k]) for k in range(4)
]
TOL = 1e-10

Made = Callable[[float], Any]
#: What draws rows, or folds of them, by their places.
DRAWN = ("stability", "knockoffs", "generation, any C")
#: Regressors by the factor of the targets, on which penalties may depend.
REGRESSORS: dict[str, Made] = {
    "lasso": lambda a: AtomicRegressor(alpha=0.3 * abs(a), tol=TOL),
    "groups": lambda a: AtomicRegressor(norms.Groups(GROUPS), alpha=0.3 * abs(a), tol=TOL),
    "ksupport": lambda a: AtomicRegressor(norms.KSupport(3), alpha=0.1, form="squared", tol=TOL),
    "ball": lambda a: AtomicRegressor(form="constrained", radius=2.0 * abs(a), tol=TOL),
    "latent": lambda a: AtomicRegressor(
        norms.LatentGroups([[0, 1, 2], [2, 3, 4], [4, 5, 6, 7]]), alpha=0.3 * abs(a), tol=TOL
    ),
    "free": lambda a: AtomicRegressor(alpha=0.3 * abs(a), unpenalized=[3], tol=TOL),
    "huber": lambda a: AtomicRegressor(
        loss=losses.Huber(abs(a)), alpha=0.2 * abs(a), tol=TOL
    ),
    "median": lambda a: AtomicRegressor(loss="quantile", alpha=0.1, tol=1e-8),
    "relaxed": lambda a: AtomicRegressor(alpha=0.3 * abs(a), relax=0.5, tol=TOL),
    "CV": lambda a: AtomicRegressorCV(n_alphas=8, cv=SPLITS, tol=TOL),
    "CV, k": lambda a: AtomicRegressorCV("ksupport", n_alphas=6, cv=SPLITS, tol=TOL),
    "CV, ball": lambda a: AtomicRegressorCV(form="constrained", n_alphas=6, cv=SPLITS, tol=TOL),
    "generation": lambda a: FeatureGenerator(3, C=0.3, loss="squared", tol=1e-9, standardize=True),
    "generation, any C": lambda a: FeatureGenerator(3, loss="squared", tol=1e-9, standardize=True),
    "stability": lambda a: StabilitySelector(n_resamples=8, random_state=0),
    "knockoffs": lambda a: KnockoffSelector(fdr=0.5, random_state=0, n_alphas=8),
}  # fmt: skip
CLASSIFIERS: dict[str, Made] = {
    "logistic": lambda a: AtomicClassifier(alpha=0.03, tol=TOL),
    "hinge": lambda a: AtomicClassifier(alpha=0.03, loss="squared_hinge", tol=TOL),
    "CV": lambda a: AtomicClassifierCV(n_alphas=8, cv=SPLITS, tol=TOL),
    "generation": lambda a: FeatureGenerator(3, C=0.3, tol=1e-9, standardize=True),
}
SURVIVAL: dict[str, Made] = {
    "Cox": lambda a: AtomicSurvival(alpha=0.03, ties="breslow", tol=TOL),
    "CV": lambda a: AtomicSurvivalCV(n_alphas=8, cv=SPLITS, ties="breslow", tol=TOL),
}
ALL = [
    *(("regression", name) for name in REGRESSORS),
    *(("classification", name) for name in CLASSIFIERS),
    *(("survival", name) for name in SURVIVAL),
]
TARGETS: dict[str, Any] = {"regression": Y, "classification": LABELS, "survival": TIMES}
MADE = {"regression": REGRESSORS, "classification": CLASSIFIERS, "survival": SURVIVAL}


def fitted(task: str, name: str, X: Any, y: Any, unit: float = 1.0, **more: Any) -> Any:
    model = MADE[task][name](unit)
    changed = more.pop("set_params", {})
    with warnings.catch_warnings(action="ignore"):
        return model.set_params(**changed).fit(X, y, **more)


def support(model: Any) -> Any:
    return np.ravel(model.coef_) != 0 if hasattr(model, "coef_") else model.get_support()


def same(
    one: Any, other: Any, unit: Any = 1.0, order: Any = slice(None), rtol: float = 2e-4
) -> None:
    """Compare selections, and coefficients where there are any: ``other`` in its units."""
    np.testing.assert_array_equal(support(one)[order], support(other))
    if hasattr(one, "coef_"):
        w = np.ravel(one.coef_)[order]
        found = np.ravel(other.coef_) / unit
        assert_allclose(found, w, rtol=rtol, atol=rtol * np.abs(w).max())


@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_in_other_units(name: str) -> None:
    plain, n_refused = fitted("regression", name, X, Y), 0
    for a, b in UNITS:
        try:
            other = fitted("regression", name, X, a * Y + b, a)
        except ValueError as error:
            said = str(error)
        else:
            # Digits that a y + b has lost are no part of the targets any more.
            lost = 1e-15 * (abs(a) * 10.0 + abs(b)) / abs(a)
            same(plain, other, a, rtol=2e-4 + 100.0 * lost)
            continue
        n_refused += 1
        assert "\n" not in said, said
        assert "for float64" in said, said
        assert not 1e-140 < abs(a) < 1e75, (a, b, said)
    assert n_refused <= 3


@pytest.mark.parametrize(("task", "name"), ALL)
def test_rows_and_columns_in_another_order(task: str, name: str) -> None:
    y, order = TARGETS[task], np.random.default_rng(0).permutation(N)
    plain = fitted(task, name, X, y)
    back = np.argsort(order)
    splits = [(back[train], back[test]) for train, test in SPLITS]
    changed = {"cv": splits} if "CV" in name else {}
    if name not in DRAWN:
        same(plain, fitted(task, name, X[order], y[order], set_params=changed))
    if name in ("knockoffs", "groups", "latent", "free"):  # columns are named by their places
        return
    columns = np.random.default_rng(1).permutation(P)
    same(plain, fitted(task, name, X[:, columns], y), order=columns)


@pytest.mark.parametrize(("task", "name"), ALL)
def test_single_precision_of_the_same_numbers(task: str, name: str) -> None:
    plain, single = (fitted(task, name, data, TARGETS[task]) for data in (X, X.astype(np.float32)))
    same(plain, single)


@pytest.mark.parametrize(("task", "name"), ALL)
def test_a_weight_of_two_is_a_row_twice(task: str, name: str) -> None:
    y, twice = TARGETS[task], np.arange(N) % 3 == 0
    rows = np.sort(np.append(np.arange(N), np.flatnonzero(twice)))
    if name in DRAWN:
        return
    folds = [tuple(np.flatnonzero(np.isin(rows, part)) for part in split) for split in SPLITS]
    changed = {"cv": folds} if "CV" in name else {}
    weighted = fitted(task, name, X, y, sample_weight=1.0 + twice)
    same(weighted, fitted(task, name, X[rows], y[rows], set_params=changed))


@pytest.mark.parametrize(("task", "name"), [("regression", "lasso"), ("regression", "CV"),
                                        ("classification", "logistic"), ("survival", "Cox"),
                                        ("regression", "generation")])  # fmt: skip
@each("reach", [3.0, 12.0, 100.0])
def test_columns_in_other_units(task: str, name: str, reach: float) -> None:
    """With the weights of the norm in the same units; generation standardizes by itself."""
    units = 10.0 ** np.random.default_rng(2).uniform(-reach, reach, P)
    plain = fitted(task, name, X, TARGETS[task])
    changed: dict[str, Any] = {"norms" if name == "CV" else "norm": norms.L1(weights=units)}
    changed = {} if name == "generation" else changed
    same(plain, fitted(task, name, X * units, TARGETS[task], set_params=changed), 1.0 / units)


@pytest.mark.parametrize("made", [SparseLowRank, lambda: SparsePCA(2, tol=1e-6)])
@each("unit", [1e-30, 1e30])
def test_matrices_in_other_units(made: Callable[[], Any], unit: float) -> None:
    data = X[:20] + 3.0 * np.outer(X[:20, 0], X[0])
    plain, other = made().fit(data), made().fit(unit * data)
    name = "low_rank_" if hasattr(plain, "low_rank_") else "components_"
    size = unit if name == "low_rank_" else 1.0
    assert_allclose(getattr(other, name) / size, getattr(plain, name), rtol=1e-3, atol=1e-3)
