"""FeatureGenerator: exactly n features, in order, with a scaling and a certificate."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from atomlearn import FeatureGenerator, norms
from atomlearn.estimators.generation_trials import Trials
from atomlearn.papers import generated
from atomlearn.result import Status
from atomlearn.solvers import stopping
from tests.oracles.sums import solve_sum


def labels(n: int = 300, p: int = 200, true: int = 10, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, :true].sum(axis=1) + 0.5 * rng.standard_normal(n) > 0, "b", "a")


@pytest.mark.parametrize(("n_features", "batch"), [(1, 1), (7, 3), (3, 10), (23, 5)])
def test_exactly_the_number_asked_for(n_features: int, batch: int) -> None:
    X, y = labels()
    loss = "logistic" if n_features > 3 else "squared_hinge"
    model = FeatureGenerator(n_features, batch, loss=loss, standardize=True).fit(X, y)
    assert model.selected_.size == model.n_selected_ == n_features
    assert np.unique(model.selected_).size == n_features
    assert model.get_support().sum() == n_features
    np.testing.assert_array_equal(model.get_support(indices=True), np.sort(model.selected_))
    np.testing.assert_array_equal(np.flatnonzero(model.coef_[0]), np.sort(model.selected_))
    assert model.transform(X).shape == (300, n_features)
    np.testing.assert_array_equal(model.transform(X), X[:, np.sort(model.selected_)])
    assert model.status_ in (Status.COLUMN_LIMIT, Status.CONVERGED)
    assert (np.diff(model.rounds_) >= 0).all()
    assert model.rounds_[0] == 1


def test_the_first_block_are_the_best_scores_at_zero() -> None:
    X, y = labels()
    model = FeatureGenerator(4, 4, fit_intercept=False, standardize=False).fit(X, y)
    scores = np.abs(X.T @ np.where(y == "b", 1.0, -1.0))
    np.testing.assert_array_equal(np.sort(model.selected_), np.sort(np.argsort(-scores)[:4]))


def test_scaling_is_the_best_one_for_the_weights() -> None:
    X, y = labels()
    batch = 4
    model = FeatureGenerator(12, batch, standardize=False).fit(X, y)
    d, w = model.scaling_, model.coef_[0]
    assert d.shape == (200,)
    assert (d >= 0).all()
    assert (d <= 1).all()
    assert d.sum() == pytest.approx(batch)
    np.testing.assert_array_equal(d > 0, w != 0)
    gauge = norms.KSupport(k=batch).value(w)
    assert (w[d > 0] ** 2 / d[d > 0]).sum() == pytest.approx(gauge**2, rel=1e-9)


def test_the_optimum_is_that_of_the_squared_k_support_norm() -> None:
    X, y = labels(n=100, p=15)
    weight = np.random.default_rng(5).uniform(0.5, 2, 100)
    C = 0.05
    model = FeatureGenerator(15, 3, C=C, loss="logistic", standardize=False, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y, weight)
    assert model.status_ is Status.CONVERGED
    result = solve_sum(
        X,
        np.where(y == "b", 1, -1),
        loss="logistic",
        norm=norms.KSupport(k=3),
        form="squared",
        level=1.0,
        fit_intercept=True,
        sample_weight=C * weight,
        tol=1e-8,
    )
    assert model.objective_ == pytest.approx(result.objective, rel=1e-7)
    np.testing.assert_allclose(model.coef_[0], result.coef, atol=1e-4)


def test_no_further_features_end_at_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is taken where it has no more features than asked for, and told as proved."""
    monkeypatch.setattr(generated, "SETTLED", 1)
    X, y = labels()
    with pytest.warns(UserWarning, match="the optimum has only"):
        model = FeatureGenerator(150, 10, 0.05, "squared_hinge", standardize=False).fit(X, y)
    whole = solve_sum(
        X,
        np.where(y == model.classes_[1], 1.0, -1.0),
        loss="squared_hinge",
        norm=norms.KSupport(10),
        form="squared",
        level=1.0,
        fit_intercept=True,
        sample_weight=np.full(y.size, 0.05),
        tol=1e-10,
    )
    assert model.status_ is Status.CONVERGED
    assert model.gap_ <= model.tol * model.objective_
    assert model.objective_ == pytest.approx(whole.objective, rel=1e-8)
    assert model.n_selected_ == np.count_nonzero(whole.coef) < 150


