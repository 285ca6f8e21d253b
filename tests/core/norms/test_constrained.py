"""Constrained: the conformance suite on cones, and minima with constraints that CVXPY finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from atomlearn import paths, solve
from atomlearn.norms import L1, Constrained, Scaled
from atomlearn.testing.norms import NormChecks

P = 12
ROWS = np.random.default_rng(5).standard_normal((3, P))
LIMITS = np.array([0.1, 0.2, -0.05])
#: w_1 <= w_2 <= ...
INCREASING = -np.diff(np.eye(P), axis=0)
SUM = np.ones((1, P))


class TestTwoRows(NormChecks):
    """w_0 + 2 w_3 = w_5 and w_1 <= 0, with weights."""

    n_features, symmetric = 8, False
    norm = Constrained(
        [{0: 1, 3: 2, 5: -1}, {1: 1}], 0, [0, -np.inf], L1(weights=np.linspace(0.5, 2, 8))
    )
    changes = {"norm": L1()}

    def inside(self, w):
        w = np.array(w, dtype=np.float64)
        w[1] = min(w[1], 0.0)
        used = [j for j in (0, 3, 5) if w[j]]
        row = np.array([1.0, 0, 0, 2.0, 0, -1.0])[used]
        w[used] -= row * (row @ w[used]) / max(row @ row, 1.0)
        if len(used) == 1:
            w[used] = 0.0
        return w


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, P))
    weights = np.concatenate([[0.5, 0.3, 0.2], np.zeros(P - 3)])
    return X, X @ weights + 0.3 * rng.standard_normal(60)


NORMS = {
    "zero inside": Constrained(ROWS, np.abs(LIMITS)),
    "zero outside": Constrained(ROWS, LIMITS),
    "sum is one": Constrained(SUM, 1, 1),
    "one as two rows": Constrained(np.vstack([SUM, -SUM]), [1, -1]),
    "shares": Constrained(SUM, 1, 1, L1(lower=0)),
    "bounds and weights": Constrained(
        sparse.csr_array(ROWS),
        np.abs(LIMITS),
        -0.1,
        L1(weights=np.linspace(0.5, 2, P), lower=-0.2, upper=0.3),
    ),
    "increasing": Constrained(INCREASING),
}


def constraints_of(cp: Any, norm: Constrained, w: Any) -> tuple[list[Any], Any]:
    """Return the constraints for CVXPY and the l1 norm, read from the parameters."""
    A = norm.A.toarray() if sparse.issparse(norm.A) else np.asarray(norm.A)
    upper = 0.0 if norm.upper is None and norm.lower is None else norm.upper
    limits = [A @ w <= upper] if upper is not None else []
    limits += [A @ w >= norm.lower] if norm.lower is not None else []
    price = np.ones(P)
    if isinstance(norm.norm, L1):
        limits += [w >= norm.norm.lower] if norm.norm.lower is not None else []
        limits += [w <= norm.norm.upper] if norm.norm.upper is not None else []
        price = price if norm.norm.weights is None else norm.norm.weights
    return limits, cp.sum(cp.multiply(price, cp.abs(w)))


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.05},
        {"alpha": 0.05, "l1_ratio": 0.5},
        {"alpha": 0.05, "form": "squared"},
        {"form": "constrained", "radius": 0.7},
        {"alpha": 0.02, "loss": "logistic"},
    ],
    ids=lambda options: "-".join(options),
)
def test_minimum_is_that_of_cvxpy(data: Any, name: str, options: dict[str, Any]) -> None:
    cp = pytest.importorskip("cvxpy")
    X, y = data
    norm = NORMS[name]
    form = options.get("form", "penalized")
    if form == "constrained" and name in (
        "zero outside",
        "sum is one",
        "one as two rows",
        "shares",
    ):
        with pytest.raises(ValueError, match="constraints that hold at w = 0"):
            solve(X, y, norm=norm, **options)
        return
    w, b = cp.Variable(P), cp.Variable()
    limits, size = constraints_of(cp, norm, w)
    alpha, ratio = options.get("alpha", 0.0), options.get("l1_ratio", 1.0)
    loss = cp.sum_squares(y - X @ w - b) / 120
    if "loss" in options:
        y = np.where(y > np.median(y), 1.0, -1.0)
        loss = cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))) / 60
    objective = loss + alpha * (1 - ratio) / 2 * cp.sum_squares(w)
    if form == "constrained":
        limits.append(size <= options["radius"])
    else:
        objective += alpha * ratio * (size if form == "penalized" else cp.square(size) / 2)
    problem = cp.Problem(cp.Minimize(objective), limits)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    found = solve(X, y, norm=norm, tol=1e-9, **options)
    assert found.converged
    assert_allclose(found.objective, problem.value, rtol=1e-8)
    assert_allclose(found.coef, w.value, atol=1e-5)
    assert np.isfinite(norm.value(found.coef))
    assert found.verify().lower <= problem.value * (1 + 1e-9)


def test_columns_are_generated_among_many() -> None:
    """The coefficients sum to one; a wrong column has a larger score than a right one."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 1500))
    y = 2.0 * X[:, 7] - X[:, 900] + 0.1 * rng.standard_normal(80)
    rows = np.vstack([np.ones(1500), (np.arange(1500) < 700).astype(float)])
    norm = Constrained(rows, [1, 1.5], [1, -np.inf])
    found = solve(X, y, norm=norm, alpha=0.1, fit_intercept=False, tol=1e-8)
    w = cp.Variable(1500)
    objective = cp.sum_squares(y - X @ w) / 160 + 0.1 * cp.norm1(w)
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(w) == 1, rows[1] @ w <= 1.5])
    problem.solve(solver="CLARABEL")
    assert found.converged
    assert_allclose(found.objective, problem.value, rtol=1e-6)
    assert_allclose([found.coef.sum(), found.coef[:700].sum()], [1.0, 1.5], rtol=1e-9)
    assert found.columns.size < 40


