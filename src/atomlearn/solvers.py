"""Solvers, the one loop that runs them, stopping rules and observers."""

import sys as _sys

from atomlearn import designs as _designs  # noqa: F401  registers all that as_design takes
from atomlearn import losses as _losses  # noqa: F401  registers the names of losses
from atomlearn import norms as _norms  # noqa: F401  registers the names of norms
from atomlearn.core.solve import solve
from atomlearn.core.solvers import stopping
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.checkpoint import Checkpoint
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.gauge import gauge_by_generation
from atomlearn.core.solvers.progress import PrintProgress, Progress, RunObserver
from atomlearn.core.solvers.run import default_solver, run
from atomlearn.matrices import tasks as _tasks  # noqa: F401  registers y of several columns
from atomlearn.matrices.solver.generation import MatrixGeneration
from atomlearn.papers.feature_generation import FeatureGeneration
from atomlearn.papers.fista import FISTA
from atomlearn.papers.frank_wolfe import FrankWolfe
from atomlearn.papers.kfcfw import KFCFW

__all__ = [
    "FISTA",
    "KFCFW",
    "AtomGeneration",
    "Checkpoint",
    "ColumnGeneration",
    "FeatureGeneration",
    "FrankWolfe",
    "MatrixGeneration",
    "PrintProgress",
    "Progress",
    "RunObserver",
    "default_solver",
    "gauge_by_generation",
    "run",
    "solve",
    "stopping",
]

# So that ``from atomlearn.solvers.stopping import Seconds`` works, too.
_sys.modules[__name__ + ".stopping"] = stopping
