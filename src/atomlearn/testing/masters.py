"""MasterChecks: what every master must do. Inherit, name the master, and pytest runs the rest.

>>> class TestMyMaster(MasterChecks):  # doctest: +SKIP
...     master = MyMaster()
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import (
    L1,
    L2,
    Array,
    Groups,
    KSupport,
    Master,
    Norm,
    Problem,
    Refit,
    as_design,
    objective_at,
    optimal_intercept,
    prove,
    restrict,
)
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.problems import FORMS, LOSSES, Case, all_cases, as_block, optimum, problem_on


class MasterChecks:
    """Tests that every master (solver of the problem restricted to some columns) must pass.

    Set ``master``; ``gap`` is the relative gap that it must reach on small problems. A master for
    only some losses or norms sets ``losses`` and the norms: ``norm``, ``norms`` (a few cases of
    each), ``correlated`` for correlated columns, and ``awkward`` for degenerate blocks, such as
    those of one column or one row.
    """

    master: Master
    norm: Norm = KSupport(3)
    #: Groups of columns, some of them in none.
    groups: ClassVar[list[list[int]]] = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
    norms: ClassVar[tuple[Norm, ...]] = (
        L1(),
        L2(),
        KSupport(1),
        KSupport(40),
        KSupport(2, groups=groups),
        Groups(groups),
    )
    correlated: Norm = KSupport(5)
    awkward: Norm = KSupport(2)
    losses: ClassVar[tuple[str, ...]] = LOSSES
    gap = 1e-8

    @property
    def loss(self) -> str:
        """The loss for tests that use a single loss."""
        return "logistic" if "logistic" in self.losses else self.losses[0]

    def block_problem(self, case: Case, norm: Norm) -> Problem:
        """Return the problem of ``case`` with this ``norm``, all its columns in a block."""
        problem = case.problem(norm)
        return replace(problem, design=as_block(problem))

    def solve(self, problem: Problem, weights: Array | None = None, gap: float = 0.0) -> Refit:
        """Solve ``problem`` from ``weights`` (None: zero), check the result, and return it.

        ``gap`` is the gap to reach, relative to the objective at zero; 0: that of the suite.
        """
        if weights is None:
            weights = np.zeros(problem.design.shape[1])
        at_zero = objective_at(problem, np.zeros_like(weights), np.zeros(problem.y.size))
        target = (gap or self.gap) * at_zero
        # The master must not write to the start.
        copy_of_weights = weights.copy()
        refit = self.master.solve(problem, weights, 0.0, target)
        assert_array_equal(weights, copy_of_weights)
        assert refit.gap <= target, (refit.gap, target, refit.steps)
        self.assert_consistent(problem, refit)
        return refit

    def assert_consistent(self, problem: Problem, refit: Refit) -> None:
        """Assert that prediction, objective and gap of ``refit`` are those of its point.

        ``problem`` is the problem that was solved.
        """
        block = as_block(problem)
        prediction = block.predict(refit.weights) + refit.intercept
        scale = 1.0 + float(np.abs(prediction).max(initial=0.0))
        assert_allclose(refit.prediction, prediction, rtol=0, atol=1e-10 * scale)
        objective = objective_at(problem, refit.weights, prediction)
        assert_allclose(refit.objective, objective, rtol=1e-10, atol=1e-300)
        # Inside a solve rounding is not yet part of a gap: the outer certificate adds it.
        certificate = prove(problem, None, refit.weights, prediction).certificate
        slack = 1e-9 * (1e-300 + objective)
        gap = certificate.gap - certificate.rounding
        assert_allclose(refit.gap, gap, rtol=1e-3, atol=slack)

    # Right answers.

    def test_every_case_and_norm_agrees_with_the_oracle(self) -> None:
        """The objective equals CVXPY's optimum, and the requested duality gap is certified.

        Every case has the norm of the suite; each of the other norms has a few cases. Constrained
        cases with an intercept start outside the ball.
        """
        tried = [(case, self.norm) for case in all_cases() if case.loss in self.losses]
        for number, norm in enumerate(self.norms):
            loss = self.losses[number % len(self.losses)]
            intercept = bool(number % 2)
            tried += [(Case(loss, form, intercept, seed=100 + number), norm) for form in FORMS]
        # Solve each, and compare with the optimum by CVXPY.
        failures = []
        for case, norm in tried:
            problem = self.block_problem(case, norm)
            best = optimum(case, norm)
            starts_outside = case.form == "constrained" and case.intercept
            refit = self.solve(
                problem, 3.0 * np.ones(problem.design.shape[1]) if starts_outside else None
            )
            if abs(refit.objective - best) > tolerances.ORACLE * best + refit.gap:
                failures.append((norm, case, refit.objective, best, refit.gap, refit.steps))
        assert not failures, f"(norm, case, F, F*, gap, steps): {failures}"

    @each("correlation", [0.9, 0.99])
    def test_correlated_columns(self, correlation: float) -> None:
        """The gap is reached over columns that are nearly dependent and more than the samples.

        ``correlation`` is that of neighboring columns.
        """
        for loss in self.losses:
            for form in FORMS:
                case = Case(
                    loss, form, True, n_features=40, correlation=correlation, strength=0.05, seed=6
                )
                self.solve(self.block_problem(case, self.correlated), gap=1e-7)

    # Starts and ends.

    def test_solved_problems_take_no_steps(self) -> None:
        """A start whose gap is small enough already is returned without steps."""
        for form in FORMS:
            problem = self.block_problem(Case(self.loss, form, True, seed=21), self.norm)
            refit = self.solve(problem)
            second = self.master.solve(problem, refit.weights, refit.intercept, 2 * refit.gap)
            assert second.steps == 0
            assert_array_equal(second.weights, refit.weights)
            assert_allclose(second.objective, refit.objective, rtol=1e-12)

    def test_never_worse_than_the_warm_start(self) -> None:
        """Whatever the target, the objective is not above that of a start of finite objective."""
        rng = np.random.default_rng(5)
        for loss in self.losses:
            for form in FORMS:
                problem = self.block_problem(Case(loss, form, True, seed=22), self.norm)
                weights = 0.05 * rng.standard_normal(problem.design.shape[1])
                # A norm under sign constraints is finite only for weights >= 0.
                if not np.isfinite(problem.regularizer.norm.value(weights)):
                    weights = np.abs(weights)
                linear = as_block(problem).predict(weights)
                start = objective_at(problem, weights, linear + optimal_intercept(problem, linear))
                for gap in (10.0, 1e-1, 1e-4):
                    refit = self.solve(problem, weights, gap)
                    assert refit.objective <= start * (1 + 1e-12), (loss, form, gap)

    # Awkward blocks.

    def test_awkward_blocks(self) -> None:
        """The gap is reached with one column, one sample, zero columns, and repeated columns.

        An intercept is fitted unless there is only one sample.
        """
        rng = np.random.default_rng(9)
        column = rng.standard_normal((12, 1))
        blocks = {
            "one column": column,
            "zero columns": np.zeros((12, 3)),
            "duplicates": np.column_stack([column, column, -column, np.ones(12)]),
            "one sample": rng.standard_normal((1, 5)),
        }
        for X in blocks.values():
            y = np.where(np.arange(X.shape[0]) % 3 == 0, -1.0, 1.0)
            for loss in self.losses:
                for form in FORMS:
                    intercept = X.shape[0] > 1
                    problem = problem_on(X, y, self.awkward, Case(loss, form, intercept))
                    self.solve(replace(problem, design=as_block(problem)))

    def test_no_columns(self) -> None:
        """On an empty block the result is the optimal intercept."""
        case = Case(self.loss, "squared", True, seed=2)
        problem = case.problem(self.awkward)
        empty = restrict(
            problem, problem.design.gather(np.zeros(0, dtype=np.int64)), np.zeros(0, dtype=np.int64)
        )
        refit = self.master.solve(empty, np.zeros(0), 0.0, 1e-8)
        linear = np.zeros(problem.y.size)
        assert_allclose(refit.intercept, optimal_intercept(problem, linear), atol=1e-8)
        assert refit.gap <= 1e-8

    def test_refuses_what_it_cannot_work_on(self) -> None:
        """A design that is not a Block raises a TypeError that names the remedy, ``gather``."""
        X, y, _ = Case(seed=1).data()
        problem = problem_on(as_design(X), y, self.awkward, Case())
        with pytest.raises(TypeError, match="gather"):
            self.master.solve(problem, np.zeros(X.shape[1]), 0.0, 1e-6)
