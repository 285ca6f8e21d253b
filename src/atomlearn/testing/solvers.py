"""SolverChecks: what every solver must do. Inherit, name the solver, and pytest runs the rest.

>>> class TestMySolver(SolverChecks):  # doctest: +SKIP
...     solver = MySolver()
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.testing import assert_allclose

from atomlearn.core import (
    Array,
    Form,
    Forwarding,
    KSupport,
    Norm,
    Problem,
    Progress,
    Result,
    Scores,
    Settings,
    Solver,
    Status,
    WarmStart,
    as_design,
)
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.problems import FORMS, LOSSES, Case, all_cases, optimum, problem_on


class Interrupting(Forwarding):
    """A design that raises KeyboardInterrupt in one of its passes over the data.

    ``inner`` is the design of the data, and ``left`` the number of passes before the interrupt.
    """

    def __init__(self, array: Array, calls: int) -> None:
        """Wrap ``array``; the pass after ``calls`` passes is interrupted."""
        super().__init__(as_design(array))
        self.left = calls

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns, unless the pass is interrupted."""
        self._count()
        return self.inner.scores(v)

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for w = ``weights``, unless the pass is interrupted."""
        self._count()
        return self.inner.predict(weights)

    def _count(self) -> None:
        """Count one pass; raise KeyboardInterrupt when none is left."""
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


class SolverChecks:
    """Tests that every solver must pass.

    Set ``solver``, the problems that it can solve (``norm``, ``forms``, and ``takes_tau`` for ridge
    terms), and the relative ``gap`` that it reaches within ``max_iter`` steps. ``monotone`` says
    that no step may raise the objective, and ``bounds_gauge`` that the objective has an upper bound
    on the gauge instead: the sum of atom weights.
    """

    solver: Solver
    norm: Norm = KSupport(3)
    forms: ClassVar[tuple[Form, ...]] = FORMS
    takes_tau = True
    gap = 1e-7
    max_iter = 1000
    monotone = False
    bounds_gauge = False

    def fit(self, problem: Problem, warm: WarmStart | None = None, observers: Any = ()) -> Result:
        """Run the solver on ``problem`` until its relative duality gap is reached.

        ``warm`` is the initial point (None: w = 0), and ``observers`` are called after each step.
        """
        settings = Settings(self.gap, self.max_iter, self.solver, observers=tuple(observers))
        return settings.run(problem, warm)

    def cases(self) -> list[Case]:
        """Return every case that the solver takes."""
        return list(all_cases(self.forms, with_tau=self.takes_tau))

    def assert_proved(self, problem: Problem, X: Array, result: Result) -> None:
        """Compute the objective of ``result`` again with NumPy, and compare.

        ``problem`` has loss and penalty, and ``X`` is its data as an array. A point in the
        constrained form must be in the ball, and the intercept must be optimal.
        """
        w = np.asarray(result.coef, dtype=np.float64)
        intercept = result.intercept
        prediction = X @ w + intercept
        norm = problem.regularizer.norm
        amount = problem.regularizer.amount
        smooth = problem.loss.value(problem.y, prediction, problem.weight) + 0.5 * problem.tau * (
            w @ w
        )
        gauge = norm.value(w)
        form = problem.regularizer.form
        penalty = {"penalized": amount * gauge, "squared": amount * gauge**2 / 2}.get(form, 0.0)
        # If the fit is perfect, the objective is the square of rounding errors.
        at_zero = problem.loss.value(problem.y, np.zeros_like(prediction), problem.weight)
        if self.bounds_gauge:
            slack = 1e-9 * (smooth + penalty) + 1e-24 * at_zero
            assert -slack <= result.objective - (smooth + penalty) <= result.gap + slack
        else:
            assert_allclose(result.objective, smooth + penalty, rtol=1e-9, atol=1e-24 * at_zero)
        if form == "constrained":
            assert gauge <= amount * (1 + 1e-9)
        if problem.fit_intercept:
            slope = problem.loss.gradient(problem.y, prediction, problem.weight)
            assert abs(slope.sum()) <= 1e-9 * (1 + np.abs(slope).sum())

    # Right answers.

    def test_every_case_agrees_with_the_oracle(self) -> None:
        """The objective equals CVXPY's optimum F*, and every reported gap is at least F - F*."""
        failures = []
        for case in self.cases():
            problem = case.problem(self.norm)
            best = optimum(case, self.norm)
            result = self.fit(problem)
            slack = tolerances.ORACLE * abs(best)
            # gap >= F - F* at every step means that gap - F is never below -F*.
            lowest = min(record.gap - record.objective for record in result.history)
            agrees = abs(result.objective - best) <= slack + result.gap
            if result.status is not Status.CONVERGED or not agrees or lowest < -best - slack:
                failures.append((case, result.status.name, result.objective, best, lowest))
            self.assert_proved(problem, case.data()[0], result)
            objectives = np.array([record.objective for record in result.history])
            if self.monotone:
                assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[1:])).all()
        assert not failures, f"(case, status, F, F*, lowest gap - F): {failures}"

    def test_states_are_consistent(self) -> None:
        """Each state has the predictions X w + b, distinct columns, and a record that agrees."""
        for form in self.forms:
            case = Case("logistic", form, intercept=True, seed=5)
            X = case.data()[0]

            def check(progress: Progress, X: Array = X) -> None:
                """Compare the state of ``progress`` after a step with ``X`` and with its record."""
                state = progress.state
                state.check()
                linear = X[:, state.columns] @ state.weights
                assert_allclose(state.prediction, linear + state.intercept, rtol=1e-9, atol=1e-9)
                assert progress.history[-1].objective == state.certificate.objective
                assert progress.history[-1].gap == state.certificate.gap

            result = self.fit(case.problem(self.norm), observers=[check])
            # The count of passes never falls, and each step takes at least one.
            passes = [record.passes for record in result.history]
            assert passes == sorted(passes)
            assert passes[0] >= 1
            assert result.passes >= result.iterations

    # Starts and ends.

    def test_warm_starts(self) -> None:
        """From its solution a run ends soon; from a start far outside the ball it converges."""
        for form in self.forms:
            case = Case("logistic", form, intercept=True, seed=11)
            problem = case.problem(self.norm)
            best = optimum(case, self.norm)
            cold = self.fit(problem)
            # From the solution: half of the steps at most. From the poor start: the same optimum.
            warm = self.fit(problem, WarmStart(cold.columns, cold.weights, cold.intercept))
            assert warm.iterations <= max(2, cold.iterations // 2)
            assert_allclose(warm.history[0].objective, cold.objective, rtol=tolerances.ORACLE)
            far = WarmStart(np.array([3, 0, 9, 14]), np.array([2.0, -1.0, 3.0, 0.5]), 0.3)
            for result in (warm, self.fit(problem, far)):
                assert result.status is Status.CONVERGED
                assert abs(result.objective - best) <= tolerances.ORACLE * best + result.gap

    @each("calls", [1, 2, 3, 7])
    def test_keyboard_interrupt_returns_the_best_point(self, calls: int) -> None:
        """Ctrl-C after ``calls`` passes: the result is the best point, with its certificate."""
        # So many columns that two passes are never enough.
        case = Case(
            "logistic", self.forms[-1], intercept=True, n_features=400, correlation=0.9, seed=3
        )
        problem = case.problem(self.norm)
        X = case.data()[0]
        result = self.fit(replace(problem, design=Interrupting(X, calls)))
        if result.status is Status.CONVERGED:
            assert calls > 2
        else:
            assert result.status is Status.INTERRUPTED
            assert result.gap == min(record.gap for record in result.history)
        self.assert_proved(problem, X, result)

    def test_iteration_limit(self) -> None:
        """After one step the status says that the limit was reached, and the gap still holds."""
        case = Case("logistic", self.forms[0], correlation=0.9, seed=4)
        problem = case.problem(self.norm)
        result = Settings(1e-300, 1, self.solver).run(problem)
        assert result.status in (Status.ITERATION_LIMIT, Status.STALLED)
        assert result.gap >= result.objective - optimum(case, self.norm) * (1 + tolerances.ORACLE)

    # Awkward data.

    def test_awkward_data(self) -> None:
        """Every loss and form converges, with a proof, on degenerate or badly scaled data.

        The data are n = 1, p = 1, k = p, k > p, zeros, repeated columns, separable classes and
        columns in other units.
        """
        rng = np.random.default_rng(0)
        columns = rng.standard_normal((12, 4))
        wide = rng.standard_normal((24, 16))
        repeated = np.column_stack([columns, columns, -columns[:, :2], np.ones(12), np.zeros(12)])
        separable = rng.standard_normal((20, 6))
        separable[:, 0] += 3 * np.sign(separable[:, 0])
        # Triples (n, p, k) of random data; then data for the norm of the solver.
        shapes = ((1, 6, 2), (9, 1, 1), (9, 4, 4), (9, 4, 40), (1, 1, 3))
        data = [(rng.standard_normal((n, p)), self._norm(k), 0.3) for n, p, k in shapes]
        data += [(X, self.norm, 0.3) for X in (np.zeros((8, 5)), repeated, 1e-6 * wide, 1e6 * wide)]
        for X, norm, strength in (*data, (separable, self.norm, 0.05)):
            # Labels follow the first column; without noise they are separable.
            noise = 0.0 if X is separable else 0.3 * rng.standard_normal(len(X))
            y = np.where(X[:, 0] + noise * np.abs(X).max() > 0, 1.0, -1.0)
            for form in self.forms:
                if form == "constrained" and np.abs(X).max() > 1e4:
                    continue  # for columns of this size a radius of 0.6 is no constraint
                for loss in LOSSES:
                    case = Case(loss, form, intercept=len(X) > 9, strength=strength)
                    problem = problem_on(X, y, norm, case)
                    result = self.fit(problem)
                    context = (X.shape, form, loss, result.status, result.relative_gap)
                    assert result.converged, context
                    self.assert_proved(problem, X, result)
                    assert X.any() or not result.columns.size

    def _norm(self, k: int) -> Norm:
        """Return the k-support norm with this ``k``, for problems whose size requires another k."""
        return KSupport(k)
