"""Certificates under rounding: a gap never says less than what exact arithmetic finds."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms, solve
from atomlearn.core import DenseDesign, Problem, Regularizer
from atomlearn.core.solvers.stopping import Seconds
from atomlearn.result import Status
from tests.oracles.sums import solve_sum

sys.path.insert(0, str(Path(__file__).parent))
import math
from types import SimpleNamespace
from typing import Any

from exact import objective, optimum

from atomlearn._support import EPS
from atomlearn.core import ArrayScores, Certificate, Lengths
from atomlearn.core.problem.proof import curved, polar_of_errors, rounding_bound
from atomlearn.core.problem.rounding import Measured
from atomlearn.core.solvers.column_generation import centered_columns

#: Forms and the amount that keeps a part of the columns, in units of the scale of y.
AMOUNTS = {"penalized": 0.5, "squared": 0.5, "constrained": 0.5}


def drawn(seed: int):
    """A small problem; targets of any scale, around 0 or around something much larger."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    scale = 10.0 ** int(rng.integers(-8, 9))
    offset = 10.0 ** int(rng.integers(3, 13)) if rng.random() < 0.6 else 0.0
    X = rng.standard_normal((n, p))
    y = offset + scale * (X[:, 0] + 0.5 * rng.standard_normal(n))
    form = sorted(AMOUNTS)[int(rng.integers(3))]
    amount = AMOUNTS[form] * (1.0 if form == "squared" else scale)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    return X, y, weight, form, amount, bool(rng.random() < 0.8), 10.0 ** -int(rng.integers(5, 10))


@pytest.mark.parametrize("seeds", [range(start, start + 40) for start in range(0, 240, 40)])
def test_no_gap_is_smaller_than_the_excess_in_exact_rationals(seeds) -> None:
    for seed in seeds:
        X, y, weight, form, amount, intercept, gap = drawn(seed)
        size = {"radius" if form == "constrained" else "level": amount}
        result = solve_sum(
            X, y, norm="l1", form=form, fit_intercept=intercept, sample_weight=weight, tol=gap,
            stop=Seconds(1.0), **size,
        )  # fmt: skip
        found = objective(X, y, weight, result.coef, result.intercept, form, amount)
        assert found is not None, (seed, "outside of the ball")
        excess = found - optimum(X, y, weight, form, amount, intercept)
        assert excess <= Fraction(result.gap), (seed, result.status, float(excess), result.gap)


def test_standardized_columns_far_from_zero_hide_no_rounding() -> None:
    # Their scores are X'v less means: sums over columns that are far longer than what is left.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(20, 60)), int(rng.integers(5, 40))
        X = 10.0 ** int(rng.integers(5, 9)) * (1 + rng.random(p)) + rng.standard_normal((n, p))
        far = designs.Standardized(designs.as_design(X))
        exact = (X.astype(np.longdouble) - far.means) * far.factors
        y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
        level = 0.03 * float(np.linalg.norm(exact.T @ y))
        values, gaps = [], []
        for columns, gap in ((far, 1e-10), (exact.astype(np.float64), 1e-14)):
            found = solve_sum(columns, y, loss="logistic", norm="l2", level=level, tol=gap,
                          fit_intercept=True, stop=Seconds(0.5))  # fmt: skip
            w = found.coef.astype(np.longdouble)
            losses = np.logaddexp(0, -y * (exact @ w + np.longdouble(found.intercept)))
            values.append(losses.sum() + level * np.sqrt(w @ w))
            gaps.append(found.gap)
        assert values[0] - min(values) <= gaps[0], (seed, float(values[0] - values[1]), gaps)


