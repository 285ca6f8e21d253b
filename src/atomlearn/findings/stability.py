"""StabilitySelector: stability selection with complementary pairs of half-samples.

The expected number of false features is bounded. Let q be the average number of the p features that
a half selects, and theta = q / p. A feature is low if a half selects it with probability at most
theta. With B pairs of complementary halves and the threshold t, the expected number of selected low
features is at most

    Meinshausen and Buhlmann      theta q / (2 t - 1)
    unimodal                      C(t, B) theta q

The second bound, by Shah and Samworth, assumes that selection frequencies have a unimodal
distribution. ``unimodal`` computes its factor C(t, B).
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.feature_selection._base import _get_feature_importances
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names,
    _estimator_has,
    _num_features,
    _num_samples,
    check_is_fitted,
)

from atomlearn._support import TINY, OwnParameters, as_table, is_number, whole_number
from atomlearn.core import Array, Columns, Mask
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import encoded_rows, table_encoding
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.dependent_rows import fit_parameters, halves
from atomlearn.estimators.parameters import PackedState
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.findings.halves import automatic_alphas, first_columns, masks_of_parts
from atomlearn.findings.held_out import best_of_search, rows_of
from atomlearn.findings.precision import labels_of


def selected_by(estimator: Any) -> tuple[Mask, Array]:
    """Return a mask of the inputs that a fitted estimator selects, and their coefficient norms.

    Both have shape (n_features,). The selection is ``get_support()`` if the estimator has it, else
    the nonzero coefficients. Models with products or splines select the inputs of any selected
    term, each with size 1.
    """
    # Columns of the encoded table, if the estimator encoded one.
    estimator = best_of_search(estimator)
    encoding = table_encoding(estimator)
    n_inputs = int(estimator.n_features_in_) if encoding is None else len(encoding.names)
    sizes = np.zeros(n_inputs)
    if isinstance(estimator, AtomicModel):
        map = estimator.feature_map_
        # A column of these maps may be of several inputs, or one of several columns of a term.
        if map.implicit or map.unit is not None:
            inputs = map.inputs_of(np.unique(map.term_of(estimator.selected_)))
            sizes[np.unique(inputs[inputs >= 0])] = 1.0
            return sizes > 0, sizes
    # Other estimators are read as scikit-learn's SelectFromModel reads them.
    selects = isinstance(estimator, SelectorMixin)
    try:
        sizes = _get_feature_importances(estimator, "auto", transform_func="norm", norm_order=2)
    except ValueError as error:
        if not selects:
            raise TypeError(
                f"{type(estimator).__name__} has neither coef_ nor get_support(), so its "
                "selection is unknown; give a linear model or a selector"
            ) from error
    sizes = np.asarray(sizes, dtype=np.float64)
    mask = np.asarray(estimator.get_support()) if selects else sizes > 0
    return mask, np.where(mask, np.maximum(sizes, TINY), 0.0)


@dataclass(eq=False, repr=False)
class StabilitySelector(OwnParameters, MetaEstimatorMixin, SelectorMixin, PackedState):
    """Stability selection: keep features selected on at least a share ``threshold`` of the halves.

    The rows are repeatedly split into two random halves (complementary pairs), and the estimator is
    fitted to each half. The selection probabilities measure how reproducible a selection is. The
    power is low if effects are weak, and features that are correlated with true features may be
    selected as often as these.

    Parameters
    ----------
    estimator : estimator, default=None
        Anything with ``coef_`` or ``get_support()`` after ``fit``. Default: ``AtomicRegressor()``
        along ``alphas="auto"``.
    n_resamples : int, default=100
        Number of halves, in pairs; an odd number is raised by one.
    threshold : float, default=0.7
        Share of the halves that must select a feature, in (0.5, 1].
    random_state : int, Generator or None, default=None
        Seed of the halves.
    alphas : array or "auto", default=None
        Weights of the penalty, used instead of the estimator's ``alpha``. A half selects a feature
        if the fit at any of these weights does. "auto": ten weights, from 0.9 to 0.1 of the largest
        alpha at which all rows select anything, for ``AtomicRegressor`` and ``AtomicClassifier``.
    n_features : int, default=None
        Maximum number of features that a half may select. It sets q, and with it the bounds. Along
        ``alphas`` the features that enter first are kept, by default half as many as the half has
        rows. Without ``alphas`` those of the largest coefficients are kept, by default all. With
        "auto" the default makes ``bounds_["meinshausen_buhlmann"]`` about one.
    groups : lists of columns or labels (n_features,), default=None
        Select groups instead: a group is selected if any of its columns is.

    Attributes
    ----------
    selection_probabilities_ : (n_features,) or (n_groups,) array
        Share of the halves that selected each.
    both_probabilities_ : array
        Share of the pairs of which both halves selected each.
    n_selected_ : float
        q: average number of features that a half selects.
    expected_false_ : float
        Bound on the expected number of selected features that a half selects with probability at
        most q / p (those "no better than random"): ``bounds_["unimodal"]``.
    bounds_ : dict
        The bounds "unimodal" and "meinshausen_buhlmann"; the latter holds without the assumption
        that selection frequencies are unimodal.
    estimator_ : fitted to all rows, with "auto" at the smallest alpha.
    n_features_in_, feature_names_in_

    Notes
    -----
    ``AtomicRegressor`` and ``AtomicClassifier`` (two classes, plain columns) are fitted to all
    halves at once, so that the halves share each pass over the data. Scikit-learn's coordinate
    descent fits a lasso over few columns. Other estimators are fitted to one half after another.

    References
    ----------
    N. Meinshausen, P. Buhlmann. Stability selection. JRSS B 72 (2010) 417-473. R. Shah,
    R. Samworth. Variable selection with error control: another look at stability selection.
    JRSS B 75 (2013) 55-80.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, StabilitySelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(100)
    >>> selector = StabilitySelector(AtomicRegressor(alpha=0.3), n_resamples=20, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True).tolist()
    [0, 1]
    """

    estimator: Any = None
    n_resamples: int = 100
    threshold: float = 0.7
    random_state: Any = None
    _: KW_ONLY
    alphas: Any = None
    n_features: int | None = None
    groups: Any = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: y is required; X may be sparse if the estimator allows."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        base = AtomicRegressor() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(base).input_tags.sparse
        return tags

    def fit(
        self, X: Any, y: Any, groups: Any = None, order: Any = None, **params: Any
    ) -> StabilitySelector:
        """Select features of X (n_samples, n_features) for y.

        ``groups`` and ``order`` refer to rows: halves consist of whole groups, or of stretches of a
        series, and an estimator that holds out rows itself receives it, too.
        """
        self._check()
        X = as_table(X)
        base = AtomicRegressor() if self.estimator is None else self.estimator
        if _num_samples(X) < 2:
            raise ValueError("halves of 1 sample are empty; give at least 2 (n_samples = 1)")
        # alphas="auto" takes a grid from the data; the estimator then has the smallest alpha of it.
        is_default = self.estimator is None and self.alphas is None
        automatic = is_default or type(self.alphas) is str
        alphas = automatic_alphas(base, X, y, self.alphas) if automatic else self.alphas
        base = clone(base).set_params(alpha=float(alphas[-1])) if automatic else base
        fit_params = fit_parameters(base, None, groups, order)
        self.estimator_ = clone(base).fit(X, y, **fit_params, **params)
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = _num_features(X)
        # A column of words is selected if one of its encoded columns is.
        encoding = table_encoding(self.estimator_)
        X = encoded_rows(self.estimator_, X)
        sources = np.arange(self.n_features_in_) if encoding is None else encoding.sources
        labels = sources if self.groups is None else labels_of(self.groups, sources.size)
        n_units = int(labels.max()) + 1
        target = np.asarray(y)
        rng = np.random.default_rng(self.random_state)
        n_pairs = (int(self.n_resamples) + 1) // 2
        row_halves: list[Columns] = []
        codes = codes_of(target)
        for _ in range(n_pairs):
            # Each call gives two complementary halves of the rows.
            row_halves += halves(len(target), rng, codes, groups, order)
        # The maximum number of features per half. With "auto", q^2 = (2 t - 1) p makes the bound of
        # Meinshausen and Buhlmann one.
        most_per_half = self.n_features
        if most_per_half is None and automatic:
            bounded = int(np.sqrt((2 * self.threshold - 1) * n_units))
            most_per_half = min(max(2, bounded), n_units)
        elif most_per_half is None and alphas is not None:
            most_per_half = max(len(row_halves[0]) // 2, 1)
        falling_alphas = np.sort(np.array([] if alphas is None else alphas, dtype=np.float64))[::-1]
        masks = self._masks(
            base, X, target, row_halves, bool(params), groups, order, falling_alphas, most_per_half
        )
        # A group is selected if any of its columns is. Rows 2 i and 2 i + 1 of the table are the
        # halves of a pair, its columns are the features or groups.
        selections = np.array([np.bincount(labels, mask, n_units) > 0 for mask in masks])
        self.selection_probabilities_ = selections.mean(axis=0)
        self.both_probabilities_ = (selections[::2] & selections[1::2]).mean(axis=0)
        self._labels = None if self.groups is None else labels
        q = self.n_selected_ = float(selections.sum(axis=1).mean())
        self.bounds_ = {
            "unimodal": unimodal(q, n_units, self.threshold, n_pairs),
            "meinshausen_buhlmann": meinshausen_buhlmann(q, n_units, self.threshold),
        }
        self.expected_false_ = self.bounds_["unimodal"]
        return self

    def _check(self) -> None:
        """Raise ValueError unless ``threshold`` is in (0.5, 1] and ``n_resamples`` at least 2."""
        if not (is_number(self.threshold) and 0.5 < self.threshold <= 1):
            raise ValueError(
                f"threshold must be above 0.5 and at most 1, got {self.threshold!r}: at 0.5 and "
                "below nothing bounds the false features"
            )
        whole_number("StabilitySelector", "n_resamples", self.n_resamples, least=2)

    def _masks(
        self,
        base: Any,
        X: Any,
        y: NDArray[Any],
        row_halves: list[Columns],
        routed: bool,
        groups: Any,
        order: Any,
        falling_alphas: Array,
        most: int | None,
    ) -> list[Mask]:
        """Return the mask of selected features for each half, fitted jointly if possible.

        base : the estimator to clone. X, y : the data. row_halves : the rows of each half.
        routed : whether ``fit`` received further parameters, which rules out a joint fit. groups,
        order : those of the rows, for estimators that hold out rows.
        falling_alphas : alphas in decreasing order, empty for that of the estimator. most : maximum
        number of features per half, None for no limit.
        """
        if not routed and isinstance(base, (AtomicRegressor, AtomicClassifier)):
            alphas = falling_alphas if falling_alphas.size else np.array([float(base.alpha)])
            joint_masks = masks_of_parts(base, X, y, row_halves, alphas, most)
            if joint_masks is not None:
                return joint_masks
        models = [clone(base).set_params(alpha=float(alpha)) for alpha in falling_alphas] or [base]
        masks = []
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            # The gap of a fit to half of the rows is small compared with the differences between
            # halves.
            for rows in row_halves:
                half_rows = rows_of(X, rows)
                fit_params = fit_parameters(base, rows, groups, order)
                fitted = (clone(model).fit(half_rows, y[rows], **fit_params) for model in models)
                masks.append(first_columns((selected_by(fit)[1] for fit in fitted), most))
        return masks

    def _get_support_mask(self) -> Mask:
        """Return the mask of the selected features."""
        check_is_fitted(self)
        is_selected = self.selection_probabilities_ >= self.threshold
        return np.asarray(is_selected if self._labels is None else is_selected[self._labels])

    @available_if(_estimator_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return the predictions for X of ``estimator_``, fitted to all rows and all features."""
        check_is_fitted(self)
        return self.estimator_.predict(X)


