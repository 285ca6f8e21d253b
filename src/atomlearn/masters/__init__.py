"""Masters: the re-fit over the active columns."""

from atomlearn.masters.accelerated_gradient import AcceleratedGradient
from atomlearn.masters.newton import SemismoothNewton
from atomlearn.masters.simplex import SimplexQuasiNewton
from atomlearn.masters.working_sets import WorkingSets

__all__ = ["AcceleratedGradient", "SemismoothNewton", "SimplexQuasiNewton", "WorkingSets"]
