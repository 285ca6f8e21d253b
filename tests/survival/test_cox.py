"""Cox's partial likelihood: by its textbook sums, its conjugate, fits against another solver."""

from __future__ import annotations

import importlib
import pickle
import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from atomlearn import norms, paths, solve
from atomlearn.core import FreeColumns
from atomlearn.designs import as_design
from atomlearn.losses import Cox, as_loss, survival_target
from atomlearn.problem import Problem, Regularizer
from atomlearn.survival.cox import concordance
from atomlearn.survival.target import RECORD, checked_survival
from atomlearn.testing.cases import each
from tests.core.losses.test_programs import assert_bounds_are_those_of_scipy, table
from tests.core.paths.test_shared_readings import GAP, data
from tests.core.problem.test_verification import X as VERIFIED
from tests.core.problem.test_verification import assert_verified
from tests.oracles.sums import solve_sum

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
@each("seed", range(2))
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
def test_free_columns_join_the_hessian_by_products(ties: Ties, truncated: bool) -> None:
    """The Hessian is the derivative of the gradient, and no matrix of samples is made for it."""
    y, z, s = sample(2, truncated)
    loss = FreeColumns(Cox(ties), np.random.default_rng(0).standard_normal((25, 2)), False)
    step, eye = 1e-5, np.eye(25)
    c, K = loss.coupling(y, z, s)
    turns = [loss.gradient(y, z + step * e, s) - loss.gradient(y, z - step * e, s) for e in eye]
    assert_allclose(np.diag(c) - K @ (K.T @ eye), np.array(turns) / (2 * step), atol=1e-6)
    assert K.T.shape == K.shape[::-1]
    assert (K.T @ eye).shape == K.T.shape
    n, rng = 3000, np.random.default_rng(1)
    y = survival_target(np.ones(n, dtype=bool), rng.exponential(size=n))
    loss = FreeColumns(Cox(ties), rng.standard_normal((n, 2)), False)
    A, z, s = rng.standard_normal((n, 3)), rng.standard_normal(n), np.ones(n)
    tracemalloc.start()
    c, K = loss.coupling(y, z, s)
    _ = K.T @ A
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 10


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


def grows_without_bound(u: Array, y: Any, s: Array, ties: str) -> bool:
    """Return whether <u, d> is above the slope of f along some d of [-1, 1]^n, far out."""
    sums = terms(y, s, ties)
    n, m = u.size, len(sums)
    cost = np.append(-u - np.where(y["event"], s, 0.0), [omega for omega, *_ in sums])
    # The slope of log sum_i c_i exp(t d_i), t large, is the largest d_i.
    rows = [(i, j) for j, (_, c, _, _) in enumerate(sums) for i in np.flatnonzero(c > 0)]
    A = np.zeros((len(rows), n + m))
    for row, (i, j) in enumerate(rows):
        A[row, i], A[row, n + j] = 1.0, -1.0
    bounds = [(-1.0, 1.0)] * n + [(None, None)] * m
    return float(linprog(cost, A_ub=A, b_ub=np.zeros(len(rows)), bounds=bounds).fun) < -1e-9


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_the_conjugate_is_finite_where_the_supremum_is(ties: Ties) -> None:
    """Moves between two samples keep the sums that have to be 0; some of them are too large."""
    y, z, s = sample(5, False)
    rng, loss = np.random.default_rng(0), Cox(ties)
    found = []
    for _ in range(60):
        u = loss.gradient(y, z, s)
        i, j = rng.choice(y.size, 2, replace=False)
        move = rng.choice([0.02, 0.5]) * rng.random()
        u[i], u[j] = u[i] + move, u[j] - move
        found.append(not grows_without_bound(u, y, s, ties))
        assert np.isfinite(loss.conjugate(y, u, s)) == found[-1]
    assert 5 < sum(found) < 55


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_the_conjugate_at_the_edge_of_its_domain_is_that_next_to_it(ties: Ties) -> None:
    """There each risk set is one tie, or another one of its samples."""
    for seed in range(12):
        y, z, s = sample(seed, False)
        rng, loss = np.random.default_rng(seed), Cox(ties)
        inside, edge = loss.gradient(y, z, s), -np.where(y["event"], s, 0.0)
        for _, c, tied, _ in terms(y, s, "breslow"):
            others = np.flatnonzero((c > 0) & ~tied)
            d = float(s[tied].sum())
            if others.size and rng.random() < 0.5:
                edge[rng.choice(others)] += d
            else:
                edge[tied] += s[tied]
        near = inside + (1.0 - 1e-9) * (edge - inside)
        assert loss.conjugate(y, edge, s) == pytest.approx(loss.conjugate(y, near, s), abs=1e-5)


