"""scikit-learn estimators: thin facades that validate, call what ``solve`` calls, and report."""

from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.kernel_models import (
    MultipleKernelClassifier,
    MultipleKernelRegressor,
)
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.sampler import AdditiveKernelSampler

__all__ = [
    "AdditiveKernelSampler",
    "AtomicClassifier",
    "AtomicClassifierCV",
    "AtomicRegressor",
    "AtomicRegressorCV",
    "FeatureGenerator",
    "MultipleKernelClassifier",
    "MultipleKernelRegressor",
]
