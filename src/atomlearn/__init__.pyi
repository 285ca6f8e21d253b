"""The names that ``__init__.py`` imports on first use."""

from atomlearn import datasets as datasets
from atomlearn import designs as designs
from atomlearn import findings as findings
from atomlearn import interop as interop
from atomlearn import losses as losses
from atomlearn import masters as masters
from atomlearn import norms as norms
from atomlearn import papers as papers
from atomlearn import paths as paths
from atomlearn import reports as reports
from atomlearn import solvers as solvers
from atomlearn import subsets as subsets
from atomlearn.core.solve import solve as solve
from atomlearn.estimators.classifier import AtomicClassifier as AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV as AtomicClassifierCV
from atomlearn.estimators.cross_validated import AtomicRegressorCV as AtomicRegressorCV
from atomlearn.estimators.cross_validated_survival import AtomicSurvivalCV as AtomicSurvivalCV
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
from atomlearn.findings.knockoffs import KnockoffSelector as KnockoffSelector
from atomlearn.findings.stability import StabilitySelector as StabilitySelector
from atomlearn.reports.page import report as report
from atomlearn.subsets.solve import solve_subset as solve_subset
from atomlearn.verification.answers import verify as verify

__version__: str
