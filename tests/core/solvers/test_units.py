"""Units change nothing of a run: those of the targets, of the sample weights, and of all X."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms
from atomlearn.core import ArrayScores
from atomlearn.designs import as_design
from atomlearn.interfaces import Norm, Solver
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result
from atomlearn.solvers import (
    AtomGeneration,
    ColumnGeneration,
    run,
    stopping,
)
from tests.oracles.sums import solve_sum

ANY = norms.UserNorm(lambda z: (np.array([np.abs(z).argmax()]), np.sign(z[[np.abs(z).argmax()]])))
TRIPLES = norms.Groups(np.arange(300) // 3)
WIDE, WIDER, TALL = (60, 300), (120, 300), (300, 12)
#: Solver, norm, form, loss, shape, and the passes that the run takes and steps of its masters,
#: with a tenth to spare.
Kind = tuple[Solver, Norm, str, str, tuple[int, int], int, int]
KINDS: list[Kind] = [
    (ColumnGeneration(batch=3), norms.KSupport(3), "squared", "squared", WIDE, 4, 86),
    (ColumnGeneration(batch=1), norms.L1(), "penalized", "squared_hinge", WIDE, 29, 70),
    (ColumnGeneration(), TRIPLES, "penalized", "logistic", WIDER, 2, 12),
    (ColumnGeneration(), norms.KSupport(5), "constrained", "logistic", WIDER, 3, 26),
    (ColumnGeneration(), norms.L1(), "penalized", "quantile", WIDER, 12, 99),
    (ColumnGeneration(batch=5), norms.L1(), "penalized", "poisson", WIDE, 9, 50),
    (ColumnGeneration(), norms.KSupport(2), "squared", "huber", TALL, 1, 28),  # of the kernel
    (AtomGeneration(), norms.KSupport(3), "penalized", "squared", WIDE, 237, 236),
    (AtomGeneration(), norms.KSupport(3), "penalized", "squared", TALL, 63, 62),
    (AtomGeneration(), norms.L1(), "constrained", "logistic", WIDE, 11, 12),
    (AtomGeneration(), norms.KSupport(2), "penalized", "quantile", TALL, 56, 9),
    (AtomGeneration(), ANY, "squared", "squared", WIDE, 5, 4),
]  # fmt: skip


def ended(
    kind: Kind, seed: int, heavier: float = 1.0, longer: float = 1.0, larger: float = 1.0
) -> Result:
    """Return the run where weights, columns and targets are times these powers of 4."""
    solver, norm, form, name, shape, *_ = kind
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    y = X[:, :6] @ np.array([2.0, -1.0, 1.0, 1.0, -0.5, 0.3]) + 0.5 * rng.normal(size=shape[0])
    if name == "poisson":
        y = np.floor(np.exp(np.clip(0.5 * y, -3.0, 3.0)))
    elif name not in ("squared", "quantile"):
        y = np.where(y > 0.0, 1.0, -1.0)
    unit = heavier * (larger**2 if name == "squared" else larger)
    amount: dict[str, float] = {
        "penalized": 6.0 * unit * longer / larger,
        "squared": 20.0 * unit * (longer / larger) ** 2,
        "constrained": 2.0 * larger / longer,
    }
    task = Problem.build(
        as_design(longer * X), larger * y, losses.as_loss(name),
        Regularizer(norm, form, amount[form]),  # type: ignore[arg-type]
        fit_intercept=True, sample_weight=np.full(shape[0], heavier),
    )  # fmt: skip
    rule: Any = stopping.RelativeGap(1e-6) | stopping.Iterations(400)
    return run(task, solver, rule)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_other_units_take_the_same_passes_to_the_same_point(kind: int) -> None:
    assert_units_change_nothing(KINDS[kind], kind)


def assert_units_change_nothing(kind: Kind, seed: int) -> None:
    """Powers of 4 round nothing: whatever decides on a way is free of units, or it shows here."""
    plain = ended(kind, seed)
    steps = getattr(plain.state, "master_steps", 0)
    *_, passes, most = kind
    assert plain.passes <= passes
    assert steps <= most
    assert plain.converged
    units = [(2.0**-14, 1.0, 1.0), (64.0, 1.0, 1.0), (1.0, 2.0**-12, 1.0), (1.0, 16.0, 1.0)]
    if kind[3] in ("squared", "quantile"):
        units += [(1.0, 1.0, 2.0**-12), (1.0, 1.0, 256.0)]
    for heavier, longer, larger in units:
        other = ended(kind, seed, heavier, longer, larger)
        assert other.passes == plain.passes, (heavier, longer, larger)
        assert getattr(other.state, "master_steps", 0) == steps
        assert_allclose(other.relative_gap, plain.relative_gap, rtol=0.05, atol=1e-9)
        assert_allclose(other.coef * longer / larger, plain.coef, rtol=1e-6, atol=1e-9)


SIZES = [
    10.0**e for e in (-300, -200, -160, -150, -130, -100, -30, 30, 70, 100, 153, 160, 200, 300)
]


def answered(solved: Callable[[], Result]) -> tuple[Result | None, str]:
    """Return the result, or what was said instead."""
    try:
        return solved(), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("name", ["squared", "huber", "quantile"])
@pytest.mark.parametrize("with_offset", [False, True])
def test_targets_of_any_size_are_fitted_or_refused_in_one_line(
    name: str, with_offset: bool
) -> None:
    """Squares that underflow once made a gap of 0 around a point that is no optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    base = X @ np.array([2.0, -1.0, 0.0, 0.0]) + 0.3 * rng.normal(size=20)

    def fitted(unit: float) -> Result:
        loss = losses.Huber(unit) if name == "huber" else losses.as_loss(name)
        level = 1.0 if name == "quantile" else 2.0 * unit
        y, offset = (0.0 * base, -unit * base) if with_offset else (unit * base, None)
        return solve_sum(X, y, loss=loss, level=level, fit_intercept=True, offset=offset, tol=1e-7)

    plain, n_refused = fitted(1.0), 0
    for unit in SIZES:
        found, said = answered(lambda: fitted(unit))  # noqa: B023
        if found is None:
            assert re.fullmatch(f"y is too {'small' if unit < 1 else 'large'} for float64.*", said)
            n_refused += 1
            continue
        assert found.converged
        assert found.gap > 0.0
        assert_allclose(found.coef / unit, plain.coef, rtol=1e-3, atol=1e-4)
    assert n_refused <= 11


