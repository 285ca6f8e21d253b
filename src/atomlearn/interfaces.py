"""The five interfaces of the package: read these first."""

from atomlearn.core.interfaces import (
    Atom,
    Block,
    Deadline,
    Design,
    Expansion,
    Lift,
    Loss,
    Master,
    Norm,
    ProxJacobian,
    ProxPoint,
    Refit,
    Scores,
    Solver,
    State,
    Term,
    WarmStart,
)
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.problem.factored import Factored
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
