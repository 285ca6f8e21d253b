"""Rivals that the papers compare with: solvers, masters and norms of no other use than a race."""

from experiments.rivals.active_groups import active_groups
from experiments.rivals.admm import ADMM
from experiments.rivals.block_coordinate import BlockCoordinateDescent
from experiments.rivals.cogent import CoGEnT
from experiments.rivals.dual_mkl import DualMKL
from experiments.rivals.interior_point import InteriorPoint
from experiments.rivals.lars import LARS
from experiments.rivals.pairwise import PairwiseElasticNet, TraceLasso
from experiments.rivals.stochastic import SDCA, UFOMKL
from experiments.rivals.supports import support_descent

__all__ = [
    "ADMM",
    "LARS",
    "SDCA",
    "UFOMKL",
    "BlockCoordinateDescent",
    "CoGEnT",
    "DualMKL",
    "InteriorPoint",
    "PairwiseElasticNet",
    "TraceLasso",
    "active_groups",
    "support_descent",
]
