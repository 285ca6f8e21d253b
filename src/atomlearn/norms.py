"""Norms: gauges of atoms, defined by value, polar and best columns, some with a proximal map."""

from atomlearn.core.norms.blocks import Blocks
from atomlearn.core.norms.combine import Nonnegative, Scaled
from atomlearn.core.norms.constrained import Constrained
from atomlearn.core.norms.elastic_net import ElasticNetNorm
from atomlearn.core.norms.exclusive import Exclusive
from atomlearn.core.norms.groups import L2, Groups
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.l1 import L1
from atomlearn.core.norms.ordered import OWL, LInf
from atomlearn.core.norms.user import UserNorm
from atomlearn.core.norms.zero_sum import ZeroSum
from atomlearn.lifting.hierarchy import Hierarchy
from atomlearn.lifting.latent import Chains, LatentGroups, LatentKSupport
from atomlearn.lifting.operators import Operators
from atomlearn.lifting.trees import Trees
from atomlearn.lifting.union import Union
from atomlearn.matrices.norms.rows import RowGroups
from atomlearn.matrices.norms.semidefinite import DoublyNonnegative, Elliptope
from atomlearn.matrices.norms.sparse import SparsePSD, SparseRankOne
from atomlearn.matrices.norms.spectral import PSD, SpectralKSupport, TraceNorm
from atomlearn.matrices.norms.tensor import TensorTrace

__all__ = [
    "L1",
    "L2",
    "OWL",
    "PSD",
    "Blocks",
    "Chains",
    "Constrained",
    "DoublyNonnegative",
    "ElasticNetNorm",
    "Elliptope",
    "Exclusive",
    "Groups",
    "Hierarchy",
    "KSupport",
    "LInf",
    "LatentGroups",
    "LatentKSupport",
    "Nonnegative",
    "Operators",
    "RowGroups",
    "Scaled",
    "SparsePSD",
    "SparseRankOne",
    "SpectralKSupport",
    "TensorTrace",
    "TraceNorm",
    "Trees",
    "Union",
    "UserNorm",
    "ZeroSum",
]