def test_an_optimum_of_more_features_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generation that settles too soon goes on to the number asked for."""
    X, y = labels()
    plain = FeatureGenerator(20, 5, C=1.0, standardize=True).fit(X, y)
    monkeypatch.setattr(generated, "SETTLED", 0)
    early = FeatureGenerator(20, 5, C=1.0, standardize=True).fit(X, y)
    assert plain.n_selected_ == early.n_selected_ == 20
    np.testing.assert_array_equal(plain.selected_, early.selected_)
    # What the search for the optimum read of the data is counted too.
    assert early.n_passes_ > plain.n_passes_


@pytest.mark.parametrize("as_labels", [False, True])
def test_groups_are_selected_whole(as_labels: bool) -> None:
    X, y = labels(p=40)
    members = [list(range(start, start + 5)) for start in range(0, 40, 5)]
    groups: Any = np.repeat(np.arange(8), 5) if as_labels else members
    model = FeatureGenerator(2, 1, groups=groups, loss="logistic", standardize=True).fit(X, y)
    assert model.n_selected_ == 2
    assert np.sort(model.selected_).tolist() == list(range(10))
    assert model.scaling_[:5].min() == pytest.approx(model.scaling_[:5].max())


def test_sparse_float32_and_names() -> None:
    X, y = labels()
    X = np.where(np.abs(X) > 1, X, 0.0)
    settings = {"n_features": 8, "batch": 4, "loss": "logistic"}
    model = FeatureGenerator(**settings, standardize=True).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_array):
        found = FeatureGenerator(**settings, standardize=True).fit(kind(X), y)
        np.testing.assert_array_equal(found.selected_, model.selected_)
        reduced = found.transform(kind(X))
        np.testing.assert_allclose(reduced.toarray(), model.transform(X))
    single = FeatureGenerator(**settings, standardize=True).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float64
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(np.sort(single.selected_), np.sort(model.selected_))
    names = [f"gene{j}" for j in range(X.shape[1])]
    named = FeatureGenerator(**settings, standardize=True).fit(pd.DataFrame(X, columns=names), y)
    expected = [f"gene{j}" for j in np.sort(model.selected_)]
    assert named.get_feature_names_out().tolist() == expected


def test_bad_parameters_are_refused() -> None:
    X, y = labels(n=30, p=6, true=3)
    for settings, error, message in (
        ({"n_features": 0}, ValueError, "n_features must be at least 1"),
        ({"n_features": 2.5}, TypeError, "n_features must be a whole number"),
        ({"loss": "hinge"}, ValueError, "loss must be one of"),
        ({"features": "quartic"}, ValueError, "features must be one of"),
        ({"features": "polynomial", "groups": [[0], [1]]}, ValueError, "leave groups out"),
        ({"groups": [[0, 1], [1, 999]]}, ValueError, "names feature 999"),
        ({"groups": [0, 1]}, ValueError, "2 labels"),
    ):
        model: Any = FeatureGenerator(**settings, standardize=True)  # type: ignore[arg-type]
        with pytest.raises(error, match=message):
            model.fit(X, y)


@pytest.mark.filterwarnings("ignore:the optimum has only")
@pytest.mark.parametrize(
    ("loss", "n_features", "seed"),
    [("squared_hinge", 3, 3), ("logistic", 30, 2), ("squared", 3, 3), ("squared", 30, 2)],
)
def test_weights_are_repetitions(loss: str, n_features: int, seed: int) -> None:
    """Neither the number of rows nor rounding decides: not on a cut, not on the optimum."""
    rng = np.random.default_rng(seed)
    X, times = rng.uniform(size=(15, 30)), rng.integers(0, 5, 15)
    y = X[:, :3].sum(axis=1) if loss == "squared" else np.arange(15) % 2
    rows = rng.permutation(np.repeat(np.arange(15), times))
    weighted = FeatureGenerator(n_features, 10, 10.0, loss=loss, standardize=True).fit(X, y, times)
    repeated = FeatureGenerator(n_features, 10, 10.0, loss=loss, standardize=True).fit(
        X[rows], y[rows]
    )
    np.testing.assert_array_equal(np.sort(weighted.selected_), np.sort(repeated.selected_))
    scale = np.abs(weighted.coef_).max()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-8 * scale)


def test_a_block_is_no_more_than_a_tenth_of_what_is_asked_for() -> None:
    X = np.random.default_rng(0).standard_normal((60, 1200))
    for count, batch in ((1, 1), (20, 2), (1000, 40)):
        model = FeatureGenerator(
            count, loss="squared", stop=stopping.Iterations(1), standardize=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X, X[:, 0])
        assert model.results_[0].norm.k == batch


@pytest.mark.parametrize(
    ("kind", "loss"), [(np.asarray, "squared_hinge"), (sparse.csr_array, "squared")]
)
def test_standardizing_is_what_a_scaler_in_front_does(kind: Any, loss: str) -> None:
    """The same features are selected, and coefficients come back in the units of X."""
    X, y = labels()
    X = X * 10.0 ** np.random.default_rng(4).uniform(-2, 2, X.shape[1]) + 3.0
    target = y if loss == "squared_hinge" else (y == "b") + 0.1 * X[:, 0]
    weight = np.random.default_rng(5).uniform(0.5, 2, y.size)
    own = FeatureGenerator(8, C=10.0, loss=loss, standardize=True).fit(kind(X), target, weight)
    scaler = StandardScaler(with_mean=kind is np.asarray).fit(kind(X), sample_weight=weight)
    outer = FeatureGenerator(8, C=10.0, loss=loss, standardize=False)
    outer.fit(scaler.transform(kind(X)), target, weight)
    np.testing.assert_array_equal(own.selected_, outer.selected_)
    mine, theirs = np.atleast_2d(own.coef_)[0], np.atleast_2d(outer.coef_)[0]
    np.testing.assert_allclose(mine * scaler.scale_, theirs, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(own._linear(X), outer._linear(scaler.transform(X)), atol=1e-6)


def test_groups_that_overlap_and_trees() -> None:
    """Each group has a copy of its features; what is selected are unions of groups."""
    X, y = labels(p=12, true=3)
    groups = [[0, 1, 2], [2, 3, 4], [4, 5], [6, 7, 8], [8, 9]]
    model = FeatureGenerator(2, 1, groups=groups, standardize=False).fit(X, y)
    assert model.n_selected_ == 2
    union = [set(groups[a]) | set(groups[b]) for a in range(5) for b in range(a)]
    assert set(model.selected_.tolist()) in union
    assert (model.scaling_[model.selected_] > 0).all()
    assert np.count_nonzero(model.coef_) == model.selected_.size
    tree = norms.Trees([list(range(6)), [0, 1, 2], [0, 1], [6, 7, 8, 9]])
    model = FeatureGenerator(3, 3, groups=tree, standardize=False, max_blocks=1).fit(X, y)
    # A set that holds another never has the smaller score.
    assert set(range(6)) <= set(model.selected_.tolist())
    same = norms.LatentKSupport(2, groups)
    fitted = FeatureGenerator(7, 2, 10.0, groups=groups, standardize=False, tol=1e-9).fit(X, y)
    signs = np.where(y == fitted.classes_[1], 1, -1)
    settings = {"loss": fitted.loss, "form": "squared", "fit_intercept": True}
    best = solve_sum(X, signs, norm=same, level=0.1, tol=1e-9, **settings)
    assert_allclose(fitted.objective_, 10.0 * best.objective, rtol=1e-6)


def test_the_rules_and_scales_of_the_paper() -> None:
    X, y = labels(p=30)
    model = FeatureGenerator(30, 2, max_blocks=3, features="linear", standardize=True).fit(X, y)
    assert model.status_ is Status.SELECTED
    assert model.n_selected_ <= 6
    loose = FeatureGenerator(30, 2, outer_tol=0.5, standardize=True).fit(X, y)
    assert loose.status_ is Status.SELECTED
    assert (
        loose.n_iter_ < FeatureGenerator(30, 2, outer_tol=1e-4, standardize=True).fit(X, y).n_iter_
    )
    scaled = FeatureGenerator(4, 2, features="polynomial", gamma=4.0, r=0.5, standardize=False)
    scaled.fit(X[:, :6], y)
    columns = scaled.feature_map_.apply(np.eye(6)[:1])
    assert np.isclose(columns.predict(np.ones(columns.shape[1]))[0], 4.0 + 2.0)
    with pytest.raises(ValueError, match="gamma and r"):
        FeatureGenerator(4, gamma=4.0, standardize=True).fit(X, y)


def test_de_biasing_is_a_ridge_on_what_was_selected() -> None:
    """[T] 5.3: the l2-SVM with C of its own over the selected features."""
    X, y = labels(p=40)
    plain = FeatureGenerator(5, 2, 1.0, "squared_hinge", standardize=False)
    model = clone(plain).set_params(debias=20.0).fit(X, y)
    columns = np.sort(model.selected_)
    assert_array_equal(np.sort(plain.fit(X, y).selected_), columns)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    settings = {"loss": "squared_hinge", "form": "squared", "fit_intercept": True}
    weight = np.full(y.size, 20.0)
    ridge = solve_sum(
        X[:, columns], signs, norm="l2", level=1.0, sample_weight=weight, tol=1e-10, **settings
    )
    assert_allclose(model.coef_[0, columns], ridge.coef, atol=1e-5)
    assert_allclose(model.intercept_, ridge.intercept, atol=1e-5)
    assert model.debiased_.relative_gap <= 1e-7
    assert model.objective_ == plain.objective_


def test_covariates_are_free_and_an_offset_is_added() -> None:
    """Covariates are in the model, and no part of the selection."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 30))
    known = 2.0 * rng.standard_normal(200)
    y = X[:, 3] - X[:, 7] + 5.0 * X[:, 0] + known + 0.1 * rng.standard_normal(200)
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(30)])
    model = FeatureGenerator(2, loss="squared", unpenalized=["v0"], standardize=True).fit(
        frame, y, offset=known
    )
    assert sorted(model.selected_.tolist()) == [3, 7]
    assert model.coef_[0] == pytest.approx(5.0, abs=0.05)
    assert set(np.flatnonzero(model.coef_)) == {0, 3, 7}
    residual = y - known - model.predict(frame)
    np.testing.assert_allclose(residual @ (X[:, 0] - X[:, 0].mean()), 0.0, atol=1e-6)


