"""The logistic loss, for two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from atomlearn.core.interfaces import TINY, Array, Loss, Task
from atomlearn.core.losses.domain import LARGEST_EXPONENT, slopes_within, weighted_sum


@final
@dataclass(frozen=True)
class Logistic(Loss):
    """f(z) = sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, +1}.

    Notes
    -----
    The gradient is u_i = -s_i y_i a_i, where a_i in (0, 1) is the probability of the wrong label.
    So the conjugate of a dual point u is finite only if all a_i = -y_i u_i / s_i are in [0, 1].
    There it is the negative entropy sum_i s_i (a_i log a_i + (1 - a_i) log(1 - a_i)).

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
        """Return f(z) = sum_i s_i (max(0, -m_i) + log(1 + exp(-|m_i|))) for margins m_i = y_i z_i.

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights. This form of
        log(1 + exp(-m_i)) does not overflow.
        """
        margin = y * prediction
        # Two arrays are used throughout: ``tail`` becomes log(1 + exp(-|m|)) - min(0, m).
        tail = np.abs(margin)
        np.negative(tail, out=tail)
        np.exp(tail, out=tail)
        np.log1p(tail, out=tail)
        np.minimum(margin, 0.0, out=margin)
        tail -= margin
        return weighted_sum(weight, tail)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient -s_i y_i sigmoid(-m_i), (n_samples,), with margins m_i = y_i z_i.

        z = ``prediction``, s = ``weight`` are the sample weights, y the labels, and sigmoid(x) = 1
        / (1 + exp(-x)).
        """
        # sigmoid(-m) = 1 / (1 + exp(m)) by NumPy's exponential, which is faster than SciPy's expit;
        # exp(m) must not overflow.
        denominator = y * prediction
        np.minimum(denominator, LARGEST_EXPONENT, out=denominator)
        np.exp(denominator, out=denominator)
        denominator += 1.0
        result = -y
        result *= weight
        result /= denominator
        return result

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u), the negative entropy of a_i = -y_i u_i / s_i, for u = ``dual``.

        y are the targets, and s = ``weight`` the sample weights. The result is ``inf`` if some a_i
        is not in [0, 1].
        """
        share = slopes_within(0.0, 1.0, -y * dual, weight)
        return float("inf") if share is None else weighted_sum(weight, _negative_entropy(share))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``, (n_samples,): s_i p_i (1 - p_i), p_i = sigmoid(-|z_i|).

        p_i <= 1/2, so that 1 - p_i loses no digits. y are the targets, and s = ``weight`` the
        sample weights.
        """
        # e / (1 + e)^2 for e = exp(-|z|) = p / (1 - p).
        result = np.abs(prediction)
        np.negative(result, out=result)
        np.exp(result, out=result)
        total = 1.0 + result
        total *= total
        result *= weight
        result /= total
        return result

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the probability P(y = +1) = 1 / (1 + exp(-z)) at z = ``prediction``."""
        probability: NDArray[Any] = expit(prediction)
        return probability

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return log P(-1) and log P(+1) at z = ``prediction``, as two columns (n_samples, 2).

        They keep their digits if one of the probabilities is nearly 1.
        """
        return np.stack([log_expit(-prediction), log_expit(prediction)], axis=1)


def _negative_entropy(share: Array) -> Array:
    """Return a log a + (1 - a) log(1 - a) for each a = ``share`` in [0, 1], with 0 log 0 = 0.

    The argument of each logarithm is kept one floating-point number above 0, so that 0 is
    multiplied by a finite logarithm. (SciPy's xlogy and xlog1py do the same more slowly.)
    """
    logarithm = np.maximum(share, TINY)
    np.log(logarithm, out=logarithm)
    result = share * logarithm
    # The second term, (1 - a) log(1 - a), in the same array.
    np.minimum(share, np.nextafter(1.0, 0.0), out=logarithm)
    np.negative(logarithm, out=logarithm)
    np.log1p(logarithm, out=logarithm)
    logarithm *= 1.0 - share
    result += logarithm
    return result