def test_scaled_norm_and_start_outside(data: Any) -> None:
    X, y = data
    plain = solve(X, y, norm=NORMS["shares"], alpha=0.1, tol=1e-10)
    scaled = solve(X, y, norm=Scaled(NORMS["shares"], 2.0), alpha=0.05, tol=1e-10)
    warm = solve(X, y, norm=NORMS["shares"], alpha=0.1, tol=1e-10, warm_start=-np.ones(P))
    for other in (scaled, warm):
        assert other.converged
        assert_allclose(other.coef, plain.coef, atol=1e-6)


def test_path_and_multipliers_of_any_size(data: Any) -> None:
    X, y = data
    found = paths.path(X, y, norm=NORMS["sum is one"], n_alphas=6, tol=1e-8)
    assert max(found.relative_gaps) <= 1e-8
    assert_allclose(np.sum(found.coefs, axis=-1), 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("norm", "message"),
    [
        (Constrained(np.ones((1, 3))), r"12 columns, got shape \(1, 3\)"),
        (Constrained(SUM, [1, 2]), "one for each of the 1 rows"),
        (Constrained(SUM, 1, 2), "lower must not exceed upper"),
        (Constrained(SUM, -1, norm=L1(lower=0)), "no coefficients satisfy all constraints"),
        (Constrained(np.zeros((1, P))), "row 0 of A is zero"),
        (Constrained([{"age": 1}]), "names only in a data frame"),
        (Constrained(SUM, norm=L1(weights=[0.0, *np.ones(P - 1)])), "unpenalized column 0 is in"),
    ],
)
def test_refusals_name_the_remedy(data: Any, norm: Constrained, message: str) -> None:
    X, y = data
    with pytest.raises(ValueError, match=message):
        solve(X, y, norm=norm, alpha=0.1)


def test_other_norms_are_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="norm must be 'l1'"):
        solve(*data, norm=Constrained(SUM, norm="l2"), alpha=0.1)


def test_rows_may_be_mappings_and_lists_in_one() -> None:
    """A mapping and a list of all numbers, by name and by index."""
    mixed = Constrained([{"b": -1.0}, [1.0, 0.0, 1.0]], [0.0, 2.0])
    plain = Constrained([[0.0, -1.0, 0.0], [1.0, 0.0, 1.0]], [0.0, 2.0])
    w = np.array([0.5, 1.0, 1.0])
    assert mixed.with_names(["a", "b", "c"]).value(w) == plain.value(w) == 2.5
    assert plain.value(np.array([3.0, 0.0, 0.0])) == np.inf
    with pytest.raises(ValueError, match="row 1 of A has 2 entries, but X has 3 columns"):
        Constrained([{0: 1.0}, [1.0, 0.0]], [0.0, 2.0]).value(w)