def test_a_chosen_weight_of_the_loss_predicts_better_than_no_features() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((160, 60))
    y = X[:, 0] + rng.standard_normal(160) > 0
    train, test = slice(0, 60), slice(60, None)

    def loss(C: Any) -> float:
        model = FeatureGenerator(10, batch=5, C=C, tol=1e-3, standardize=True).fit(
            X[train], y[train]
        )
        return float(log_loss(y[test], model.predict_proba(X[test])))

    base = float(log_loss(y[test], np.full(100, y[train].mean())))
    assert loss(10.0) > 1.5 * base  # rows are few: it fits noise
    assert loss("auto") < 0.97 * base


def ridge(X: Any, y: Any, C: float, free: Any) -> Any:
    """Return min over w, u, b of 1/2 ||w||^2 + C/2 ||X w + free u + b - y||^2 in closed form."""
    Z = np.column_stack([X, free, np.ones(len(y))])
    held = np.diag(np.arange(Z.shape[1]) < X.shape[1]) / C
    return np.linalg.solve(Z.T @ Z + held, Z.T @ y)


def test_a_chosen_c_is_that_of_the_weights_of_what_was_selected() -> None:
    """In one block its norm is l2: a ridge over the features that C = 10 selects."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 60))
    y = X[:, 0] + 2.0 * rng.standard_normal(40)
    usual, chosen = (
        FeatureGenerator(5, 5, C, "squared", standardize=False).fit(X, y) for C in (10.0, "auto")
    )
    assert_array_equal(usual.selected_, chosen.selected_)
    assert chosen.C_ < 10.0
    columns = np.sort(chosen.selected_)
    expected = ridge(X[:, columns], y, chosen.C_, np.zeros((40, 0)))
    assert_allclose([*chosen.coef_[columns], chosen.intercept_], expected, atol=1e-4)
    w, residual = expected[:5], y - X[:, columns] @ expected[:5] - expected[5]
    value = 0.5 * w @ w + 0.5 * chosen.C_ * residual @ residual
    assert chosen.objective_ == pytest.approx(value, rel=1e-6)
    assert chosen.status_ is Status.COLUMN_LIMIT


def test_probabilities_of_noise_are_near_the_base_rate() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 50)), np.arange(80) % 2
    model = FeatureGenerator(10, standardize=True).fit(X[:40], y[:40])
    assert log_loss(y[40:], model.predict_proba(X[40:])) < np.log(2.0) + 0.03


def test_the_number_of_features_is_the_least_that_is_as_good_as_the_best() -> None:
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((120, 1))
    X = np.sqrt(0.5) * (shared + rng.standard_normal((120, 40)))
    y = X[:, :6].sum(axis=1) + 0.7 * rng.standard_normal(120)
    model = FeatureGenerator("auto", loss="squared", standardize=True).fit(X, y)
    assert np.setdiff1d(model.selected_, np.arange(6)).size <= 1
    assert np.isin(np.arange(6), model.selected_).sum() >= 5
    tried = [size for size, _ in model.size_choice_.values]
    assert tried[0] == 0
    assert model.n_selected_ in set(tried) - {8, 12, 20}  # one between those that are tried first


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_of_noise_no_feature_is_selected(loss: str) -> None:
    none = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, 4])
        X, y = rng.standard_normal((60, 15)), rng.permutation(60) % 2
        target = y if loss == "logistic" else y + rng.standard_normal(60)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = FeatureGenerator("auto", loss=loss, standardize=True).fit(X, target)
        none += not model.selected_.size
        if not model.selected_.size:
            assert "none is selected" in str(told[-1].message)
            assert model.transform(X).shape == (60, 0)
            assert (
                np.ptp(model.decision_function(X) if loss == "logistic" else model.predict(X))
                < 1e-12
            )
    assert none >= 2


def test_as_good_is_by_differences_in_folds() -> None:
    """None, 1, 2 and 3 features in five folds that differ more than the numbers do."""
    folds, gain = np.array([5.0, -3.0, 0.0, 4.0, -1.0]), np.array([1.0, 1.2, 0.8, 1.0, 1.0])
    off = np.array([0.1, -0.1, 0.2, 0.0, 0.1])
    least = Trials._smallest
    assert least(np.array([folds, folds + gain, folds + gain + off, folds + gain])) == 1
    assert least(np.array([folds, folds + gain / 2, folds + gain, folds + gain])) == 2
    assert least(np.array([folds, folds - gain, folds - gain, folds + 0.01 * off])) == 0
    assert least(np.array([folds])) == 0


def test_rows_without_weight_are_in_no_fold() -> None:
    X, y = labels(40, 10, 3)
    weight = np.where(np.arange(40) % 2, 1.0, 0.0)
    weighted = FeatureGenerator(3, standardize=True).fit(X, y, weight)
    left = FeatureGenerator(3, standardize=True).fit(X[1::2], y[1::2])
    assert weighted.C_choice_ is not None
    assert left.C_choice_ is not None
    assert_allclose(weighted.C_choice_.scores, left.C_choice_.scores, atol=1e-3)


def test_a_ridge_at_the_end_leaves_covariates_free() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 20))
    y = X[:, 3] + 3.0 * X[:, 0] + 0.1 * rng.standard_normal(60)
    model = FeatureGenerator(2, loss="squared", unpenalized=[0], debias=0.5, standardize=False).fit(
        X, y
    )
    columns = np.sort(model.selected_)
    expected = ridge(X[:, columns], y, 0.5, X[:, [0]])
    assert_allclose([*model.coef_[columns], model.coef_[0], model.intercept_], expected, atol=1e-5)


def test_both_may_be_chosen() -> None:
    X, y = labels(20, 6, 2)
    chosen = FeatureGenerator("auto", tol=1e-3, standardize=True).fit(X, y)
    assert chosen.C_choice_.chosen == chosen.C_
    assert chosen.size_choice_.chosen[0] == chosen.n_wanted_ <= 6
    with pytest.raises(TypeError, match="C must be a positive number"):
        FeatureGenerator(5, C="best", standardize=True).fit(X, y)


def test_the_place_to_select_is_chosen_by_held_out_rows() -> None:
    """Shrunken models select better where much is weak, others where few columns are all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 300))
    few = X[:, :8] @ np.full(8, 2.0) + 0.1 * rng.standard_normal(200)
    exact = FeatureGenerator(8, loss="squared", standardize=True).fit(X, few)
    assert set(exact.selected_) == set(range(8))
    X = rng.standard_normal((400, 200))
    X[:, :150] += rng.standard_normal((400, 1))
    many = X[:, :150] @ rng.uniform(0.05, 0.15, 150) + 3.0 * rng.standard_normal(400)
    shrunken = FeatureGenerator(20, loss="squared", standardize=True).fit(X[:200], many[:200])
    named = FeatureGenerator(20, loss="squared", C=10.0, standardize=True).fit(X[:200], many[:200])
    assert shrunken.selected_at_ < named.selected_at_ == named.C_ == 10.0
    assert shrunken.score(X[200:], many[200:]) > named.score(X[200:], many[200:])
