"""Solvers, the one loop that runs them, stopping rules and observers.

``FISTA`` and the other names of ``atomlearn.papers`` are here too, imported on first use.
"""

from atomlearn.core.solve import solve
from atomlearn.core.solvers import stopping
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.checkpoint import Checkpoint
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.gauge import gauge_by_generation
from atomlearn.core.solvers.progress import PrintProgress, RunObserver
from atomlearn.core.solvers.run import run
from atomlearn.matrices.solver.generation import MatrixGeneration
from atomlearn.papers import __getattr__ as __getattr__

__all__ = [
    "AtomGeneration",
    "Checkpoint",
    "ColumnGeneration",
    "MatrixGeneration",
    "PrintProgress",
    "RunObserver",
    "gauge_by_generation",
    "run",
    "solve",
    "stopping",
]
