"""default_master: which master re-fits the weights."""

from __future__ import annotations

from atomlearn.core.interfaces import Master
from atomlearn.core.masters.compressed import CompressedSamples
from atomlearn.core.masters.coupled_newton import CoupledNewton
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.scaling_newton import ScalingNewton
from atomlearn.core.masters.working_sets import WorkingSets


def default_master() -> Master:
    """Return the master for any norm: working sets, with the master made for groups inside.

    Over few samples where the block allows it; around that, Newton steps with the whole Hessian,
    for losses that couple predictions.
    """
    sets = WorkingSets(master=ScalingNewton(fallback=SemismoothNewton()))
    return CoupledNewton(CompressedSamples(sets))
