"""ACTIVE: column generation that lets one group in at each pass, the baseline of [T] and [V]."""

from __future__ import annotations

from atomlearn.core.masters.master import Master
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.solvers.column_generation import ColumnGeneration


def active_groups(
    master: Master | None = None, inner_ratio: float = 1e-3, tol: float = 1e-6
) -> ColumnGeneration:
    """Return the active-set method ACTIVE: the best group enters, all weights are re-fitted.

    It is ``ColumnGeneration(batch=1)``: one pass asks for the columns of the one best atom of the
    norm, which are a whole group for ``norms.Groups`` and one column for ``norms.L1``. The number
    of passes is at least that of the groups used.

    Parameters
    ----------
    master : Master, optional
        Default: semismooth Newton on all columns found so far.
    inner_ratio, tol : float
        As in ``ColumnGeneration``.
    """
    return ColumnGeneration(master or SemismoothNewton(), 1, inner_ratio, tol)