def test_nothing_is_lost_where_the_order_is_the_likeliest() -> None:
    """The value is that of one of two samples who leaves first: log(1 + exp(-2)) < 1."""
    y, z = survival_target([True, False], [1.0, 2.0]), np.array([2.0, 0.0])
    assert Cox().value(y, z, np.ones(2)) == pytest.approx(np.log1p(np.exp(-2.0)))


def test_where_nothing_happens_the_loss_is_none() -> None:
    y, z, s = survival_target([False] * 3, [1.0, 2.0, 3.0]), np.arange(3.0), np.ones(3)
    assert Cox().value(y, z, s) == 0.0
    assert Cox().gradient(y, z, s).tolist() == [0.0] * 3
    c, K = Cox().coupling(y, z, s)
    assert c.tolist() == [0.0] * 3
    assert (K.T @ np.eye(3)).shape == (0, 3)
    assert np.asarray(K).shape == (3, 0)
    assert Cox().conjugate(y, np.zeros(3), s) == 0.0
    assert Cox().conjugate(y, np.array([0.5, 0.0, 0.0]), s) == np.inf


@pytest.mark.parametrize(("ties", "truncated"), KINDS)
def test_parts_of_a_dual_point_from_none_to_all(ties: Ties, truncated: bool) -> None:
    y, z, s = sample(5, truncated)
    loss = Cox(ties)
    u = loss.gradient(y, z, s)
    assert loss.conjugate_along(y, z, u, s, 0.0) <= 0.0
    for outside in (-0.1, 1.1):
        assert loss.conjugate_along(y, z, u, s, outside) == np.inf


def test_ties_are_treated_in_one_of_two_ways() -> None:
    with pytest.raises(ValueError, match="must be 'efron' or 'breslow', got 'exact'"):
        Cox("exact")  # type: ignore[arg-type]


@pytest.mark.parametrize(("ties", "truncated"), KINDS)
def test_fits_against_another_solver(ties: Ties, truncated: bool) -> None:
    cp = importlib.import_module("cvxpy")
    y, _, s = sample(7, truncated, 40)
    X = np.random.default_rng(7).standard_normal((40, 8))
    found = solve_sum(X, y, loss=Cox(ties), level=1.0, sample_weight=s, tol=1e-9)
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
        found = solve_sum(X, y, loss="cox", norm=norm, level=4.0)
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
    penalty = Regularizer(norms.L1(), "penalized", 1.0)
    with pytest.raises(ValueError, match="has no intercept"):
        Problem.build(as_design(np.ones((2, 1))), given, Cox(), penalty, fit_intercept=True)
    assert solve(np.ones((2, 1)), given, loss="cox", alpha=1.0).intercept == 0.0


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
    other = y[::-1].copy()
    assert loss.value(other, z, 2 * s) == Cox().value(other, z, 2 * s) != whole
    assert loss.value(y, z, 2 * s) == Cox().value(y, z, 2 * s)


