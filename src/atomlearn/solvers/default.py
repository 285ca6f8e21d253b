"""default_solver: what ``solve``, paths and estimators use where no solver is named."""

from __future__ import annotations

from atomlearn.interfaces import Norm, Solver, SupportsAtoms, SupportsLift, SupportsRestriction
from atomlearn.solvers.column_generation import ColumnGeneration
from atomlearn.solvers.generation import AtomGeneration


def default_solver(norm: Norm, tolerance: float) -> Solver:
    """Return column generation over subspaces where the norm allows it, over rays elsewhere.

    ``tolerance`` is the relative gap that will be asked for. Norms that can neither be restricted
    to a few columns nor lifted, but hand out their best atom, get ``AtomGeneration``.
    """
    over_columns = isinstance(norm, SupportsRestriction | SupportsLift)
    if isinstance(norm, SupportsAtoms) and not over_columns:
        return AtomGeneration(tolerance=tolerance)
    return ColumnGeneration(tolerance=tolerance)
