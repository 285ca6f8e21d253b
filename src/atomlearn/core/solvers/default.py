"""default_solver: what ``solve``, paths and estimators use where no solver is named."""

from __future__ import annotations

from atomlearn.core.interfaces import Norm, Solver, SupportsAtoms, SupportsLift, SupportsRestriction
from atomlearn.core.norms.combine import Scaled
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.matrices.norms.flatten import is_of_matrices
from atomlearn.matrices.solver.generation import MatrixGeneration


def default_solver(norm: Norm, tolerance: float) -> Solver:
    """Return column generation over subspaces where the norm allows it, over rays elsewhere.

    ``tolerance`` is the relative gap that will be asked for. Norms that can neither be restricted
    to a few columns nor lifted, but hand out their best atom, get ``AtomGeneration``; norms of
    matrices ``MatrixGeneration``.
    """
    if is_of_matrices(norm):
        return MatrixGeneration(tolerance=tolerance)
    inner = norm
    while isinstance(inner, Scaled):  # which can do what the norm inside can
        inner = inner.norm
    over_columns = isinstance(inner, SupportsRestriction | SupportsLift)
    if isinstance(inner, SupportsAtoms) and not over_columns:
        return AtomGeneration(tolerance=tolerance)
    return ColumnGeneration(tolerance=tolerance)
