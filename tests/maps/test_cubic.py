"""Products of up to three inputs: the kernel, the numbering, the search, and what is refused."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import FeatureGenerator, norms
from atomlearn.designs import Cubic
from atomlearn.interfaces import Design
from atomlearn.solvers import FeatureGeneration
from atomlearn.testing.designs import DesignChecks
from tests.oracles.sums import solve_sum


def made(n: int = 30, d: int = 6, **settings: float) -> tuple[Cubic, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((n, d))
    return Cubic(X, **settings), X


def test_rows_multiply_as_the_kernel_does() -> None:
    design, X = made(gamma=0.7, r=1.3)
    A = design.gather(np.arange(design.shape[1])).dense()
    assert_allclose(A @ A.T, (0.7 * X @ X.T + 1.3) ** 3 - 1.3**3, rtol=1e-12)


def test_columns_are_numbered_inputs_pairs_triples() -> None:
    design, X = made()
    wanted = [c for size in (1, 2, 3) for c in combinations_with_replacement(range(6), size)]
    assert design.shape == (30, len(wanted))
    for number, inputs in enumerate(wanted):
        assert design.triple(number) == (*inputs, -1, -1)[:3]
        assert design.column(*inputs) == number
        column = design.gather(np.array([number])).dense()[:, 0]
        product = np.prod(X[:, list(inputs)], axis=1)
        assert_allclose(column / product, column[0] / product[0], rtol=1e-9)


def test_the_search_misses_nothing() -> None:
    design, _ = made(40, 12)
    v = np.random.default_rng(1).standard_normal(40)
    A = design.gather(np.arange(design.shape[1])).dense()
    scores = design.scores(v)
    assert_allclose(scores.full(), A.T @ v, atol=1e-12)
    for count in (1, 7, 100, design.shape[1]):
        columns, values = scores.top(count)
        assert_allclose(values, A[:, columns].T @ v, atol=1e-12)
        best = np.sort(np.abs(A.T @ v))[::-1][:count]
        assert_allclose(np.abs(values), best, atol=1e-12)
    rows = np.array([3, 3, 5])
    part = design.with_rows(rows).gather(np.arange(10)).dense()
    assert_array_equal(part, A[rows][:, :10])


def test_a_triple_is_found_by_every_solver() -> None:
    design, X = made(200, 8)
    y = X[:, 1] * X[:, 4] * X[:, 6] + 0.05 * np.random.default_rng(2).standard_normal(200)
    fit = solve_sum(design, y, level=60.0)
    assert design.triple(int(fit.columns[np.argmax(np.abs(fit.weights))])) == (1, 4, 6)
    generated = solve_sum(
        design,
        y,
        norm=norms.KSupport(2),
        form="squared",
        level=1.0,
        solver=FeatureGeneration(n_features=2),
    )
    assert design.column(1, 4, 6) in generated.columns


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(ValueError, match=r"are listed; .* designs.Polynomial for pairs"):
        Cubic(np.ones((2000, 2000)))
    design, _ = made()
    with pytest.raises(IndexError, match="1 to 3 inputs"):
        design.column(1, 2, 3, 4)
    with pytest.raises(ValueError, match="gamma"):
        Cubic(np.eye(2), gamma=0.0)


class TestConformance(DesignChecks):
    gathers_exactly = False

    def build(self) -> tuple[Design, np.ndarray]:
        design, X = made(9, 4, gamma=0.7, r=1.3)
        U = np.hstack([np.full((9, 1), np.sqrt(1.3)), np.sqrt(0.7) * X])
        found = []
        for places in list(combinations_with_replacement(range(5), 3))[1:]:
            ways = {1: 1, 2: 3, 3: 6}[len(set(places))]
            found.append(np.sqrt(ways) * np.prod(U[:, list(places)], axis=1))
        return design, np.column_stack(found)


def test_feature_generation_takes_it_as_inputs() -> None:
    design, X = made(300, 8)
    new = np.random.default_rng(3).standard_normal((300, 8))
    y, truth = (np.sign(A[:, 1] * A[:, 4] * A[:, 6]) for A in (X, new))
    model = FeatureGenerator(1, batch=1, fit_intercept=False, standardize=True).fit(design, y)
    assert design.triple(int(model.selected_[0])) == (1, 4, 6)
    assert model.score(Cubic(new), truth) == 1.0
