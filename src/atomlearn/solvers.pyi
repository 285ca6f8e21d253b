"""The names of ``solvers.py``, those imported on first use included."""

from atomlearn.core.solve import solve as solve
from atomlearn.core.solvers import stopping as stopping
from atomlearn.core.solvers.atom_generation import AtomGeneration as AtomGeneration
from atomlearn.core.solvers.checkpoint import Checkpoint as Checkpoint
from atomlearn.core.solvers.column_generation import ColumnGeneration as ColumnGeneration
from atomlearn.core.solvers.gauge import gauge_by_generation as gauge_by_generation
from atomlearn.core.solvers.progress import PrintProgress as PrintProgress
from atomlearn.core.solvers.progress import RunObserver as RunObserver
from atomlearn.core.solvers.run import run as run
from atomlearn.matrices.solver.generation import MatrixGeneration as MatrixGeneration
from atomlearn.papers.feature_generation import FeatureGeneration as FeatureGeneration
from atomlearn.papers.fista import FISTA as FISTA
from atomlearn.papers.frank_wolfe import FrankWolfe as FrankWolfe
from atomlearn.papers.kfcfw import KFCFW as KFCFW
