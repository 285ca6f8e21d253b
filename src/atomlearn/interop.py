"""Models for other tools: scikit-learn's own estimators."""

from atomlearn.estimators.exports import to_sklearn

__all__ = ["to_sklearn"]