@pytest.mark.parametrize("norm", ["l1", "l2", norms.KSupport(2), norms.Groups([[0, 1], [2, 3, 4]])])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_columns_far_from_zero_cost_what_centered_ones_cost(norm, loss) -> None:
    # Years and altitudes are such columns: 1e4 + noise once took the solver a minute.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 5))
    y = Z @ [1.0, -1.0, 0.0, 0.0, 0.5] + 0.1 * rng.standard_normal(20)
    y = np.sign(y) if loss == "logistic" else y
    plain = solve_sum(Z, y, loss=loss, norm=norm, level=0.5, fit_intercept=True)
    for offset in (1e2, 1e4, 1e6):
        X = offset + Z
        far = solve_sum(X, y, loss=loss, norm=norm, level=0.5, fit_intercept=True)
        assert far.status is Status.CONVERGED
        assert far.passes <= plain.passes + 2
        assert_allclose(far.objective, plain.objective, rtol=2e-6)
        assert_allclose(far.predict(X), plain.predict(Z), atol=2e-2 if offset == 1e6 else 2e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    "norm",
    [norms.LatentGroups([[2 * g + i for i in range(4)] for g in range(19)]), norms.KSupport(5)],
    ids=["latent", "ksupport"],
)
def test_what_only_rounding_keeps_open_is_left(norm, loss) -> None:
    """At 1e8 no more than 1e-7 can be proved: re-fits that ask for more would never end."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((100, 40))
    y = Z[:, :5].sum(axis=1) + rng.standard_normal(100)
    y = np.sign(y) if loss == "logistic" else y
    far = solve_sum(1e8 + Z, y, loss=loss, norm=norm, level=3.0, fit_intercept=True, time_limit=60)
    assert far.status is Status.STALLED
    plain = solve_sum(Z, y, loss=loss, norm=norm, level=3.0, fit_intercept=True)
    assert abs(far.objective - plain.objective) <= far.gap + plain.gap


def test_targets_far_from_zero_are_as_any() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    noise = X[:, 0] + rng.standard_normal(30)
    result = solve_sum(X, 1e6 + 1e-6 * noise, norm="l1", level=3e-6, fit_intercept=True)
    assert result.converged
    assert 0.0 < result.relative_gap <= 1e-6


def test_a_perfect_fit_says_so() -> None:
    X = np.eye(4)
    result = solve_sum(
        X, np.array([1.0, -2.0, 0.0, 0.5]), norm="l2", radius=10.0, form="constrained"
    )
    assert result.converged
    assert result.objective <= 1e-28


def test_a_pinball_fit_that_is_cut_short_keeps_the_certificate_of_its_point() -> None:
    # The best state so far once took over the certificate of a smooth problem on the way.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), 1e3 * rng.standard_normal(30)
    union = norms.Union([norms.L1(), norms.L2()])
    arguments = {"loss": "quantile", "norm": union, "level": 1e-4, "form": "squared"}
    for steps in (1, 5):
        result = solve_sum(X, y, fit_intercept=True, tol=1e-12, max_iter=steps, **arguments)
        residual = X @ result.coef + result.intercept - y
        loss = np.maximum(-0.5 * residual, 0.5 * residual).sum()
        penalty = 0.5e-4 * union.on(6).value(result.coef) ** 2
        assert_allclose(result.objective, loss + penalty, rtol=1e-9)


def test_single_precision_data_give_the_coefficients_that_the_gap_is_of() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(20)
    ones = np.ones(20)
    for form, amount in (("penalized", 2.0), ("constrained", 0.3)):
        size = {"radius" if form == "constrained" else "level": amount}
        result = solve_sum(X, y, form=form, tol=1e-11, **size)
        found = objective(X, y, ones, result.coef, result.intercept, form, amount)
        assert found is not None
        excess = found - optimum(X, y, ones, form, amount, False)
        assert excess <= Fraction(result.gap)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_a_loss_beyond_float64_is_refused(loss: str, form: str) -> None:
    """Where the loss of predicting 0 is infinite, any gap is: that was called a perfect fit."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 5)), np.sign(rng.standard_normal(20))
    weight = np.full(20, 1e308)
    penalty = Regularizer(norms.L1(), form, 1.0)
    with pytest.raises(ValueError, match="too large for float64"):
        Problem.build(designs.as_design(X), y, losses.as_loss(loss), penalty, sample_weight=weight)
    # The mean loss has weights that add up to 1, whatever their unit.
    amount = {"radius": 1.0} if form == "constrained" else {"alpha": 0.05}
    weighted = solve(X, y, loss=loss, form=form, sample_weight=weight, **amount)
    plain = solve(X, y, loss=loss, form=form, **amount)
    assert weighted.objective == pytest.approx(plain.objective, rel=2e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("norm", ["l1", norms.KSupport(3), norms.L2()], ids=["l1", "k", "l2"])
def test_rows_without_weight_cost_no_digits_however_large_they_are(loss, norm) -> None:
    rng = np.random.default_rng(5)
    X, kept = rng.normal(size=(60, 12)), np.arange(60) < 40
    z = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=60)
    y = {"squared": z, "logistic": np.sign(z), "poisson": rng.poisson(np.exp(0.3 * z)) * 1.0}[loss]
    X[~kept] *= 1e5
    if loss == "squared":
        y[~kept] *= 1e5
    how = {"loss": loss, "norm": norm, "level": 0.5, "fit_intercept": True, "tol": 1e-10}
    with_rows = solve_sum(X, y, sample_weight=kept.astype(float), **how)
    without = solve_sum(X[kept], y[kept], **how)
    assert with_rows.status is without.status is Status.CONVERGED
    assert abs(with_rows.objective - without.objective) <= with_rows.gap + without.gap


