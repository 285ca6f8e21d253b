"""scikit-learn estimators: thin facades that validate, call what ``solve`` calls, and report."""

from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.imputed import Imputed
from atomlearn.estimators.kernel_models import MultipleKernelClassifier, MultipleKernelRegressor
from atomlearn.estimators.matrices.completion import MatrixCompletion
from atomlearn.estimators.matrices.matrix_pursuit import MatrixPursuit
from atomlearn.estimators.matrices.sparse_low_rank import SparseLowRank
from atomlearn.estimators.matrices.sparse_pca import SparsePCA
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.sampler import AdditiveKernelSampler
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.estimators.survival_cv import AtomicSurvivalCV

__all__ = [
    "AdditiveKernelSampler",
    "AtomicClassifier",
    "AtomicClassifierCV",
    "AtomicRegressor",
    "AtomicRegressorCV",
    "AtomicSurvival",
    "AtomicSurvivalCV",
    "FeatureGenerator",
    "Imputed",
    "MatrixCompletion",
    "MatrixPursuit",
    "MultipleKernelClassifier",
    "MultipleKernelRegressor",
    "SparseLowRank",
    "SparsePCA",
]
