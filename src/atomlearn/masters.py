"""Masters: the re-fit over the active columns."""

from atomlearn.core.masters.active_set import ActiveSetQP
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.newton import AcceleratedGradient, SemismoothNewton
from atomlearn.core.masters.scaling_newton import ScalingNewton
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.masters.working_sets import WorkingSets

__all__ = [
    "AcceleratedGradient",
    "ActiveSetQP",
    "ModelNewton",
    "ScalingNewton",
    "SemismoothNewton",
    "SequentialQP",
    "WorkingSets",
]
