"""scikit-learn estimators: thin facades that validate, call what ``solve`` calls, and report."""

from atomlearn.estimators.classifier import AtomicClassifier as AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV as AtomicClassifierCV
from atomlearn.estimators.cross_validated import AtomicRegressorCV as AtomicRegressorCV
from atomlearn.estimators.cross_validated import AtomicSurvivalCV as AtomicSurvivalCV
from atomlearn.estimators.feature_generator import FeatureGenerator as FeatureGenerator
from atomlearn.estimators.kernel_models import MultipleKernelClassifier as MultipleKernelClassifier
from atomlearn.estimators.kernel_models import MultipleKernelRegressor as MultipleKernelRegressor
from atomlearn.estimators.matrices.completion import MatrixCompletion as MatrixCompletion
from atomlearn.estimators.matrices.components import SparseLowRank as SparseLowRank
from atomlearn.estimators.matrices.components import SparsePCA as SparsePCA
from atomlearn.estimators.matrices.matrix_models import MatrixPursuit as MatrixPursuit
from atomlearn.estimators.regressor import AtomicRegressor as AtomicRegressor
from atomlearn.estimators.subsets import SubsetClassifier as SubsetClassifier
from atomlearn.estimators.subsets import SubsetRegressor as SubsetRegressor
from atomlearn.estimators.survival import AtomicSurvival as AtomicSurvival
