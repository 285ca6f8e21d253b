"""The logistic loss, for two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from atomlearn.core.interfaces import TINY, Array, Loss, Task
from atomlearn.core.losses.domain import slopes_within, weighted_sum


@final
@dataclass(frozen=True)
class Logistic(Loss):
    """f(z) = sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, +1}.

    Notes
    -----
    The gradient is u_i = -s_i y_i a_i, where a_i in (0, 1) is the probability of the wrong label.
    So a dual point u is a gradient somewhere only if all a_i = -y_i u_i / s_i are there: the
    conjugate is the negative entropy sum_i s_i (a_i log a_i + (1 - a_i) log(1 - a_i)) for a_i in
    [0, 1], and infinite elsewhere, since no z makes the slope of the loss any steeper.

    References
    ----------
    H.-F. Yu, F.-L. Huang, C.-J. Lin. Dual coordinate descent methods for logistic regression and
    maximum entropy models. Machine Learning 85 (2011) 41-75, doi:10.1007/s10994-010-5221-8.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Logistic
    >>> loss, y, s = Logistic(), np.array([1.0]), np.ones(1)
    >>> u = loss.gradient(y, np.zeros(1), s)
    >>> u, loss.conjugate(y, u, s) == -loss.value(y, np.zeros(1), s), loss.conjugate(y, 3 * u, s)
    (array([-0.5]), True, inf)
    """

    name: ClassVar[str] = "logistic"
    task: ClassVar[Task] = "classification"
    dispersed: ClassVar[bool] = False
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, 0.25

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i (max(0, -m_i) + log(1 + exp(-|m_i|))), m_i = y_i z_i."""
        margin = y * prediction
        tail = np.abs(margin)
        np.negative(tail, out=tail)
        np.exp(tail, out=tail)
        np.log1p(tail, out=tail)
        np.minimum(margin, 0.0, out=margin)
        tail -= margin
        return weighted_sum(weight, tail)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return -s_i y_i sigmoid(-m_i)."""
        opposite = -y
        result = opposite * prediction
        expit(result, out=result)
        opposite *= weight
        result *= opposite
        return result

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return the negative entropy of a_i = -y_i u_i / s_i, ``inf`` outside [0, 1]."""
        share = slopes_within(0.0, 1.0, -y * dual, weight)
        return float("inf") if share is None else weighted_sum(weight, _negative_entropy(share))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i p_i (1 - p_i), p_i = sigmoid(-|z_i|), which never cancels."""
        result = np.abs(prediction)
        np.negative(result, out=result)
        expit(result, out=result)
        result *= 1.0 - result
        result *= weight
        return result

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return P(y = +1) = 1 / (1 + exp(-z))."""
        probability: NDArray[Any] = expit(prediction)
        return probability

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return log P(-1) and log P(+1), which keep their digits if one of them is nearly 1."""
        return np.stack([log_expit(-prediction), log_expit(prediction)], axis=1)


def _negative_entropy(share: Array) -> Array:
    """Return a log a + (1 - a) log(1 - a) for a in [0, 1], with 0 log 0 = 0.

    The arguments of the logarithms stop one number short of a zero, so that the factor, which is
    exactly 0 there, meets a finite one; xlogy and xlog1py would check every entry.
    """
    logarithm = np.maximum(share, TINY)
    np.log(logarithm, out=logarithm)
    result = share * logarithm
    np.minimum(share, np.nextafter(1.0, 0.0), out=logarithm)
    np.negative(logarithm, out=logarithm)
    np.log1p(logarithm, out=logarithm)
    logarithm *= 1.0 - share
    result += logarithm
    return result
