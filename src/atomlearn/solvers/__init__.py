"""Solvers, the one loop that runs them, stopping rules and observers."""

from atomlearn.solvers.admm import ADMM
from atomlearn.solvers.column_generation import ColumnGeneration
from atomlearn.solvers.feature_generation import FeatureGeneration
from atomlearn.solvers.fista import FISTA
from atomlearn.solvers.frank_wolfe import FrankWolfe
from atomlearn.solvers.gauge import gauge_by_generation
from atomlearn.solvers.generation import AtomGeneration
from atomlearn.solvers.kfcfw import KFCFW
from atomlearn.solvers.observers import PrintProgress
from atomlearn.solvers.run import Progress, run

__all__ = [
    "ADMM",
    "FISTA",
    "KFCFW",
    "AtomGeneration",
    "ColumnGeneration",
    "FeatureGeneration",
    "FrankWolfe",
    "PrintProgress",
    "Progress",
    "gauge_by_generation",
    "run",
]
