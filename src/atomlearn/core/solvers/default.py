"""default_solver: what ``solve``, paths and estimators use where no solver is named."""

from __future__ import annotations

from atomlearn.core.interfaces import Norm
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.solver import Solver


def default_solver(norm: Norm, tolerance: float) -> Solver:
    """Return column generation over subspaces where the norm allows it, over rays elsewhere.

    ``tolerance`` is the relative gap that will be asked for. Norms that can neither be restricted
    to a few columns nor lifted get ``AtomGeneration``. Norms may name their own solver: those of
    matrices name ``MatrixGeneration``.
    """
    own: Solver | None = norm.solver(tolerance)
    if own is not None:
        return own
    if norm.over_columns:
        return ColumnGeneration(tolerance=tolerance)
    return AtomGeneration(tolerance=tolerance)
