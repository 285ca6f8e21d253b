"""Tests for drawn changes that survived (``python -m tests.mutation --random N``)."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn import losses, norms, solve
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.coefficients import coefficient_rows
from atomlearn.core.interfaces.excess import Excess
from atomlearn.core.losses.deviance import deviance_explained
from atomlearn.core.losses.offset import Offset
from atomlearn.core.problem.free import free_part, raised_by_floats
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atoms import AtomSet
from atomlearn.core.solvers.refit import refit_on_rays
from atomlearn.designs import as_design
from atomlearn.interfaces import Atom
from atomlearn.masters import SequentialQP
from atomlearn.matrices.mixed import Mixed


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


def test_deviance_explained_does_not_depend_on_the_unit_of_weights(table):
    _, y = table
    prediction, whole = y + 0.1, np.ones(40)
    explained = [deviance_explained(losses.Squared(), y, prediction, f * whole) for f in (1, 1e-6)]
    assert_allclose(explained, 1.0 - 0.01 / y.var(), rtol=1e-12)


def test_offsets_are_added_by_every_method():
    rng = np.random.default_rng(2)
    y, z, offset = np.sign(rng.normal(size=6)), rng.normal(size=6), rng.normal(size=6)
    s, kinds, inner = rng.uniform(0.5, 2, 6), np.zeros(6, dtype=np.int64), losses.Logistic()
    for loss in (Offset(inner, offset), Mixed((inner,), kinds, offset)):
        assert loss.value(y, z, s) == pytest.approx(inner.value(y, z + offset, s), rel=1e-14)
        dual = loss.gradient(y, z, s)
        assert_allclose(dual, inner.gradient(y, z + offset, s))
        assert_allclose(loss.curvature(y, z, s), inner.curvature(y, z + offset, s))
        young = loss.value(y, z, s) + loss.conjugate(y, dual, s)
        assert young == pytest.approx(z @ dual, rel=1e-12)


def test_oscar_is_l1_and_the_larger_of_each_pair():
    w = np.array([3.0, -1.0, 0.0, 2.0])
    pairs = sum(max(abs(w[i]), abs(w[j])) for i in range(4) for j in range(i))
    assert norms.OWL.oscar(4, 0.5).value(w) == pytest.approx(6.0 + 0.5 * pairs, rel=1e-14)


def test_curvatures_with_an_offset_are_those_where_it_leads():
    rng = np.random.default_rng(0)
    y, z, o, s = rng.poisson(2.0, 8).astype(float), *rng.normal(size=(2, 8)), np.ones(8)
    shifted = Offset(losses.Poisson(), o)
    assert_allclose(shifted.curvature(y, z, s), losses.Poisson().curvature(y, z + o, s))


def test_rescaled_columns_without_their_means_are_scaled_whole():
    X = sp.random(20, 4, 0.5, format="csc", random_state=0)
    block = CenteredBlock(as_design(X).gather(np.arange(4)), np.array([1.0, 2.0, 0.0, 3.0]))
    factors = np.array([2.0, 0.5, 3.0, 7.0])
    assert_allclose(block.rescaled(factors).dense(), block.dense() * factors)


def test_small_deviances_are_explained_as_large_ones():
    y = 0.01 * np.arange(4.0)
    small, ones = deviance_explained(losses.Squared(), y, 0.9 * y, np.ones(4)), np.ones(4)
    assert_allclose(small, deviance_explained(losses.Squared(), 1e3 * y, 900.0 * y, ones))


def test_what_floats_of_free_columns_lose_raises_the_objective():
    """Columns at 1e8 leave coefficients whose sums are off by more than the optimum's rounding."""
    lost, raised = np.zeros(12), np.zeros(12)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        X[:, :2] += 1e8
        problem = Problem.build(
            as_design(X), y, losses.Squared(), Regularizer(norms.L1(), "penalized", 1.0),
            unpenalized=[0, 1], fit_intercept=True,
        )  # fmt: skip
        prediction = np.zeros(30)
        found = problem.loss.value_at(
            y, prediction, problem.weight, *free_part(problem, prediction)
        )
        lost[seed] = found - problem.loss_value(prediction)
        raised[seed] = raised_by_floats(problem, prediction)
    assert (lost > 0.0).any()
    assert (raised >= lost).all()


def test_coefficients_of_more_columns_than_fit_are_sparse_and_in_place():
    parts = [(np.array([1, 5]), np.array([2.0, 3.0])), (np.array([7]), np.array([4.0]))]
    rows = coefficient_rows(parts, 2**40, np.float64, implicit=True)
    assert rows.shape == (2, 2**40)
    assert rows[0, 1] == 2.0
    assert rows[0, 5] == 3.0
    assert rows[1, 7] == 4.0
