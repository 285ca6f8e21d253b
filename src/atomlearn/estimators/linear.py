"""LinearModel: what a fitted linear model says of rows, by the task of its loss."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from atomlearn.core.interfaces import Loss
from atomlearn.core.losses.probabilities import log_probabilities
from atomlearn.core.problem.checks import check_weight
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.callbacks import with_callbacks
from atomlearn.estimators.checks import has_probabilities, task_of
from atomlearn.estimators.matrices.tasks import checked_tasks, is_of_tasks
from atomlearn.estimators.targets import checked_target, of_samples
from atomlearn.losses import as_loss


def _has_decisions(estimator: Any) -> bool:
    if task_of(estimator) != "regression" or type(as_loss(estimator.loss)).mean is not Loss.mean:
        return True
    raise AttributeError(f"the loss {estimator.loss!r} has no link: predict returns X w + b itself")


class LinearModel(AtomicModel):
    """Decisions, predictions, probabilities and scores; not for direct use."""

    loss: str | Loss

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit to X (n_samples, n_features) and y (n_samples,), weighted by ``sample_weight``.

        y : numbers, labels, or a structured array for survival, as the class says. ``offset``
        (n_samples,) is added to X w + b, such as the logarithm of an exposure; where there are
        several outputs it is (n_samples, n_outputs).
        """
        settings = self._settings()
        with settings.deadline.kept():
            data = self._checked(X, y, sample_weight).with_offset(offset)
        self._fit(data, settings)
        return self

    @available_if(_has_decisions)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return X w + b (+ offset), (n_samples,), or (n_samples, n_outputs) of several outputs.

        Of regressions only where the loss has a link, such as Poisson: of others it is what
        ``predict`` returns, and scikit-learn allows a regressor but one.
        """
        values = self._linear(X, offset)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return the label of the largest decision, or what is expected at X w + b (+ offset).

        That is X w + b itself for the squared loss and survival (the log hazard ratio: the larger
        the earlier), and what the link of another loss makes of it.
        """
        values, loss = self._linear(X, offset), as_loss(self.loss)
        several = values.shape[1] > 1
        if loss.task != "classification":
            means = loss.mean(values)
            return means if several else means[:, 0]
        codes = np.argmax(values, axis=1) if several else (values[:, 0] > 0).astype(np.int64)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return P(class | x), shape (n_samples, n_classes); for the logistic loss.

        Two classes: 1 / (1 + exp(-decision)). More: the one-against-rest values scaled to sum 1,
        or the softmax where the loss is multinomial.
        """
        probabilities: NDArray[Any] = np.exp(self.predict_log_proba(X, offset))
        return probabilities

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return log P(class | x), shape (n_samples, n_classes); for the logistic loss."""
        joint = self.multi_class == "multinomial"
        return log_probabilities(as_loss(self.loss), self._linear(X, offset), joint)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the share of labels that are right, or the score of the loss, 1 at best.

        That is R^2 for the squared loss, the concordance for survival, and of others D^2, the share
        of the deviance of the best constant that is explained: R^2 would be of squared errors,
        which such a fit does not minimize. Of several targets the mean.
        """
        loss = as_loss(self.loss)
        if loss.task == "classification":
            return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))
        decisions = self._linear(X, offset).astype(np.float64)
        n_samples = len(decisions)
        weight = check_weight(sample_weight, n_samples)
        if loss.task == "survival":
            targets: NDArray[Any] = of_samples(loss.check_target(y), n_samples)
        else:
            targets = (
                checked_tasks(y, n_samples)
                if is_of_tasks(y)
                else checked_target(self, y, n_samples)
            )
        each = zip(targets.reshape(decisions.shape).T, decisions.T, strict=True)
        return float(np.mean([loss.score(loss.check_target(t), z, weight) for t, z in each]))
