"""Masters: the re-fit over the active columns."""

from atomlearn.interfaces import Master
from atomlearn.masters.accelerated_gradient import AcceleratedGradient
from atomlearn.masters.active_set import ActiveSetQP
from atomlearn.masters.compressed import CompressedSamples
from atomlearn.masters.coupled_newton import CoupledNewton
from atomlearn.masters.interior_point import InteriorPoint
from atomlearn.masters.newton import SemismoothNewton
from atomlearn.masters.scaling_newton import ScalingNewton
from atomlearn.masters.sequential_qp import SequentialQP
from atomlearn.masters.simplex import SimplexQuasiNewton
from atomlearn.masters.working_sets import WorkingSets

__all__ = [
    "AcceleratedGradient",
    "ActiveSetQP",
    "CompressedSamples",
    "CoupledNewton",
    "InteriorPoint",
    "ScalingNewton",
    "SemismoothNewton",
    "SequentialQP",
    "SimplexQuasiNewton",
    "WorkingSets",
    "default_master",
]


def default_master() -> Master:
    """Return the master for any norm: working sets, with the master made for groups inside.

    Over few samples where the block allows it; around that, Newton steps with the whole Hessian,
    for losses that couple predictions.
    """
    sets = WorkingSets(master=ScalingNewton(fallback=SemismoothNewton()))
    return CoupledNewton(CompressedSamples(sets))
