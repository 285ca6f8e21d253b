"""Estimators over matrices against scikit-learn, CVXPY and what they are meant to find."""

from __future__ import annotations

import pickle
import time

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso
from sklearn.metrics import adjusted_rand_score

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    MatrixPursuit,
    SparseLowRank,
    SparsePCA,
    norms,
)
from atomlearn.result import Status
from atomlearn.testing.tolerances import CLARABEL, ORACLE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 8)) + 3.0
Y = X[:, :3] @ RNG.normal(size=(3, 4)) + RNG.normal(size=(50, 4)) + 5.0
WEIGHT = RNG.uniform(0.5, 2.0, 50)
LABELS = np.array(["a", "b", "c"])[
    np.argmax((X[:, :3] - 3.0) @ RNG.normal(size=(3, 3)) + RNG.gumbel(size=(50, 3)), axis=1)
]
CODES = np.searchsorted(["a", "b", "c"], LABELS)


def test_rows_are_the_multi_task_lasso() -> None:
    ours = AtomicRegressor("rows", alpha=0.5, tol=1e-9).fit(X, Y)
    theirs = MultiTaskLasso(alpha=0.5, tol=1e-12, max_iter=100_000).fit(X, Y)
    residual = Y - theirs.predict(X)
    objective = (residual**2).sum() / 100 + 0.5 * np.linalg.norm(theirs.coef_, axis=0).sum()
    assert ours.status_.is_converged
    assert_allclose(ours.objective_, objective, rtol=1e-8)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.predict(X).shape == Y.shape


def test_one_target_in_a_column_has_the_shapes_of_several() -> None:
    ours = AtomicRegressor("rows", alpha=0.5, tol=1e-9).fit(X, Y[:, :1])
    theirs = MultiTaskLasso(alpha=0.5, tol=1e-12, max_iter=100_000).fit(X, Y[:, :1])
    assert ours.coef_.shape == theirs.coef_.shape == (1, 8)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    assert_allclose(ours.score(X, Y[:, :1]), theirs.score(X, Y[:, :1]), atol=1e-6)


@pytest.mark.parametrize("norm", ["rows", "trace"])
def test_one_target_is_searched_as_it_is_fitted(norm: str) -> None:
    search = AtomicRegressorCV(norm, n_alphas=4, cv=3, tol=1e-9).fit(X, Y[:, 0])
    fitted = AtomicRegressor(norm, alpha=search.alpha_, tol=1e-9).fit(X, Y[:, 0])
    assert search.coef_.shape == fitted.coef_.shape == (8,)
    assert_allclose(search.coef_, fitted.coef_, atol=1e-5)
    several = search.fit(X, Y)
    fitted = AtomicRegressor(norm, alpha=several.alpha_, tol=1e-9).fit(X, Y)
    assert several.coef_.shape == fitted.coef_.shape == (4, 8)
    assert_allclose(several.coef_, fitted.coef_, atol=1e-5)


@pytest.mark.parametrize(("norm", "sparse_data"), [("trace", False), ("rows", True), ("l1", True)])
def test_weighted_tasks_against_cvxpy(norm: str, sparse_data: bool) -> None:
    """Sparse data is not centered: intercepts are then minimized over in the loss."""
    W, b = cp.Variable((8, 4)), cp.Variable((1, 4))
    gauge = {
        "trace": cp.normNuc(W),
        "rows": cp.sum(cp.norm(W, 2, axis=1)),
        "l1": cp.sum(cp.abs(W)),
    }[norm]
    s = WEIGHT / WEIGHT.sum()
    fit = 0.5 * cp.sum(cp.multiply(s[:, None], cp.square(Y - X @ W - np.ones((50, 1)) @ b)))
    optimum = cp.Problem(cp.Minimize(fit + 0.3 * gauge)).solve(solver=cp.CLARABEL)
    data = sparse.csr_array(X) if sparse_data else X
    model = AtomicRegressor(norm, alpha=0.3).fit(data, Y, sample_weight=WEIGHT)
    assert model.status_.is_converged
    assert -1e-7 * optimum <= model.objective_ - optimum <= model.gap_ + 1e-7 * optimum
    here = 0.5 * (s[:, None] * (Y - model.predict(data)) ** 2).sum()
    value = {
        "trace": np.linalg.svd(model.coef_, compute_uv=False).sum(),
        "rows": np.linalg.norm(model.coef_, axis=0).sum(),
        "l1": np.abs(model.coef_).sum(),
    }[norm]
    assert_allclose(here + 0.3 * value, model.objective_, rtol=1e-9)


