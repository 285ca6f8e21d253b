"""Newton's method for least squares with a (latent) group lasso penalty, over group scalings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


class NewtonStatus(IntEnum):
    """Termination status of the Newton iteration."""

    REACHED = 0
    #: The maximum number of steps, or of operations, was reached.
    STEP_LIMIT = 1
    #: No step decreases the objective any more, because of rounding.
    NO_DESCENT = 2
    #: Input or steps are not finite.
    NOT_FINITE = 3


@dataclass(frozen=True, slots=True)
class NewtonOutcome:
    """How a call ended: status, number of Newton steps, duality gap and scalings at the result."""

    status: NewtonStatus
    steps: int
    gap: float
    scalings: Array


def group_newton(
    matrix: Array,
    linear: Array,
    starts: Positions,
    members: Positions,
    limit: Array,
    start: Array,
    *,
    gram: bool,
    squared_target: float,
    gap_target: float,
    max_steps: int = 100,
    scalings: Array | None = None,
) -> tuple[Array, NewtonOutcome]:
    """Minimize 1/2 ||y - B w||^2 + sum_g limit_g ||u_g||_2 over u, with w = sum_g u_g.

    u_g is a vector on the features of group g; groups may overlap (the latent group lasso). If B
    itself is passed, some sweeps of minimization over one group after the other come first, and may
    suffice. Then Newton's method minimizes over the scalings t >= 0 of the groups

        phi(t) = min_u 1/2 ||y - B w||^2 + 1/2 sum_g ||u_g||^2 / t_g + 1/2 sum_g limit_g^2 t_g,

    whose inner problem is a ridge regression. A step costs a Cholesky factorization, of the size
    of the active features (``gram``) or of the number of samples, and a non-negative quadratic
    program over the active groups. From zero it takes 5 to 10 steps.

    Parameters
    ----------
    matrix : float64
        If ``gram``, (p, p) G = B'B, symmetric with contiguous rows; else (n, p) B with
        contiguous columns.
    linear : (p,) or (n,) float64
        B'y if ``gram``, else y.
    starts : (n_groups + 1,) int64
    members : int64
        Group g has the features members[starts[g]:starts[g + 1]].
    limit : (n_groups,) float64 > 0
        Weight of each group in the penalty.
    start : float64
        Warm start u, one entry for each of ``members``.
    squared_target : float
        ||y||^2.
    gap_target : float
        Absolute duality gap at which the iteration ends.
    max_steps : int
        Maximum number of Newton steps.
    scalings : (n_groups,) float64 >= 0, optional
        The start t of Newton's method; ||u_g|| / limit_g if None.

    Returns
    -------
    u : float64
        One entry for each of ``members``.
    outcome : NewtonOutcome
        Its ``steps`` count those of Newton's method; 0 if the sweeps reached the target.
    """
    # The kernel checks nothing: check the shapes, and copy the arrays that it overwrites.
    load_blas()
    arrays = _samples_or_gram(matrix, gram)
    n_rows, n_features = arrays.shape
    linear_term = _checks.weights(linear, "linear", n_rows)
    bounds = _checks.positive_weights(limit, "limit", limit.size)
    entries = _checks.positions(members, "members", n_features)
    u = np.array(_checks.weights(start, "start", entries.size))
    group_starts = _checked_starts(starts, entries.size, bounds.size)
    first_scalings = np.zeros(bounds.size) if scalings is None else scalings
    t = np.array(_checks.weights(first_scalings, "scalings", bounds.size))
    group_arguments = group_starts, entries, bounds, u, t, scalings is not None
    code, steps, gap = _native.group_newton(
        arrays, gram, linear_term, squared_target, *group_arguments, gap_target, max_steps
    )
    return u, NewtonOutcome(NewtonStatus(code), steps, gap, t)


def _samples_or_gram(matrix: Array, gram: bool) -> Array:
    """Return ``matrix`` in the memory order of the kernel.

    With ``gram`` it is G = B'B, and rows must be contiguous. Else it is B, and columns must be.
    """
    if gram:
        return _checks.symmetric(matrix, matrix.shape[1])
    # For a single row or column, NumPy may report any stride.
    is_vector = min(matrix.shape) <= 1
    if not is_vector and matrix.strides[0] != matrix.itemsize:
        raise ValueError(f"matrix must have contiguous columns, got strides {matrix.strides}")
    return np.array(matrix, order="F") if is_vector else matrix


def _checked_starts(starts: Positions, n_entries: int, n_groups: int) -> Positions:
    """Return ``starts`` checked: the positions in ``members`` at which groups begin, and the end.

    ``n_entries`` is the length of ``members``, and there are ``n_groups`` groups.
    """
    checked = _checks.positions(starts, "starts", n_entries + 1)
    if checked.size != n_groups + 1 or checked[0] != 0 or checked[-1] != n_entries:
        raise ValueError(
            f"starts must hold {n_groups + 1} positions from 0 to {n_entries}, where groups "
            f"begin in members and where the last one ends; got {checked.size} of them"
        )
    if (np.diff(checked) < 0).any():
        raise ValueError("starts must not decrease: groups follow one another in members")
    return checked
