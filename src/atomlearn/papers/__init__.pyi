"""The names that ``__init__.py`` imports on first use."""

from atomlearn.papers.feature_generation import FeatureGeneration as FeatureGeneration
from atomlearn.papers.fista import FISTA as FISTA
from atomlearn.papers.frank_wolfe import FrankWolfe as FrankWolfe
from atomlearn.papers.kfcfw import KFCFW as KFCFW