def test_groups_of_features_hold_all_tasks() -> None:
    """Lists of names, weights and single features, against CVXPY."""
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    groups, weights = [["f0", "f2"], ["f1"], ["f3", "f4", "f5"]], np.array([1.0, 2.0, 0.5])
    model = AtomicRegressor(norms.Groups(groups, weights), alpha=0.2, tol=1e-9).fit(frame, Y)
    listed = [([0, 2], 1.0), ([1], 2.0), ([3, 4, 5], 0.5)]
    listed += [([j], 1.0) for j in range(6, X.shape[1])]

    W, b = cp.Variable((X.shape[1], Y.shape[1])), cp.Variable((1, Y.shape[1]))
    penalty = sum(weight * cp.norm(W[members], "fro") for members, weight in listed)
    fit = cp.sum_squares(Y - X @ W - np.ones((X.shape[0], 1)) @ b) / (2 * X.shape[0])
    best = cp.Problem(cp.Minimize(fit + 0.2 * penalty)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, rel=1e-7)
    assert_allclose(model.coef_.T, W.value, atol=1e-5)
    k_support = AtomicRegressor(norms.KSupport(2, groups), alpha=0.2).fit(frame, Y)
    assert k_support.status_.is_converged


def test_curves_of_several_targets() -> None:
    """Inputs are selected for all tasks together, and each task has curves of its own."""
    x = np.random.default_rng(8).uniform(-1.0, 1.0, (200, 3))
    targets = np.column_stack([x[:, 0] ** 2, np.sin(3.0 * x[:, 0])])
    model = AtomicRegressor("groups", alpha=0.02, features="splines").fit(x, targets)
    assert model.predict(x).shape == targets.shape
    for output in range(2):
        assert np.ptp(model.curve(0, output=output)[1]) > 0.5
        assert np.ptp(model.curve(1, output=output)[1]) == 0.0


@pytest.mark.parametrize(("norm", "intercept"), [("rows", False), ("trace", True)])
def test_multinomial_against_cvxpy(norm: str, intercept: bool) -> None:
    s = WEIGHT / WEIGHT.sum()
    W, b = cp.Variable((8, 3)), cp.Variable((1, 3))
    Z = X @ W + (np.ones((50, 1)) @ b if intercept else 0.0)
    indicators = np.eye(3)[CODES]
    each = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(indicators, Z), axis=1)
    gauge = cp.normNuc(W) if norm == "trace" else cp.sum(cp.norm(W, 2, axis=1))
    program = cp.Problem(cp.Minimize(s @ each + 0.05 * gauge))
    optimum = program.solve(solver=cp.CLARABEL, **CLARABEL)
    model = AtomicClassifier(
        norm, alpha=0.05, multi_class="multinomial", fit_intercept=intercept
    ).fit(X, LABELS, sample_weight=WEIGHT)
    assert model.status_.is_converged
    assert model.gap_ <= 1e-6 * model.objective_
    assert abs(model.objective_ - optimum) <= model.gap_ + ORACLE * optimum
    logarithms = model.predict_log_proba(X)
    value = (
        np.linalg.svd(model.coef_, compute_uv=False).sum()
        if norm == "trace"
        else np.linalg.norm(model.coef_, axis=0).sum()
    )
    here = -s @ logarithms[np.arange(50), CODES] + 0.05 * value
    assert_allclose(here, model.objective_, rtol=1e-9)
    assert_allclose(np.exp(logarithms), model.predict_proba(X), rtol=1e-9)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_warm_start_frames_and_pickle() -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    model = AtomicRegressor("trace", alpha=0.3, warm_start=True).fit(frame, Y)
    passes = model.n_passes_
    model.fit(frame, Y)
    assert model.n_passes_ <= passes
    assert list(model.feature_names_in_) == list(frame.columns)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(frame), model.predict(frame))
    assert clone(model).get_params() == model.get_params()
    single = AtomicRegressor("trace", alpha=0.3).fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.coef_.dtype == np.float64
    assert_allclose(single.objective_, model.objective_, rtol=1e-4)


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match="multi_class must be"):
        AtomicClassifier(multi_class="softmax").fit(X, LABELS)
    with pytest.raises(ValueError, match="loss='logistic'"):
        AtomicClassifier(multi_class="multinomial", loss="squared_hinge").fit(X, LABELS)
    with pytest.raises(ValueError, match="features='linear'"):
        AtomicRegressor(features="interactions").fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AtomicRegressor("rows").fit(X, Y[:-1])


def low_rank_case() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    clean = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    return clean, np.where(rng.random((60, 40)) < 0.05, 10.0, 0.0)


def test_sparse_low_rank_separates() -> None:
    clean, spikes = low_rank_case()
    model = SparseLowRank().fit(clean + spikes)
    assert model.status_.is_converged
    assert np.linalg.norm(model.low_rank_ - clean) < 0.05 * np.linalg.norm(clean)
    assert ((np.abs(model.sparse_) > 5) == (spikes > 0)).all()
    assert model.components_.shape[0] == 2
    assert_allclose(model.ratio_, 1 / np.sqrt(60))
    residual = clean + spikes - model.low_rank_ - model.sparse_
    singular = np.linalg.svd(model.low_rank_, compute_uv=False)
    gauge = singular.sum() + model.ratio_ * np.abs(model.sparse_).sum()
    here = 0.5 * (residual**2).mean() + model.alpha_ * gauge
    assert_allclose(here, model.objective_, rtol=1e-9)
    assert_allclose(model.singular_values_, singular[:2], rtol=1e-6)
    assert model.get_feature_names_out().tolist() == ["sparselowrank0", "sparselowrank1"]


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_transform_is_robust(form: str) -> None:
    """New rows with gross errors, against Huber regression solved by CVXPY."""
    clean, spikes = low_rank_case()
    options = {"radius": 200.0} if form == "constrained" else {}
    alpha = 0.005 / 2000 if form == "squared" else None
    model = SparseLowRank(alpha, form=form, tol=1e-4, **options).fit(clean[:50] + spikes[:50])
    fresh = clean[50:53] + spikes[50:53]
    coordinates = model.set_params(tol=1e-7).transform(fresh)
    for x, c in zip(fresh, coordinates, strict=True):
        unknown = cp.Variable(c.size)
        deviation = x - model.components_.T @ unknown
        huber = 0.5 * cp.sum(cp.huber(deviation, model._threshold))
        cp.Problem(cp.Minimize(huber)).solve(solver=cp.CLARABEL)
        assert_allclose(c, unknown.value, atol=1e-3 * (1 + np.abs(c).max()))


