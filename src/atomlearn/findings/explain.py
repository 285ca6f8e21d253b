"""Local explanations of linear and additive models: exact, without sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import Array, Columns, as_design, dense_part, feature_names
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.maps.feature_map import map_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """prediction_i = base + sum_j contribution_ij, for each output.

    base : (n_outputs,) mean decision over the reference rows; contributions : (n_samples,
    n_features, n_outputs) of ``names``; inputs : numbers of these features among the inputs.
    """

    base: Array
    contributions: Array
    names: list[str]
    inputs: Columns

    @property
    def decisions(self) -> Array:
        """Base and contributions together: the decisions of the model, (n_samples, n_outputs)."""
        return np.asarray(self.base + self.contributions.sum(axis=1))


def explain(estimator: Any, X: Any, reference: Any = None) -> Explanation:
    """Return the contribution of each input to each decision, against the mean over reference rows.

    These are the Shapley values of the model where inputs are replaced by those of reference rows
    independently of each other, which for sums of functions of one input are exactly
    f_j(x_j) - mean f_j. A product of two inputs is shared between them: for x_i x_j each gets half
    of what both add together beyond their own parts.

    Parameters
    ----------
    estimator : fitted linear model, ours (with curves and products) or one with ``coef_``
    X : (n_samples, n_features)
        Rows to explain.
    reference : (n_reference, n_features), optional
        Rows to compare with, for example those of the fit; default: X.

    References
    ----------
    S. Lundberg, S.-I. Lee. A unified approach to interpreting model predictions. NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import explain
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> model = AtomicRegressor(alpha=0.1).fit(X, X[:, 0] - 2 * X[:, 2])
    >>> found = explain(model, X[:3], X)
    >>> found.names, bool(np.allclose(found.decisions[:, 0], model.predict(X[:3])))
    (['x0', 'x2'], True)
    """
    given = as_design(X)
    compared = as_design(X if reference is None else reference)
    rows = given
    background = compared
    map = map_of(given)
    if isinstance(estimator, AtomicModel):
        rows = estimator._expanded(given)
        background = estimator._expanded(compared)
        map = estimator.feature_map_
    columns, weights = nonzero_coefficients(estimator.coef_)
    here = dense_part(rows, columns)
    there = dense_part(background, columns)
    pairs = map.inputs_of(map.term_of(columns))
    first = pairs[:, 0]
    second = np.where(pairs[:, 1] < 0, first, pairs[:, 1])
    if (first != second).any() and not map.implicit:
        raise ValueError(
            "surfaces of two inputs have no exact share for each of them; explain models of "
            "columns, curves and products"
        )
    used = np.unique(np.concatenate([first, second]))
    total = np.zeros((here.shape[0], used.size, weights.shape[0]))
    means = there.mean(axis=0)
    base = np.asarray(means @ weights.T + np.ravel(estimator.intercept_))
    for place, (i, j) in enumerate(zip(first, second, strict=True)):
        shares = [here[:, place] - means[place]]
        if i != j:
            both = np.array([i, j])
            x = dense_part(given, both)
            m = dense_part(compared, both).mean(axis=0)
            shares = _shares(shares[0], here[:, place], x, m)
        for owner, share in zip(np.searchsorted(used, [i, j]), shares, strict=False):
            total[:, owner] += np.outer(share, weights[:, place])
    names = input_names(estimator) or feature_names(X)
    labels = [f"x{j}" for j in used] if names is None else [str(names[j]) for j in used]
    return Explanation(base, total, labels, used)


def _shares(centered: Array, product: Array, x: Array, m: Array) -> list[Array]:
    """Return the contributions of two inputs to their product; they sum to its centered value.

    (x_i - m_i) m_j, (x_j - m_j) m_i, and half of the rest each; m are means over reference rows.
    """
    plain = x[:, 0] * x[:, 1]
    # Maps may scale products: the factor is the same in every row.
    size = float(plain @ plain)
    factor = float(product @ plain) / size if size > 0 else 0.0
    one = factor * (x[:, 0] - m[0]) * m[1]
    two = factor * (x[:, 1] - m[1]) * m[0]
    rest = 0.5 * (centered - one - two)
    return [one + rest, two + rest]
