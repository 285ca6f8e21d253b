"""Small random problems with an independent optimum (CVXPY), for masters and solvers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import (
    Array,
    Block,
    Form,
    Norm,
    Problem,
    Regularizer,
    as_design,
    as_loss,
    negative_gradient,
    optimal_intercept,
)
from atomlearn.testing.gauges import gauge_model
from atomlearn.testing.loss_oracles import oracle_of, targets_of

#: The losses that every master and solver is tested with; the others have separate tests.
LOSSES = ("squared", "logistic", "squared_hinge")
FORMS: tuple[Form, ...] = ("penalized", "squared", "constrained")


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of problem for tests.

    Attributes
    ----------
    loss, form : str
        Name of the loss; form of the penalty: "penalized", "squared" or "constrained".
    intercept, weighted : bool
        Whether the problem has an intercept and sample weights.
    tau : float
        Weight of the ridge term.
    strength : float
        The strength of the penalty, as a share of the smallest strength at which w = 0 is optimal
        (in the penalized form). In the constrained form, half the radius.
    n_samples, n_features : int
        Size of the data.
    correlation : float
        Correlation of neighboring columns.
    seed : int
        Seed of the data.
    """

    loss: str = "squared"
    form: Form = "squared"
    intercept: bool = False
    weighted: bool = False
    tau: float = 0.0
    strength: float = 0.3
    n_samples: int = 24
    n_features: int = 16
    correlation: float = 0.0
    seed: int = 0

    def data(self) -> tuple[Array, Array, Array | None]:
        """Return X, y and the sample weights, which are None if the case is not weighted.

        Weights are whole numbers from 0 to 3.
        """
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.n_samples, self.n_features))
        # Neighboring columns are correlated; every fourth column has the coefficient 1.
        for j in range(1, self.n_features):
            X[:, j] *= np.sqrt(1 - self.correlation**2)
            X[:, j] += self.correlation * X[:, j - 1]
        truth = np.where(np.arange(self.n_features) % 4 == 0, 1.0, 0.0)
        y = X @ truth + 0.5 * rng.standard_normal(self.n_samples) + 0.7
        y = targets_of(as_loss(self.loss), y)
        weight = rng.integers(0, 4, self.n_samples).astype(np.float64) if self.weighted else None
        return X, y, weight

    def problem(self, norm: Norm, data: tuple[Array, Array, Array | None] | None = None) -> Problem:
        """Return the problem with ``norm``, so strong (or so small a radius) that w is sparse.

        ``data`` are X, y and sample weights; None: those of ``data()``.
        """
        X, y, weight = data or self.data()
        return problem_on(X, y, norm, self, weight)


def problem_on(X: Any, y: Array, norm: Norm, case: Case, weight: Array | None = None) -> Problem:
    """Return the problem of ``case`` with ``norm`` on other data.

    ``X`` and ``y`` are the data, and ``weight`` the sample weights; None: all 1.
    """
    design = as_design(X)
    loss = as_loss(case.loss)
    at_strength_1 = Problem.build(
        design,
        y,
        loss,
        Regularizer(norm, "penalized", 1.0),
        fit_intercept=case.intercept,
        sample_weight=weight,
    )
    # Up to this polar, of the scores at the best constant prediction, w = 0 is not optimal in the
    # penalized form.
    constant = np.full(y.size, optimal_intercept(at_strength_1, np.zeros(y.size)))
    polar = norm.polar(design.scores(negative_gradient(at_strength_1, constant)))
    amount = case.strength * (polar or 1.0)
    if case.form == "squared":
        # Here strengths are relative to polar^2 / f, f the loss of the constant. Then 2 X with
        # 4 times the strength is an equivalent problem.
        amount *= (polar or 1.0) / loss.value(at_strength_1.y, constant, at_strength_1.weight)
    elif case.form == "constrained":
        amount = 2.0 * case.strength
    return Problem.build(
        design,
        y,
        loss,
        Regularizer(norm, case.form, amount),
        tau=case.tau,
        fit_intercept=case.intercept,
        sample_weight=weight,
    )


def all_cases(forms: tuple[Form, ...] = FORMS, *, with_tau: bool = True) -> Iterator[Case]:
    """Yield two cases of every loss in every form, with opposite settings.

    The settings are intercept, sample weights and ridge term. The second case has those that the
    first one lacks. The first case changes from pair to pair, so that any two settings occur
    together. ``forms`` are the forms, and ``with_tau`` says whether there are ridge terms.
    """
    seed = 0
    for i, loss in enumerate(LOSSES):
        for j, form in enumerate(forms):
            for is_second in (False, True):
                seed += 1
                # Pattern 0 gives the first case none of the settings, pattern k only setting k.
                pattern = (i + j) % 4
                intercept, weighted, tau = (
                    is_second != (pattern == number) for number in (1, 2, 3)
                )
                ridge = 0.4 if with_tau and tau else 0.0
                yield Case(loss, form, intercept, weighted, ridge, seed=seed)


_OPTIMA: dict[tuple[str, str], float] = {}


def optimum(case: Case, norm: Norm) -> float:
    """Return F* of ``case.problem(norm)`` by CVXPY, cached for all suites."""
    key = (repr(case), repr(norm))
    if key not in _OPTIMA:
        problem = case.problem(norm)
        _OPTIMA[key] = cvxpy_optimum(problem, case.data()[0])
    return _OPTIMA[key]


def cvxpy_optimum(problem: Problem, X: Array) -> float:
    """Return F* of ``problem`` by an interior-point method, independent of atomlearn.

    The method is Clarabel, through CVXPY; ``X`` is the data as an array.
    """
    cp: Any = importlib.import_module("cvxpy")
    w = cp.Variable(X.shape[1])
    intercept = cp.Variable() if problem.fit_intercept else 0.0
    prediction = X @ w + intercept
    smooth = oracle_of(problem.loss).expression(cp, problem.y, prediction, problem.weight)
    if problem.tau:
        smooth += 0.5 * problem.tau * cp.sum_squares(w)
    # The penalty, or the constraint, in terms of the gauge.
    gauge, constraints = gauge_model(cp, problem.regularizer.norm, w)
    form = problem.regularizer.form
    amount = problem.regularizer.amount
    penalty = {"penalized": amount * gauge, "squared": 0.5 * amount * cp.square(gauge)}
    if form == "constrained":
        constraints.append(gauge <= amount)
    program = cp.Problem(cp.Minimize(smooth + penalty.get(form, 0.0)), constraints)
    program.solve(solver="CLARABEL", use_quad_obj=False)
    if program.status != "optimal":
        raise AssertionError(f"the oracle ended {program.status}")
    return float(program.value)


def as_block(problem: Problem) -> Block:
    """Return all columns of ``problem`` as a Block."""
    return problem.design.gather(np.arange(problem.design.shape[1]))
