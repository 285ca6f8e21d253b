"""Re-fits over packed genotypes: their optimum is that of another package's solver."""

from __future__ import annotations

import sys
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms
from atomlearn.core import CachedBlock, FreeColumns, affine_block, changed, choose_master
from atomlearn.core.masters.quadratic_descent import QuadraticDescent
from atomlearn.losses import Squared
from atomlearn.problem import Problem, Regularizer
from atomlearn.storage.store import genotype_block

#: The kind of matrix that ``QuadraticDescent`` asks for.
HalfGram = sys.modules[QuadraticDescent.__module__].HalfGram
N, P, LEVEL = 97, 60, 4.0
PLAIN = np.repeat([1.0], P)


def made(seed: int) -> tuple[Any, Any, Any]:
    """Return a standardized block of packed genotypes, some missing, and its numbers, and y."""
    rng = np.random.default_rng(seed)
    codes = rng.choice([0, 2, 3, 1], p=[0.2, 0.4, 0.37, 0.03], size=(N, P))
    copies = np.select([codes == 0, codes == 2, codes == 3], [2.0, 1.0, 0.0], np.nan)
    means = np.nanmean(copies, axis=0)
    X = np.where(np.isnan(copies), means, copies)
    four = np.zeros((100, P), dtype=np.uint8)
    four[:N] = codes
    packed = sum(four[k::4] << (2 * k) for k in range(4)).astype(np.uint8).T.copy()
    block = genotype_block.GenotypeBlock(
        genotype_block.PackedColumns(packed), N, means, np.ones(P), np.zeros(P)
    )
    factors = 1.0 / X.std(axis=0)
    y = X[:, :6] @ rng.standard_normal(6) + rng.standard_normal(N) + 5.0
    return affine_block(block, means, factors), (X - means) * factors, y


@pytest.mark.parametrize("tau", [0.0, 2.0])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    "norm",
    [norms.L1(), norms.L1(weights=np.linspace(0.5, 2.0, P)), norms.Nonnegative(norms.L1())],
)
def test_the_optimum_is_that_of_another_solver(norm: Any, free: bool, tau: float) -> None:
    block, X, y = made(3)
    rng = np.random.default_rng(0)
    s = np.where(rng.random(N) < 0.2, 0.0, rng.uniform(0.5, 1.5, N))
    Z = np.column_stack([np.linspace(-1.0, 3.0, N), rng.standard_normal(N)])
    loss = FreeColumns(Squared(), Z, intercept=True) if free else Squared()
    problem = Problem.build(
        CachedBlock(block), y, loss, Regularizer(norm, "penalized", LEVEL),
        sample_weight=s, fit_intercept=not free, tau=tau,
    )  # fmt: skip
    master = choose_master(problem)
    assert isinstance(master, QuadraticDescent)
    refit = master.solve(problem, np.zeros(P), 0.0, 1e-7)

    w, g, b = cp.Variable(P), cp.Variable(2), cp.Variable()
    price = getattr(norm, "weights", None)
    price = PLAIN if price is None else price
    rest = y - X @ w - b - (Z @ g if free else 0.0)
    objective = (
        0.5 * cp.sum(cp.multiply(s, cp.square(rest)))
        + LEVEL * price @ cp.abs(w)
        + 0.5 * tau * cp.sum_squares(w)
    )
    bounds = [w >= 0] if isinstance(norm, norms.Nonnegative) else []
    best = cp.Problem(cp.Minimize(objective), bounds).solve(solver="CLARABEL")
    assert refit.gap <= 1e-7
    assert refit.objective == pytest.approx(best, rel=1e-7)
    assert 0 < np.count_nonzero(refit.weights) < P


def test_a_later_level_extends_the_matrix_of_the_one_before() -> None:
    block, _, y = made(5)
    cached = CachedBlock(block)
    regularizer = Regularizer(norms.L1(), "penalized", 16.0)
    problem = Problem.build(cached, y, Squared(), regularizer, fit_intercept=True)
    before = np.zeros(0, dtype=np.int64)
    for level in (16.0, 8.0, 4.0):
        at = changed(problem, amount=level)
        assert QuadraticDescent().solve(at, np.zeros(P), 0.0, 1e-6).gap <= 1e-6
        known, gram = cached.growing_part(before, at.weight, None, True, HalfGram)
        assert {strip.dtype for strip in gram.strips} == {np.dtype(np.float32)}
        assert known[: before.size].tolist() == before.tolist()
        assert known.size > before.size
        before = known


@pytest.mark.parametrize("strip", [7, 256])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("free", [0, 2])
def test_counted_products_give_the_matrix_of_unpacked_columns(
    monkeypatch: pytest.MonkeyPatch, centered: bool, free: int, strip: int
) -> None:
    monkeypatch.setattr(sys.modules[HalfGram.__module__], "STRIP", strip)
    block, X, _ = made(7)
    rng = np.random.default_rng(1)
    weight = np.where(rng.random(N) < 0.2, 0.0, 1.25)
    basis = rng.standard_normal((N, free)) if free else None
    monkeypatch.setattr(genotype_block.GenotypeBlock, "dense", None)  # no column is unpacked
    cached = CachedBlock(block)
    for columns in (rng.permutation(P)[:20], np.arange(8), rng.permutation(P)[:30]):
        known, gram = cached.growing_part(columns, weight, basis, centered, HalfGram)
    half = np.arange(0, known.size, 2)
    gram, known = gram.take(half), known[half]
    order = np.append(known, np.setdiff1d(np.arange(P), known))
    gram.extend_to(block, order)
    removed = np.full((N, 1), float(centered))
    removed = removed if basis is None else np.hstack([removed, basis])
    root = np.sqrt(weight)[:, None]
    rest = root * X[:, order]
    rest -= root * removed @ np.linalg.lstsq(root * removed, rest, rcond=1e-12)[0]
    assert_allclose(gram.matrix, rest.T @ rest, rtol=0, atol=1e-5 * np.abs(rest.T @ rest).max())
    assert_array_equal(gram.matrix, gram.matrix.T)


