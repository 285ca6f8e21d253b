"""What one pass over the data tells of a point: its scores, its multiplier, and what wants in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms
from atomlearn.core import AcceleratedGradient, ArrayScores, AtomSet
from atomlearn.core.problem.proof import polar_of_errors
from atomlearn.core.solvers.atoms import refit_on_rays
from atomlearn.designs import as_design
from atomlearn.interfaces import Atom, Norm
from atomlearn.masters import SequentialQP
from atomlearn.problem import Pricing, Problem, Regularizer, optimal_intercept, prove
from atomlearn.solvers import ColumnGeneration, run, stopping
from tests.oracles.covering import in_turn


def data(n: int = 20, p: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X[:, :4] @ np.array([3.0, -2.0, 1.0, 1.0]) + 0.3 * rng.normal(size=n) + 1.0


def problem_of(norm: Norm, form: Any, amount: float, **more: Any) -> Problem:
    X, y = data()
    return Problem.build(as_design(X), y, losses.Squared(), Regularizer(norm, form, amount), **more)


def priced(task: Problem, columns: np.ndarray, weights: np.ndarray) -> Pricing:
    X, _ = data()
    linear = X[:, columns] @ weights
    return prove(task, columns, weights, linear + optimal_intercept(task, linear))


@pytest.mark.parametrize(
    ("norm", "form", "tau"),
    in_turn(
        [norms.L1(), norms.KSupport(2), norms.Groups(np.arange(12) // 2)],
        ["penalized", "squared", "constrained"],
        [0.0, 0.7],
    ),
)
def test_the_multiplier_of_the_optimum_is_the_polar_of_its_scores(
    norm: Norm, form: str, tau: float
) -> None:
    """And <z, w> is that of the scores and the weights, the ridge term included, anywhere."""
    task = problem_of(norm, form, 3.0, tau=tau, fit_intercept=True)
    result = run(task, ColumnGeneration(), stopping.RelativeGap(1e-11) | stopping.Iterations(50))
    at = priced(task, result.columns, result.weights)
    assert_allclose(at.multiplier, norm.on(12).polar(at.scores), rtol=1e-4)
    columns = np.array([5, 2, 7])
    off = priced(task, columns, np.array([1.0, -0.5, 2.0]))
    assert_allclose(off.inner, off.weights @ off.scores.at(columns), rtol=1e-12)


def test_columns_enter_that_are_not_held_and_would_not_stay_at_zero() -> None:
    prices = np.linspace(0.5, 2.0, 12)
    task = problem_of(norms.L1(prices), "penalized", 12.0)
    held = np.array([0, 5])
    at = priced(task, held, np.array([2.5, 0.1]))
    beyond = np.abs(at.scores.full()) > 12.0 * prices
    assert 2 < np.count_nonzero(beyond) < 10
    wanted = np.setdiff1d(np.flatnonzero(beyond), held)
    assert at.entering(np.arange(12)).tolist() == wanted.tolist()
    assert at.entering(held).size == 0
    assert at.entering(np.flatnonzero(~beyond)).size == 0
    whole = priced(task, np.arange(12), np.r_[2.5, np.zeros(4), 0.1, np.zeros(6)])
    whole.columns = None
    assert whole.entering(np.arange(12)).tolist() == np.flatnonzero(beyond).tolist()


@pytest.mark.parametrize("master", [SequentialQP(), AcceleratedGradient()])
def test_a_ridge_of_atoms_is_that_of_their_sum_whatever_the_master(master: Any) -> None:
    """Proximal maps know of a ridge term of each weight alone, which is another problem."""
    X, y = data()
    task = problem_of(norms.KSupport(2), "penalized", 1.0, tau=2.0)
    atoms = AtomSet.empty(20, gram=True)
    U = np.zeros((12, 2))
    U[:3] = [[0.8, 0.8], [-0.6, 0.0], [0.0, 0.6]]
    for atom in U.T:
        used = np.flatnonzero(atom)
        atoms = atoms.append(task.design, Atom(used, atom[used]))
    fit = refit_on_rays(task, master, atoms, np.zeros(2), 0.0, 1e-10)
    slope = (X @ U).T @ (X @ U @ fit.weights - y) + 2.0 * U.T @ U @ fit.weights + 1.0
    assert (fit.weights > 0.1).all()
    assert_allclose(slope, 0.0, atol=1e-4)


def test_errors_of_scores_count_on_both_sides_of_bounded_coefficients() -> None:
    """Of a side without a bound the largest error, of one with a bound its range times that."""
    norm = norms.L1(lower=[-3.0, -0.5, -1, -1], upper=[np.inf, 2.0, 1, 1])
    X, y = data(p=4)
    task = Problem.build(as_design(X), y, losses.Squared(), Regularizer(norm, "penalized", 1.0))
    reach, ranges = polar_of_errors(task, np.arange(2), ArrayScores(np.array([0.25, 7.0])))
    assert reach == 0.25
    assert ranges == 2.0 * 7.0 + 3.0 * 0.25 + 0.5 * 7.0
    other = norms.L1(lower=[-np.inf, -0.5, -1, -1], upper=[3.0, 2.0, 1, 1])
    task = Problem.build(as_design(X), y, losses.Squared(), Regularizer(other, "penalized", 1.0))
    assert polar_of_errors(task, np.arange(2), ArrayScores(np.array([0.25, 7.0]))) == (
        reach,
        ranges,
    )
