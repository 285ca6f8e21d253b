"""Norms of matrices: gauges of rank-one atoms u v', dense or sparse, symmetric or not."""

from atomlearn.norms.matrices.base import MatrixNorm
from atomlearn.norms.matrices.psd import PSD
from atomlearn.norms.matrices.sparse import SparsePSD, SparseRankOne
from atomlearn.norms.matrices.trace import TraceNorm

__all__ = ["PSD", "MatrixNorm", "SparsePSD", "SparseRankOne", "TraceNorm"]