@pytest.mark.parametrize("far", [2e3, 1e6])
@pytest.mark.parametrize("norm", [norms.L1(), norms.OWL(np.linspace(1.0, 0.2, 12))])
def test_columns_far_from_zero_cost_what_centered_ones_cost(far, norm):
    """A year is such a column. Its mean is in every prediction, and changes nothing."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 12))
    y = survival_target(rng.random(50) < 0.7, np.exp(X[:, 0] + rng.standard_normal(50)))
    near = solve_sum(X, y, loss="cox", norm=norm, level=1.0, tol=1e-6)
    found = solve_sum(X + far, y, loss="cox", norm=norm, level=1.0, tol=1e-6)
    assert found.converged
    assert found.passes <= near.passes + 1
    assert found.intercept == 0.0
    assert abs(found.objective - near.objective) <= 2e-6 * near.objective
    # The point is that of the columns as they were given.
    whole = Cox().value(y, X @ found.coef, np.ones(50)) + norm.on(12).value(found.coef)
    assert_allclose(whole, found.objective, rtol=1e-7)


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


def test_concordance_of_start_and_stop_counts_those_at_risk_in_the_stratum() -> None:
    rng = np.random.default_rng(4)
    entry, label = rng.integers(0, 4, 40).astype(float), rng.integers(0, 2, 40)
    y = survival_target(rng.random(40) < 0.6, entry + rng.integers(1, 5, 40), entry, label)
    risk = rng.integers(0, 12, 40) / 100
    right = pairs = 0.0
    for i in np.flatnonzero(y["event"]):
        t = y["time"][i]
        for j in range(40):
            later = y["time"][j] > t or (y["time"][j] == t and not y["event"][j])
            if later and entry[j] < t and label[j] == label[i]:
                pairs += 1
                right += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    assert concordance(y, risk) == right / pairs


@pytest.mark.parametrize(
    ("gap", "share"), [(1e-9, 0.5), (1e-8, 0.5), (2e-8, 1.0), (0.5, 1.0), (-2e-8, 0.0)]
)
def test_risks_are_tied_up_to_what_others_take_for_a_tie(gap: float, share: float) -> None:
    y = survival_target([True, True], [1.0, 2.0])
    assert concordance(y, np.array([gap, 0.0])) == share
    assert np.isnan(concordance(y[1:], np.zeros(1)))


def test_events_that_are_neither_seen_nor_not_are_refused():
    given = np.array([(3, 1.0), (1, 2.0)], dtype=[("event", "i4"), ("time", "f8")])
    with pytest.raises(ValueError, match=r"has the labels '1' \(1\), '3' \(1\); name that of"):
        checked_survival(given)
    pairs = np.zeros(2, dtype=[("event", "?", (2,)), ("time", "f8")])
    with pytest.raises(ValueError, match="one label for each row"):
        checked_survival(pairs)
    with pytest.raises(ValueError, match="one for each"):
        survival_target([True, False, True], [1.0, 2.0])


def test_times_that_are_no_numbers_are_told_with_their_field():
    given = np.array([(True, "long"), (False, "short")], dtype=[("event", "?"), ("time", "U8")])
    with pytest.raises(ValueError, match="numbers for its field 'time'"):
        checked_survival(given)


def test_events_may_be_ones_and_zeros_and_nothing_else():
    y = np.array([(1, 2.0), (0, 3.0), (1, 1.0)], dtype=[("event", "i8"), ("time", "f8")])
    assert checked_survival(y)["event"].tolist() == [True, False, True]
    y["event"][1] = 3
    with pytest.raises(ValueError, match="name that of the event"):
        checked_survival(y)


@pytest.mark.parametrize("entry", [np.inf, np.nan])
def test_entries_may_be_minus_infinity_only(entry):
    kinds = [("event", "?"), ("time", "f8"), ("entry", "f8")]
    y = np.array([(True, 2.0, -np.inf), (True, 3.0, entry)], dtype=kinds)
    with pytest.raises(ValueError, match="one finite number for each sample in its field 'entry'"):
        checked_survival(y)
    y["entry"][1] = 1.0
    assert checked_survival(y).dtype == RECORD


@each("seed", range(60))
def test_late_entries_and_weights_of_all_sizes_lose_no_more_than_the_certificate_adds(seed: int):
    """As a difference of running sums the sum over a few light rows lost ten digits."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng([51, seed])
    ties: Ties = "efron" if seed % 2 else "breslow"
    n = 12
    time = rng.integers(1, 12, n).astype(float)
    entry = np.maximum(time - rng.integers(1, 9, n), 0.0)
    y = survival_target(rng.random(n) < 0.7, time, entry)
    s = 10.0 ** rng.uniform(-4.0, 5.5, n)
    z = rng.choice([1.0, 30.0, 400.0]) * rng.standard_normal(n)
    loss = Cox(ties)
    with mp.workdps(60):
        x = [mp.exp(mp.mpf(float(one))) for one in z]
        true = -mp.fsum(
            mp.mpf(float(a)) * mp.mpf(float(b))
            for a, b in zip(s[y["event"]], z[y["event"]], strict=True)
        )
        slope = [
            -mp.mpf(float(a)) if seen else mp.mpf(0) for a, seen in zip(s, y["event"], strict=True)
        ]
        for t in np.unique(y["time"][y["event"]]):
            at_risk = (y["entry"] < t) & (y["time"] >= t)
            tied = at_risk & y["event"] & (y["time"] == t)
            k, d = int(tied.sum()), mp.fsum(mp.mpf(float(one)) for one in s[tied])
            for j in range(k if ties == "efron" else 1):
                omega = d / k if ties == "efron" else d
                keeps = [1 - mp.mpf(j) / k * int(one) for one in tied]
                each_ = [
                    mp.mpf(float(s[i])) * keeps[i] * x[i] if at_risk[i] else mp.mpf(0)
                    for i in range(n)
                ]
                true += omega * (mp.log(mp.fsum(each_)) - mp.log(d * (1 - mp.mpf(j) / k)))
                slope = [a + omega * b / mp.fsum(each_) for a, b in zip(slope, each_, strict=True)]
        found, dual = loss.value(y, z, s), loss.gradient(y, z, s)
        assert abs(true - mp.mpf(found)) <= loss.slack(y, z, dual, s)
        off = [float(abs(a - mp.mpf(float(b)))) for a, b in zip(slope, dual, strict=True)]
    expected = dual + np.where(y["event"], s, 0.0)
    assert np.all(np.array(off) <= 1e-14 * (expected + s) * (1.0 + np.abs(z).max()))


