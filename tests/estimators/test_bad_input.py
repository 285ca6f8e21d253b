"""Bad input, through ``solve`` and through estimators: an error that says what to do, no crash.

Each message names the object, what was received, and what is expected or the way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    norms,
    solve,
)
from atomlearn.core import WarmStart
from atomlearn.solvers import stopping

N, P = 12, 5
X = np.random.default_rng(0).standard_normal((N, P))
Y = np.random.default_rng(1).standard_normal(N)
LABELS = np.where(X[:, 0] > 0, 1.0, -1.0)

Fit = Callable[..., Any]


def by_solve(X: Any, y: Any, weight: Any = None) -> Any:
    return solve(X, y, alpha=0.1, sample_weight=weight)


def by_logistic_solve(X: Any, y: Any, weight: Any = None) -> Any:
    return solve(X, y, loss="logistic", alpha=0.1, sample_weight=weight)


def by_regressor(X: Any, y: Any, weight: Any = None) -> Any:
    return AtomicRegressor().fit(X, y, weight)


def by_classifier(X: Any, y: Any, weight: Any = None) -> Any:
    return AtomicClassifier().fit(X, y, weight)


def by_classifier_cv(X: Any, y: Any, weight: Any = None) -> Any:
    return AtomicClassifierCV(n_alphas=2, cv=2).fit(X, y, weight)


def by_generator(X: Any, y: Any, weight: Any = None) -> Any:
    return FeatureGenerator(2, 1, loss="logistic", standardize=True).fit(X, y, weight)


OF_NUMBERS = [by_solve, by_regressor]
OF_LABELS = [by_logistic_solve, by_classifier, by_classifier_cv, by_generator]
EVERY = OF_NUMBERS + OF_LABELS


def refused(fit: Fit, message: str, *data: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        fit(*data)
    text = str(caught.value)
    assert re.search(message, text, re.DOTALL), text
    assert len(text) < 1200, "a message is no dump of the data"


def with_entry(array: Any, place: Any, value: float) -> Any:
    changed = np.array(array, dtype=np.float64)
    changed[place] = value
    return changed


def test_good_input_is_fitted() -> None:
    """What the tests below break is sound before; labels are numbers, too."""
    for fit in EVERY:
        fit(X, LABELS, np.ones(N))
        fit(sparse.csr_array(X), LABELS)


# --- X ---------------------------------------------------------------------------------------

BAD_X = {
    "NaN": (with_entry(X, (3, 2), np.nan), "X contains NaN.*[Ii]mpute"),
    "infinity": (with_entry(X, (3, 2), -np.inf), "X contains infinity"),
    "sparse NaN": (sparse.csr_array(with_entry(X, (3, 2), np.nan)), "X contains NaN"),
    "sparse infinity": (sparse.csc_array(with_entry(X, (3, 2), np.inf)), "X contains infinity"),
    "pandas infinity": (pd.DataFrame(with_entry(X, (3, 2), np.inf)), "X contains infinity"),
    "one-dimensional": (X[:, 0], "(2-d|2D).*reshape"),
    "three-dimensional": (X[None], "3"),
    "no rows": (X[:0], r"0 sample.*minimum of 1"),
    "no columns": (X[:, :0], r"0 feature.*minimum of 1"),
    "too few rows": (X[:5], "X has 5 rows and y has 12 targets.*same samples"),
    "strings": (np.full((N, P), "a"), "X must hold numbers.*encode"),
    "pandas strings": (pd.DataFrame({"a": [*map(hex, range(N))], "b": range(N)}), "'a'.*encode"),
    "pyarrow strings": (pa.table({"a": [*map(hex, range(N))]}), "'a'.*encode"),
    "complex": (X + 1j, "Complex data not supported"),
    "masked": (np.ma.masked_array(X, X > 1), r"X has masked entries.*filled"),
    "days": (np.round(X).astype("M8[D]"), "X must hold numbers, got dtype datetime64"),
    "a number beyond float64": (np.full((N, P), 10**400), "X must hold numbers.*|dtype object"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous|same length"),
}


#: Tables that estimators encode, and functions refuse.
ONLY_ENCODED = {
    "pandas NaN": (pd.DataFrame(with_entry(X, (3, 2), np.nan)), "X contains NaN"),
    "polars null": (pl.DataFrame({"a": [None, *range(N - 1)]}), "X contains NaN"),
    "pandas days": (pd.DataFrame({"a": pd.date_range("2020", periods=N)}), "'a' .Datetime"),
    "polars days": (pl.DataFrame({"a": pd.date_range("2020", periods=N)}), "'a' .Datetime"),
}


@pytest.mark.parametrize("name", BAD_X)
def test_bad_x(name: str) -> None:
    for fit in EVERY:
        refused(fit, BAD_X[name][1], BAD_X[name][0], LABELS)


@pytest.mark.parametrize("name", ONLY_ENCODED)
def test_only_estimators_encode_tables(name: str) -> None:
    table, message = ONLY_ENCODED[name]
    refused(by_solve, message, table, LABELS)
    assert by_regressor(table, LABELS).n_features_in_ == table.shape[1]


def index_too_large(m: Any) -> None:
    m.indices[2] = 10**6


def pointer_beyond(m: Any) -> None:
    m.indptr[-1] = 10**6


def test_broken_sparse() -> None:
    """Every door looks, also where entries are converted first; tests/core/data has all damages.

    SciPy itself would follow triplets into foreign memory on the way to CSR.
    """
    numbers = np.arange(N * P).reshape(N, P) % 3
    index, pointer = sparse.csr_array(numbers * 1.0), sparse.csc_matrix(numbers)
    index_too_large(index)
    pointer_beyond(pointer)
    beyond, negative = sparse.coo_array(X), sparse.coo_array(X)
    beyond.coords[0][2], negative.coords[0][2] = 10**6, -1
    for matrix in (index, pointer, beyond, negative):
        for fit in EVERY:
            refused(fit, f"{matrix.format.upper()} array.*rebuild it", matrix, LABELS)


# --- y ---------------------------------------------------------------------------------------

BAD_Y = {
    "NaN": (with_entry(LABELS, 3, np.nan), "y .*NaN.*(drop|Drop)"),
    "infinity": (with_entry(LABELS, 3, np.inf), "y .*infin.*(drop|Drop)"),
    "short": (LABELS[:5], "X has 12 rows and y has 5 targets.*same samples"),
    "empty": (LABELS[:0], "y is empty|y has 0 targets"),
    "two columns": (
        np.column_stack([LABELS, LABELS]),
        "y (must|should) be .*one target per sample",
    ),
    "scalar": (1.0, "y (must|should) be .*one target per sample"),
    "None": (None, "y must be one-dimensional|requires y to be passed"),
    "complex": (LABELS + 1j, r"y is complex.*y\.real"),
    "masked": (np.ma.masked_array(LABELS, LABELS * X[:, 1] > 1), "y has masked entries.*filled"),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_y(name: str) -> None:
    # Two targets of one problem over a matrix: tests/estimators/test_matrix_estimators.
    several = (by_solve, by_logistic_solve, by_regressor)
    for fit in EVERY:
        if name != "two columns" or fit not in several:
            refused(fit, BAD_Y[name][1], X, BAD_Y[name][0])


def test_bad_targets_of_several_tasks() -> None:
    for several, message in (
        (np.full((N, 2), np.nan), "y contains NaN"),
        (np.ones((5, 2)), "X has 12 rows and y has 5 targets.*same samples"),
        (np.ones((N, 2)) * 1j, "Complex data not supported"),
        (np.full((N, 2), "a"), "dtype='numeric'|could not convert|must hold numbers"),
    ):
        refused(by_regressor, message, X, several)


def test_strings_are_no_numbers() -> None:
    for fit in OF_NUMBERS:
        refused(fit, "y must hold numbers", X, np.array(list("abcdefghijkl")))


def test_a_binary_loss_wants_two_labels() -> None:
    for y in (np.arange(N) % 3, Y, np.arange(N) % 2 + 1):
        refused(by_logistic_solve, r"two labels -1 and \+1.*found.*np\.where", X, y)


@pytest.mark.parametrize("labels", [["a", 1], ["a", None]])
def test_labels_that_cannot_be_sorted(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"labels that cannot be compared .* y\.astype\(str\)"):
        AtomicClassifier().fit(np.ones((4, 1)), np.array(labels * 2, dtype=object))


def test_estimators_want_classes() -> None:
    for fit in (by_classifier, by_classifier_cv, by_generator):
        refused(fit, "continuous", X, Y)
        refused(fit, "at least 2 classes.*only 1 class", X, np.ones(N))


# --- weights ---------------------------------------------------------------------------------

BAD_WEIGHT = {
    "negative": (with_entry(np.ones(N), 2, -1), r"sample_weight\[2\] is -1.*>= 0"),
    "all zero": (np.zeros(N), "sample_weight is zero for every sample.*> 0"),
    "NaN": (with_entry(np.ones(N), 2, np.nan), r"sample_weight\[2\] is nan.*finite"),
    "infinity": (with_entry(np.ones(N), 2, np.inf), r"sample_weight\[2\] is inf.*finite"),
    "short": (np.ones(5), r"sample_weight must have shape \(12,\).*got \(5,\)"),
    "two columns": (np.ones((N, 2)), r"sample_weight must have shape \(12,\).*got \(12, 2\)"),
    "masked": (np.ma.masked_array(np.ones(N), X[:, 0] > 0), "sample_weight has masked entries"),
    "strings": (["a"] * N, "sample_weight must be an array of numbers"),
    "complex": (np.ones(N) * 1j, "sample_weight must be .*complex.*real part"),
}


@pytest.mark.parametrize("name", BAD_WEIGHT)
def test_bad_weight(name: str) -> None:
    for fit in EVERY:
        refused(fit, BAD_WEIGHT[name][1], X, LABELS, BAD_WEIGHT[name][0])


# --- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 2.5, np.inf, "3", True])
def test_k(k: Any) -> None:
    expected = "(k|batch) must be (at least 1|a whole number)"
    refused(lambda: solve(X, Y, norm=norms.KSupport(k), alpha=0.1), expected)
    refused(lambda: AtomicRegressor(norms.KSupport(k)).fit(X, Y), expected)
    refused(lambda: FeatureGenerator(2, batch=k, standardize=True).fit(X, LABELS), expected)


@pytest.mark.parametrize("amount", [0, np.nan, np.inf, "1", None, True, [1.0]])
def test_amounts(amount: Any) -> None:
    of_solve = "must be (a positive number|positive and finite).*got|needs (alpha|radius)=, a posi"
    refused(lambda: solve(X, Y, alpha=amount), of_solve)
    refused(lambda: solve(X, Y, alpha=amount, form="squared"), of_solve)
    refused(lambda: solve(X, Y, radius=amount, form="constrained"), of_solve)
    refused(lambda: solve(X, Y, alpha=0.1, tol=amount), "tol must be .*positive.*got")
    refused(lambda: AtomicRegressor(alpha=amount).fit(X, Y), "alpha must be .*positive.*got")
    refused(lambda: AtomicRegressor(tol=amount).fit(X, Y), "tol must be .*positive.*got")
    if amount is not None:
        refused(
            lambda: FeatureGenerator(2, C=amount, standardize=True).fit(X, LABELS),
            "C must be .*positive.*got",
        )
    model = AtomicRegressor(form="constrained", radius=amount)
    refused(lambda: model.fit(X, Y), "radius must be .*positive.*got")
    if amount is not True:
        search = AtomicRegressorCV(alphas=[1.0, amount], cv=2)
        refused(lambda: search.fit(X, Y), "alphas must .*positive")


@pytest.mark.parametrize("value", [-1.5, np.nan, "1", None, True])
def test_l1_ratio_and_max_iter(value: Any) -> None:
    refused(lambda: solve(X, Y, alpha=0.1, l1_ratio=value), "l1_ratio must be .*got")
    refused(lambda: solve(X, Y, alpha=0.1, max_iter=value), "max_iter must be a whole .*got")
    refused(lambda: AtomicRegressor(max_iter=value).fit(X, Y), "max_iter must be .*got")


@pytest.mark.parametrize("thing", ["bad", 3])
def test_objects(thing: Any) -> None:
    for name in ("loss", "norm", "form", "solver", "stop", "warm_start"):
        expected = f"{name} .*(must be|unknown)"
        refused(lambda name=name: solve(X, Y, alpha=0.1, **{name: thing}), expected)
    refused(lambda: solve(X, Y, alpha=0.1, fit_intercept=thing), "True or False, got")
    refused(lambda: AtomicRegressor(solver=thing).fit(X, Y), "solver must be")


def test_rules_are_joined_with_rules() -> None:
    refused(lambda: stopping.Seconds(3.0) | 5, "stop must be a StoppingRule.*got int")


BAD_WARM = [
    (WarmStart(np.array([7]), np.ones(1)), r"columns must be in \[0, 5\)"),
    (WarmStart(np.array([-1]), np.ones(1)), r"columns must be in \[0, 5\)"),
    (WarmStart(np.array([1, 1]), np.ones(2)), "columns must be distinct"),
    (WarmStart(np.array([1, 2]), np.ones(1)), "vectors of one length"),
    (WarmStart(np.array([1]), np.array([np.nan])), "must be finite"),
    (WarmStart(np.array([1]), np.ones(1), np.inf), "must be finite"),
    (WarmStart(np.array([True]), np.ones(1)), "whole numbers.*flatnonzero"),
    (WarmStart(np.array([1]), np.array(["a"])), "weights must be real numbers"),
]


def test_warm_starts() -> None:
    for warm, message in BAD_WARM:
        refused(
            lambda warm=warm: solve(X, Y, alpha=0.1, warm_start=warm),
            "warm_start: .*" + message,
        )