def test_sparse_low_rank_against_cvxpy() -> None:
    M = np.random.default_rng(3).normal(size=(9, 7))
    L, S = cp.Variable((9, 7)), cp.Variable((9, 7))
    gauge = cp.normNuc(L) + 0.4 * cp.sum(cp.abs(S))
    objective = 0.5 * cp.sum_squares(M - L - S) + 0.6 * gauge
    optimum = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    model = SparseLowRank(0.6 / M.size, 0.4).fit(M)
    optimum /= M.size
    assert -1e-7 * optimum <= model.objective_ - optimum <= model.gap_ + 1e-7 * optimum


def test_sparse_pca_finds_blocks() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, 2)) * [2.0, 1.5]
    data = 0.2 * rng.normal(size=(400, 12))
    data[:, :3] += hidden[:, :1]
    data[:, 5:8] += hidden[:, 1:]
    model = SparsePCA(n_features=3, n_components=2).fit(data)
    found = [np.flatnonzero(row).tolist() for row in model.components_]
    assert found == [[0, 1, 2], [5, 6, 7]]
    assert model.search_gap_ <= 1e-4 * model.objective_
    assert model.gap_ >= model.search_gap_
    # Uncorrelated directions explain the variances of their projections.
    projected = model.transform(data)
    assert_allclose(model.explained_variance_, projected.var(axis=0, ddof=1), rtol=0.02)
    assert 0.8 < model.explained_variance_ratio_.sum() < 1.0
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1.0)


def test_all_features_are_principal_components() -> None:
    """With k = p the gauge is that of PSD matrices: eigenvalues, less N alpha."""
    data = np.random.default_rng(2).normal(size=(80, 5)) * [3, 2, 1, 1, 1]
    model = SparsePCA(n_features=5, alpha=1.5 / 25, tol=1e-8).fit(data)
    values, vectors = np.linalg.eigh(np.cov(data.T))
    W = (vectors * np.maximum(values - 1.5, 0)) @ vectors.T
    fitted = (model.components_.T * model.weights_) @ model.components_
    assert_allclose(fitted, W, atol=1e-3)


# What the planes are: blocks without a link between them.
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_matrix_pursuit_clusters_planes() -> None:
    rng = np.random.default_rng(0)
    planes = [rng.normal(size=(20, 2)) @ rng.normal(size=(2, 10)) for _ in range(3)]
    truth = np.repeat([0, 1, 2], 20)
    model = MatrixPursuit(alpha=0.1 / 600).fit(np.vstack(planes))
    assert model.status_.is_converged
    affinity = model.affinity_
    assert abs(affinity - affinity.T).max() == 0
    assert affinity.min() >= 0
    labels = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(affinity)
    assert adjusted_rand_score(truth, labels) == 1.0
    rows = np.vstack(planes)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    W = model.coef_.toarray()
    gauge = norms.KSupport(4 * 60).value(W.ravel())
    here = 0.5 * ((rows.T - rows.T @ W) ** 2).mean() + 0.05 / rows.size * gauge**2
    assert_allclose(here, model.objective_, rtol=1e-9)


def test_sparse_components_end_at_their_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is NP-hard: the best point is returned, with the gap that is proved."""
    monkeypatch.setattr(time, "monotonic", time.process_time)
    assert SparsePCA().time_limit == 60.0
    data = np.random.default_rng(0).standard_normal((120, 60))
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = SparsePCA(time_limit=0.3).fit(data)
    assert time.process_time() - began < 3.0
    assert model.status_ is Status.TIME_LIMIT
    W = (model.components_.T * model.weights_) @ model.components_
    S = np.cov(data.T)
    value = 0.5 * np.mean((S - W) ** 2) + model.alpha_ * model.weights_.sum()
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.gap_ > 1e-4 * model.objective_
    # Nothing below the bound: the diagonal of S is a feasible point, of atoms with one non-zero.
    diagonal = np.maximum(np.diag(S) - S.size * model.alpha_, 0.0)
    other = 0.5 * np.mean((S - np.diag(diagonal)) ** 2) + model.alpha_ * diagonal.sum()
    assert model.objective_ - model.gap_ <= other
