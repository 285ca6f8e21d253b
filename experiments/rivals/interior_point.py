"""Interior point: the restricted problem as one cone program, solved by Clarabel.

A baseline to race and to check against: it shares no arithmetic with the other masters, and makes
no use of a warm start. [V] compares its active set with such a master (FCFW-ip).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.interfaces import Array, Norm
from atomlearn.core.masters.master import Master, Refit, block_of, certified
from atomlearn.core.norms.combine import Nonnegative, Scaled
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.problem.problem import Problem, objective_at, optimal_intercept, shrink_inside
from atomlearn.losses import Logistic, Squared, SquaredHinge

#: What is tried until the gap is reached. An accuracy, in units of the relative gap wanted (small
#: residuals are not yet a small gap), and how far to go toward the border of the cones at once:
#: Clarabel's own 0.99 now and then ends in a corner, far too early.
ATTEMPTS = ((0.1, 0.9), (1e-5, 0.9), (1e-5, 0.8), (1.0, 0.99), (1e-3, 0.7))
#: The finest accuracy that it is asked for, and the coarsest.
FINEST, COARSEST = 1e-14, 1e-5


@dataclass(frozen=True, slots=True)
class InteriorPoint(Master):
    """Re-fit by a primal-dual interior-point method (Clarabel, an optional dependency).

    For squared loss, squared hinge (quadratic programs) and logistic loss (exponential cones), with
    l1, l2, groups, or a scaled or non-negative one of these, in all three forms. The block is
    copied into a sparse matrix, and a factorization costs O(n m^2) where it is dense.
    It is asked for several accuracies, as far as needed, until our own certificate says that the
    gap is reached. ``Refit.steps`` counts iterations of all attempts.

    Parameters
    ----------
    max_iter : int
        Bound on the iterations of an attempt.

    References
    ----------
    [V] M. Vinyes, G. Obozinski 2017, section 4 (FCFW-ip).
    P. J. Goulart, Y. Chen 2024, arXiv:2405.12762 (Clarabel).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> from experiments.rivals import InteriorPoint
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> refit = InteriorPoint().solve(restricted, np.zeros(2), 0.0, 1e-8)
    >>> refit.weights.round(4)
    array([0.9, 1.9])
    """

    max_iter: int = 200

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        program = _cone_program(problem)
        best = certified(problem, weights, None, intercept)
        if best.refit.gap <= gap_target or not weights.size or problem.deadline.passed:
            return best.refit
        clarabel, steps = _clarabel(), 0
        wanted = gap_target / _scale(problem, intercept)
        for accuracy, fraction in ATTEMPTS:
            tolerance = min(max(accuracy * wanted, FINEST), COARSEST)
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            settings.time_limit = problem.deadline.left
            settings.max_iter = self.max_iter
            settings.max_step_fraction = fraction
            for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
                setattr(settings, name, tolerance)
            found, iterations = program.solve(clarabel, settings)
            steps += iterations
            if np.isfinite(found).all():
                trial = certified(problem, _inside(problem, found), None, intercept)
                best = trial if trial.improves(best) else best
            if best.refit.gap <= gap_target or problem.deadline.passed:
                break
        best.refit.steps = steps
        return best.refit


def _scale(problem: Problem, intercept: float) -> float:
    """Return F at zero weights, what gaps are compared with."""
    linear = np.zeros(problem.y.size)
    value = objective_at(
        problem,
        np.zeros(problem.design.shape[1]),
        linear + optimal_intercept(problem, linear, intercept),
    )
    return max(value, np.finfo(np.float64).tiny)


def _clarabel() -> Any:
    """Return the module, or say which extra brings it."""
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise ImportError(
            "InteriorPoint needs the package clarabel; install it with "
            'pip install "atomlearn[dev]" or "atomlearn[bench]"'
        ) from error


@dataclass
class _ConeProgram:
    """min 1/2 x'diag(quadratic)x + linear'x  subject to  right - rows x in a product of cones.

    The first ``n_weights`` variables are the weights; ``variables`` more are added in runs.
    """

    n_weights: int
    n_variables: int = 0
    quadratic: list[Array] = field(default_factory=list)
    linear: list[Array] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    right: list[Array] = field(default_factory=list)
    cones: list[tuple[str, int]] = field(default_factory=list)

    def variables(self, quadratic: Array, linear: Array) -> slice:
        """Add variables with these entries of the objective; return where they are."""
        start = self.n_variables
        self.n_variables += quadratic.size
        self.quadratic.append(quadratic)
        self.linear.append(linear)
        return slice(start, self.n_variables)

    def constrain(
        self,
        cone: str,
        parts: list[tuple[slice, Any]],
        right: Array,
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        """Add right - sum matrix x[where] in a cone, or in one cone after another of ``sizes``."""
        self.rows.append((parts, right.size))
        self.right.append(right)
        self.cones += [(cone, int(each)) for each in ([right.size] if sizes is None else sizes)]

    def matrix(self) -> Any:
        """Return all rows as one sparse matrix, once all variables are known."""
        return sparse.vstack([self._widened(*row) for row in self.rows], format="csc")

    def _widened(self, parts: list[tuple[slice, Any]], height: int) -> Any:
        total = sparse.csc_array((height, self.n_variables))
        for where, matrix in parts:
            blocks = [
                sparse.csc_array((height, where.start)),
                sparse.csc_array(matrix),
                sparse.csc_array((height, self.n_variables - where.stop)),
            ]
            total = total + sparse.hstack(blocks, format="csc")
        return total

    def solve(self, clarabel: Any, settings: Any) -> tuple[Array, int]:
        """Return the weights and the number of iterations; NaN where nothing was found."""
        kinds = {
            "zero": clarabel.ZeroConeT,
            "nonnegative": clarabel.NonnegativeConeT,
            "second order": clarabel.SecondOrderConeT,
            "exponential": lambda _: clarabel.ExponentialConeT(),
        }
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(sparse.diags_array(np.concatenate(self.quadratic))),
            np.concatenate(self.linear),
            sparse.csc_matrix(self.matrix()),
            np.concatenate(self.right),
            [kinds[cone](size) for cone, size in self.cones],
            settings,
        )
        solution = solver.solve()
        x = np.asarray(solution.x, dtype=np.float64)
        return x[: self.n_weights], int(solution.iterations)


def _cone_program(problem: Problem) -> _ConeProgram:
    """Return the restricted problem with its weights as the first variables."""
    block = block_of(problem)
    size = problem.design.shape[1]
    program = _ConeProgram(size)
    weights = program.variables(np.full(size, problem.tau), np.zeros(size))
    gauge = _gauge_parts(program, weights, problem.regularizer.norm)
    _add_regularizer(program, problem, gauge)
    prediction: list[tuple[slice, Any]] = [
        (weights, sparse.csc_array(block.dense().astype(np.float64)))
    ]
    if problem.fit_intercept:
        free = program.variables(np.zeros(1), np.zeros(1))
        prediction.append((free, np.ones((problem.y.size, 1))))
    _add_loss(program, problem, prediction)
    return program


def _gauge_parts(
    program: _ConeProgram, weights: slice, norm: Norm, scale: float = 1.0
) -> list[tuple[slice, Array]]:
    """Constrain the program so that gauge(w) <= the sum of the parts, with equality at optima."""
    size = weights.stop
    price = l1_weights(norm, size, nonnegative=True)
    if isinstance(norm, Scaled):
        return _gauge_parts(program, weights, norm.norm, scale * norm.factor)
    if isinstance(norm, Nonnegative):
        program.constrain("nonnegative", [(weights, -sparse.eye_array(size))], np.zeros(size))
        if price is not None:
            return [(weights, scale * price)]
        return _gauge_parts(program, weights, norm.norm, scale)
    known = norm.as_groups(size)
    if known is None:
        raise TypeError(
            f"InteriorPoint knows l1, l2, groups, and scaled or non-negative ones of these, got "
            f"{norm!r}; use SemismoothNewton"
        )
    factors, count = known.weights, known.weights.size
    groups = [np.flatnonzero(known.labels == g) for g in range(count)]
    bounds = program.variables(np.zeros(count), np.zeros(count))
    # One cone (t_g, w_g) after the other: t_g in the first row of each, its members below.
    sizes = np.array([members.size for members in groups], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(sizes + 1)])
    height = int(first[-1])
    below = np.setdiff1d(np.arange(height), first[:-1])
    own = (np.full(count, -1.0), (first[:-1], np.arange(count)))
    inside = (np.full(size, -1.0), (below, np.concatenate([*groups, np.zeros(0, np.int64)])))
    rows = [
        (bounds, sparse.csc_array(own, shape=(height, count))),
        (weights, sparse.csc_array(inside, shape=(height, size))),
    ]
    program.constrain("second order", rows, np.zeros(height), sizes + 1)
    return [(bounds, scale * factors)]


def _add_regularizer(
    program: _ConeProgram, problem: Problem, gauge: list[tuple[slice, Array]]
) -> None:
    """Add a variable t >= gauge(w), with its part of the objective or its bound."""
    form, amount = problem.regularizer.form, problem.regularizer.amount
    linear = amount if form == "penalized" else 0.0
    square = amount if form == "squared" else 0.0
    t = program.variables(np.array([square]), np.array([linear]))
    rows = [(where, factors[None, :]) for where, factors in gauge]
    program.constrain("nonnegative", [*rows, (t, -np.ones((1, 1)))], np.zeros(1))
    if form == "constrained":
        program.constrain("nonnegative", [(t, np.ones((1, 1)))], np.array([amount]))


def _add_loss(program: _ConeProgram, problem: Problem, prediction: list[tuple[slice, Any]]) -> None:
    """Add the loss of the samples of positive weight, in terms of their predictions."""
    add = {Squared: _add_squared, SquaredHinge: _add_hinge, Logistic: _add_logistic}.get(
        type(problem.loss)
    )
    if add is None:
        raise TypeError(
            f"InteriorPoint knows the squared loss, logistic loss and squared hinge, got "
            f"{type(problem.loss).__name__}; use SequentialQP or SemismoothNewton"
        )
    used = np.flatnonzero(problem.weight)
    rows = [(where, sparse.csr_array(matrix)[used]) for where, matrix in prediction]
    add(program, rows, problem.y[used], problem.weight[used])


def _add_squared(
    program: _ConeProgram, rows: list[tuple[slice, Any]], y: Array, weight: Array
) -> None:
    """r = X w + b - y, 1/2 r^2."""
    residual = program.variables(weight, np.zeros(y.size))
    program.constrain("zero", [*rows, (residual, -sparse.eye_array(y.size))], y)


def _add_hinge(
    program: _ConeProgram, rows: list[tuple[slice, Any]], y: Array, weight: Array
) -> None:
    """r >= 1 - y (X w + b), r >= 0, 1/2 r^2."""
    shortfall, unit = program.variables(weight, np.zeros(y.size)), sparse.eye_array(y.size)
    negative = [(where, -(sparse.diags_array(y) @ matrix)) for where, matrix in rows]
    program.constrain("nonnegative", [*negative, (shortfall, -unit)], -np.ones(y.size))
    program.constrain("nonnegative", [(shortfall, -unit)], np.zeros(y.size))


def _add_logistic(
    program: _ConeProgram, rows: list[tuple[slice, Any]], y: Array, weight: Array
) -> None:
    """t >= log(1 + exp(-m)) is exp(-m - t) <= u, exp(-t) <= v, u + v <= 1: two cones a sample."""
    count = weight.size
    unit, zeros = sparse.eye_array(count), np.zeros(count)
    t = program.variables(zeros, weight)
    u = program.variables(zeros, zeros)
    v = program.variables(zeros, zeros)
    program.constrain("nonnegative", [(u, unit), (v, unit)], np.ones(count))
    # Rows (x, y, z) of a cone { y exp(x / y) <= z } lie together.
    first, third = (sparse.kron(unit, np.eye(3)[:, [row]], format="csr") for row in (0, 2))
    right, sizes = np.tile([0.0, 1.0, 0.0], count), np.full(count, 3)
    exponents = [(where, first @ sparse.diags_array(y) @ matrix) for where, matrix in rows]
    program.constrain("exponential", [*exponents, (t, first), (u, -third)], right, sizes)
    program.constrain("exponential", [(t, first), (v, -third)], right, sizes)


def _inside(problem: Problem, weights: Array) -> Array:
    """Return the weights without the rounding that leaves the domain of R."""
    if not np.isfinite(problem.regularizer.norm.value(weights)):
        weights = np.maximum(weights, 0.0)
    return shrink_inside(problem, None, weights)
