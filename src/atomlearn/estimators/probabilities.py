"""Class probabilities from decision values, for estimators and stored models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from atomlearn.core import Logistic, Loss, Multinomial


def log_probabilities(loss: Loss, decisions: NDArray[Any], joint: bool = False) -> NDArray[Any]:
    """Return log P(class | x), (n_samples, n_classes), in the dtype of the decisions.

    Parameters
    ----------
    loss : Loss
        A loss that gives probabilities (``has_probabilities``).
    decisions : (n_samples, n_outputs) ndarray
        One output for two classes; else one for each class.
    joint : bool
        Whether all classes were fitted together by the loss of ``for_classes``. Otherwise each
        class was fitted against the rest, and the probabilities are scaled to sum 1. This is done
        in logarithms, because all probabilities of a sample may underflow.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Logistic
    >>> np.exp(log_probabilities(Logistic(), np.array([[0.0], [100.0]])))
    array([[5.00000000e-01, 5.00000000e-01],
           [3.72007598e-44, 1.00000000e+00]])
    """
    n_outputs = decisions.shape[1]
    if n_outputs == 1:
        return loss.log_probabilities(decisions[:, 0])
    if joint:
        return Multinomial(n_outputs).log_probabilities(decisions)
    # Column 1 of ``log_probabilities`` is the probability of the class against the rest.
    logarithms = np.stack([loss.log_probabilities(column)[:, 1] for column in decisions.T], axis=1)
    scaled: NDArray[Any] = log_softmax(logarithms, axis=1)
    return scaled


def for_classes(loss: Loss, n_classes: int) -> Loss | None:
    """Return the joint loss of ``n_classes`` classes, to fit all of them together.

    It is the multinomial loss for a logistic ``loss``. For other losses it is None, and classes are
    fitted one against the rest.
    """
    return Multinomial(n_classes) if isinstance(loss, Logistic) else None