def problem_of(loss, y) -> Problem:
    regularizer = Regularizer(norms.L1(), "penalized", 1.0)
    return Problem.build(designs.as_design(np.eye(y.size)), y, loss, regularizer)


def test_what_predictions_are_off_by_counts_with_slope_and_curvature():
    """Weights that cancel, of long columns: f is off by its slope times what the sum is off by."""
    task = problem_of(losses.Squared(), np.arange(1.0, 5.0))
    columns, prediction = np.arange(4), np.zeros(4)
    lengths = Lengths(np.ones(4), np.full(4, 1e6), np.zeros(4))
    none = Lengths(np.ones(4), np.zeros(4), np.zeros(4))
    weights, dual = np.array([1e3, -1e3, 1e3, -1e3]), np.full(4, 5.0)
    at = Certificate(10.0, 1.0, 1.0), weights, prediction, dual, columns
    more = rounding_bound(task, *at, lengths) - rounding_bound(task, *at, none)
    off = EPS * (4.0 + math.sqrt(4.0)) * 4e9
    assert_allclose(more, 10.0 * off + 0.5 * off * off, rtol=1e-6)


def test_the_curvature_of_losses_without_a_bound_counts_where_it_is_known():
    task = problem_of(losses.Poisson(), np.array([1.0, 2.0, 0.0]))
    prediction = np.array([0.0, 1.0, 2.0])
    assert_allclose(curved(task, 3e-6, prediction), math.exp(2.0) * 3e-6)
    assert curved(task, 3e-6) == 0.0
    assert curved(task, 0.0, prediction) == 0.0


def test_errors_of_scores_count_by_their_polar_where_the_norm_has_no_restriction():
    """Sign vectors are the atoms: errors of 1, 4 and 2 add up to 7."""
    norm = norms.UserNorm(lambda z: np.where(z >= 0, 1.0, -1.0))
    task: Any = SimpleNamespace(
        regularizer=SimpleNamespace(norm=norm), design=SimpleNamespace(shape=(3, 9))
    )
    scores = ArrayScores(np.array([1.0, 4.0, 2.0]))
    assert polar_of_errors(task, np.arange(3), scores) == (7.0, None)


def test_what_an_offset_is_off_by_counts_by_the_curvature():
    task = problem_of(losses.Squared(), np.arange(1.0, 5.0))
    at = Certificate(10.0, 1.0, 1.0), np.ones(2), np.zeros(4), np.zeros(4), np.arange(2)
    offsets = [
        rounding_bound(task, *at, Lengths(np.ones(2), np.ones(2), np.full(2, far)))
        for far in (0.0, 1e9)
    ]
    shift = EPS * (4.0 + math.sqrt(2.0)) * 2e9
    assert_allclose(offsets[1] - offsets[0], 0.5 * 4.0 * shift * shift, rtol=1e-6)


def test_the_mean_is_taken_off_the_columns_that_are_far_and_off_no_others():
    X = np.random.default_rng(0).normal(size=(20, 3)) + np.array([0.0, 1e4, 0.0])
    regularizer = Regularizer(norms.L1(), "penalized", 1.0)
    task = Problem.build(
        designs.as_design(X), np.ones(20), losses.Squared(), regularizer, fit_intercept=True
    )
    block, lengths = centered_columns(task, np.array([0, 1, 2]))
    assert_allclose(lengths.offsets, [0.0, X[:, 1].mean(), 0.0])
    assert_allclose(block.dense(), X - lengths.offsets, atol=1e-11)


def test_lengths_are_measured_once_and_anew_for_other_data():
    rng = np.random.default_rng(2)
    X, weight, level = (
        rng.normal(size=(6, 5)),
        np.ones(6),
        Regularizer(norms.L1(), "penalized", 1.0),
    )
    gathered: list[int] = []

    class Noting(DenseDesign):
        def gather(self, columns: np.ndarray) -> designs.Block:
            gathered.extend(columns)
            return super().gather(columns)

    task = Problem.build(Noting(X), np.ones(6), losses.Squared(), level, sample_weight=weight)
    measured, lengths = Measured(), np.linalg.norm(X, axis=0)

    def summed(of: Problem, columns: list[int]) -> np.ndarray:
        return measured.of(of.design, of.weight, np.array(columns)).summed

    assert_allclose(summed(task, [3, 0]), lengths[[3, 0]])
    assert_allclose(
        measured.of(task.design, task.weight, np.array([0, 2, 3])).summed, lengths[[0, 2, 3]]
    )
    assert sorted(gathered) == [0, 2, 3]
    other = replace(task, design=designs.as_design(2.0 * X))
    assert_allclose(
        measured.of(other.design, other.weight, np.array([0, 4])).summed, 2.0 * lengths[[0, 4]]
    )
    left = replace(other, weight=np.where(np.arange(6) == 1, 0.0, 1.0))
    kept = np.linalg.norm(2.0 * np.delete(X, 1, axis=0), axis=0)
    assert_allclose(summed(left, [0, 4]), kept[[0, 4]])
    assert_allclose(summed(other, [0, 4]), 2.0 * lengths[[0, 4]])


