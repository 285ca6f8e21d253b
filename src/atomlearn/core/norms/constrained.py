"""Constrained: the l1 norm of coefficients that satisfy linear constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from atomlearn._support import power_of_two, to_float64
from atomlearn.core.interfaces import Array, Atom, Columns, Form, ProxPoint, Scores
from atomlearn.core.interfaces.certificate import Excess
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.forms import three_forms
from atomlearn.core.norms.l1 import L1, WeightedBox
from atomlearn.core.norms.multipliers import ConstraintExcess, constrained_point
from atomlearn.core.norms.registry import as_norm

#: A constraint may be violated by this share of the sizes of its terms, for rounding.
ROUNDING = 1e-9


class Constrained(VectorNorm):
    """gauge(w) = ||w||_1 if lower <= A w <= upper, else infinite: the constrained lasso.

    ``Constrained(A, b)`` is A w <= b. Rows of A can require that coefficients sum to one, that they
    increase, or that they have a known ratio. The duality gap of a fit includes the constraints: it
    compares the objective with that of all coefficients that satisfy them.

    Parameters
    ----------
    A : array or sparse matrix (n_rows, n_features), or list of mappings
        One row for each constraint, a few up to some hundreds. A mapping is a row: from the index
        or the name of a column to its number, ``{"age": 1, "age_squared": -1}``; all others are 0.
    upper : float or array (n_rows,), optional
        Upper bounds b of A w <= b; inf for rows without one. 0 if neither bound is given.
    lower : float or array (n_rows,), optional
        Lower bounds on A w. A row with equal bounds is an equation.
    norm : "l1" or L1, default="l1"
        The norm of w, with weights and bounds of single columns: ``norms.L1(lower=0)``. Columns
        without a penalty cannot be in a constraint.

    Notes
    -----
    With f the loss and h(gauge) the penalty, the conjugate of the penalty on the polyhedron is

        min over m >= 0 of  h*(gauge°(z - A'm)) + b'm,

    for the polar gauge° (dual norm) of the l1 norm. Any m gives a valid bound. The best m is found
    by a small linear program over the columns with the largest scores. The polar of z - A'm is then
    computed over all columns, and a bound on rounding is added. If w = 0 violates a constraint,
    fits begin at the feasible point of smallest gauge, and form="constrained" is refused.

    References
    ----------
    B. R. Gaines, J. Kim, H. Zhou 2018, Algorithms for fitting the constrained lasso,
    doi:10.1080/10618600.2018.1473777. G. M. James, C. Paulson, P. Rusmevichientong 2020, Penalized
    and constrained optimization, doi:10.1080/01621459.2019.1609970.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X @ [0.2, 0.3, 0.5, 0.0] + 0.1 * rng.standard_normal(50)
    >>> shares = norms.Constrained(np.ones((1, 4)), upper=1, lower=1, norm=norms.L1(lower=0))
    >>> result = solve(X, y, norm=shares, alpha=0.01)
    >>> result.converged, float(round(result.coef.sum(), 9)), bool((result.coef >= 0).all())
    (True, 1.0, True)
    """

    absolute = False
    bounds_coefficients = True

    def __init__(self, A: Any, upper: Any = None, lower: Any = None, norm: Any = "l1") -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.A = A
        self.upper = upper
        self.lower = lower
        self.norm = norm

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Constrained:
        """Return the same norm with its constraints checked and stored as ``ConstraintRows``.

        Raises ValueError if no coefficients satisfy all constraints. ``n_features`` is the number
        of columns; ``shape`` is used only by norms of matrices.
        """
        rows = self._rows(n_features)
        if rows is self.A:
            return self
        # This raises an error if no coefficients satisfy the constraints.
        if not rows.allow_zero:
            rows.smallest_point()
        return Constrained(rows)

    def with_names(self, names: Sequence[str]) -> Constrained:
        """Return the same norm with names of columns, in A and in ``norm``, replaced by indices.

        names : the names of all columns, in order.
        """
        inner = as_norm(self.norm).with_names(names)
        return Constrained(_named_rows(self.A, names), self.upper, self.lower, inner)

    def value(self, w: Array) -> float:
        """Return sum_j weight_j |w_j|, or infinity if w (n_features,) violates a constraint."""
        w = to_float64(w)
        return self._rows(w.size).value(w)

    def excess(self, scores: Scores) -> Excess:
        """Return the term that the constraints add to the conjugate of the penalty.

        It is a minimum over the multipliers of the constraints, see ``ConstraintExcess``. scores :
        z (n_features,).
        """
        rows = self._rows(scores.n_columns)
        return ConstraintExcess(scores.full(), rows.box, rows.matrix, rows.bound, rows.equal)

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores z) under the constraints whose bound is 0.

        It is max <z, w> over the w that satisfy these constraints, with sum_j weight_j |w_j| <= 1.
        """
        return self._cone(scores).polar

    def polar_of_sizes(self, sizes: Scores) -> float:
        """Return max_j sizes_j / weight_j, the largest polar of scores with |z_j| <= sizes_j.

        It is the polar without the constraints, which the constraints can only reduce.
        """
        box = self._rows(sizes.n_columns).box
        usable = np.isfinite(box.weights)
        return float((sizes.full()[usable] / box.weights[usable]).max(initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return about ``count`` columns: those that determine the polar, then large scores.

        The polar is the dual norm of the scores, see ``polar``.
        """
        return self._cone(scores).columns(count)

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom a (vector of norm 1) with the largest <a, z>, which is the polar.

        a satisfies the constraints whose bound is 0. scores : z (n_features,).
        """
        columns, values = self._cone(scores).atom()
        return Atom(columns, values)

    def inside(self, columns: Columns, weights: Array, n_features: int) -> tuple[Columns, Array]:
        """Return a feasible point near the given one, as columns and weights.

        columns, weights : the nonzero coefficients of a point. If it is infeasible, it is
        projected; if no point on these columns is feasible, the columns of a feasible vertex are
        added. n_features : the number of all columns.
        """
        rows = self._rows(n_features)
        w = np.zeros(n_features)
        w[columns] = weights
        if np.isfinite(rows.value(w)):
            return columns, weights
        # If w = 0 is infeasible, these columns may have no feasible point: add those of a vertex.
        if not rows.allow_zero:
            columns = np.union1d(columns, np.flatnonzero(rows.smallest_point()))
        # The proximal map with step 0 is the projection on the constraints.
        restricted = self.restrict(columns, n_features)
        return columns, restricted.prox_point(w[columns], 0.0, "penalized").point

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, Constrained]:
        """Return the unpenalized columns, and this norm with these columns excluded.

        The unpenalized columns are ``columns`` and the columns of weight 0. Their coefficients are
        fitted as a part of the loss, without constraints. Raises ValueError if one of them is in a
        constraint. n_features : the number of all columns.
        """
        rows = self._rows(n_features)
        free, inner = L1(rows.box).without(columns, n_features)
        if not free.size:
            return columns, self
        # Raise an error for the first nonzero entry of an unpenalized column in a constraint.
        for row, column in zip(*np.nonzero(rows.matrix[:, free]), strict=True):
            raise ValueError(
                f"Constrained: unpenalized column {free[column]} is in constraint {row}; give "
                "the column a small weight instead, norm=norms.L1(weights=...)"
            )
        # After ``L1.without``, ``inner.weights`` is the box of weights and bounds.
        return free, Constrained(
            rows._replace(box=WeightedBox.read(inner.weights, None, None, n_features))
        )

    def restrict(self, columns: Columns, n_features: int) -> Constrained:
        """Return the same norm and constraints on ``columns``, with all other coefficients at 0.

        n_features : the number of all columns.
        """
        return Constrained(self._rows(n_features).restrict(columns))

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x) for v (n,), under the constraints.

        It is computed for v / scale, with scale a power of two near the size of v, against
        overflow.
        """
        rows = self._rows(v.size)
        scale = power_of_two(v)
        with np.errstate(over="ignore"):
            bound = rows.bound / scale
        box = rows.box._replace(lower=rows.box.lower / scale, upper=rows.box.upper / scale)
        # A bound that overflows is no constraint at this scale.
        is_finite = np.isfinite(bound)
        point = constrained_point(
            v / scale,
            step / scale,
            box,
            rows.matrix[is_finite],
            bound[is_finite],
            rows.equal[is_finite],
        )
        return ProxPoint(point.point * scale, point.gauge * scale, point.jacobian)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,), under the constraints.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm. If w = 0 violates a constraint, the form
        "constrained" raises ValueError, and the form "squared" starts its root finding at a bound
        that does not use a polar.
        """
        rows = self._rows(v.size)
        if form == "penalized" or rows.allow_zero:
            return super()._point(v, amount, form)
        if form == "constrained":
            raise ValueError(
                "Constrained: form='constrained' needs constraints that hold at w = 0; use "
                "form='penalized', or put the bound on the gauge into a row of A"
            )
        # No step makes the map zero; the gauge of the projection bounds the root.
        largest = amount * self._penalized(v, 0.0).gauge
        return three_forms(v, amount, form, self._penalized, lambda _: largest)

    def _cone(self, scores: Scores) -> ConstraintExcess:
        """Return the term of ``excess`` for only the constraints whose bound is 0, a cone.

        The polar (dual norm of the scores z) and the best atom depend on directions w from 0. Near
        0, the constraints with other bounds always hold. So also bounds of single columns are kept
        only if they are 0. scores : z (n_features,).
        """
        rows = self._rows(scores.n_columns)
        is_tight = rows.bound == 0
        cone = rows.box._replace(
            lower=np.where(rows.box.lower < 0, -np.inf, 0.0),
            upper=np.where(rows.box.upper > 0, np.inf, 0.0),
        )
        matrix = rows.matrix[is_tight]
        bound = rows.bound[is_tight]
        return ConstraintExcess(scores.full(), cone, matrix, bound, rows.equal[is_tight])

    def _rows(self, n_features: int) -> ConstraintRows:
        """Return the parameters as ``ConstraintRows``, checked for ``n_features`` columns."""
        return ConstraintRows.read(self.A, self.upper, self.lower, self.norm, n_features)


class ConstraintRows(NamedTuple):
    """Constraints as matrix w <= bound, or = bound in rows that are ``equal``; and an l1 norm.

    Attributes
    ----------
    box : WeightedBox
        Weights of the l1 norm and bounds of single coefficients, (n_features,) each.
    matrix : (n_rows, n_features)
        The largest absolute entry of each row is 1.
    bound : (n_rows,)
    equal : (n_rows,)
        Which rows are equations.
    """

    box: WeightedBox
    matrix: Array
    bound: Array
    equal: NDArray[np.bool_]

    @classmethod
    def read(cls, A: Any, upper: Any, lower: Any, norm: Any, n_features: int) -> ConstraintRows:
        """Return the parameters of ``Constrained``, checked, for X with ``n_features`` columns.

        Rows are scaled to a largest entry of 1. A row with a lower and an upper bound becomes two
        rows. A, upper, lower : the rows and their bounds; norm : the l1 norm.
        """
        if isinstance(A, ConstraintRows):
            if A.matrix.shape[1] != n_features:
                raise ValueError(
                    f"Constrained: A has {A.matrix.shape[1]} columns, and X has {n_features}"
                )
            return A
        # The l1 norm, with the weights and bounds of single columns.
        inner = as_norm(norm)
        if not isinstance(inner, L1):
            raise TypeError(
                f"Constrained: norm must be 'l1' or a norms.L1, got {norm!r}; constraints of other "
                "norms are not available"
            )
        box = WeightedBox.read(inner.weights, inner.lower, inner.upper, n_features)
        if ((box.weights == 0) & box.boxed).any():
            raise ValueError(
                "Constrained: a coefficient of weight 0 cannot be bounded; give it a small weight"
            )
        # The bounds of the rows, lower <= A w <= upper.
        matrix = _matrix(A, n_features)
        low = _bounds("lower", lower, -np.inf, matrix.shape[0])
        if upper is None and lower is None:
            upper = 0.0
        high = _bounds("upper", upper, np.inf, matrix.shape[0])
        if (low > high).any():
            number = int(np.argmax(low > high))
            raise ValueError(
                f"Constrained: lower must not exceed upper, got {low[number]} and {high[number]} "
                f"in row {number}"
            )
        # Scale each row, and write lower bounds as upper bounds of the negative row.
        sizes = np.abs(matrix).max(axis=1, initial=0.0)
        if not sizes.all():
            raise ValueError(f"Constrained: row {int(np.argmin(sizes))} of A is zero; leave it out")
        matrix = matrix / sizes[:, None]
        low = low / sizes
        high = high / sizes
        # Equations and upper bounds come first, then the negative rows of lower bounds.
        equal = low == high
        with_upper = np.flatnonzero(np.isfinite(high))
        with_lower = np.flatnonzero(np.isfinite(low) & ~equal)
        stacked = np.vstack([matrix[with_upper], -matrix[with_lower]])
        bound = np.concatenate([high[with_upper], -low[with_lower]])
        return cls(
            box,
            stacked,
            bound,
            np.concatenate([equal[with_upper], np.zeros(with_lower.size, bool)]),
        )

    @property
    def allow_zero(self) -> bool:
        """Whether w = 0 satisfies the constraints."""
        return bool((self.bound[~self.equal] >= 0).all() and not self.bound[self.equal].any())

    def restrict(self, columns: Columns) -> ConstraintRows:
        """Return the constraints on ``columns``; coefficients of other columns are 0.

        columns : the indices of the kept columns.
        """
        box = WeightedBox(*(array[columns] for array in self.box))
        return self._replace(box=box, matrix=self.matrix[:, columns])

    def value(self, w: Array) -> float:
        """Return sum_j weight_j |w_j|, or infinity if w (n_features,) violates a constraint.

        A violation of a row by at most 1e-9 of the sum of its absolute terms counts as rounding.
        """
        products = self.matrix @ w
        allowed = ROUNDING * (abs(self.matrix) @ np.abs(w) + np.abs(self.bound))
        is_violated = products - self.bound > allowed
        falls_short = self.equal & (self.bound - products > allowed)
        return float("inf") if (is_violated | falls_short).any() else self.box.value(w)

    def smallest_point(self) -> Array:
        """Return the feasible w with the smallest l1 norm, (n_features,).

        w is the difference of two nonnegative vectors, in which the norm is linear: a linear
        program finds them. Raises ValueError if no w satisfies all constraints.
        """
        # w = plus - minus with 0 <= plus <= upper and 0 <= minus <= -lower; excluded columns have
        # bounds of 0.
        weights = np.where(np.isfinite(self.box.weights), self.box.weights, 0.0)
        stacked = np.hstack([self.matrix, -self.matrix])
        bounds = np.concatenate([self.box.upper, -self.box.lower])
        limits: Any = {
            "A_ub": stacked[~self.equal],
            "b_ub": self.bound[~self.equal],
            "A_eq": stacked[self.equal],
            "b_eq": self.bound[self.equal],
            "bounds": np.column_stack([np.zeros(bounds.size), bounds]),
        }
        solution: Any = linprog(np.concatenate([weights, weights]), method="highs", **limits)
        if solution.x is None:
            raise ValueError(
                "Constrained: no coefficients satisfy all constraints; check A, upper and lower, "
                "and the bounds of norm"
            )
        plus, minus = np.split(solution.x, 2)
        return np.asarray(plus - minus)


def _named_rows(A: Any, names: Sequence[str]) -> Any:
    """Return the rows A with column names replaced by indices.

    names : the names of the columns of X. Only rows that are mappings have names; others are
    unchanged.
    """
    if not _has_mappings(A):
        return A
    position: dict[Any, int] = {name: number for number, name in enumerate(names)}
    rows: list[Any] = []
    for row in A:
        if not isinstance(row, Mapping):
            rows.append(row)
            continue
        for name in row:
            if isinstance(name, str) and name not in position:
                raise ValueError(f"Constrained: A names column {name!r}, which X does not have")
        rows.append({position.get(name, name): value for name, value in row.items()})
    return rows


def _has_mappings(A: Any) -> bool:
    """Return whether A is a list with mappings among its rows."""
    return isinstance(A, Sequence) and any(isinstance(row, Mapping) for row in A)


def _matrix(A: Any, n_features: int) -> Array:
    """Return the rows A as a float64 array (n_rows, n_features), checked.

    A : a matrix of any format, or a list of rows: numbers, or mappings from column indices to
    numbers.
    """
    if _has_mappings(A):
        # Mappings from columns to numbers: all other entries of a row are 0.
        dense = np.zeros((len(A), n_features))
        for number, row in enumerate(A):
            is_list = not isinstance(row, Mapping)
            if is_list and len(row) != n_features:
                raise ValueError(
                    f"Constrained: row {number} of A has {len(row)} entries, but X has "
                    f"{n_features} columns"
                )
            for column, value in enumerate(row) if is_list else row.items():
                if isinstance(column, str) or not 0 <= column < n_features:
                    raise ValueError(
                        f"Constrained: row {number} of A has column {column!r}; X has columns 0 to "
                        f"{n_features - 1}, and names only in a data frame"
                    )
                dense[number, column] = value
        return dense
    try:
        # A few rows are stored densely, whatever their original format.
        rows = A if isinstance(A, Sequence) else getattr(A, "toarray", lambda: A)()
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(
            "Constrained: A must be a matrix of numbers or a list of mappings from columns to "
            f"numbers: {error}"
        ) from error
    if matrix.ndim != 2 or matrix.shape[1] != n_features or not matrix.shape[0]:
        raise ValueError(
            f"Constrained: A must have one row for each constraint and {n_features} columns, got "
            f"shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("Constrained: A must be finite")
    return matrix


def _bounds(name: str, values: Any, default: float, n_rows: int) -> Array:
    """Return one bound for each row, (n_rows,).

    values : a number, an array, or None for ``default``. name : "lower" or "upper", for errors.
    """
    if values is None:
        return np.full(n_rows, default)
    bounds = np.asarray(values, dtype=np.float64)
    if bounds.ndim == 0:
        bounds = np.full(n_rows, float(bounds))
    if bounds.shape != (n_rows,) or np.isnan(bounds).any():
        raise ValueError(
            f"Constrained: {name} must be a number or one for each of the {n_rows} rows of A, got "
            f"{values!r}"
        )
    return bounds