def test_survival_shares_them_too() -> None:
    X, _ = data("squared")
    rng = np.random.default_rng(2)
    y = np.array(
        list(zip(rng.random(60) < 0.7, rng.exponential(np.exp(-X[:, 0])), strict=True)),
        dtype=[("event", bool), ("time", float)],
    )
    found = paths.path(X, y, loss="cox", n_alphas=8, alpha_ratio=0.2, tol=GAP, fit_intercept=False)
    assert found.converged
    assert found.passes <= 5
    alone = solve(X, y, loss="cox", alpha=found.alphas[5], tol=GAP)
    assert found.results[5].objective == pytest.approx(alone.objective, rel=3 * GAP)


def test_cox_starts_from_more_columns_than_their_rank() -> None:
    """First-order steps used to take over, thousands of them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 300))
    y = survival_target(rng.random(100) < 0.5, rng.exponential(size=100))
    found = solve_sum(X, y, loss=Cox(), level=0.1)
    assert found.converged
    assert found.state.master_steps <= 200
    path = paths.path(
        X, y, loss=Cox(), alphas=np.geomspace(0.3, 1e-3, 10), fit_intercept=False
    ).results[-1]
    assert found.objective == pytest.approx(100 * path.objective, rel=2e-6)


def test_bounds_are_those_of_scipy() -> None:
    X, z = table(2)
    rng = np.random.default_rng(3)
    y = survival_target(rng.random(50) < 0.7, rng.exponential(np.exp(-z)))
    assert_bounds_are_those_of_scipy(X, y, Cox())


def test_both_bounds_are_those_of_the_run() -> None:
    rng = np.random.default_rng(1)
    y = survival_target(rng.random(60) < 0.7, rng.exponential(np.exp(-VERIFIED[:, 3])))
    assert_verified(VERIFIED, y, loss="cox", level=3.0)


@pytest.mark.parametrize("seed", [3, 4, 13])
def test_a_cold_cox_fit_takes_no_more_steps_than_a_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 300))
    y = survival_target(rng.random(100) < 0.5, rng.exponential(size=100))
    found = solve(X, y, loss="cox", alpha=1e-3, time_limit=20.0)
    assert found.converged
    # From w = 0 without continuation: 700 to 1000 steps within three seconds, and no proof.
    assert found.state.master_steps < 100


def test_a_first_fit_ends_at_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    # Below the rounding of the loss no gap can be proved: trying took thousands of gradient steps.
    calls = []
    proximal = Regularizer.prox_point

    def counted(self: Regularizer, *args: Any) -> Any:
        calls.append(1)
        return proximal(self, *args)

    monkeypatch.setattr(Regularizer, "prox_point", counted)
    rng = np.random.default_rng(9)
    X = rng.standard_normal((334, 17))
    X[:, 5:9] += X[:, :4]
    X = (X - X.mean(0)) / X.std(0)
    event = rng.random(334) < 0.4
    y = survival_target(event, np.ceil(rng.exponential(np.exp(-0.3 * X[:, :3].sum(1))) * 400))
    task = {"loss": Cox(), "norm": norms.KSupport(5), "form": "squared", "alpha": 1 / 3340}
    found = solve(X, y, fit_intercept=False, tol=1e-12, **task)
    assert found.converged
    assert len(calls) < 500
