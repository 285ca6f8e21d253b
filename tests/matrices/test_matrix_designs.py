"""Designs of matrices give what the dense array of their p q columns gives, factors included."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn import solve
from atomlearn._support import TimeIsUp
from atomlearn.core import Counted, DenseDesign, unwrapped
from atomlearn.designs import Entries, Identity, Tasks, from_moments
from atomlearn.interfaces import Deadline, Design
from atomlearn.matrices.designs.base import as_matrix_design
from atomlearn.matrices.scores import score_matrix
from atomlearn.norms import TraceNorm
from atomlearn.testing.designs import DesignChecks
from tests.core.data.test_moments import data

P, Q = 7, 6


def tasks(kind: str) -> tuple[Design, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(9, P))
    if kind == "sparse":
        X[np.abs(X) < 0.7] = 0.0
        return Tasks(sp.csc_array(X), Q), np.kron(X, np.eye(Q))
    X = X.astype(np.float32 if kind == "float32" else np.float64)
    return Tasks(X, Q), np.kron(X.astype(np.float64), np.eye(Q))


def entries(kind: str) -> tuple[Design, np.ndarray]:
    rng = np.random.default_rng(1)
    flat = rng.permutation(P * Q)[:25]
    if kind == "repeated":
        flat = np.concatenate([flat, flat[:5], flat[3:4]])
    if kind == "sorted":
        flat = np.sort(flat)
    dense = np.zeros((flat.size, P * Q))
    dense[np.arange(flat.size), flat] = 1.0
    return Entries(flat // Q, flat % Q, (P, Q)), dense


class TestIdentity(DesignChecks):
    def build(self) -> tuple[Design, np.ndarray]:
        return Identity((P, Q)), np.eye(P * Q)


class TestUnfolded(DesignChecks):
    def build(self) -> tuple[Design, np.ndarray]:
        order = np.moveaxis(np.arange(P * Q).reshape(P, 2, 3), 1, 0).reshape(-1)
        design = as_matrix_design(Identity((P, 2, 3)), (2, 3 * P), (P, 2, 3), 1)
        return design, np.eye(P * Q)[:, order]


@pytest.mark.parametrize("kind", ["float32", "sparse"])
class TestTasks(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, kind: str) -> None:
        self.kind = kind

    def build(self) -> tuple[Design, np.ndarray]:
        return tasks(self.kind)


@pytest.mark.parametrize("kind", ["sorted", "repeated"])
class TestEntries(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, kind: str) -> None:
        self.kind = kind

    def build(self) -> tuple[Design, np.ndarray]:
        return entries(self.kind)


def sensing() -> tuple[Design, np.ndarray]:
    X = np.random.default_rng(2).normal(size=(11, P * Q))
    return as_matrix_design(DenseDesign(X), (P, Q)), X


CASES = {
    "identity": lambda: (Identity((P, Q)), np.eye(P * Q)),
    "tasks-float32": lambda: tasks("float32"),
    "tasks-sparse": lambda: tasks("sparse"),
    "entries-repeated": lambda: entries("repeated"),
    "sensing": sensing,
    "counted": lambda: (Counted(entries("plain")[0]), entries("plain")[1]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("r", "s"), [(2, 3), (0, 2)])
def test_factored_products(name: str, r: int, s: int) -> None:
    """Spans, rays and matrices of scores agree with W and Z formed in full."""
    design, X = CASES[name]()
    assert design.traits.matrix_shape == (P, Q)
    rng = np.random.default_rng(3)
    left, right, S = rng.normal(size=(P, r)), rng.normal(size=(Q, s)), rng.normal(size=(r, s))
    v = rng.normal(size=X.shape[0])
    Z = (X.T @ v).reshape(P, Q)
    known = unwrapped(design)
    span = known.span(left, right)
    assert span.shape == (X.shape[0], r * s)
    assert_allclose(span.predict(S.reshape(-1)), X @ (left @ S @ right.T).reshape(-1), atol=1e-12)
    assert_allclose(span.scores(v).full(), (left.T @ Z @ right).reshape(-1), atol=1e-12)
    both = rng.normal(size=(Q, r))
    rays, c = known.rays(left, both), rng.normal(size=r)
    assert_allclose(rays.predict(c), X @ ((left * c) @ both.T).reshape(-1), atol=1e-12)
    assert_allclose(rays.scores(v).full(), np.einsum("ij,ij->j", left, Z @ both), atol=1e-12)
    if r:
        dense = np.column_stack([X @ np.outer(left[:, i], both[:, i]).ravel() for i in range(r)])
        assert_allclose(rays.dense(), dense, atol=1e-12)
        curvature = rng.random(X.shape[0])
        assert_allclose(rays.gram(curvature), dense.T @ (curvature[:, None] * dense), atol=1e-11)
    matrix = score_matrix(design.scores(v), (P, Q))
    assert_allclose(matrix.dense(), Z, atol=1e-12)
    assert_allclose(matrix.dot(right), Z @ right, atol=1e-12)
    assert_allclose(matrix.transpose_dot(left), Z.T @ left, atol=1e-12)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_unfoldings_agree(mode: int) -> None:
    """All designs unfold a tensor the same way, their samples left alone."""
    shape = (3, 4, 2)
    rng = np.random.default_rng(4)
    W, flat = rng.normal(size=shape), rng.permutation(24)[:15]
    unfolding = np.moveaxis(W, mode, 0).reshape(-1)
    own = (shape[mode], 24 // shape[mode])
    whole = as_matrix_design(Identity(shape), own, shape, mode)
    assert_allclose(whole.predict(unfolding), W.reshape(-1))
    some = as_matrix_design(Entries(flat, None, shape), own, shape, mode)
    assert_allclose(some.predict(unfolding), W.reshape(-1)[flat])
    X = rng.normal(size=(5, 24))
    sensed = as_matrix_design(DenseDesign(X), own, shape, mode)
    assert_allclose(sensed.predict(unfolding), X @ W.reshape(-1))
    U, s, Vt = np.linalg.svd(unfolding.reshape(own), full_matrices=False)
    for design in (whole, some, sensed):
        image = design.rays(U, Vt.T).predict(s)
        assert_allclose(image, design.predict(unfolding), atol=1e-12)
        v = rng.normal(size=design.shape[0])
        pulled = np.einsum("ij,ji->i", U.T @ design.scores(v).as_matrix.dense(), Vt.T)
        assert_allclose(design.rays(U, Vt.T).scores(v).full(), pulled, atol=1e-12)


def test_memory_of_entries_is_that_of_the_observed() -> None:
    """A matrix of 10^12 entries, of which 20 are observed, is no burden."""
    rng = np.random.default_rng(5)
    rows, cols = rng.integers(0, 10**6, 20), rng.integers(0, 10**6, 20)
    design = Entries(rows, cols, (10**6, 10**6))
    scores = design.scores(rng.normal(size=20))
    assert scores.top(30)[0].size == 30
    assert np.count_nonzero(scores.top(30)[1]) == 20
    with pytest.raises(TypeError, match="not made dense"):
        scores.full()
    with pytest.raises(TypeError, match="not made dense"):
        scores.as_matrix.dense()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Entries([0, 1], [0], (2, 2)), "one length"),
        (lambda: Entries([0, 2], [0, 1], (2, 2)), r"rows\[1\] is 2"),
        (lambda: Entries([0.0], [0], (2, 2)), "whole numbers"),
        (lambda: Entries(np.zeros(0, int), np.zeros(0, int), (2, 2)), "at least one"),
        (lambda: Identity((3,)), "two or more"),
        (lambda: Identity((3, 0)), "two or more"),
        (lambda: Tasks(np.ones((2, 2)), 0), "n_tasks"),
        (lambda: as_matrix_design(DenseDesign(np.ones((2, 5))), (2, 2)), "4 entries"),
    ],
)
def test_refusals_name_the_remedy(build, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        build()


def test_the_matrix_norms_take_it_as_columns() -> None:
    """Columns that are entries of a matrix go on being so: R as a design of matrices."""
    from atomlearn.matrices.designs.base import as_matrix_design

    X, y = data(4, p=12)
    n = len(y)
    R, t = from_moments(X.T @ X / n, X.T @ y / n)
    settings = {"norm": TraceNorm(), "alpha": 6.0 / n, "tol": 1e-8, "fit_intercept": False}
    rows = solve(as_matrix_design(DenseDesign(X), (3, 4)), y, **settings)
    moments = solve(as_matrix_design(R, (3, 4)), t, **settings)
    assert_allclose(moments.coef, rows.coef, atol=1e-4)


def test_a_long_product_ends_when_time_is_up() -> None:
    rays = Identity((2, 2)).rays(np.eye(2), np.eye(2))
    with Deadline.after(1e4).kept():
        rays.dense()
    with Deadline.after(-1.0).kept(), pytest.raises(TimeIsUp):
        rays.dense()