def best_constant(loss: Any, residuals: list[Fraction], weights: list[Fraction]) -> Fraction:
    """Return min over b of f(b) exactly: between kinks f is a parabola or straight."""
    delta, q = (Fraction(float(getattr(loss, name, 0.0))) for name in ("delta", "q"))

    def value(b: Fraction) -> Fraction:
        total = Fraction(0)
        for s, e in zip(weights, residuals, strict=True):
            r = e - b
            if loss.name == "squared" or (loss.name == "huber" and abs(r) <= delta):
                total += s * r * r / 2
            elif loss.name == "huber":
                total += s * delta * (abs(r) - delta / 2)
            else:
                total += s * (q * r if r > 0 else (q - 1) * r)
        return total

    shifts = (-delta, delta) if loss.name == "huber" else (Fraction(0),)
    kinks = sorted(e + shift for e in residuals for shift in shifts)
    found = [value(b) for b in kinks]
    for low, high in pairwise(kinks):
        left, middle, right = value(low), value((low + high) / 2), value(high)
        bend = left - 2 * middle + right
        if bend > 0:
            share = Fraction(1, 2) + (left - right) / (4 * bend)
            found.append(value(low + min(max(share, Fraction(0)), Fraction(1)) * (high - low)))
    return min(found)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Huber(0.07), losses.Quantile(0.3)])
@pytest.mark.parametrize("size", [1e5, 1e10])
def test_offsets_next_to_large_targets_raise_no_lower_bound(loss: Any, size: float) -> None:
    """y - offset is off by a digit of y, which is more than all that residuals leave to prove."""
    rng = np.random.default_rng(0)
    for kind in range(15):
        n = int(rng.integers(2, 12))
        y = size + 0.1 * rng.standard_normal(n)
        offset = rng.standard_normal(n) + (0.0, 0.3 * size, -size)[kind % 3]
        s = np.ones(n) if kind % 2 else rng.uniform(0.5, 2.0, n)
        made: dict[str, Any] = {"fit_intercept": True, "sample_weight": s, "offset": offset}
        result = solve_sum(rng.standard_normal((n, 2)), y, loss=loss, level=1e12, tol=1e-6, **made)
        exact = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(y, offset, strict=True)]
        best = best_constant(loss, exact, [Fraction(float(one)) for one in s])
        assert Fraction(result.objective) - Fraction(result.gap) <= best, kind
        assert abs(Fraction(result.objective) - best) <= Fraction(result.gap), kind
        # A kink tells of every digit that the intercept loses as it is given back.
        assert loss.name == "quantile" or result.gap <= 1e-6 * result.objective, kind


def sign_vector(z: np.ndarray) -> np.ndarray:
    return np.where(z >= 0, 1.0, -1.0)


@pytest.mark.parametrize(
    "norm",
    [
        norms.UserNorm(sign_vector),
        norms.LInf(),
        norms.TraceNorm((2, 3)),
        norms.SpectralKSupport(2, (2, 3)),
        norms.SparseRankOne(2, 2, (2, 3)),
        norms.OWL([3.0, 2.0, 1.0, 0.5, 0.5, 0.5]),
    ],
    ids=lambda norm: type(norm).__name__,
)
def test_errors_of_scores_are_bounded_by_their_polar(norm: Any) -> None:
    """Errors of any signs, of scores whose norm may be larger than that of one entry."""
    X = np.random.default_rng(0).normal(size=(20, 6))
    regularizer = Regularizer(norm, "penalized", 1.0)
    task = Problem.build(designs.as_design(X), X[:, 0], losses.Squared(), regularizer)
    rng = np.random.default_rng(0)
    for columns in (None, np.arange(6), np.array([1, 4])):
        sizes = rng.random(6 if columns is None else columns.size) + 0.1
        bound, _ = polar_of_errors(task, columns, ArrayScores(sizes))
        for _ in range(40):
            z = np.zeros(6)
            z[slice(None) if columns is None else columns] = sizes * rng.choice(
                [-1.0, 1.0], sizes.size
            )
            assert norm.polar_bounds(ArrayScores(z))[0] <= bound * (1 + 1e-12)
