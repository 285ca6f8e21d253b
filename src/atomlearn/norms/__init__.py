"""Norms: gauges of atoms, known by value, polar, best columns and (where it exists) prox."""

from atomlearn.norms.blocks import Blocks
from atomlearn.norms.combine import Nonnegative, Scaled
from atomlearn.norms.elastic_net import ElasticNetNorm
from atomlearn.norms.groups import Groups
from atomlearn.norms.ksupport import KSupport
from atomlearn.norms.l1 import L1
from atomlearn.norms.l2 import L2
from atomlearn.norms.lifted.hierarchy import Hierarchy
from atomlearn.norms.lifted.latent import Chains, LatentGroups
from atomlearn.norms.lifted.operators import Operators
from atomlearn.norms.lifted.trees import Trees
from atomlearn.norms.matrices import PSD, SparsePSD, SparseRankOne, TraceNorm
from atomlearn.norms.matrices.rows import RowGroups
from atomlearn.norms.matrices.tensor import TensorTrace
from atomlearn.norms.ordered import OWL, LInf
from atomlearn.norms.registry import as_norm
from atomlearn.norms.restricted import Restricted
from atomlearn.norms.union import Union
from atomlearn.norms.user import UserNorm

__all__ = [
    "L1",
    "L2",
    "OWL",
    "PSD",
    "Blocks",
    "Chains",
    "ElasticNetNorm",
    "Groups",
    "Hierarchy",
    "KSupport",
    "LInf",
    "LatentGroups",
    "Nonnegative",
    "Operators",
    "Restricted",
    "RowGroups",
    "Scaled",
    "SparsePSD",
    "SparseRankOne",
    "TensorTrace",
    "TraceNorm",
    "Trees",
    "Union",
    "UserNorm",
    "as_norm",
]
