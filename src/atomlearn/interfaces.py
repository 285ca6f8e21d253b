"""The interfaces of the package, and the base classes of parts that you write."""

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.interfaces import (
    Atom,
    Block,
    Deadline,
    Design,
    Expansion,
    Lift,
    Loss,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
    Term,
    Traits,
    WarmStart,
)
from atomlearn.core.interfaces.factored import Factored
from atomlearn.core.interfaces.forwarding import Forwarding
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.paths.ends import End
from atomlearn.core.solvers.solver import Solver, State
from atomlearn.maps.feature_map import FeatureMap, MappedDesign
from atomlearn.matrices.scores import Found, ScoreMatrix

__all__ = [
    "ArrayScores",
    "Atom",
    "Block",
    "Deadline",
    "DenseBlock",
    "Design",
    "End",
    "Expansion",
    "Factored",
    "FeatureMap",
    "Forwarding",
    "Found",
    "Lift",
    "Loss",
    "MappedDesign",
    "Master",
    "Norm",
    "Parameters",
    "ProxJacobian",
    "ProxPoint",
    "Refit",
    "ScoreMatrix",
    "Scores",
    "Solver",
    "SparseBlock",
    "State",
    "Term",
    "Traits",
    "WarmStart",
]
