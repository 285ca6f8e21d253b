"""Anova: curves and surfaces equal columns written out; the best pair of all is found."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import AtomicRegressor, norms
from atomlearn.core import LIMITS
from atomlearn.designs import Additive, Anova, as_design
from atomlearn.maps.terms import CodedBlock
from tests.oracles.sums import solve_sum


def data(seed: int = 0, n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 1] = X[:, 1] > 0
    X[:, 2] = 3.0
    X[:, 3] = np.round(X[:, 3])
    return X


def whole(design: Additive) -> np.ndarray:
    return np.asarray(design.gather(np.arange(design.shape[1])), dtype=np.float64)


def written_out(design: Anova, X: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return all columns from the levels of single inputs, value by value."""
    map, weight = design.map, np.ones(len(X)) if weight is None else weight
    columns = [whole(Additive.from_map(X, map.main))]
    margin = whole(Additive.from_map(X, map.margin))
    ends = np.cumsum(map.margin.sizes)
    parts = np.split(margin, ends[:-1], axis=1)
    centered = [part - weight @ part / weight.sum() for part in parts]
    for i, j in zip(map.first, map.second, strict=True):
        products = centered[i][:, :, None] * centered[j][:, None, :]
        columns.append(products.reshape(len(X), -1))
    return np.concatenate(columns, axis=1)


@pytest.mark.parametrize("kernel", ["splines", "intersection", "gaussian"])
@pytest.mark.parametrize("normalize", [False, True])
def test_equals_columns_written_out(kernel, normalize):
    X, rng = data(), np.random.default_rng(1)
    weight = rng.integers(0, 3, len(X)).astype(float)
    design = Anova(X, kernel, normalize=normalize, sample_weight=weight)
    Phi = written_out(design, X, weight)
    assert design.shape == Phi.shape
    every = np.arange(Phi.shape[1])
    assert_allclose(np.asarray(design.gather(every)), Phi, atol=1e-12)
    v, w = rng.standard_normal(len(X)), rng.standard_normal(Phi.shape[1])
    z, scores = Phi.T @ v, design.scores(v)
    groups = design.groups
    expected = np.sqrt(np.bincount(groups, z * z))
    assert_allclose(scores.group_norms(groups, design.n_groups), expected, atol=1e-10)
    some = rng.permutation(Phi.shape[1])[:6]
    assert_allclose(scores.at(some), z[some], atol=1e-10)
    assert_allclose(scores.full(), z, atol=1e-10)
    assert_allclose(design.predict(w), Phi @ w, atol=1e-10)
    assert_allclose(design.squared_norms(v**2), (v**2) @ Phi**2, atol=1e-10)


def test_constant_inputs_have_no_terms_and_pairs_can_be_chosen():
    design = Anova(data(), pairs=[(4, 0), (1, 2), (3, 1)])
    assert design.terms == [(0,), (1,), (3,), (4,), (0, 4), (1, 3)]
    assert Anova(data(), pairs=[]).shape[1] == Additive(data(), "splines").shape[1]
    names = design.feature_names([0, design.shape[1] - 1], list("abcde"))
    assert names[0] == "a[0]"
    assert names[1].startswith("b:d[")


def test_products_have_mean_zero_in_each_input():
    X = data(3, 200)
    design = Anova(X)
    i, j = int(design.map.first[0]), int(design.map.second[0])
    for input_ in (i, j):
        table = design.map.table(input_)
        codes = design.codes[:, input_]
        assert_allclose(table[codes].mean(axis=0), 0.0, atol=1e-12)


def test_large_blocks_stay_coded_and_sparse_data_is_the_same(monkeypatch):
    monkeypatch.setattr("atomlearn.maps.terms.LIMITS", replace(LIMITS, piece_entries=0))
    X = np.zeros((3000, 3))
    rng = np.random.default_rng(4)
    X[rng.random(X.shape) < 0.2] = 1.5
    X[:, 0] *= rng.integers(-3, 4, len(X))
    X[:, 2] += rng.standard_normal(len(X)) * (X[:, 2] > 0)
    dense, sparse = Anova(X), Anova(sp.csr_array(X))
    v = rng.standard_normal(len(X))
    assert_allclose(dense.scores(v).full(), sparse.scores(v).full(), atol=1e-9)
    block = dense.gather(np.arange(dense.shape[1]))
    assert isinstance(block, CodedBlock)
    Phi = written_out(dense, X)
    assert_allclose(block.scores(v).full(), Phi.T @ v, atol=1e-8)
    assert_allclose(block.gram(v**2), Phi.T @ (v[:, None] ** 2 * Phi), rtol=1e-9, atol=1e-6)


def test_the_planted_surface_is_found_and_predicts_new_rows():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (600, 30))
    y = np.sin(3 * X[:, 7]) + 4 * X[:, 3] * (np.abs(X[:, 21]) - 0.5)
    design = Anova(X[:400], normalize=True)
    result = solve_sum(
        design, y[:400], norm=norms.Groups(design.groups), level=60.0, fit_intercept=True
    )
    assert result.converged
    used = {design.terms[g] for g in np.unique(design.groups[result.columns])}
    assert used == {(7,), (3, 21)}
    new = Anova.from_map(X[400:], pickle.loads(pickle.dumps(design.map)))
    found = new.gather(result.columns).predict(result.weights) + result.intercept
    assert np.corrcoef(found, y[400:])[0, 1] > 0.9
    values, other, surface = design.map.surface(3, 21, result.coef)
    assert surface.shape == (values.size, other.size)
    assert_array_equal(design.map.surface(21, 3, result.coef)[2], surface.T)
    # |x| is symmetric, and the slope in x_3 grows with it.
    rise = surface[-1] - surface[0]
    assert rise[0] > rise[rise.size // 2] < rise[-1]


def test_certificate_is_of_all_pairs():
    X = data(6, 80)
    design = Anova(X, normalize=True)
    y = X[:, 0] * X[:, 4] + 0.1 * np.random.default_rng(0).standard_normal(len(X))
    norm = norms.Groups(design.groups)
    found = solve_sum(design, y, norm=norm, level=4.0, tol=1e-9)
    stored = solve_sum(as_design(written_out(design, X)), y, norm=norm, level=4.0, tol=1e-9)
    assert found.converged
    assert stored.converged
    assert_allclose(found.objective, stored.objective, rtol=1e-8)


def test_estimators_take_the_design():
    X = data(7, 100)
    design = Anova(X, normalize=True)
    y = X[:, 0] * X[:, 4]
    model = AtomicRegressor(norms.Groups(design.groups), 0.05).fit(design, y)
    new = Anova.from_map(X, design.map)
    assert model.score(new, y) > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [(0, 0)]}, "two different inputs"),
        ({"pairs": [(0, 9)]}, "two different inputs"),
        ({"pairs": [(0, 1), (1, 0)]}, "named once"),
        ({"pairs": [(0.5, 1.0)]}, "whole numbers"),
        ({"pairs": 3}, "list of pairs"),
        ({"n_bins": 16}, "between 1 and 15"),
        ({"n_bins": 2.5}, "n_bins must be a whole number"),
        ({"kernel": "cubic"}, "kernel must be one of"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Anova(data(), **arguments)


def test_more_columns_than_can_be_listed_are_refused():
    X = np.random.default_rng(8).standard_normal((30, 900))
    with pytest.raises(ValueError, match="name fewer pairs"):
        Anova(X, "intersection")
