"""KnockoffSelector: feature selection by model-X knockoffs with false discovery rate control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from atomlearn._support import OwnParameters, check_share, whole_number
from atomlearn.core import (
    Array,
    Columns,
    Groups,
    KSupport,
    Loss,
    Mask,
    Norm,
    as_design,
    as_norm,
    dense_part,
    is_sparse,
    refuse_not_finite,
)
from atomlearn.estimators.checks import checked_array, input_names
from atomlearn.estimators.tables import table_as_numbers
from atomlearn.estimators.targets import checked_target
from atomlearn.findings.gaussian import Knockoffs, generator, knockoffs_of, rescaled
from atomlearn.findings.importance import coefficients
from atomlearn.findings.precision import grouped, independent
from atomlearn.storage.formats.messages import listing


def knockoff_threshold(statistics: ArrayLike, fdr: float) -> float:
    """Return the knockoff selection threshold for the statistics W, infinity if there is none.

    It is the smallest t > 0 with  (1 + #{W_j <= -t}) / max(1, #{W_j >= t}) <= fdr.
    ``statistics`` (n_features,) : the finite numbers W_j. This is knockoff+, which controls the
    false discovery rate.

    Examples
    --------
    >>> from atomlearn.findings.knockoffs import knockoff_threshold
    >>> knockoff_threshold([5.0, 4.0, 3.0, 2.0, -1.0], 0.25)
    2.0
    """
    check_share("fdr", fdr, 0.1)
    W = np.asarray(statistics)
    if W.ndim != 1 or W.dtype.kind not in "biuf" or not np.isfinite(W).all():
        raise ValueError(
            "statistics must hold one finite number a feature, got an array of shape "
            f"{W.shape} and dtype {W.dtype}"
        )
    # Candidates for t: all |W_j|. For each, the numbers of W_j >= t and of W_j <= -t.
    sizes = np.unique(np.abs(W[W != 0]))
    n_above = W.size - np.searchsorted(np.sort(W), sizes, side="left")
    n_below = np.searchsorted(np.sort(W), -sizes, side="right")
    is_allowed = (1 + n_below) / np.maximum(n_above, 1) <= fdr
    return float(sizes[is_allowed][0]) if is_allowed.any() else float("inf")


def e_values(statistics: Array, fdr: float) -> Array:
    """Return the knockoff e-values p 1{W_j >= T} / (1 + #{W <= -T}), (p,).

    statistics : the p numbers W_j; T is their knockoff+ threshold at the false discovery rate
    ``fdr``.
    """
    threshold = knockoff_threshold(statistics, fdr)
    if not np.isfinite(threshold):
        return np.zeros(statistics.size)
    n_false = 1 + np.count_nonzero(statistics <= -threshold)
    return statistics.size * (statistics >= threshold) / n_false


def e_threshold(values: Array, fdr: float) -> float:
    """Return the smallest e-value that the e-BH procedure selects at ``fdr``, or infinity.

    values : (p,) e-values. The k largest are selected, for the largest k with e_(k) >= p / (fdr k).
    """
    ordered = np.sort(values)[::-1]
    allowed = np.flatnonzero(ordered >= values.size / (fdr * np.arange(1, values.size + 1)))
    return float(ordered[allowed[-1]]) if allowed.size else float("inf")


@dataclass(eq=False, repr=False)
class KnockoffSelector(OwnParameters, SelectorMixin, BaseEstimator):
    """Select features by model-X knockoffs with control of the false discovery rate at ``fdr``.

    The control holds if rows are independent and columns are jointly normal with the covariance
    that is used (``condition``). A feature is null if the target is conditionally independent of it
    given all other features. Each column x_j gets a knockoff copy x~_j, drawn without the target.
    One penalized model is fitted to all columns and knockoffs. With b_j and b~_j the coefficients
    of x_j and x~_j, the statistic is W_j = |b_j| - |b~_j|. For null features the sign of W_j is
    symmetric. Features with W_j >= T are selected, with the knockoff+ threshold T: the smallest t
    with (1 + #{W <= -t}) / #{W >= t} <= fdr.

    Parameters
    ----------
    norm : str or Norm, default="l1"
        The norm of the penalized fit: "l1" or a ``KSupport``; with ``groups`` l1 becomes the group
        lasso norm.
    fdr : float, default=0.1
        The false discovery rate to stay below, in expectation over data and knockoffs.
    knockoffs : "gaussian", array (n_samples, n_features) or list of arrays, default="gaussian"
        Gaussian knockoffs drawn here, or precomputed knockoffs, one array per draw.
    n_draws : int, default=None
        Number of independent draws of the knockoffs. Draws are combined by e-values (derandomized
        knockoffs), which makes the selection more stable and more conservative. None: 10 if columns
        are strongly correlated and neither a factor model nor a sparse precision matrix fits, so
        that Ledoit-Wolf shrinkage is used, with a warning; else 1.
    random_state : int, Generator or None, default=None
        Seed of the knockoffs and of the folds.
    covariance : {"auto", "factors", "sparse_precision", "ledoit_wolf"} or array (p, p)
        The covariance of the features, or its estimator. "auto" first removes common factors if the
        eigenvalues show any. (They join the fit without a penalty, since the target may depend on
        them.) Then it regresses each column on the few columns most correlated with it. If that
        does not explain the correlations, it uses Ledoit-Wolf shrinkage, with a warning under
        strong correlation. ``covariance_`` names the choice.
    groups : lists of columns (numbers or names), labels (n_features,) or "auto", optional
        Select groups instead, with a bound on the share of false groups. The indicator columns of a
        category are such a group (``datasets.read(...).groups``). "auto": clusters of columns with
        all correlations above 0.95, which no statistic distinguishes, are replaced by their mean.
        Other columns are not grouped. (For an estimated covariance only.)
    loss : str or Loss, default="auto"
        "auto" is "logistic" for labels, "cox" for survival times (a structured y) and "squared"
        for numbers; any loss of ``atomlearn.losses`` else.
    n_alphas : int, default=20
        Weights of the norm over columns and knockoffs that are tried.
    cv : int or "auto", default="auto"
        Number of folds that choose among the alphas. "auto" leaves out one row at a time, by a
        formula, if the norm is l1 and the loss is smooth. If a row has so high a leverage that the
        formula fails (heavy tails), or for other norms and losses, there are 5 folds.

    Attributes
    ----------
    statistics_ : (n_features,) or (n_groups,) array
        W, of several draws their mean.
    threshold_ : float
        T, infinity if nothing can be selected; for several draws that of the e-values.
    e_values_ : array, or None for one draw
    coefficients_ : (n_draws, n_units, 2) array
        |b_j| and |b~_j| of each draw.
    covariance_ : str
        How the covariance was found, in words.
    alphas_ : list of float
        The penalty weight chosen by cross-validation, one per draw.
    n_features_in_, feature_names_in_

    Notes
    -----
    The bound holds if the covariance is right (for Gaussian features; for others to second order).
    Knockoff+ selects at least 1 / fdr features or none: with fewer true ones it has no power.

    References
    ----------
    E. Candes, Y. Fan, L. Janson, J. Lv. Panning for gold: model-X knockoffs for high dimensional
    controlled variable selection. JRSS B 80 (2018) 551-577. Z. Ren, R. Barber. Derandomised
    knockoffs: leveraging e-values for false discovery rate control. JRSS B 86 (2024) 122-154.
    Y. Fan, J. Lv, M. Sharifvaghefi, Y. Uematsu. IPAD: stable interpretable forecasting with
    knockoffs inference. JASA 115 (2020) 1822-1834.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import KnockoffSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 60))
    >>> y = X[:, :15].sum(axis=1) + rng.standard_normal(300)
    >>> selector = KnockoffSelector(fdr=0.2, random_state=0).fit(X, y)
    >>> bool(selector.get_support()[:15].all())
    True
    """

    norm: str | Norm = "l1"
    fdr: float = 0.1
    knockoffs: Any = "gaussian"
    n_draws: int | None = None
    random_state: Any = None
    _: KW_ONLY
    covariance: Any = "auto"
    groups: Any = None
    loss: str | Loss = "auto"
    n_alphas: int = 20
    cv: int | Literal["auto"] = "auto"

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: a target is required, and X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None, order: Any = None) -> KnockoffSelector:
        """Select features of X (n_samples, n_features) for y.

        X may be sparse (knockoffs are dense, so it takes their memory), or a data frame with
        columns of categories or text. Each of these is selected or not as a whole.

        ``groups`` and ``order`` are of rows, for the folds: see ``AtomicRegressorCV.fit``. The
        bound on the false discovery rate still assumes that rows are independent.
        """
        check_share("fdr", self.fdr, 0.1)
        array, labels = indicators_of(self, X)
        if labels is not None and self.groups is not None:
            raise ValueError(
                "KnockoffSelector takes groups of numeric columns, and X has categories; make 0/1 "
                "columns of these (datasets.read does), and name the groups"
            )
        structured = np.asarray(y).dtype.names is not None
        target = np.asarray(y) if structured else checked_target(self, y, len(array))
        rng = generator(self.random_state)
        requested = self.groups if labels is None else labels
        # Standardized columns with the group of each; with groups="auto" one column per cluster.
        standard, means, scales, labels = grouped(array, requested, input_names(self))
        # Indicators of one category are linearly dependent: a transform makes them independent.
        # Clusters need none, since each is a single column.
        transform = None
        group_labels = None
        if labels is not None and labels.size == standard.shape[1]:
            transform, group_labels = independent(standard, labels)
        draws, factors, self.covariance_ = self._draws(standard, means, scales, rng, transform)
        standard = standard if transform is None else standard @ transform
        # One penalized fit to columns and knockoffs for each draw, all with the same folds.
        seed = int(rng.integers(2**31))
        selections = []
        self.alphas_ = []
        for knockoffs in draws:
            # Columns are contiguous. Factors shared by a column and its knockoff are unpenalized.
            columns = np.vstack([standard.T, knockoffs.T, factors.T]).T
            norm = self._norm(group_labels, factors.shape[1])
            n_free = factors.shape[1]
            arguments = (norm, self.loss, self.n_alphas, self.cv, seed, groups, order, n_free)
            sizes, alpha = coefficients(columns, target, *arguments)
            selections.append(_unit_norms(sizes, group_labels))
            self.alphas_.append(alpha)
        self.coefficients_ = np.array(selections)
        self._record()
        self._labels = labels if self.groups is not None else None
        return self

    @property
    def condition(self) -> str:
        """The assumptions under which the false discovery rate is at most ``fdr``."""
        check_is_fitted(self)
        return (
            "where rows are independent and columns are jointly normal, with the covariance that "
            f"was taken ({self.covariance_})"
        )

    def _record(self) -> None:
        """Set statistics, threshold and selection from ``coefficients_``, those of all draws.

        With one draw the knockoff+ threshold decides; the e-values of several draws are averaged.
        """
        differences = self.coefficients_[:, :, 0] - self.coefficients_[:, :, 1]
        self.statistics_ = differences.mean(axis=0)
        self.e_values_ = None
        if len(differences) == 1:
            self.threshold_ = knockoff_threshold(self.statistics_, self.fdr)
            self._chosen = self.statistics_ >= self.threshold_
            return
        # Each draw uses fdr / 2: at fdr itself, mean e-values hardly ever reach the e-BH threshold.
        self.e_values_ = np.mean([e_values(W, self.fdr / 2) for W in differences], axis=0)
        self.threshold_ = e_threshold(self.e_values_, self.fdr)
        self._chosen = self.e_values_ >= self.threshold_

    def _draws(
        self, X: Array, means: Array, scales: Array, rng: np.random.Generator, transform: Any
    ) -> tuple[list[Array], Array, str]:
        """Return the knockoff matrices, the common factors (n, q), and the method in words.

        X : (n, p) standardized columns. means, scales : (p,) those removed by standardization. rng
        : generator of the draws. transform : (p, k) matrix by which X is multiplied first (see
        ``independent``), or None. Knockoffs that the user gave are standardized in the same way,
        and have no factors.
        """

        def transformed(columns: Array) -> Array:
            """Return the columns multiplied by the transform, if there is one."""
            return columns if transform is None else np.asarray(columns @ transform)

        source = self.knockoffs
        if isinstance(source, str):
            if source != "gaussian":
                raise ValueError(f"knockoffs must be 'gaussian' or an array, got {source!r}")
            covariance = rescaled(self.covariance, scales, transform)
            sampler: Knockoffs = knockoffs_of(transformed(X), covariance)
            count = (10 if sampler.imprecise else 1) if self.n_draws is None else self.n_draws
            n_draws = whole_number("KnockoffSelector", "n_draws", count)
            return [sampler.draw(rng) for _ in range(n_draws)], sampler.shared, sampler.words
        arrays: Sequence[Any] = source if isinstance(source, (list, tuple)) else [source]
        draws = []
        for array in arrays:
            values = np.asarray(array, dtype=np.float64)
            if values.shape != X.shape:
                raise ValueError(
                    f"knockoffs have shape {values.shape}, and X has {X.shape}; give one knockoff "
                    "a column, in the same order"
                )
            draws.append(transformed((values - means) / scales))
        return draws, X[:, :0], "knockoffs as given"

    def _norm(self, group_labels: Columns | None, n_free: int) -> Norm:
        """Return the norm over columns, knockoffs and ``n_free`` unpenalized columns.

        group_labels : (p,) group labels of the columns, or None. The group of a knockoff differs
        from that of its column, and each unpenalized column is its own group.
        """
        norm = as_norm(self.norm)
        if group_labels is None:
            return norm
        free_labels = 2 * (group_labels.max() + 1) + np.arange(n_free)
        labels = np.concatenate([group_labels, group_labels + group_labels.max() + 1, free_labels])
        if isinstance(norm, KSupport):
            return KSupport(norm.k, labels)
        return Groups(labels)

    def _get_support_mask(self) -> Mask:
        """Return the mask of the selected features."""
        check_is_fitted(self)
        if self._labels is None:
            return np.asarray(self._chosen)
        return np.asarray(self._chosen[self._labels])

    @property
    def selected_(self) -> Columns:
        """The selected features, or groups, in decreasing order of their statistic."""
        check_is_fitted(self)
        chosen = np.flatnonzero(self._chosen)
        return chosen[np.argsort(-self.statistics_[chosen], kind="stable")]


def _unit_norms(sizes: Array, labels: Columns | None) -> Array:
    """Return (n_units, 2): coefficient norms of each column, or group, and of its knockoff.

    sizes : (2 p,) absolute coefficients of columns, then knockoffs. labels : (p,) group labels or
    None.
    """
    pairs = sizes.reshape(2, -1)
    if labels is None:
        return pairs.T
    squares = [np.bincount(labels, row**2) for row in pairs]
    return np.sqrt(np.array(squares)).T


def indicators_of(estimator: Any, X: Any) -> tuple[Array, Columns | None]:
    """Return X as a dense array of numbers, and the source of its columns.

    estimator : the selector; ``n_features_in_`` and ``feature_names_in_`` are set as scikit-learn's
    ``validate_data`` does. Words, dates and gaps of a data frame become numbers. The source is the
    index of the column of X for each encoded column, None if each column of X gives one.
    """
    design = table_as_numbers(X)
    if design is not None:
        validate_data(estimator, X, skip_check_array=True)
        encoding = design.encoding
        empty = [plan.name for plan in encoding.columns if not plan.made()]
        if empty:
            raise ValueError(f"{listing(empty)} of X: the same value in all rows; leave it out")
        sources = encoding.sources
        is_single = sources.size == len(encoding.columns)
        return dense_part(design, np.arange(sources.size)), None if is_single else sources
    array = checked_array(
        estimator, X, reset=True, dtype=np.float64, accept_sparse="csc", ensure_min_samples=2
    )
    refuse_not_finite(as_design(array, check_finite=False), X)
    return (array.toarray() if is_sparse(array) else array), None
