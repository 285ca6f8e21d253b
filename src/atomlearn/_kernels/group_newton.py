"""Newton's method on the scalings of groups for a quadratic loss, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


class NewtonStatus(IntEnum):
    """Why the steps ended."""

    REACHED = 0
    #: The bound on steps, or on their work.
    STEP_LIMIT = 1
    #: Rounding: no step descends any more.
    NO_DESCENT = 2
    #: Input or steps that are not finite.
    NOT_FINITE = 3


@dataclass(frozen=True, slots=True)
class NewtonOutcome:
    """Why the steps ended, how many Newton steps there were, and the gap at the point returned."""

    status: NewtonStatus
    steps: int
    gap: float


def group_newton(
    matrix: Array,
    linear: Array,
    starts: Positions,
    members: Positions,
    limit: Array,
    scalings: Array,
    *,
    gram: bool,
    squared_target: float,
    gap_target: float,
    max_steps: int = 100,
) -> tuple[Array, Array, NewtonOutcome]:
    """min over u of 1/2 ||y - B w||^2 + sum_g limit_g ||u_g||, w the sum of the u_g.

    Newton's method on phi(t) = min_u 1/2 ||y - B w||^2 + 1/2 sum_g ||u_g||^2 / t_g + 1/2 sum_g
    limit_g^2 t_g over t >= 0, whose inner problem is a ridge regression. Groups may overlap. A
    step costs a Cholesky factorization of the size of the features in use (``gram``) or of the
    sample, and a non-negative quadratic program over the groups in use; 5 to 10 steps from zero.

    Parameters
    ----------
    matrix : float64
        (p, p) G = B'B where ``gram``, symmetric with contiguous rows; else (n, p) B with
        contiguous columns.
    linear : (p,) B'y where ``gram``, else (n,) y
    starts : (n_groups + 1,) int64
    members : int64
        Group g holds the features members[starts[g]:starts[g + 1]].
    limit : (n_groups,) float64 > 0
    scalings : (n_groups,) float64 >= 0
        Warm start t.
    squared_target : float
        ||y||^2.
    gap_target : float
        Absolute duality gap at which steps end.
    max_steps : int
        Bound on Newton steps.

    Returns
    -------
    t : (n_groups,) scalings >= 0
    slopes : (p,) with u_g = t_g slopes[members of g]
    outcome : NewtonOutcome
    """
    load_blas()
    given = _samples_or_gram(matrix, gram)
    n_rows, n_features = given.shape
    line = _checks.weights(linear, "linear", n_rows)
    bounds = _checks.positive_weights(limit, "limit", limit.size)
    t = np.array(_checks.weights(scalings, "scalings", bounds.size))
    entries = _checks.positions(members, "members", n_features)
    cuts = _cuts(starts, entries.size, bounds.size)
    slopes = np.zeros(n_features)
    of_groups = cuts, entries, bounds, t
    code, steps, gap = _native.group_newton(
        given, gram, line, squared_target, *of_groups, slopes, gap_target, max_steps
    )
    return t, slopes, NewtonOutcome(NewtonStatus(code), steps, gap)


def _samples_or_gram(matrix: Array, gram: bool) -> Array:
    """Return the matrix in the order that C++ reads: rows of a Gram matrix, columns of samples."""
    if gram:
        return _checks.symmetric(matrix, matrix.shape[1])
    # The stride of one row or one column may be anything.
    one = min(matrix.shape) <= 1
    if not one and matrix.strides[0] != matrix.itemsize:
        raise ValueError(f"matrix must have contiguous columns, got strides {matrix.strides}")
    return np.array(matrix, order="F") if one else matrix


def _cuts(starts: Positions, n_entries: int, n_groups: int) -> Positions:
    """Return where groups begin in the list of their members, and where the last one ends."""
    cuts = _checks.positions(starts, "starts", n_entries + 1)
    if cuts.size != n_groups + 1 or cuts[0] != 0 or cuts[-1] != n_entries:
        raise ValueError(
            f"starts must hold {n_groups + 1} positions from 0 to {n_entries}, where groups "
            f"begin in members and where the last one ends; got {cuts.size} of them"
        )
    if (np.diff(cuts) < 0).any():
        raise ValueError("starts must not decrease: groups follow one another in members")
    return cuts
