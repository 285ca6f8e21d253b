"""Cox's partial likelihood: by its textbook sums, its conjugate, fits against another solver."""

from __future__ import annotations

import importlib
import pickle
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize

from atomlearn import norms, solve
from atomlearn.core.solvers.column_generation import ColumnGeneration, Pace
from atomlearn.losses import Cox, as_loss, survival_target
from atomlearn.survival.concordance import concordance

Array = NDArray[np.float64]
Ties = Literal["efron", "breslow"]
KINDS = [(ties, truncated) for ties in ("efron", "breslow") for truncated in (False, True)]


def sample(seed: int, truncated: bool, n: int = 25) -> tuple[NDArray[Any], Array, Array]:
    """Return targets with ties and strata, predictions and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, n).astype(float)
    entry = time - rng.integers(1, 6, n) if truncated else None
    y = survival_target(rng.random(n) < 0.7, time, entry, rng.integers(0, 2, n))
    s = rng.uniform(0.5, 2.0, n)
    s[rng.random(n) < 0.1] = 0.0
    return y, 2.0 * rng.standard_normal(n), s


def terms(y: Any, s: Array, ties: str) -> list[tuple[float, Array, Array, float]]:
    """Return of each sum its weight omega, its factors c, its events, and its least value."""
    found = []
    for stratum in np.unique(y["stratum"]):
        mine = (y["stratum"] == stratum) & (s > 0)
        for t in np.unique(y["time"][mine & y["event"]]):
            at_risk = mine & (y["entry"] < t) & (y["time"] >= t)
            tied = at_risk & y["event"] & (y["time"] == t)
            k, d = int(tied.sum()), float(s[tied].sum())
            for j in range(k if ties == "efron" else 1):
                omega = d / k if ties == "efron" else d
                c = s * at_risk * (1.0 - j / k * tied)
                found.append((omega, c, tied, omega * np.log(d * (1.0 - j / k))))
    return found


def textbook(y: Any, z: Array, s: Array, ties: str) -> float:
    """Return the loss, sum by sum."""
    sums = sum(w * np.log(c @ np.exp(z)) - least for w, c, _, least in terms(y, s, ties))
    return float(sums - (s * z)[y["event"]].sum())


@pytest.mark.parametrize(("ties", "truncated"), KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_value_and_derivatives_are_the_textbooks(ties: Ties, truncated: bool, seed: int) -> None:
    y, z, s = sample(seed, truncated)
    loss, step, eye = Cox(ties), 1e-5, np.eye(y.size)
    assert loss.value(y, z, s) == pytest.approx(textbook(y, z, s, ties), rel=1e-11)
    assert loss.value(y, z, s) >= 0.0
    each = [textbook(y, z + step * e, s, ties) - textbook(y, z - step * e, s, ties) for e in eye]
    gradient = loss.gradient(y, z, s)
    assert_allclose(gradient, np.array(each) / (2 * step), atol=1e-7)
    c, K = loss.coupling(y, z, s)
    turns = [loss.gradient(y, z + step * e, s) - loss.gradient(y, z - step * e, s) for e in eye]
    assert_allclose(np.diag(c) - K @ (K.T @ eye), np.array(turns) / (2 * step), atol=1e-7)
    assert_allclose(loss.curvature(y, z, s), c)
    assert_allclose(K @ (K.T @ eye[0]), (K @ (K.T @ eye))[:, 0], rtol=1e-13)


@pytest.mark.parametrize(("ties", "truncated"), KINDS)
def test_the_conjugate_is_the_supremum_or_above(ties: Ties, truncated: bool) -> None:
    y, z, s = sample(5, truncated)
    loss = Cox(ties)
    u = loss.gradient(y, z, s)
    exact = float(u @ z) - loss.value(y, z, s)
    assert loss.conjugate_along(y, z, u, s, 1.0) == pytest.approx(exact, rel=1e-12)
    if not truncated:
        assert loss.conjugate(y, u, s) == pytest.approx(exact, rel=1e-9)
    short = 0.7 * u
    found = minimize(
        lambda p: loss.value(y, p, s) - short @ p,
        z,
        jac=lambda p: loss.gradient(y, p, s) - short,
        method="L-BFGS-B",
        options={"maxiter": 300},
    )
    bound = loss.conjugate_along(y, z, u, s, 0.7)
    assert bound >= -found.fun - 1e-9
    if not truncated:
        assert bound == pytest.approx(-found.fun, abs=1e-4)
    assert loss.conjugate(y, u + 0.1, s) == np.inf


@pytest.mark.parametrize(("ties", "truncated"), KINDS)
def test_fits_against_another_solver(ties: Ties, truncated: bool) -> None:
    cp = importlib.import_module("cvxpy")
    y, _, s = sample(7, truncated, 40)
    X = np.random.default_rng(7).standard_normal((40, 8))
    found = solve(X, y, loss=Cox(ties), level=1.0, sample_weight=s, gap=1e-9)
    assert found.converged
    w = cp.Variable(8)
    value = -(s * y["event"]) @ (X @ w) + cp.norm1(w)
    for omega, c, _, least in terms(y, s, ties):
        kept = c > 0
        value += omega * cp.log_sum_exp(X[kept] @ w + np.log(c[kept])) - least
    program = cp.Problem(cp.Minimize(value))
    program.solve(solver="CLARABEL")
    assert found.objective == pytest.approx(float(program.value), rel=1e-6)
    assert found.objective - found.gap <= float(program.value) + 1e-6


def test_groups_and_many_columns_are_certified() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((100, 400))
    y = survival_target(rng.random(100) < 0.6, rng.exponential(np.exp(-X[:, 0])))
    for norm in (norms.L1(), norms.Groups([list(range(i, i + 4)) for i in range(0, 400, 4)])):
        found = solve(X, y, loss="cox", norm=norm, level=4.0)
        assert found.converged
        assert 0 in found.columns


def test_far_predictions_keep_their_order() -> None:
    y, z, s = sample(9, False)
    with np.errstate(all="raise", under="ignore"):
        for scale in (1e2, 1e4):
            value = Cox().value(y, scale * z, s)
            gradient = Cox().gradient(y, scale * z, s)
            assert np.isfinite(value)
            assert value >= 0.0
            assert abs(gradient.sum()) <= 1e-9 * np.abs(gradient).sum()


def test_targets_are_read_and_refused() -> None:
    given = np.array([(True, 1.0), (False, 2.0)], dtype=[("cens", "?"), ("days", "f8")])
    read = as_loss("cox").check_target(given)
    assert read["time"].tolist() == [1.0, 2.0]  # type: ignore[call-overload]
    for wrong, message in (
        (np.ones(3), "structured array"),
        (given[:0], "empty"),
        (np.array([(True, np.nan)], dtype=given.dtype), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Cox().check_target(wrong)
    with pytest.raises(ValueError, match="entry is not before"):
        survival_target([True], [1.0], entry=[1.0])
    with pytest.raises(ValueError, match="1 samples at times < 0, the first at index 1"):
        survival_target([True, True], [0.0, -2.0])
    with pytest.raises(ValueError, match="has no intercept"):
        solve(np.ones((2, 1)), given, loss="cox", level=1.0, intercept=True)


def test_what_a_loss_remembers_of_its_data_is_no_part_of_it() -> None:
    """It is equal to a fresh one, is pickled without data, and follows other data at once."""
    rng = np.random.default_rng(0)
    y = survival_target(rng.random(2000) < 0.5, rng.integers(1, 50, 2000).astype(float))
    z, s = rng.standard_normal(2000), np.ones(2000)
    loss = Cox()
    whole = loss.value(y, z, s)
    assert loss == Cox()
    assert len(pickle.dumps(loss)) < 500
    assert loss.value(y[:900], z[:900], s[:900]) == Cox().value(y[:900], z[:900], s[:900])
    assert loss.value(y, z, 2 * s) == Cox().value(y, z, 2 * s) != whole


@pytest.mark.parametrize("far", [2e3, 1e6])
@pytest.mark.parametrize("norm", [norms.L1(), norms.OWL(np.linspace(1.0, 0.2, 12))])
def test_columns_far_from_zero_cost_what_centered_ones_cost(far, norm):
    """A year is such a column. Its mean is in every prediction, and changes nothing."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 12))
    y = survival_target(rng.random(50) < 0.7, np.exp(X[:, 0] + rng.standard_normal(50)))
    near = solve(X, y, loss="cox", norm=norm, level=1.0, gap=1e-6)
    found = solve(X + far, y, loss="cox", norm=norm, level=1.0, gap=1e-6)
    assert found.converged
    assert found.passes <= near.passes + 1
    assert found.intercept == 0.0
    assert abs(found.objective - near.objective) <= 2e-6 * near.objective
    # The point is that of the columns as they were given.
    whole = Cox().value(y, X @ found.coef, np.ones(50)) + norm.on(12).value(found.coef)
    assert_allclose(whole, found.objective, rtol=1e-7)