def codes_of(y: NDArray[Any]) -> Columns | None:
    """Return class codes (n,) for stratified halves; None if y has too many distinct values."""
    if y.ndim != 1 or y.dtype.names is not None:
        return None
    values, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_discrete = values.size <= max(2, len(y) // 10) and counts.min() >= 2
    return codes if is_discrete else None


def meinshausen_buhlmann(q: float, p: int, threshold: float) -> float:
    """Return Meinshausen and Buhlmann's bound q^2 / ((2 t - 1) p), infinity for t <= 1/2.

    q : average number of features that a half selects. p : number of features. t is ``threshold``.
    """
    return float("inf") if threshold <= 0.5 else q * q / ((2 * threshold - 1) * p)


def unimodal(q: float, p: int, threshold: float, n_pairs: int) -> float:
    """Return Shah and Samworth's bound C(t, B) q^2 / p on falsely selected features.

    q : average number of features that a half selects. p : number of features. t is ``threshold``
    and B is ``n_pairs``. C is 1 / (2 (2 t - 1 - 1 / (2 B))) for t <= 3/4, else
    4 (1 - t + 1 / (2 B)) / (1 + 1 / B). The bound assumes unimodal selection frequencies of the
    features with low selection probability. With theta = q / p, it requires theta <= 1 / sqrt(3)
    and t > 1/2 + min(theta^2, 1 / (2 B) + 3 theta^2 / 4). Otherwise Meinshausen and Buhlmann's
    bound is returned.
    """
    theta = q / p
    half_step = 1 / (2 * n_pairs)
    least_threshold = min(0.5 + theta**2, 0.5 + half_step + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or threshold <= least_threshold:
        return meinshausen_buhlmann(q, p, threshold)
    if threshold <= 0.75:
        gap = 2 * threshold - 1 - half_step
        factor = 1 / (2 * gap) if gap > 0 else float("inf")
    else:
        factor = 4 * (1 - threshold + half_step) / (1 + 1 / n_pairs)
    return float(min(factor * q * q / p, meinshausen_buhlmann(q, p, threshold)))
