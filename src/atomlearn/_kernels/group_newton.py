"""Newton's method on the scalings of groups for a quadratic loss, in one call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions

#: What the kernel calls, from scipy.linalg.cython_blas and cython_lapack.
_ROUTINES = {
    "cython_blas": ("dtrsm", "dsyrk", "dgemv", "dgemm"),
    "cython_lapack": ("dpotrf", "dpotrs"),
}


class NewtonStatus(IntEnum):
    """Why the steps ended."""

    REACHED = 0
    #: Of the steps, or of their work.
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


@cache
def load_blas() -> None:
    """Hand the routines of SciPy's BLAS and LAPACK to the kernels, or say that there are none."""
    import scipy.linalg

    for module, names in _ROUTINES.items():
        exported: dict[str, Any] = getattr(scipy.linalg, module).__pyx_capi__
        if not all(_native.provide_blas(name, exported.get(name)) for name in names):
            raise ImportError(
                f"atomlearn needs {', '.join(names)} with 32-bit integers from "
                f"scipy.linalg.{module}, which this SciPy does not export; install SciPy from PyPI "
                "or conda-forge"
            )


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
    bounds = _checks.weights(limit, "limit", np.size(limit))
    if not (np.isfinite(bounds).all() and (bounds > 0).all()):
        raise ValueError("limit must be positive and finite for every group")
    t = np.array(_checks.weights(scalings, "scalings", bounds.size))
    entries = _checks.positions(members, "members", n_features)
    cuts = _cuts(starts, entries.size, bounds.size)
    if not (math.isfinite(squared_target) and gap_target >= 0):
        raise ValueError(
            f"squared_target must be finite, gap_target >= 0; got {squared_target!r} and "
            f"{gap_target!r}"
        )
    slopes = np.zeros(n_features)
    code, steps, gap = _native.group_newton(
        given,
        gram,
        line,
        float(squared_target),
        cuts,
        entries,
        bounds,
        t,
        slopes,
        float(gap_target),
        _checks.count(max_steps, "max_steps"),
    )
    return t, slopes, NewtonOutcome(NewtonStatus(code), steps, gap)


def _samples_or_gram(matrix: Array, gram: bool) -> Array:
    """Return the matrix in the order that C++ reads: rows of a Gram matrix, columns of samples."""
    given = _checks.float64_matrix(matrix, "matrix")
    n_rows = given.shape[0]
    if gram and n_rows != given.shape[1]:
        raise ValueError(f"matrix must be square, a Gram matrix; got shape {given.shape}")
    contiguous = given.strides[1 if gram else 0] == 8
    if not contiguous or any(stride % 8 or stride < 8 for stride in given.strides):
        order = "rows (np.ascontiguousarray)" if gram else "columns (np.asfortranarray)"
        if given.size > max(given.shape):
            raise ValueError(f"matrix must have contiguous {order}, got strides {given.strides}")
        given = np.array(given, order="C" if gram else "F")
    elif not gram and given.strides[1] < 8 * n_rows:
        given = np.array(given, order="F")  # one column: its stride may be anything
    return given


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
