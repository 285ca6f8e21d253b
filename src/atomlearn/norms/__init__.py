"""Norms: gauges of atoms, known by value, polar, best columns and (where it exists) prox."""

from atomlearn.norms.combine import Nonnegative, Restricted, Scaled
from atomlearn.norms.elastic_net import ElasticNetNorm
from atomlearn.norms.groups import Groups
from atomlearn.norms.ksupport import KSupport
from atomlearn.norms.l1 import L1
from atomlearn.norms.l2 import L2
from atomlearn.norms.registry import as_norm
from atomlearn.norms.user import UserNorm

__all__ = [
    "L1",
    "L2",
    "ElasticNetNorm",
    "Groups",
    "KSupport",
    "Nonnegative",
    "Restricted",
    "Scaled",
    "UserNorm",
    "as_norm",
]
