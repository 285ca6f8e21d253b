"""Norms of matrices: gauges of rank-one atoms u v', dense or sparse, symmetric or not."""

from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.psd import PSD
from atomlearn.matrices.norms.sparse import SparsePSD, SparseRankOne
from atomlearn.matrices.norms.trace import TraceNorm

__all__ = ["PSD", "MatrixNorm", "SparsePSD", "SparseRankOne", "TraceNorm"]
