"""The names that ``__init__.py`` imports on first use."""

from atomlearn.core.solvers.atom_generation import AtomGeneration as AtomGeneration
from atomlearn.core.solvers.checkpoint import Checkpoint as Checkpoint
from atomlearn.core.solvers.smoothing import SmoothedSteps as SmoothedSteps