def test_a_shift_changes_nothing() -> None:
    y, z, s = sample(3, truncated=True)
    assert Cox().shift_invariant
    assert_allclose(Cox().value(y, z + 5.0, s), Cox().value(y, z, s), rtol=1e-12)


def test_concordance_counts_every_comparable_pair() -> None:
    """Risks differ by hundredths, some are equal, and times are shared by events and others."""
    rng = np.random.default_rng(3)
    y = survival_target(rng.random(30) < 0.6, rng.integers(1, 6, 30).astype(float))
    risk = rng.integers(0, 12, 30) / 100
    right = pairs = 0.0
    for i in np.flatnonzero(y["event"]):
        for j in range(30):
            if y["time"][j] > y["time"][i] or (y["time"][j] == y["time"][i] and not y["event"][j]):
                pairs += 1
                right += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    assert concordance(y, risk) == right / pairs


def test_a_low_level_is_approached_by_higher_ones() -> None:
    rng = np.random.default_rng(3)
    X = np.asfortranarray(rng.standard_normal((60, 800)))
    y = survival_target(rng.random(60) < 0.7, rng.exponential(np.exp(-X[:, 0])))
    level = 0.02 * np.abs(X.T @ Cox().gradient(y, np.zeros(60), np.ones(60))).max()
    used, objectives = [], []
    for factor in (6.0, np.inf):
        pace = Pace(nearer=factor)
        first = solve(X, y, loss="cox", level=level, solver=ColumnGeneration(pace=pace), max_iter=1)
        whole = solve(X, y, loss="cox", level=level, solver=ColumnGeneration(pace=pace), gap=1e-8)
        assert whole.converged
        used.append(np.count_nonzero(first.coef))
        objectives.append(whole.objective)
    assert 0 < used[0] < used[1]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-7)
