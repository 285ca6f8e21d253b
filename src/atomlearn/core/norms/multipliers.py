"""Multipliers of linear constraints: in the conjugate of a norm, and in its proximal map.

The constraints are A w <= b, or = b in some rows, and bounds on single coefficients w_j. Each row
of A has a multiplier m_i. The norm is a weighted l1 norm; its weights and the bounds are a ``box``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from atomlearn._support import power_of_two
from atomlearn.core.interfaces import EPS, Array, Columns, ProxJacobian, ProxPoint
from atomlearn.core.interfaces.certificate import Excess
from atomlearn.core.norms.l1 import WeightedBox

#: Number of columns up to which a linear program contains all of them.
SMALL = 200
#: Maximum numbers of kinks of the conjugate, and of Newton steps; more do not change the result.
MAX_STEPS = 100


class ConstraintExcess(Excess):
    """The conjugate term E(t) of linear constraints A w <= b, or = b, and bounds on single w_j.

    A side is one sign (+1 or -1) of one w_j. E(t) is a minimum over multipliers m:

        min b'm + sum over bounded sides of width_j max(sign (z - A'm)_j - t p_j, 0)
        subject to sign (z - A'm)_j <= t p_j on the sides without a bound.

    Here p are the weights of the l1 norm. m >= 0 for inequalities, and of either sign for
    equations. ``best`` finds m by a linear program over a few columns; columns that violate its
    solution are added until there are none. Any m gives an upper bound on E(t). It is computed over
    all columns, and includes a bound on rounding errors.

    z : (n_features,) scores. box : weights and bounds of single columns. A : (n_rows, n_features)
    and b : (n_rows,), the constraints. equal : (n_rows,), which rows are equations.

    Attributes
    ----------
    price : (n_features,)
        The weights p_j; 1 for excluded columns.
    open, widths : two arrays each, (n_features,)
        Masks of the sides w_j > 0 and w_j < 0 without a bound, and the widths of bounded sides.
    multipliers, reduced, error : arrays
        m, the reduced scores z - A'm, and a bound on their rounding errors.
    terms : (n_features,)
        Number of constraints of each column.
    binding : list of arrays
        The columns with an active constraint in each of the last linear programs.
    """

    moves_scores = True

    def __init__(
        self, z: Array, box: WeightedBox, A: Array, b: Array, equal: NDArray[np.bool_]
    ) -> None:
        """Store the data of the class, with multipliers of 0; ``best`` improves them."""
        self.z = z
        self.box = box
        self.A = A
        self.b = b
        self.equal = equal
        upper = box.upper
        lower = -box.lower
        self.open = np.isposinf(upper), np.isposinf(lower)
        self.widths = tuple(np.where(np.isfinite(w), w, 0.0) for w in (upper, lower))
        self.price = np.where(np.isfinite(box.weights), box.weights, 1.0)
        self.terms = np.asarray((A != 0).sum(axis=0)).ravel()
        self.binding: list[Columns] = []
        self._set_multipliers(np.zeros(b.size))
        self._polar: float | None = None
        self._atom = np.zeros(0, dtype=np.int64), np.zeros(0)

    @property
    def polar(self) -> float:  # type: ignore[override]
        """The polar (dual norm of z under the constraints): the smallest t with a finite E(t)."""
        if self._polar is None:
            # At no cost of E(t), the minimum of t alone is the smallest t with a finite E(t).
            self._polar = self.best(0.0, 1.0, 0.0, cost=0.0)
        return self._polar

    def at(self, t: float) -> float:
        """Return an upper bound on E(t), the conjugate term of the constraints (see the class).

        It is the value with the last multipliers, plus rounding errors. It is valid for t of at
        least the number that ``best`` returned with these multipliers.
        """
        total = float(self.b @ self.multipliers)
        # A bound on the rounding error of b'm.
        total += (self.b.size + 2) * EPS * float(np.abs(self.b) @ np.abs(self.multipliers))
        for sign, width in zip((1.0, -1.0), self.widths, strict=True):
            excess = np.maximum(sign * self.reduced + self.error - t * self.price, 0.0)
            total += float(width @ excess)
        return total

    def scaled(self, factor: float) -> ConstraintExcess:
        """Return the conjugate term for the scores ``factor`` * z."""
        other = ConstraintExcess(factor * self.z, self.box, self.A, self.b, self.equal)
        other.binding = self.binding
        return other

    def repriced(self, factor: float) -> ConstraintExcess:
        """Return the conjugate term with all weights p_j of the l1 norm times ``factor``."""
        box = self.box._replace(weights=factor * self.box.weights)
        return ConstraintExcess(self.z, box, self.A, self.b, self.equal)

    def columns(self, count: int) -> Columns:
        """Return about ``count`` columns that may join the active columns of a fit, best first.

        The columns with an active constraint on the multipliers come first, then those with the
        largest reduced score |z - A'm|_j / p_j. At least b.size + 1 columns are returned, if
        possible, so that a w on these columns can satisfy all constraints.
        """
        # Computing the polar sets the multipliers and ``binding``.
        if not self.binding:
            _ = self.polar
        # The larger of the two sides of each column.
        sizes = np.maximum(*self._side_scores())
        usable = np.isfinite(self.box.weights) & (sizes > 0)
        ordered = np.argsort(-np.where(usable, sizes / self.price, -1.0), kind="stable")
        ordered = ordered[: min(max(count, self.b.size + 1), np.count_nonzero(usable))]
        # Distinct columns, in the order of their first occurrence.
        numbers = np.concatenate([*self.binding, ordered]).astype(np.int64)
        return numbers[np.sort(np.unique(numbers, return_index=True)[1])]

    def atom(self) -> tuple[Columns, Array]:
        """Return the columns and values of the atom: w of l1 norm 1 with <w, z> equal to the polar.

        Both are empty if the polar (dual norm of z under the constraints) is 0.
        """
        if self.polar <= 0.0:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        return self._atom

    def best(self, start: float, constant: float, slope: float, cost: float = 1.0) -> float:
        """Choose multipliers that minimize cost * E(t) + constant t + (slope / 2) t^2, t >= start.

        Return the smallest t >= start at which these multipliers give a finite E(t). If ``slope``
        is not 0, ``constant`` and ``cost`` are ignored, and count as 0 and 1. E(t) is the conjugate
        term of the constraints, see the class.
        """
        if not slope:
            # ``constant`` is infinite if the objective is. Such a point proves no gap, and any
            # multipliers will do.
            self._minimize(start, constant if math.isfinite(constant) else 1.0, cost)
        else:
            self._minimize_square(start, slope)
        return max(start, self.t, self._smallest_t())

    def _minimize(
        self, start: float, constant: float, cost: float = 1.0, fixed: bool = False
    ) -> float | None:
        """Choose multipliers that minimize cost * E(t) + constant t over t >= start.

        fixed : whether t = start is required. Return the derivative of the minimum with respect to
        start, or None if there is no minimum; then the multipliers are 0. E(t) is the conjugate
        term of the constraints, see the class.
        """
        # The solver's tolerances are absolute, so the scores are scaled to a size of about 1.
        scale = power_of_two(self.z)
        scaled_z = self.z / scale
        chosen = self._first_columns(scaled_z)
        while True:
            solution = self._program(scaled_z, chosen, start / scale, constant, cost, fixed)
            if solution is None:
                self._set_multipliers(np.zeros(self.b.size))
                return None
            multipliers, t, derivative = solution
            self._set_multipliers(multipliers * scale)
            self.t = t * scale
            # Add the columns that violate the solution, and solve again, until there are none.
            violating = self._violating(t * scale, chosen)
            if not violating.size:
                return derivative
            chosen = np.union1d(chosen, violating)

    def _minimize_square(self, start: float, slope: float) -> None:
        """Choose multipliers that minimize E(t) + (slope / 2) t^2 over t >= start.

        E(t), the conjugate term of the constraints, is convex and piecewise linear. It is above its
        tangents, of which two are kept: at the last points to the left and to the right of the
        minimum. The next t minimizes (slope / 2) t^2 plus the larger tangent. The search ends if
        E(t) is on a tangent.
        """
        t = start
        # The points (t, E, derivative of E) of the two tangents.
        left: tuple[float, float, float] | None = None
        right: tuple[float, float, float] | None = None
        for _ in range(MAX_STEPS):
            derivative = self._minimize(t, 0.0, fixed=True)
            if derivative is None:
                # Only by rounding, t is below the smallest t with a finite E(t): increase it a bit.
                t = t * (1.0 + 1e-12) + 1e-300
                start = t
                continue
            value = self.at(t)
            # E(t) is on the larger tangent, up to rounding: t is the minimum.
            tangents = [end[1] + end[2] * (t - end[0]) for end in (left, right) if end]
            if tangents and value <= max(tangents) + 1e-13 * abs(value) and left and right:
                return
            # The minimum is to the left of t if the objective increases at t.
            point = t, value, derivative
            if derivative + slope * t >= 0.0:
                right = point
            else:
                left = point
            if left is None:
                # The minimum is at the start, or between the start and t.
                if t <= start:
                    return
                t = start
            elif right is None:
                # Move right, at least to the minimum of the left tangent plus the square.
                t = max(4.0 * t, -derivative / slope)
            else:
                # The larger tangent is the left one up to the crossing, and the right one beyond.
                # Tangent plus square is minimal at t = -derivative / slope, within these limits.
                cross = _crossing(left, right)
                left_minimum = min(max(-left[2] / slope, left[0]), cross)
                right_minimum = max(min(-right[2] / slope, right[0]), cross)
                t = left_minimum if left_minimum < cross else right_minimum
                # If t is not new, the search ends there: set the multipliers for it again.
                if t in (left[0], right[0]):
                    self._minimize(t, 0.0, fixed=True)
                    return

    def _set_multipliers(self, multipliers: Array) -> None:
        """Set the multipliers m, the reduced scores z - A'm, and ``error``, their rounding bound.

        multipliers : m, (n_rows,); negative ones of inequalities are set to 0. t is set to 0.
        """
        self.multipliers = np.where(self.equal, multipliers, np.maximum(multipliers, 0.0))
        self.t = 0.0
        self.reduced = self.z - self.A.T @ self.multipliers
        sizes = np.abs(self.z) + abs(self.A).T @ np.abs(self.multipliers)
        # A sum of n products has n + 1 rounding errors, each of at most half of EPS times the
        # sizes.
        self.error = 0.5 * EPS * (self.terms + 1) * sizes
        # With multipliers of 0, the reduced scores are z itself, without an error.
        if not self.multipliers.any():
            self.error = 0.0 * sizes

    def _side_scores(self) -> tuple[Array, Array]:
        """Return the signed reduced scores of all columns, for w_j > 0 and for w_j < 0.

        They are (z - A'm)_j and -(z - A'm)_j, each plus its rounding bound, (n_features,). An entry
        is -inf if w_j may not have that sign.
        """
        upward = np.where(self.box.upper > 0, self.reduced + self.error, -np.inf)
        downward = np.where(self.box.lower < 0, self.error - self.reduced, -np.inf)
        return upward, downward

    def _smallest_t(self) -> float:
        """Return the smallest t with a finite E(t) at the multipliers m, max |z - A'm|_j / p_j.

        The maximum is over all columns j, and over the signs of w_j without a bound. p_j are the
        weights of the l1 norm.
        """
        sides = zip(self._side_scores(), self.open, strict=True)
        return max(
            float((sizes / self.price)[is_open].max(initial=0.0)) for sizes, is_open in sides
        )

    def _first_columns(self, z: Array) -> Columns:
        """Return the columns of the first linear program: those with the largest |z_j| / p_j.

        z : (n_features,) scores; p_j : the weights of the l1 norm. About as many columns have an
        active constraint as there are multipliers. Those that are missing here are found later, by
        ``_violating``.
        """
        if z.size <= SMALL:
            return np.arange(z.size)
        count = 4 * self.b.size + 50
        return np.argpartition(-np.abs(z) / self.price, count)[:count]

    def _violating(self, t: float, chosen: Columns) -> Columns:
        """Return columns outside of the program whose reduced score exceeds t p_j, the worst first.

        The reduced scores are z - A'm for the multipliers m, and p_j the weights of the l1 norm.
        chosen : the columns in the program. At most 2 b.size + 50 columns are returned.
        """
        if chosen.size == self.z.size:
            return np.zeros(0, dtype=np.int64)
        ratios = np.maximum(*self._side_scores()) / self.price
        ratios[chosen] = -np.inf
        order = np.argsort(-ratios)[: 2 * self.b.size + 50]
        # t is inexact in its last digits.
        return order[ratios[order] > t * (1 + 1e-12) + 1e-300]

    def _program(
        self, z: Array, chosen: Columns, start: float, constant: float, cost: float, fixed: bool
    ) -> tuple[Array, float, float] | None:
        """Return multipliers m, t and a derivative, from a linear program over some columns.

        The program minimizes cost * E(t) + constant t over t >= start, or at t = start if
        ``fixed``. E(t) is the conjugate term of the class. The derivative is that of the minimum
        with respect to ``start``. The result is None if the program has no solution. chosen : the
        columns of the program.

        A side is one sign (+1 or -1) of one w_j; it is open if w_j has no bound there, else it has
        a width. The variables are t, the multipliers m, and an excess s_j >= 0 for each side with a
        width, which costs the width. With z (n_features,) the scores, each side of a chosen column
        has the row

            -t p_j - sign (A'm)_j - s_j <= -sign z_j,

        without s_j if the side is open.
        """
        n_multipliers = self.b.size
        chosen_rows = self.A[:, chosen]
        price = self.price[chosen]
        # For each side of w_j: coefficients of t and m, right sides, widths (inf: open), columns.
        blocks = []
        limits = []
        side_widths: list[Array] = []
        side_rows = []
        for sign, is_open, width in zip((1.0, -1.0), self.open, self.widths, strict=True):
            # A side is usable if w_j may take this sign.
            usable = np.flatnonzero(is_open[chosen] | (width[chosen] > 0))
            block = np.zeros((usable.size, n_multipliers + 1))
            block[:, 0] = -price[usable]
            block[:, 1:] = -sign * chosen_rows[:, usable].T
            blocks.append(block)
            limits.append(-sign * z[chosen[usable]])
            side_widths.append(np.where(is_open, np.inf, width)[chosen[usable]])
            side_rows.append((usable, sign))
        # One excess variable, in one row, for each side with a finite width.
        widths = np.concatenate(side_widths)
        bounded = np.flatnonzero(np.isfinite(widths))
        rows = np.vstack(blocks)
        excesses = np.zeros((rows.shape[0], bounded.size))
        excesses[bounded, np.arange(bounded.size)] = -1.0
        table = np.hstack([rows, excesses])
        right_sides = np.concatenate(limits)
        # The objective and the bounds of t, m and the excesses.
        objective = np.concatenate([[constant], cost * self.b, cost * widths[bounded]])
        multiplier_limits = [(None, None) if is_equal else (0, None) for is_equal in self.equal]
        variable_limits = [
            (start, start if fixed else None),
            *multiplier_limits,
            *[(0, None)] * bounded.size,
        ]
        solution = linprog(
            objective,
            A_ub=table,
            b_ub=right_sides,
            bounds=variable_limits,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if solution.x is None:
            return None
        # Marginals are derivatives of the minimum: by right sides (<= 0), and by the bounds of t.
        self._record_binding(chosen, side_rows, -solution.ineqlin.marginals[: rows.shape[0]])
        derivative = solution.lower.marginals[0] + solution.upper.marginals[0]
        return solution.x[1 : n_multipliers + 1], float(solution.x[0]), float(derivative)

    def _record_binding(self, chosen: Columns, side_rows: Any, shares: Array) -> None:
        """Record the columns with an active constraint in a program, and w, its dual solution.

        chosen : the columns of the program. side_rows : for each sign, +1 and -1, a pair: the
        positions in ``chosen`` of the columns of its rows, and the sign. shares : the dual
        variables of all rows, which are the positive parts of w_j, then the negative parts.
        """
        w = np.zeros(chosen.size)
        # The rows for w_j > 0 come first.
        upward, downward = np.split(shares, [side_rows[0][0].size])
        w[side_rows[0][0]] += upward
        w[side_rows[1][0]] -= downward
        nonzero = np.flatnonzero(w)
        # The last three programs are kept, the columns of each by decreasing |w_j|.
        self.binding[:] = [*self.binding[-2:], chosen[nonzero[np.argsort(-np.abs(w[nonzero]))]]]
        self._atom = chosen[nonzero], w[nonzero]


def _crossing(left: tuple[float, float, float], right: tuple[float, float, float]) -> float:
    """Return the t between two points of a convex function where their tangents cross.

    left, right : (t, value, derivative) of each point. The result is between the two values of t;
    it is the right one if the tangents have the same slope.
    """
    t_left, left_value, left_slope = left
    t_right, right_value, right_slope = right
    # The crossing solves left_value + left_slope (t - t_left) = right_value + right_slope (t -
    # t_right). The tangents are parallel if the slope does not change.
    turn = right_slope - left_slope
    if turn <= 0.0:
        return t_right
    return min(
        max(
            (left_value - right_value - left_slope * t_left + right_slope * t_right) / turn, t_left
        ),
        t_right,
    )


def constrained_point(
    v: Array, step: float, box: WeightedBox, A: Array, b: Array, equal: NDArray[np.bool_]
) -> ProxPoint:
    """Return argmin 1/2 ||x - v||^2 + step * gauge(x) over A x <= b, or = b where ``equal``.

    v : (n,); box : the weights and bounds of the l1 norm, which is the gauge. x is the proximal map
    of that norm at v - A'm. The multipliers m (n_rows,) minimize a convex dual function, whose
    gradient b - A x is piecewise linear in m. Newton's method with a line search finds the linear
    piece of the minimum in a finite number of steps.
    """
    multipliers = np.zeros(b.size)
    for _ in range(MAX_STEPS):
        current = box.point(v - A.T @ multipliers, step)
        slope = b - A @ current.point
        # At the optimum of an inequality, m_i and (b - A x)_i are >= 0, and one of them is 0: the
        # smaller number is 0. For an equation, (b - A x)_i = 0.
        sizes = np.abs(v) + abs(A).T @ np.abs(multipliers)
        rounding = 4.0 * EPS * (abs(A) @ sizes + np.abs(b))
        violation = np.where(equal, slope, np.minimum(multipliers, slope))
        if (np.abs(violation) <= rounding).all():
            break
        # A step of Newton's method over the allowed multipliers. ``moves`` is 1 for the entries of
        # x that change with m, else 0.
        moves = current.jacobian().diagonal
        direction = _newton(A, moves, slope, multipliers, equal)
        length = _length(v, step, box, A, b, multipliers, direction)
        if length == 0.0:
            break
        trial = multipliers + length * direction
        trial = np.where(equal, trial, np.maximum(trial, 0.0))
        if np.array_equal(trial, multipliers):
            break
        multipliers = trial
    # The Jacobian is D - F F', with D = diag(moves). F F' is the orthogonal projection on the span
    # of the rows of A D whose constraints hold with equality. With A D D A' = V diag(values) V',
    # F = D A' V diag(values)^-1/2.
    current = box.point(v - A.T @ multipliers, step)
    moves = current.jacobian().diagonal
    active = equal | (multipliers > 0)
    image = A[active] * moves
    values, vectors = np.linalg.eigh(image @ image.T)
    # Redundant rows have eigenvalues of 0, up to rounding.
    is_positive = values > 1e-12 * values.max(initial=0.0)
    factors = image.T @ (vectors[:, is_positive] / np.sqrt(values[is_positive]))
    # The rounding errors A x - b of these rows are removed by a step along F.
    point = current.point
    if multipliers.any():
        residuals = (
            vectors[:, is_positive].T
            @ (A[active] @ point - b[active])
            / np.sqrt(values[is_positive])
        )
        point = point - factors @ residuals
    weights = np.where(np.isfinite(box.weights), box.weights, 0.0)
    return ProxPoint(
        point,
        float(weights @ np.abs(point)),
        lambda: ProxJacobian(moves, factors, -np.ones(factors.shape[1])),
    )


def _newton(
    A: Array, moves: Array, slope: Array, multipliers: Array, equal: NDArray[np.bool_]
) -> Array:
    """Return the step to the minimum of the quadratic model over the allowed multipliers.

    The model has the gradient ``slope`` (n_rows,) and the Hessian A diag(moves) A' at
    ``multipliers``; ``moves`` (n,) is 1 for entries of x that vary, else 0. Multipliers are >= 0,
    or of any sign where ``equal``. The step (n_rows,) is computed with a Cholesky factor of
    the Hessian. If it would violate the signs, nonnegative least squares is solved instead.
    """
    image = A * moves
    hessian = image @ image.T
    # A small multiple of the identity keeps the factor finite for redundant constraints.
    ridge = 1e-14 * float(np.trace(hessian)) + 1e-12
    root = np.linalg.cholesky(hessian + ridge * np.eye(slope.size))
    direction = -np.linalg.solve(root.T, np.linalg.solve(root, slope))
    if (equal | (multipliers + direction >= 0)).all():
        return np.asarray(direction)
    # With the Hessian R R', R = ``root``, the model is 1/2 ||R'm - target||^2 plus a constant, for
    # the multipliers m >= 0. The multiplier of an equation may be negative: it is the difference of
    # two nonnegative variables.
    target = root.T @ multipliers - np.linalg.solve(root, slope)
    system = np.hstack([root.T, -root.T[:, equal]])
    solution = nnls(system, target)[0]
    minimum = solution[: slope.size].copy()
    minimum[equal] -= solution[slope.size :]
    return np.asarray(minimum - multipliers)


def _length(
    v: Array,
    step: float,
    box: WeightedBox,
    A: Array,
    b: Array,
    multipliers: Array,
    direction: Array,
) -> float:
    """Return a step length in [0, 1] at which the derivative along ``direction`` is near 0.

    The problem is argmin_x 1/2 ||x - v||^2 + step * gauge(x) over A x <= b, for the norm ``box``;
    see ``constrained_point``. The derivative is of its dual function, along ``direction`` from
    ``multipliers``, (n_rows,) each. As the function is convex, the derivative increases with the
    length. Its root is found to a thousandth of the derivative at length 0. The method is Illinois:
    false position, in which the value at an end that is used twice is halved. The result is 0 if
    the dual function does not decrease along the direction.
    """

    def derivative(length: float) -> float:
        """Return the derivative of the dual function at multipliers + length * direction."""
        x = box.point(v - A.T @ (multipliers + length * direction), step).point
        return float((b - A @ x) @ direction)

    begin = derivative(0.0)
    if begin >= 0.0:
        return 0.0
    # The full step is accepted if the function still falls at its end, or hardly increases.
    end = derivative(1.0)
    if end <= 0.1 * abs(begin):
        return 1.0
    # The root is between low and high, where the derivatives are left < 0 and right > 0.
    low = 0.0
    high = 1.0
    left = begin
    right = end
    length = 1.0
    for _ in range(MAX_STEPS):
        # The zero of the line through both ends.
        length = high - right * (high - low) / (right - left)
        if not low < length < high:
            length = 0.5 * (low + high)
        value = derivative(length)
        if abs(value) <= 1e-3 * abs(begin):
            break
        if value < 0:
            low = length
            left = value
            right = 0.5 * right
        else:
            high = length
            right = value
            left = 0.5 * left
    return length
