"""Local explanations of linear and additive models: exact, without sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core import Array, Columns, as_design, dense_part, feature_names
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import encoded_rows, input_names
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.maps.feature_map import map_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """Additive feature attributions: decision_i = base + sum_j contribution_ij, for each output.

    Decisions are those before a link function.

    Attributes
    ----------
    base : (n_outputs,) float64
        Mean decision over the reference rows.
    contributions : (n_samples, n_used, n_outputs) float64
        Shapley values of the features that the model uses.
    names : list[str]
        Their n_used names.
    inputs : (n_used,) int64
        Their column indices in X.
    """

    base: Array
    contributions: Array
    names: list[str]
    inputs: Columns

    @property
    def decisions(self) -> Array:
        """The decisions of the model, (n_samples, n_outputs): base plus contributions."""
        return np.asarray(self.base + self.contributions.sum(axis=1))


def explain(estimator: Any, X: Any, reference: Any = None) -> Explanation:
    """Return the Shapley values of a linear or additive model for each row of X.

    They are interventional Shapley values relative to the reference rows. For a model
    sum_j f_j(x_j) they equal f_j(x_j) - mean f_j exactly, with the mean over the reference rows.
    For a product x_i x_j, each of the two features receives its main effect and half of the
    interaction.

    Parameters
    ----------
    estimator : fitted linear model
        An estimator of this library, also with spline terms and products, or any estimator with
        ``coef_`` and ``intercept_``.
    X : (n_samples, n_features)
        Rows to explain.
    reference : (n_reference, n_features), optional
        Background rows, for example those of the fit; default: X.

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
    design = as_design(encoded_rows(estimator, X))
    references = design if reference is None else as_design(encoded_rows(estimator, reference))
    rows = design
    background = references
    map = map_of(design)
    if isinstance(estimator, AtomicModel):
        rows = estimator._expanded(design)
        background = estimator._expanded(references)
        map = estimator.feature_map_
    columns, weights = nonzero_coefficients(estimator.coef_)
    values = dense_part(rows, columns)
    background_values = dense_part(background, columns)
    # Each term of the model is a function of one input or a product of two. Row i has the inputs of
    # the term of column i, filled up with -1.
    pairs = map.inputs_of(map.term_of(columns))
    if (pairs[:, 2:] >= 0).any():
        raise ValueError(
            "products of three columns are not shared among them; explain a model of products of "
            "two, with features='polynomial'"
        )
    first_inputs = pairs[:, 0]
    second_inputs = np.where(pairs[:, 1] < 0, first_inputs, pairs[:, 1])
    if (first_inputs != second_inputs).any() and not map.implicit:
        raise ValueError(
            "surfaces of two inputs have no exact share for each of them; explain models of "
            "columns, curves and products"
        )
    # Contributions of each input, summed over its terms: f_j(x_j) - mean f_j, and its Shapley
    # values in products.
    inputs = np.unique(np.concatenate([first_inputs, second_inputs]))
    contributions = np.zeros((values.shape[0], inputs.size, weights.shape[0]))
    means = background_values.mean(axis=0)
    base = np.asarray(means @ weights.T + np.ravel(estimator.intercept_))
    for number, (first_input, second_input) in enumerate(
        zip(first_inputs, second_inputs, strict=True)
    ):
        shares = [values[:, number] - means[number]]
        if first_input != second_input:
            pair = np.array([first_input, second_input])
            columns_of_pair = dense_part(design, pair)
            means_of_pair = dense_part(references, pair).mean(axis=0)
            shares = _shares(shares[0], values[:, number], columns_of_pair, means_of_pair)
        # A function of one input has a single share, so ``zip`` ends after the first input.
        for position, share in zip(
            np.searchsorted(inputs, [first_input, second_input]), shares, strict=False
        ):
            contributions[:, position] += np.outer(share, weights[:, number])
    names = input_names(estimator) or feature_names(X)
    labels = [f"x{j}" for j in inputs] if names is None else [str(names[j]) for j in inputs]
    return Explanation(base, contributions, labels, inputs)


def _shares(centered: Array, product: Array, x: Array, m: Array) -> list[Array]:
    """Return the Shapley values (n,) of two inputs for their product; they sum to ``centered``.

    Input i receives its main effect factor (x_i - m_i) m_j and half of the interaction, which is
    ``centered`` minus both main effects.

    centered : (n,) ``product`` minus its mean over the reference rows. product : (n,) the column of
    the expanded table, factor x_i x_j. x : (n, 2) both inputs. m : (2,) their means over the
    reference rows. The number ``factor``, by which a feature map scales products, is found by
    least squares.
    """
    raw_product = x[:, 0] * x[:, 1]
    # A feature map may scale its product columns by a factor that is the same in every row.
    square = float(raw_product @ raw_product)
    factor = float(product @ raw_product) / square if square > 0 else 0.0
    first_main = factor * (x[:, 0] - m[0]) * m[1]
    second_main = factor * (x[:, 1] - m[1]) * m[0]
    half_interaction = 0.5 * (centered - first_main - second_main)
    return [first_main + half_interaction, second_main + half_interaction]
