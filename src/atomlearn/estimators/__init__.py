"""scikit-learn estimators: thin facades that validate, call what ``solve`` calls, and report."""

from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.regressor import AtomicRegressor

__all__ = [
    "AtomicClassifier",
    "AtomicClassifierCV",
    "AtomicRegressor",
    "AtomicRegressorCV",
    "FeatureGenerator",
]
