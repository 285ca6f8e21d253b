"""Which estimator fits a target, at one level or with a search for the level."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.model_selection import StratifiedKFold

from atomlearn.cli.targets import Target
from atomlearn.core.losses import Cox
from atomlearn.core.problem.checks import check_weight
from atomlearn.estimators.checks import checked_design, expanded
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.estimators.targets import Checked, normalized


class ByEvent(StratifiedKFold):  # type: ignore[misc]
    """Folds with the same share of events each."""

    def split(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Return the pairs of rows, of fits and held out."""
        return super().split(X, y["event"], groups)


class SurvivalSearch(AtomicRegressorCV):
    """The search over levels, held-out rows judged by their own partial likelihood."""

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> Checked:
        inputs = checked_design(self, X, reset=True)
        weight = normalized(check_weight(sample_weight, inputs.shape[0]))
        loss = Cox()
        target: Any = loss.check_target(y)
        return Checked(
            expanded(inputs, self.features, weight=weight), target, [target], weight, loss
        )

    @property
    def chosen(self) -> AtomicSurvival:
        """The public estimator with what was chosen."""
        options = {"form": self.form, "unpenalized": self.unpenalized, "tol": self.tol}
        return AtomicSurvival(self.norm_, self.alpha_, **options)


def kind_of(target: Target) -> Any:
    """Return the estimator with a norm at a given level."""
    if target.is_survival:
        return AtomicSurvival
    return AtomicRegressor if target.classes is None else AtomicClassifier


def search_of(target: Target) -> Any:
    """Return the estimator that chooses norm and level by cross-validation."""
    if target.is_survival:
        return partial(SurvivalSearch, loss="cox", fit_intercept=False)
    return AtomicRegressorCV if target.classes is None else AtomicClassifierCV
