"""What a certificate must not say: bounds forgotten, wrong conjugates and polars, lost digits."""

import time
import warnings

import numpy as np
import pytest

from atomlearn import designs, losses, norms
from atomlearn.core import ArrayScores
from atomlearn.losses import Cox, Huber, Quantile, survival_target
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from tests.oracles.sums import solve_sum

mp = pytest.importorskip("mpmath")
pytest.importorskip("cvxpy")
from atomlearn.problem import prove  # noqa: E402
from benchmarks.certificate.bounded import NAMES, draw_bounded  # noqa: E402
from benchmarks.certificate.campaign import judge  # noqa: E402
from benchmarks.certificate.drawn import Task  # noqa: E402


def judged(task, rng, monkeypatch):
    # Limits of the processor: a busy machine is not late.
    monkeypatch.setattr(time, "monotonic", time.process_time)
    monkeypatch.setattr(Task.run, "__defaults__", (None, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge(task, rng)


@pytest.mark.parametrize("name", NAMES)
def test_no_other_solver_goes_below_the_gap_of_a_problem_with_bounds(name, monkeypatch):
    rows = []
    for seed in range(6):
        rng = np.random.default_rng([11, NAMES.index(name), seed])
        rows.append(judged(draw_bounded(rng, seed, name), rng, monkeypatch))
    assert not [row for row in rows if row["verdict"] in ("wrong", "failed")]


@pytest.mark.parametrize("seed", [37, 40, 42, 44, 53])
def test_a_kink_and_bounds_are_proved_together(seed, monkeypatch):
    """Proved with the polar of the columns without bounds alone, the gap was too small by far."""
    rng = np.random.default_rng([11, NAMES.index("quantile"), seed])
    task = draw_bounded(rng, seed, "quantile")
    row = judged(task, rng, monkeypatch)
    assert (row["verdict"], row["status"]) == ("not_refuted", "CONVERGED"), row


def test_the_ridge_of_a_matrix_counts_where_the_loss_has_kinks():
    """The ridge term of a factored matrix is not that of the entries of its state: there are none.

    Without it a gap is too small by half of it, of which no entry tells.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 4))
    y = X @ rng.standard_normal((4, 3)) + 0.3 * rng.standard_normal((12, 3))
    made = {"loss": Quantile(0.5), "norm": norms.TraceNorm(), "level": 0.5, "tau": 2.0}
    rough = solve_sum(X, y, tol=1e-2, **made)
    tight = solve_sum(X, y, tol=1e-9, **made)
    assert rough.objective - tight.objective <= rough.gap
    cp = pytest.importorskip("cvxpy")
    W = cp.Variable((4, 3))
    error = 0.5 * cp.sum(cp.abs(X @ W - y)) + 0.5 * cp.normNuc(W) + cp.sum_squares(W)
    best = cp.Problem(cp.Minimize(error)).solve(solver="CLARABEL")
    assert tight.objective - best <= tight.gap + 1e-6 * best


class WrongConjugate(Huber):
    name = "mine"

    def conjugate(self, y, dual, weight):
        return -1e3


def test_a_conjugate_that_fenchels_inequality_refutes_is_refused_by_name():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(30)
    with pytest.raises(ValueError, match=r"the loss 'mine' proves nothing.*check conjugate"):
        solve_sum(X, y, loss=WrongConjugate(1.0), level=1.0)


class SlightlyWrong(WrongConjugate):
    def conjugate(self, y, dual, weight):
        true = losses.Huber(self.delta).conjugate(y, dual, weight)
        return true - 1e-9 * abs(true)


def test_a_conjugate_that_is_wrong_in_its_ninth_digit_is_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(30)
    with pytest.raises(ValueError, match="the loss 'mine' proves nothing"):
        solve_sum(X, y, loss=SlightlyWrong(1.0), level=1.0)


class SmallPolar(norms.L1):
    def polar(self, scores):
        return 0.5 * super().polar(scores)


def test_a_polar_that_makes_the_gap_negative_is_refused_by_name():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(30)
    penalty = Regularizer(SmallPolar(), "squared", 1.0)
    task = Problem.build(designs.as_design(X), y, losses.Squared(), penalty)
    w = solve_sum(X, y, level=1.0, form="squared").coef
    with pytest.raises(ValueError, match=r"SmallPolar\(\) proves nothing.*below zero"):
        prove(task, None, w, X @ w)


def test_the_rounding_of_coxs_likelihood_belongs_to_the_gap():
    """Where the likelihood is next to certain it is a small difference of large numbers."""
    rng = np.random.default_rng(3)
    n = 12
    time_ = np.arange(1.0, n + 1.0)
    y = survival_target(np.ones(n, dtype=bool), time_)
    X = -time_[:, None] + 0.01 * rng.standard_normal((n, 1))
    loss, s = Cox(), np.ones(n)
    for steep in (10.0, 20.0, 30.0, 35.0):
        z = X[:, 0] * steep
        penalty = Regularizer(norms.L1(), "penalized", 1e-300)
        task = Problem.build(designs.as_design(X), y, loss, penalty)
        proved = prove(task, np.arange(1), np.array([steep]), z).certificate
        with mp.workdps(60):
            hazard = [mp.exp(mp.mpf(float(one))) for one in z]
            true = sum(mp.log(mp.fsum(hazard[i:])) - mp.mpf(float(z[i])) for i in range(n))
            off = abs(true - mp.mpf(loss.value(y, z, s)))
        assert off <= proved.rounding <= 1e-10


@pytest.mark.parametrize("steep", [1.0, 8.0])
def test_risk_sets_that_are_next_to_empty_keep_their_digits(steep):
    """With late entry a sum over those at risk is left of a difference that underflows."""
    y = survival_target([True, True, True], [1.0, 2.0, 3.0], entry=[0.0, 0.0, 1.5])
    z = np.array([0.0, 0.0, 200.0 * steep])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = Cox().value(y, z, np.ones(3))
        gradient = Cox().gradient(y, z, np.ones(3))
    # Of the first time the first two are at risk, of the second all: the third is certain there.
    assert value == pytest.approx(np.log(2.0) + 200.0 * steep)
    np.testing.assert_allclose(gradient, [-0.5, -0.5, 1.0], atol=1e-12)


# --- what no solve may say or do ----------------------------------------------------------------


def steep(seed):
    """Counts and claims, weights of many sizes, and columns whose units differ by 1e8."""
    rng = np.random.default_rng([22, seed])
    n, p = int(rng.integers(10, 80)), int(rng.integers(2, 30))
    Z = rng.standard_normal((n, p))
    X = Z * [10.0 ** rng.uniform(-4, 4, p), 10.0 ** rng.choice([-4.0, 4.0], p),
             np.where(np.arange(p) == 0, 1e8, 1.0)][int(rng.integers(3))]  # fmt: skip
    numbers = 0.7 * Z @ (rng.standard_normal(p) * (rng.random(p) < 0.2))
    y = rng.poisson(np.exp(np.clip(numbers + rng.choice([0.0, 2.0]), -8, 8))) + 0.1
    loss = (losses.Poisson(), losses.Gamma(), losses.Tweedie(1.01))[seed % 3]
    weight = 10.0 ** rng.uniform(-2, 2, n)
    k = int(rng.integers(1, p + 1))
    norm = (norms.KSupport(k), norms.L1(), norms.Union([norms.KSupport(k), norms.L1()]))
    norm = norm[seed // 3 % 3]
    around = np.full(n, np.log(weight @ y / weight.sum()))
    polar = norm.on(p).polar(ArrayScores(X.T @ loss.gradient(y, around, weight)))
    level = polar * float(np.exp(rng.uniform(np.log(1e-5), 0.0)))
    more = {"level": level, "fit_intercept": True, "sample_weight": weight}
    return X, y, {"loss": loss, "norm": norm, **more}


@pytest.mark.parametrize("start", range(0, 45, 15))
def test_a_step_beyond_the_floats_is_the_solvers_own_affair(start):
    for seed in range(start, start + 15):
        X, y, arguments = steep(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = solve_sum(X, y, **arguments)
        assert np.isfinite(result.objective), seed
        assert result.status in (Status.CONVERGED, Status.STALLED), seed
        assert result.converged == (result.relative_gap <= 1e-6), seed


def test_an_amount_below_the_last_digit_of_v_leaves_it_as_it_is():
    v = np.array([3.0, -2.0, 1.0])
    for form in ("penalized", "constrained"):
        amount = 1e-320 if form == "penalized" else norms.KSupport(2).value(v) * (1 - 1e-16)
        found = norms.KSupport(2).prox_point(v, amount, form)
        np.testing.assert_allclose(found.point, v, rtol=1e-15)
        np.testing.assert_allclose(found.gauge, norms.KSupport(2).value(v), rtol=1e-15)


def test_steps_without_an_end_end_as_stalled():
    """A tiny level, far below what floats can prove here: once minutes, now some thousand steps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 30))
    y = X @ rng.standard_normal(30)
    norm = norms.OWL(np.sort(rng.random(30) + 0.1)[::-1])
    asked = []
    result = solve_sum(X, y, norm=norm, level=1e-11, tol=1e-12, max_iter=10**9,
                   observers=[lambda progress: asked.append(progress.state.iteration)])  # fmt: skip
    assert result.status in (Status.STALLED, Status.PERFECT_FIT)
    assert len(asked) < 3000