def test_rows_that_count_differently_are_unpacked() -> None:
    block, X, _ = made(7)
    weight = np.random.default_rng(1).random(N)
    cached = CachedBlock(block)
    for columns in (np.arange(30), np.arange(P)):
        _, gram = cached.growing_part(columns, weight, None, False, HalfGram)
    assert_allclose(gram.matrix, X.T @ (weight[:, None] * X), rtol=0, atol=1e-4)


def test_a_matrix_that_the_time_limit_left_incomplete_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block, X, _ = made(7)
    cached = CachedBlock(block)
    given: Any = np.full(N, 1.25), None, False, HalfGram
    cached.growing_part(np.arange(4), *given)
    extend = HalfGram._extend

    def late(gram: Any, block: Any, chosen: Any) -> None:
        extend(gram, block, chosen[: gram.size + 2])
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(HalfGram, "_extend", late)
        with pytest.raises(TimeoutError):
            cached.growing_part(np.arange(4, 12), *given)
    known, gram = cached.growing_part(np.array([20, 30]), *given)
    assert_allclose(gram.matrix, 1.25 * X[:, known].T @ X[:, known], rtol=0, atol=1e-4)


def test_of_many_violating_columns_the_worst_join_first(monkeypatch: pytest.MonkeyPatch) -> None:
    block, X, y = made(5)
    regularizer = Regularizer(norms.L1(), "penalized", 2.0)
    problem = Problem.build(CachedBlock(block), y, Squared(), regularizer, fit_intercept=True)
    wide = QuadraticDescent().solve(problem, np.zeros(P), 0.0, 1e-7)
    monkeypatch.setattr(sys.modules[QuadraticDescent.__module__], "JOINING", 5)
    cached = CachedBlock(block)
    problem = Problem.build(cached, y, Squared(), regularizer, fit_intercept=True)
    requested, growing = [], cached.growing_part
    monkeypatch.setattr(
        cached, "growing_part", lambda some, *rest: requested.append(some) or growing(some, *rest)
    )
    refit = QuadraticDescent().solve(problem, np.zeros(P), 0.0, 1e-7)
    correlations = np.abs((X - X.mean(axis=0)).T @ (y - y.mean()))
    assert_array_equal(np.sort(requested[0]), np.sort(np.argsort(-correlations)[:5]))
    assert requested[1].size <= 10
    assert refit.gap <= 1e-7
    assert_allclose(refit.objective, wide.objective, rtol=1e-7)


def test_gathered_columns_share_the_packed_genotypes() -> None:
    block, X, _ = made(5)
    source = block.gather(np.arange(0, P, 2))  # shares with all columns: a fold's pool
    fold = source.gather(np.array([3, 0, 7]))
    later = fold.append(source.gather(np.array([9, 1])))
    assert later._packed is block._packed
    assert_allclose(later.dense(), X[:, [6, 0, 14, 18, 2]])
    # Columns from elsewhere: a copy, as the fold leaves columns out; the array does not grow.
    size = len(block._packed.data)
    other, Y, _ = made(6)
    mixed = later.append(other.gather(np.array([4, 5])))
    assert len(block._packed.data) == size
    assert_allclose(mixed.dense(), np.hstack([later.dense(), Y[:, [4, 5]]]))
    # A block of all columns grows with its array, and the blocks that share it do not change.
    grown = block.append(other)
    assert grown._packed is block._packed
    assert_allclose(grown.dense(), np.hstack([X, Y]))
    assert_allclose(later.dense(), X[:, [6, 0, 14, 18, 2]])
    again = fold.append(grown.gather(np.array([P + 4])))
    assert again._packed is block._packed
    v = np.linspace(-1.0, 2.0, N)
    assert_allclose(again.scores(v).full(), again.dense().T @ v)
    assert_allclose(again.predict(np.arange(4.0)), again.dense() @ np.arange(4.0))


def test_a_round_before_the_last_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    block, _, y = made(5)
    regularizer = Regularizer(norms.L1(), "penalized", 2.0)
    problem = Problem.build(CachedBlock(block), y, Squared(), regularizer, fit_intercept=True)
    module = sys.modules[QuadraticDescent.__module__]
    descend, sweeps = module.descend_quadratic, []

    def watched(*given: Any, **named: Any) -> Any:
        found = descend(*given, **named)
        sweeps.append(found[1])
        return found

    monkeypatch.setattr(module, "descend_quadratic", watched)
    assert QuadraticDescent().solve(problem, np.zeros(P), 0.0, 1e-7).gap <= 1e-7
    assert sum(sweeps) < 150  # 213 if each round seeks the target
