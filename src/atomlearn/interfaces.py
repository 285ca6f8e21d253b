"""The five interfaces of the package: read these first."""

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
    WarmStart,
)
from atomlearn.core.interfaces.factored import Factored
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.solvers.solver import Solver, State
from atomlearn.matrices.scores import Found, ScoreMatrix

__all__ = [
    "Atom",
    "Block",
    "Deadline",
    "Design",
    "Expansion",
    "Factored",
    "Found",
    "Lift",
    "Loss",
    "Master",
    "Norm",
    "Parameters",
    "ProxJacobian",
    "ProxPoint",
    "Refit",
    "ScoreMatrix",
    "Scores",
    "Solver",
    "State",
    "Term",
    "WarmStart",
]
