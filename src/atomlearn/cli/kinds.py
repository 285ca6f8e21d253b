"""Which estimator fits a target, at one level or with a search for the level."""

from __future__ import annotations

from typing import Any

from atomlearn.cli.targets import Target
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.estimators.survival_cv import AtomicSurvivalCV


def kind_of(target: Target) -> Any:
    """Return the estimator with a norm at a given level."""
    if target.is_survival:
        return AtomicSurvival
    return AtomicRegressor if target.classes is None else AtomicClassifier


def search_of(target: Target) -> Any:
    """Return the estimator that chooses norm and level by cross-validation."""
    if target.is_survival:
        return AtomicSurvivalCV
    return AtomicRegressorCV if target.classes is None else AtomicClassifierCV
