"""Models for other tools: scikit-learn's own estimators, and scanpy's AnnData."""

from atomlearn.estimators.exports import to_sklearn
from atomlearn.reports.annotate import to_anndata

__all__ = ["to_anndata", "to_sklearn"]