@pytest.mark.parametrize("scaled", [[0], [0, 1, 2, 3]])
def test_columns_of_any_size_are_fitted_or_refused_in_one_line(scaled: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    y = X @ np.array([2.0, -1.0, 0.0, 0.0]) + 0.3 * rng.normal(size=20)
    plain = solve_sum(X, y, level=2.0, fit_intercept=True)
    for size in SIZES:
        units = np.ones(4)
        units[scaled] = size
        norm = norms.L1(weights=units)
        found, said = answered(
            lambda: solve_sum(X * units, y, norm=norm, level=2.0, fit_intercept=True)  # noqa: B023
        )
        if found is None:
            assert size < 1e-154 or size > 1e153
            expected = "X: column 0 holds numbers up to .*; divide it by its largest number"
            assert re.fullmatch(expected, said)
            continue
        assert found.converged
        assert_allclose(found.coef * units, plain.coef, rtol=1e-6, atol=1e-8)


GAUGES: list[Norm] = [
    norms.L1(), norms.L2(), norms.KSupport(2), norms.ElasticNetNorm(2), norms.LInf(),
    norms.Groups([[0, 1], [2, 3, 4]]), norms.OWL(np.arange(5.0, 0.0, -1.0)),
]  # fmt: skip


@pytest.mark.parametrize("norm", GAUGES, ids=lambda norm: type(norm).__name__)
def test_gauges_and_polars_scale_with_what_they_are_of(norm: Norm) -> None:
    assert_scales(norm)


def assert_scales(norm: Norm) -> None:
    v = np.array([1.0, -2.0, 0.0, 0.3, 0.5])
    value, polar = norm.value(v), norm.polar(ArrayScores(v))
    for size in SIZES:
        assert_allclose(norm.value(size * v) / size, value, rtol=1e-8)
        assert_allclose(norm.polar(ArrayScores(size * v)) / size, polar, rtol=1e-12)


def test_groups_of_many_sizes_are_each_in_units_of_their_own() -> None:
    apart = np.array([3e-200, -4e-200, 0.0, 3e200, 4e200])
    assert norms.Groups([[0, 1], [2, 3, 4]]).value(apart) == pytest.approx(5e200)
    sizes = ArrayScores(apart).group_norms(np.array([0, 0, 1, 1, 1]), 2)
    assert_allclose(sizes, [5e-200, 5e200], rtol=1e-12)
