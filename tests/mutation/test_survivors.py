"""Tests for drawn changes that survived (``python -m tests.mutation --random N``)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms, solve
from atomlearn.core.interfaces.excess import Excess
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atoms import AtomSet
from atomlearn.core.solvers.refit import refit_on_rays
from atomlearn.designs import as_design
from atomlearn.interfaces import Atom
from atomlearn.masters import SequentialQP


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) + 2.0


def test_free_columns_leave_the_gap_as_small_as_it_is(table):
    X, y = table
    result = solve(X, y, level=0.1, unpenalized=[2], intercept=True, gap=1e-9)
    assert result.converged
    assert result.gap < 1e-8 * result.objective


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_the_conjugate_with_bounds_is_the_least_over_all_splits(form):
    rng = np.random.default_rng(1)
    regularizer = Regularizer(norms.L1(), form, 0.7)
    for _ in range(8):
        sizes, prices, widths = rng.random((3, 4)) + 0.1
        excess, polar, most = Excess(0.0, sizes, prices, widths), 0.3 * rng.random(), 2.0
        splits = np.linspace(polar, 20.0, 401)
        least = min(regularizer.conjugate(t, most) + excess.at(t) for t in splits)
        found = regularizer.conjugate(polar, most, excess)
        assert found <= least + 1e-12
        assert found >= least - 0.2


def test_a_refit_on_rays_tells_its_linear_part(table):
    X, y = table
    design, regularizer = as_design(X), Regularizer(norms.L1(), "penalized", 0.5)
    problem = Problem.build(design, y, losses.Squared(), regularizer, fit_intercept=True)
    atoms = AtomSet.empty(40)
    for column, sign in ((0, 1.0), (1, -1.0)):
        atoms = atoms.append(design, Atom(np.array([column]), np.array([sign])))
    fit = refit_on_rays(problem, SequentialQP(), atoms, np.zeros(2), float(y.mean()), 1e-10)
    assert abs(fit.intercept) > 1.0
    assert_allclose(fit.linear, X[:, :2] @ (fit.weights * [1.0, -1.0]), atol=1e-12)
