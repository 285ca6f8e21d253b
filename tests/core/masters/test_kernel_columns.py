"""What the kernel reads: sparse columns that are centered stay sparse if there is an intercept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from atomlearn import designs, losses, masters, norms
from atomlearn.core.masters.kernel_columns import columns_and_offsets
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.cases import each


def _problem(X: object, regularizer: Regularizer, free: dict[str, list[int]]) -> Problem:
    rng = np.random.default_rng(1)
    y, weight = (rng.random(300) < 0.4).astype(float), rng.uniform(0.5, 2.0, 300)
    design = designs.Standardized(designs.as_design(X))
    block = design.gather(np.arange(40))
    return Problem.build(
        block, y, losses.Logistic(), regularizer, sample_weight=weight, fit_intercept=True, **free
    )


@each("form", ["penalized", "squared"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("free", [{}, {"unpenalized": [3, 7]}])
def test_centered_sparse_columns_are_read_as_they_are(
    form: str, grouped: bool, free: dict[str, list[int]]
) -> None:
    X = sparse.random_array((300, 40), density=0.1, rng=np.random.default_rng(0), format="csc")
    norm = norms.Groups(np.arange(40) // 4) if grouped else norms.L1()
    regularizer = Regularizer(norm, form, 3.0 if form == "penalized" else 0.3)
    thin = _problem(X, regularizer, free)
    columns, offsets = columns_and_offsets(thin, thin.design)
    assert sparse.issparse(columns)
    assert columns.nnz == X.nnz
    np.testing.assert_allclose(
        columns.toarray() - offsets, thin.design.dense(), rtol=1e-12, atol=1e-12
    )
    start = np.random.default_rng(2).standard_normal(40)
    master = masters.SequentialQP()  # without another master behind it
    refit = master.solve(thin, start, 0.5, 1e-8)
    full = _problem(X.toarray(), regularizer, free)
    dense = master.solve(full, start, 0.5, 1e-8)
    assert max(refit.gap, dense.gap) <= 1e-8
    np.testing.assert_allclose(refit.weights, dense.weights, atol=1e-5)
    np.testing.assert_allclose(refit.prediction, dense.prediction, atol=1e-5)
    assert refit.intercept == pytest.approx(dense.intercept, abs=1e-5)


def test_without_an_intercept_large_centered_columns_are_not_read() -> None:
    X = sparse.random_array((60_000, 40), density=0.01, rng=np.random.default_rng(0), format="csc")
    block = designs.Standardized(designs.as_design(X)).gather(np.arange(40))
    y = np.ones(60_000)
    y[::2] = 0.0
    regularizer = Regularizer(norms.L1(), "penalized", 10.0)
    for intercept in (True, False):
        problem = Problem.build(block, y, losses.Logistic(), regularizer, fit_intercept=intercept)
        assert (columns_and_offsets(problem, block)[0] is not None) is intercept
        refit = masters.SequentialQP().solve(problem, np.zeros(40), 0.0, 1e-6)
        assert refit.gap <= 1e-6
