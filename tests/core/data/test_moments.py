"""Quadratics given by Q and b: the same problem as X and y, dense, in blocks, and refused."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn import norms, solve
from atomlearn.core import DenseDesign, SparseDesign
from atomlearn.core.data import moments
from atomlearn.designs import from_moments
from atomlearn.interfaces import Norm
from atomlearn.testing.cases import each

Array = NDArray[np.float64]

NORMS = [
    norms.KSupport(3),
    norms.Groups([[0, 1, 2], [3, 4], [5, 6]]),
    norms.Nonnegative(norms.L1()),
]


def data(seed: int = 0, n: int = 60, p: int = 10) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    return X, X @ np.where(np.arange(p) < 4, 1.0, 0.0) + rng.standard_normal(n)


@pytest.mark.parametrize(
    ("norm", "form"),
    list(zip(NORMS, ["squared", "penalized", "constrained"], strict=True)),
    ids=repr,
)
def test_every_norm_and_form_has_the_solution_of_the_rows(norm: Norm, form: str) -> None:
    assert_moments_have_the_solution_of_the_rows(norm, form)


def assert_moments_have_the_solution_of_the_rows(norm: Norm, form: str) -> None:
    X, y = data()
    n = len(y)
    R, t = from_moments(X.T @ X / n, X.T @ y / n)
    amount = {"radius": 1.0} if form == "constrained" else {"alpha": 4.0 / n}
    settings = {"norm": norm, "form": form, "tol": 1e-10, "fit_intercept": False, **amount}
    rows, moments = solve(X, y, **settings), solve(R, t, **settings)
    assert_allclose(moments.coef, rows.coef, atol=1e-5)
    constant = 0.5 * (np.mean(y**2) - np.mean(t**2))
    assert_allclose(moments.objective + constant, rows.objective, rtol=1e-9)


def test_the_quadratic_itself_against_cvxpy() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((8, 8))
    Q, b = root @ root.T, rng.standard_normal(8)
    R, t = from_moments(Q, b)
    found = solve(R, t, alpha=0.3, fit_intercept=False, tol=1e-11)
    w = cp.Variable(8)
    quadratic = 0.5 * cp.quad_form(w, cp.psd_wrap(Q)) - b @ w + 0.3 * cp.norm1(w)
    best = cp.Problem(cp.Minimize(quadratic)).solve(solver="CLARABEL")
    assert_allclose(found.objective - 0.5 * np.mean(t**2), best, rtol=1e-6)


@each("seed", range(2))
def test_less_than_full_rank(seed: int) -> None:
    X, y = data(seed, n=6)
    R, t = from_moments(X.T @ X, X.T @ y)
    assert R.shape == (6, 10)
    dense = R.gather(np.arange(10)).dense()
    assert_allclose(dense.T @ dense / 6, X.T @ X, atol=1e-10)
    assert_allclose(dense.T @ t / 6, X.T @ y, atol=1e-9)


def test_blocks_are_the_whole_of_them() -> None:
    rng = np.random.default_rng(2)
    blocks = []
    for size in (3, 1, 4):
        root = rng.standard_normal((size, 5))
        blocks.append(root @ root.T)
    b = rng.standard_normal(8)
    whole = from_moments(sp.block_diag([sp.coo_array(block) for block in blocks]).toarray(), b)
    R, t = from_moments(blocks, b)
    assert isinstance(whole[0], DenseDesign)
    assert isinstance(R, SparseDesign)
    settings = {"norm": norms.KSupport(2), "alpha": 0.4, "form": "squared", "tol": 1e-10}
    settings["fit_intercept"] = False
    found = [solve(*pair, **settings) for pair in (whole, (R, t))]
    assert_allclose(found[0].coef, found[1].coef, atol=1e-5)
    assert_allclose(found[0].objective, found[1].objective, rtol=1e-9)
    # Blocks of a sparse Q are found wherever their columns are.
    order = rng.permutation(8)
    mixed = sp.csr_array(
        sp.block_diag([sp.coo_array(block) for block in blocks]).tocsr()[order][:, order]
    )
    R, t = from_moments(mixed, b[order])
    assert isinstance(R, SparseDesign)
    again = solve(R, t, **settings)
    assert_allclose(again.coef, found[0].coef[order], atol=1e-5)


def test_zeros_are_a_quadratic_too() -> None:
    R, t = from_moments(np.zeros((3, 3)), np.zeros(3))
    assert_array_equal(solve(R, t, alpha=1.0, fit_intercept=False).coef, np.zeros(3))


BAD = [
    (np.ones((2, 3)), np.zeros(3), "square"),
    (np.eye(2), np.zeros(3), "shape"),
    (np.array([[1.0, 2.0], [0.0, 1.0]]), np.zeros(2), "symmetric"),
    (np.diag([1.0, -1.0]), np.zeros(2), "eigenvalue"),
    (np.diag([1.0, 1.0, 0.0]), np.arange(1.0, 4.0), "a part of 3 outside of the range"),
    ([np.eye(2), np.diag([1.0, 0.0])], np.ones(4), "block 1"),
    (np.diag([1.0, np.nan]), np.zeros(2), "finite"),
    (np.eye(2), np.array([1.0, np.inf]), "finite"),
]


@pytest.mark.parametrize(("gram", "correlation", "message"), BAD)
def test_what_is_no_quadratic_is_refused(gram: object, correlation: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_moments(gram, correlation)


def test_rounding_of_symmetry_is_relative_to_the_largest_entry() -> None:
    Q = np.array([[2.0, 1e-13, 0.0], [0.0, 3.0, 1.0], [0.0, 1.0, 1e-3 + 1.0]])
    design, _ = from_moments(Q, np.zeros(3))
    R = design.gather(np.arange(3)).dense()
    assert_allclose(R.T @ R / 3, 0.5 * (Q + Q.T), atol=1e-12)
    with pytest.raises(ValueError, match="not symmetric"):
        from_moments(Q + np.triu(np.full((3, 3), 1e-8), 1), np.zeros(3))


@pytest.mark.parametrize("shape", [(3, 2), (0, 0)])
def test_sparse_moments_that_are_not_square_are_refused(shape):
    with pytest.raises(ValueError, match="gram must be square"):
        moments._components(sp.csr_array(shape))
