"""Odd data through every kind of estimator: the answer for the same plain numbers, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicSurvival,
    FeatureGenerator,
    KnockoffSelector,
    MatrixCompletion,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    SparseLowRank,
    StabilitySelector,
)
from atomlearn.losses import survival_target

N, P = 40, 6
_RNG = np.random.default_rng(5)
#: Quarters, which half precision holds exactly.
X = np.round(_RNG.standard_normal((N, P)) * 4) / 4
NUMBERS = X[:, 0] - X[:, 1] + 0.3 * _RNG.standard_normal(N)
LABELS = (NUMBERS > 0).astype(int)
TIMES = survival_target(X[:, 2] < 1, np.exp(-NUMBERS))

#: What is fitted to which target, each with a way of its own to take X.
MODELS: dict[str, tuple[Any, Any]] = {
    "regressor": (AtomicRegressor(alpha=0.05), NUMBERS),
    "tasks": (AtomicRegressor("rows", alpha=0.05), np.column_stack([NUMBERS, -NUMBERS])),
    "classifier": (AtomicClassifier(), LABELS),
    "survival": (AtomicSurvival(alpha=0.05), TIMES),
    "generator": (FeatureGenerator(2, standardize=True), LABELS),
    "kernels": (MultipleKernelRegressor(rank=3), NUMBERS),
    "knockoffs": (KnockoffSelector(fdr=0.5, random_state=0), NUMBERS),
    "stability": (StabilitySelector(AtomicRegressor(alpha=0.05), 4, random_state=0), NUMBERS),
    "rank": (SparseLowRank(tol=1e-3), None),
    "completion": (MatrixCompletion(rank=2, standardize=True), None),
}
each_model = pytest.mark.parametrize("name", MODELS)


def answer(name: str, X: Any, y: Any = None, **given: Any) -> Any:
    """Return what a fresh model makes of the data."""
    model, target = MODELS[name]
    fitted = model.fit(X, target if y is None else y, **given)
    if hasattr(fitted, "get_support"):
        return fitted.get_support()
    return fitted.predict(X) if hasattr(fitted, "predict") else fitted.transform(X)


def unaligned(X: Any) -> Any:
    raw = np.frombuffer(b"-" + X.tobytes(), dtype=np.uint8)
    return raw[1:].view(np.float64).reshape(X.shape)


def repeated(X: Any) -> Any:
    """Return CSR whose entries come twice, as halves, the later columns first."""
    rows = sparse.csr_array(X[:, ::-1])
    places = (P - 1 - rows.indices).repeat(2)
    return sparse.csr_array((rows.data.repeat(2) / 2, places, 2 * rows.indptr), shape=X.shape)


DENSE: dict[str, Callable[[Any], Any]] = {
    "every second entry": lambda X: X.repeat(2, axis=0).repeat(2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "bytes swapped": lambda X: X.astype(">f8"),
    "unaligned": unaligned,
    "long double": lambda X: X.astype(np.longdouble),
    "objects": lambda X: X.astype(object),
    "a mask of nothing": np.ma.masked_array,
    "nullable": lambda X: pd.DataFrame(X).astype("Float64"),
    "rows in another order": lambda X: pd.DataFrame(X, index=np.arange(N)[::-1]),
}
SPARSE: dict[str, Callable[[Any], Any]] = {
    "repeated and unsorted": repeated,
    "long indices": lambda X: sparse.csr_array(
        (X.ravel(), np.tile(np.arange(P), N), np.arange(0, N * P + 1, P)), shape=X.shape
    ),
    "diagonals": sparse.dia_array,
}


@each_model
def test_the_container_of_numbers_does_not_matter(name: str) -> None:
    expected = answer(name, X)
    kinds = DENSE if name in ("knockoffs", "rank", "completion") else DENSE | SPARSE
    for kind, held in kinds.items():
        np.testing.assert_allclose(answer(name, held(X)), expected, atol=1e-5, err_msg=kind)


HIDDEN = np.ma.masked_array(X, X > 1)
DAYS = pd.date_range("2020", periods=N)
UNREADABLE: list[tuple[Any, str]] = [
    (HIDDEN, "X has masked entries"),
    (np.round(X).astype("M8[D]"), "X must hold numbers.*datetime64"),
]
DATED: list[tuple[Any, str]] = [
    (pd.DataFrame({"a": DAYS, "b": X[:, 0]}), "columns that are not.*'a'"),
    (pl.DataFrame({"a": DAYS, "b": X[:, 0]}), "columns that are not.*'a'"),
]
#: Models that do not encode the columns of a table.
ONLY_NUMBERS = ("rank", "completion")


@each_model
def test_numbers_that_nobody_meant_are_not_read(name: str) -> None:
    for data, message in UNREADABLE + DATED * (name in ONLY_NUMBERS):
        with pytest.raises((ValueError, TypeError), match=message) as caught:
            answer(name, data)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, (_, y) in MODELS.items() if y is not None])
def test_masked_targets_and_weights_are_not_read(name: str) -> None:
    target = MODELS[name][1]
    with pytest.raises(ValueError, match="y has masked entries"):
        answer(name, X, masked(target))
    if name != "knockoffs":
        with pytest.raises(ValueError, match="sample_weight has masked entries"):
            answer(name, X, sample_weight=np.ma.masked_array(np.ones(N), np.arange(N) == 3))


def masked(target: Any) -> Any:
    """Return the target with its last entry masked."""
    hidden = np.ma.masked_array(target)
    hidden[-1] = np.ma.masked
    return hidden


@pytest.mark.parametrize("name", ["classifier", "generator"])
def test_labels_as_objects(name: str) -> None:
    """Truth among objects, as a column with a gap once had it, is two labels; a mixture is none."""
    truth = np.array([bool(label) for label in LABELS], dtype=object)
    np.testing.assert_array_equal(answer(name, X, truth), answer(name, X).astype(bool))
    mixed = np.array([str(label) if label else label for label in LABELS], dtype=object)
    with pytest.raises(ValueError, match="labels that cannot be compared"):
        answer(name, X, mixed)


@pytest.mark.parametrize(
    "model", [MultipleKernelRegressor(rank=3), MultipleKernelClassifier(rank=3)]
)
def test_kernels_of_constant_columns(model: Any) -> None:
    """A kernel that is the same for all rows takes no part; it is not scaled up to its rounding."""
    constant = np.column_stack([X[:, :2], np.full(N, 5.0)])
    for data in (constant, np.full((N, 2), 3.7), np.zeros((N, 2))):
        model.fit(data, LABELS)  # a warning would be an error
        assert np.isfinite(model.predict(data)).all()


def test_balanced_weights_of_the_smallest_numbers() -> None:
    model = AtomicClassifier(class_weight="balanced")
    expected = model.fit(X, LABELS).coef_
    tiny = model.fit(X, LABELS, sample_weight=np.full(N, 5e-324)).coef_
    np.testing.assert_allclose(tiny, expected, rtol=1e-9)


def test_a_loss_whose_square_overflows_is_refused() -> None:
    for model, y in (
        (FeatureGenerator(2, C=1e300, standardize=True), LABELS),
        (AtomicRegressor(), NUMBERS * 1e150),
    ):
        with pytest.raises(ValueError, match=r"too large for float64.*divide y, or the sample"):
            model.fit(X, y)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "survival"])
def test_arrays_of_the_array_api(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no length, and scikit-learn leaves them as they are where it is told to."""
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    target = MODELS[name][1]
    expected = answer(name, X)
    y = None if target is None else strict.asarray(target)
    with config_context(array_api_dispatch=True):
        np.testing.assert_allclose(np.asarray(answer(name, strict.asarray(X), y)), expected)
