"""Solvers, the one loop that runs them, stopping rules and observers."""

from atomlearn.solvers.active_groups import active_groups
from atomlearn.solvers.admm import ADMM
from atomlearn.solvers.block_coordinate import BlockCoordinateDescent
from atomlearn.solvers.checkpoint import Checkpoint
from atomlearn.solvers.cogent import CoGEnT
from atomlearn.solvers.column_generation import ColumnGeneration
from atomlearn.solvers.default import default_solver
from atomlearn.solvers.feature_generation import FeatureGeneration
from atomlearn.solvers.fista import FISTA
from atomlearn.solvers.frank_wolfe import FrankWolfe
from atomlearn.solvers.gauge import gauge_by_generation
from atomlearn.solvers.generation import AtomGeneration
from atomlearn.solvers.kfcfw import KFCFW
from atomlearn.solvers.matrices.generation import MatrixGeneration
from atomlearn.solvers.observed import Observed
from atomlearn.solvers.observers import PrintProgress
from atomlearn.solvers.run import Progress, run

__all__ = [
    "ADMM",
    "FISTA",
    "KFCFW",
    "AtomGeneration",
    "BlockCoordinateDescent",
    "Checkpoint",
    "CoGEnT",
    "ColumnGeneration",
    "FeatureGeneration",
    "FrankWolfe",
    "MatrixGeneration",
    "Observed",
    "PrintProgress",
    "Progress",
    "active_groups",
    "default_solver",
    "gauge_by_generation",
    "run",
]
