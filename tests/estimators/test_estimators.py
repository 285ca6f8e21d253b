"""Regressor and classifier: against scikit-learn, against ``solve``, in every kind of input."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    StabilitySelector,
    SubsetRegressor,
    norms,
    solvers,
)
from atomlearn.core import DenseDesign, packed, unpacked
from atomlearn.losses import as_loss
from atomlearn.result import Status
from tests.oracles.sums import solve_sum


def regression(seed: int = 0, n: int = 80, p: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n) + 2.0


def labels(seed: int = 0, n: int = 80, p: int = 30) -> tuple[Any, Any]:
    X, y = regression(seed, n, p)
    return X, np.where(y > 2.0, "yes", "no")


def mean_objective(
    model: Any, X: Any, y: Any, amount: float, gauge: float, weight: Any = None
) -> float:
    """Return mean loss + alpha * gauge of a fitted model of two classes or of numbers."""
    weight = np.ones(len(y)) if weight is None else weight
    coef, intercept = np.ravel(model.coef_), np.ravel(model.intercept_)[0]
    loss = as_loss(model.loss)
    value = loss.value(y, X @ coef + intercept, weight / weight.sum())
    return value + amount * gauge


# --- what is minimized -------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "weighted"), [(0.02, True), (0.3, False)])
def test_l1_regression_is_lasso(alpha: float, weighted: bool) -> None:
    X, y = regression()
    weight = np.random.default_rng(1).uniform(0, 3, y.size) if weighted else None
    ours = AtomicRegressor(alpha=alpha, tol=1e-10).fit(X, y, weight)
    theirs = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    gauges = (np.abs(model.coef_).sum() for model in (ours, theirs))
    theirs.loss = "squared"
    mine, reference = (
        mean_objective(model, X, y, alpha, gauge, weight)
        for model, gauge in zip((ours, theirs), gauges, strict=True)
    )
    assert mine <= reference * (1 + 1e-9)
    assert ours.objective_ == pytest.approx(mine, rel=1e-12)


def test_l1_logistic_is_logistic_regression() -> None:
    X, y = labels()
    alpha = 0.03
    ours = AtomicClassifier(alpha=alpha, fit_intercept=False, tol=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(
            C=1 / (alpha * y.size),
            l1_ratio=1.0,
            solver="liblinear",
            tol=1e-10,
            fit_intercept=False,
            max_iter=10_000,
        ).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_class_weights_count_in_the_c_of_logistic_regression() -> None:
    X, y = labels()
    each = np.where(y == "yes", 7.0, 1.0) * np.random.default_rng(3).uniform(0.5, 2.0, y.size)
    how: Any = {"class_weight": {"yes": 7.0}, "fit_intercept": False}
    weight = each / np.where(y == "yes", 7.0, 1.0)
    ours = AtomicClassifier(alpha=1 / (0.5 * each.sum()), tol=1e-9, **how).fit(X, y, weight)
    solver: Any = {"l1_ratio": 1.0, "solver": "liblinear", "tol": 1e-10, "max_iter": 10_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(C=0.5, **solver, **how).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


def test_l1_squared_hinge_is_linear_svc() -> None:
    X, y = labels()
    alpha = 0.05
    ours = AtomicClassifier(alpha=alpha, loss="squared_hinge", fit_intercept=False).fit(X, y)
    theirs = LinearSVC(
        C=1 / (2 * alpha * y.size),
        penalty="l1",
        dual=False,
        fit_intercept=False,
        tol=1e-9,
        max_iter=100_000,
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_estimator_is_solve_with_the_mean_loss(form: Any) -> None:
    X, y = regression()
    weight = np.random.default_rng(2).uniform(0, 2, y.size)
    norm = norms.KSupport(k=4)
    model = AtomicRegressor(norm, 0.1, form=form, radius=1.5, tol=1e-9).fit(X, y, weight)
    amount = {"radius": 1.5} if form == "constrained" else {"level": 0.1 * weight.sum()}
    result = solve_sum(
        X, y, norm=norm, form=form, fit_intercept=True, sample_weight=weight, tol=1e-9, **amount
    )
    np.testing.assert_allclose(model.coef_, result.coef, atol=1e-4)
    assert model.objective_ * weight.sum() == pytest.approx(result.objective, rel=1e-8)


def test_fitted_attributes_tell_how_the_fit_ended() -> None:
    X, y = regression()
    model = AtomicRegressor(alpha=0.1).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert 0 <= model.gap_ <= 1e-6 * model.objective_
    assert model.n_passes_ == model.history_[-1].passes
    assert model.n_iter_ == len(model.history_)
    assert model.history_[-1].gap == model.gap_
    assert model.coef_.shape == (30,)
    assert isinstance(model.intercept_, float)
    assert model.results_[0].state is None


def test_every_solver_reaches_the_same_optimum() -> None:
    X, y = labels()
    norm = norms.KSupport(k=3)
    reference = AtomicClassifier(norm, 0.05, form="squared").fit(X, y)
    for solver in ("column_generation", "fista", solvers.ColumnGeneration(batch=5)):
        model = AtomicClassifier(norm, 0.05, form="squared", solver=solver, max_iter=5000).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.objective_ == pytest.approx(reference.objective_, rel=2e-6)
    settings = {"norm": norms.KSupport(k=5), "alpha": 0.5, "form": "squared", "tol": 1e-4}
    reference = AtomicClassifier(**settings).fit(X, y)
    model = AtomicClassifier(**settings, solver="kfcfw", max_iter=5000).fit(X, y)
    assert model.objective_ == pytest.approx(reference.objective_, rel=2e-4)


# --- classes -----------------------------------------------------------------------------------


def test_several_classes_are_fitted_one_against_rest() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = AtomicClassifier(alpha=0.02).fit(X, names)
    singles = [AtomicClassifier(alpha=0.02).fit(X, names == name) for name in model.classes_]
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    for row, intercept, single in zip(model.coef_, model.intercept_, singles, strict=True):
        np.testing.assert_array_equal(row, single.coef_[0])
        assert intercept == single.intercept_[0]
    assert model.gap_ == pytest.approx(sum(single.gap_ for single in singles))
    assert model.objective_ == pytest.approx(sum(single.objective_ for single in singles))
    assert model.n_passes_ == sum(single.n_passes_ for single in singles)
    assert len(model.history_) == len(model.results_) == 3
    decisions = model.decision_function(X)
    assert decisions.shape == (150, 3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[decisions.argmax(axis=1)])
    each = np.column_stack([single.predict_proba(X)[:, 1] for single in singles])
    expected = each / each.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-10)


def test_probabilities_far_from_every_class_still_sum_to_one() -> None:
    X, y = load_iris(return_X_y=True)
    model = AtomicClassifier(alpha=0.02).fit(X, y)
    model.coef_ = -np.abs(model.coef_) - 1.0
    found = model.predict_proba(1e5 * X[:3])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_probabilities_are_for_the_logistic_loss() -> None:
    X, y = labels()
    model = AtomicClassifier(loss="squared_hinge", alpha=0.2).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert hasattr(AtomicClassifier(loss=as_loss("logistic")), "predict_proba")


def test_class_weights_are_sample_weights() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[30:], y[30:]
    balanced = AtomicClassifier(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    explicit = {label: y.size / (3 * count) for label, count in enumerate(counts)}
    with pytest.raises(ValueError, match="class_weight"):
        AtomicClassifier(class_weight=np.ones(2)).fit(X, y)
    by_dict = AtomicClassifier(class_weight=explicit).fit(X, y)
    by_sample = AtomicClassifier().fit(X, y, sample_weight=1.0 / counts[y])
    np.testing.assert_allclose(by_dict.coef_, balanced.coef_, atol=1e-6)
    np.testing.assert_allclose(by_sample.coef_, balanced.coef_, atol=1e-6)
    # Weights of samples count in "balanced": two samples of weight 1 are one of weight 2.
    doubled = np.arange(y.size) % 2 == 0
    repeated = AtomicClassifier(class_weight="balanced").fit(
        np.vstack([X, X[doubled]]), np.r_[y, y[doubled]]
    )
    weighted = AtomicClassifier(class_weight="balanced").fit(X, y, sample_weight=1.0 + doubled)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


# --- input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "index"), [(sparse.csr_array, np.int64), (sparse.csc_matrix, np.int32)]
)
def test_sparse_input_gives_the_same_fit(kind: Any, index: Any) -> None:
    X, y = labels()
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense = AtomicClassifier().fit(X, y)
    S = kind(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    model = AtomicClassifier().fit(S, y)
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(S), dense.decision_function(X), atol=1e-5)


def test_float32_is_predicted_in_float32_by_coefficients_in_float64() -> None:
    X, y = regression()
    double = AtomicRegressor(alpha=0.1).fit(X, y)
    for single in (X.astype(np.float32), sparse.csr_array(X.astype(np.float32))):
        model = AtomicRegressor(alpha=0.1).fit(single, y)
        assert model.coef_.dtype == np.float64
        assert model.predict(single).dtype == np.float32
        assert model.status_ is Status.CONVERGED
        np.testing.assert_allclose(model.coef_, double.coef_, atol=1e-4)
    X, y = labels()
    classifier = AtomicClassifier().fit(X.astype(np.float32), y)
    assert classifier.coef_.dtype == np.float64
    assert classifier.predict_proba(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("free", [[], [0, 1]])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_the_gap_is_of_the_very_coefficients_that_are_returned(free: Any, far: float) -> None:
    """Rounded to the type of X they were up to 10,000 gaps away from what was proved."""
    rng = np.random.default_rng(11)
    year, Z = rng.integers(1950, 2021, 60).astype(float), rng.normal(size=(60, 3))
    y = 0.5 * (year - 1985) + 0.02 * (year - 1985) ** 2 + rng.normal(size=60) + Z[:, 0]
    X = np.c_[year, year**2, far + Z].astype(np.float32)
    penalized = np.setdiff1d(range(5), free)
    model = AtomicRegressor(alpha=0.1, unpenalized=free or None).fit(X, y)
    with warnings.catch_warnings(action="ignore"):  # as near as floats allow
        best = AtomicRegressor(alpha=0.1, unpenalized=free or None, tol=1e-9).fit(X, y)

    def exact(coef: Any, intercept: float) -> Fraction:
        w, b = [Fraction(float(one)) for one in coef], Fraction(intercept)
        total = Fraction(0)
        for row, target in zip(X, y, strict=True):
            linear = b + sum(Fraction(float(x)) * c for x, c in zip(row, w, strict=True))
            total += (Fraction(float(target)) - linear) ** 2
        return total / 120 + Fraction(0.1) * sum(abs(w[j]) for j in penalized)

    found = exact(model.coef_, model.intercept_)
    assert abs(found - Fraction(model.objective_)) <= Fraction(model.gap_)
    assert found - exact(best.coef_, best.intercept_) <= Fraction(model.gap_)
    assert model.status_ is Status.CONVERGED
    assert model.gap_ <= 1e-6 * model.objective_


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(order: Any, tmp_path: Any, monkeypatch: Any) -> None:
    seen = []
    original = DenseDesign.__init__

    def spy(self: Any, X: Any, *arguments: Any) -> None:
        seen.append(X)
        original(self, X, *arguments)

    monkeypatch.setattr(DenseDesign, "__init__", spy)
    X, y = regression()
    for dtype in (np.float32, np.float64):
        array = np.asarray(X, dtype=dtype, order=order)
        path = tmp_path / f"X_{order}.npy"
        np.save(path, array)
        mapped = np.load(path, mmap_mode="r")
        array.flags.writeable = False
        for given in (array, mapped):
            seen.clear()
            model = AtomicRegressor(alpha=0.1).fit(given, y)
            assert np.shares_memory(seen[0], given)
            np.testing.assert_array_equal(model.predict(given), model.predict(array))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_their_names(frame: Any) -> None:
    X, y = regression(p=4)
    names = ["age", "size", "weight", "dose"]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = AtomicRegressor(alpha=0.1).fit(table, y)
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 4
    np.testing.assert_allclose(model.coef_, AtomicRegressor(alpha=0.1).fit(X, y).coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame(dict(zip(names[::-1], X.T, strict=True))))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_a_design_is_accepted() -> None:
    X, y = regression()
    model = AtomicRegressor(alpha=0.1).fit(DenseDesign(X), y)
    plain = AtomicRegressor(alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(DenseDesign(X)), plain.predict(X))
    with pytest.raises(ValueError, match=r"29 features.*expecting 30"):
        model.predict(DenseDesign(X[:, :29].copy()))


# --- scikit-learn's ways -----------------------------------------------------------------------


def test_grid_search_over_the_norm_in_a_pipeline() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(StandardScaler(), AtomicRegressor(norms.KSupport(k=1), form="squared"))
    grid = {"atomicregressor__norm__k": [1, 5], "atomicregressor__alpha": [0.1, 10.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_["atomicregressor__alpha"] == 0.1
    assert search.best_score_ > 0.4
    assert search.best_estimator_[-1].norm.k == search.best_params_["atomicregressor__norm__k"]


def test_pickled_estimators_predict_the_same() -> None:
    X, y = labels()
    model = AtomicClassifier(norms.KSupport(k=3), form="squared").fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.status_ is model.status_
    # No copy of the data travels with the model.
    assert len(pickle.dumps(model)) < 0.5 * X.nbytes


# --- how a fit may end -------------------------------------------------------------------------


def test_a_fit_that_did_not_converge_says_so() -> None:
    X, y = labels(p=2000)  # more than one block of candidates
    with pytest.warns(
        ConvergenceWarning, match=r"AtomicClassifier: iteration limit.*tol=1\.00e-06"
    ):
        model = AtomicClassifier(max_iter=1, alpha=0.001).fit(X, y)
    assert model.status_ is Status.ITERATION_LIMIT
    assert model.gap_ > 1e-6 * model.objective_


class InterruptedLoss(type(as_loss("logistic"))):  # type: ignore[misc]
    """The logistic loss, with Ctrl-C pressed at one of its gradients."""

    calls, last = 0, 25

    def gradient(self, *arguments: Any) -> Any:
        type(self).calls += 1
        if type(self).calls == type(self).last:
            raise KeyboardInterrupt
        return super().gradient(*arguments)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_interrupt_gives_the_best_point_so_far(n_classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    # Wide enough not to be fitted whole before the first pass.
    X = np.hstack([X, 0.1 * np.random.default_rng(0).standard_normal((len(y), 600))])
    y = np.minimum(y, n_classes - 1)
    InterruptedLoss.calls, InterruptedLoss.last = 0, {2: 9, 3: 32}[n_classes]
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        model = AtomicClassifier(loss=InterruptedLoss(), alpha=1e-3, tol=1e-10).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.gap_ < np.inf
    assert model.predict(X).shape == y.shape
    assert len(model.results_) == (1 if n_classes == 2 else 3)


def test_verbose_prints_the_progress(capsys: Any) -> None:
    X, y = regression()
    AtomicRegressor(alpha=0.1, verbose=1).fit(X, y)
    assert "relative gap" in capsys.readouterr().err


# --- refusals ----------------------------------------------------------------------------------


def test_bad_parameters_are_refused() -> None:
    X, y = regression()
    for settings, error, message in (
        ({"form": "ridge"}, ValueError, "form must be one of"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"norm": "l7"}, ValueError, "norm 'l7' is unknown"),
        ({"norm": norms.KSupport}, TypeError, "norm must be a name"),
        ({"solver": "newton"}, ValueError, "solver must be 'auto' or one of"),
        ({"loss": "logistic"}, ValueError, "use AtomicClassifier"),
        ({"loss": "absolute"}, ValueError, "loss must be one of"),
    ):
        model: Any = AtomicRegressor(**settings)  # type: ignore[arg-type]
        with pytest.raises(error, match=message):
            model.fit(X, y)


def test_both_classes_must_carry_weight() -> None:
    X, y = labels()
    with pytest.raises(ValueError, match="where sample_weight is positive"):
        AtomicClassifier().fit(X, y, (y == "no") * 1.0)


def test_class_weights_must_be_usable() -> None:
    X, y = labels()
    with pytest.raises(ValueError, match="class_weight must have finite numbers"):
        AtomicClassifier(class_weight={"yes": -1.0, "no": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        AtomicClassifier(class_weight="equal").fit(X, y)


def test_a_pickle_takes_no_room_for_zeros() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20_000)).astype(np.float32)
    y = X[:, 5].astype(np.float64)
    for model, target in (
        (AtomicRegressor(alpha=0.5), y),
        (AtomicRegressorCV(n_alphas=4, cv=3), y),
        (AtomicClassifier(alpha=0.3), y > 0),
        (FeatureGenerator(1, standardize=True), y > 0),
        (SubsetRegressor(1, time_limit=2.0, standardize=True), y),
        (StabilitySelector(AtomicRegressor(alpha=0.5), 4, random_state=0), y),
    ):
        model.fit(X, target)
        held = pickle.dumps(model)
        assert len(held) < 15_000, type(model).__name__
        again = pickle.loads(held)
        for name, value in vars(model).items():
            if isinstance(value, np.ndarray):
                found = getattr(again, name)
                assert found.dtype == value.dtype
                np.testing.assert_array_equal(found, value, err_msg=name)


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.0, -0.0, 2.0] + [0.0] * 40),
        np.zeros((40, 3), dtype=np.float32),
        np.eye(40, dtype=np.int8),
        np.zeros(50, dtype=bool),
        np.full(9, np.nan),
        np.zeros(0),
        np.array(3.0),
        np.array(["a", "b"]),
    ],
)
def test_packed_arrays_are_the_same_to_the_bit(array: np.ndarray) -> None:
    [found] = unpacked(packed({"a": array})).values()
    assert (found.dtype, found.shape, found.tobytes()) == (
        array.dtype,
        array.shape,
        array.tobytes(),
    )
