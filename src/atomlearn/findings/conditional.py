"""Model-X conditional independence tests: p-values of features given all other features.

The conditional distribution of x_j given the other columns is estimated from X without y, as for
knockoffs. Under the null hypothesis that y is independent of x_j given the other columns, x_j can
be resampled from that distribution without changing the joint distribution of the data. Statistics
are compared with their values under such resampling: the distilled conditional randomization test
(``p_values``) and conditional permutation importance (``conditional_importance``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, false_discovery_control
from sklearn.base import clone, is_classifier

from atomlearn._support import TINY, whole_number
from atomlearn.core import (
    L1,
    Array,
    Columns,
    Loss,
    Problem,
    Regularizer,
    Settings,
    WarmStart,
    as_design,
    changed,
    dense_part,
    feature_names,
    loss_gradient,
)
from atomlearn.estimators.checks import encoded_rows
from atomlearn.estimators.dependent_rows import held_out
from atomlearn.estimators.tables import table_as_numbers
from atomlearn.estimators.targets import class_codes, targets_of_rows
from atomlearn.findings.gaussian import generator, knockoffs_of, rescaled
from atomlearn.findings.importance import coefficients, loss_for
from atomlearn.findings.nodewise import BARRED, GAP
from atomlearn.findings.precision import columns_named, grouped, members_of
from atomlearn.findings.sums import SumOfProducts
from atomlearn.findings.verdict import numbers_of

#: Sequential Monte Carlo test: stop once this number of draws has a statistic at least as extreme.
ENOUGH = 10
#: Eigenvalues below this share of the largest eigenvalue count as 0 when the rank is determined.
RANK = 1e-10
#: The robust variance is not used if its relative standard error exceeds this.
MOST_NOISE = 0.5
CONDITION = (
    "of no effect given all other columns, where rows are independent and each column, given the "
    "others, is linear in them with noise that does not depend on them ({}), whatever the spread "
    "of the target; {}"
)


@dataclass(frozen=True, slots=True)
class FeatureTests:
    """Conditional independence tests of m features, or groups of features, given all others.

    Attributes
    ----------
    units : tuple[Columns, ...]
        The m tested units: each is an array of indices of columns that are tested together.
    p_values : (m,) float64
    sizes : (m,) float64
        Effect sizes: the square root of the chi-squared statistic from ``p_values``, the mean
        increase of the held-out loss under permutation from ``conditional_importance``.
    law : str
        How the conditional distribution of a column given the others was estimated, in words.
    fitted : str
        Which rows the model of the target was fitted to, in words.
    names : tuple[str, ...]
        Of all columns, () if unknown.
    """

    units: tuple[Columns, ...]
    p_values: Array
    sizes: Array
    law: str
    fitted: str
    names: tuple[str, ...] = ()

    @property
    def adjusted(self) -> Array:
        """The p-values adjusted by Benjamini and Hochberg's method, (m,)."""
        return np.asarray(false_discovery_control(self.p_values))

    @property
    def condition(self) -> str:
        """The assumptions under which p-values of null features are uniformly distributed."""
        return CONDITION.format(self.law, self.fitted)

    def selected(self, fdr: float = 0.1) -> list[int]:
        """Return the sorted column indices of the units whose adjusted p-value is at most ``fdr``.

        fdr : the largest tolerated false discovery rate of the selection.
        """
        return sorted(
            j
            for unit, rate in zip(self.units, self.adjusted, strict=True)
            if rate <= fdr
            for j in unit.tolist()
        )

    def of_columns(self) -> dict[int, tuple[float, float]]:
        """Return {column: (p-value, adjusted p-value)}, both of the unit that holds the column."""
        values = zip(self.units, self.p_values.tolist(), self.adjusted.tolist(), strict=True)
        return {j: (p, rate) for unit, p, rate in values for j in unit.tolist()}

    def sentences(self, names: Any = None, most: int = 20) -> tuple[str, ...]:
        """Return the condition, then one sentence per unit for the ``most`` smallest p-values.

        names : the names of all columns, by which columns are called; None: those of the table, or
        their indices.
        """
        names = names if names is not None else self.names or None
        lines = [f"p-values {self.condition}"]
        for number in np.argsort(self.p_values, kind="stable")[:most]:
            unit = self.units[number].tolist()
            called = ", ".join(f"column {j}" if names is None else str(names[j]) for j in unit)
            lines.append(
                f"effect of {called}: p = {self.p_values[number]:.2g}, adjusted for the number "
                f"of columns {self.adjusted[number]:.2g}"
            )
        return tuple(lines)

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(self.sentences())


@dataclass(frozen=True, slots=True)
class TestedUnits:
    """The units to test and the residuals of their columns given all other columns.

    Attributes
    ----------
    X : (n, p) float64
        Standardized columns, or the means of clusters of columns if ``groups`` is "auto".
    residuals : (n, p) float64
        Residual of each column of X given the other columns, up to a factor per column.
    places : tuple[Columns, ...]
        Column indices in X of each unit.
    members : tuple[Columns, ...]
        Column indices in the data of each unit.
    law : str
        How the conditional distribution was estimated, in words.
    """

    X: Array
    residuals: Array
    places: tuple[Columns, ...]
    members: tuple[Columns, ...]
    law: str

    @classmethod
    def of(cls, X: Any, columns: Any, groups: Any, covariance: Any) -> TestedUnits:
        """Return the units to test, with residuals of all columns given the others.

        X : the data, (n, p). columns : the requested columns, None for all. groups : labels or
        lists of columns that are tested together, None for single columns, or "auto" for clusters
        of strongly correlated columns. covariance : a covariance matrix of X or the name of its
        estimator.
        """
        design = as_design(X)
        names = feature_names(X)
        n_columns = design.shape[1]
        all_columns = np.arange(n_columns)
        # The columns are standardized; with groups="auto" each cluster becomes one column, its
        # mean.
        standard, _, scales, group_labels = grouped(dense_part(design, all_columns), groups, names)
        labels = all_columns if group_labels is None else group_labels
        members = members_of(labels)
        # If no clusters were merged, a unit has the same indices in the standardized table and in
        # X. Otherwise cluster number u is column u of the standardized table.
        one_place_per_column = standard.shape[1] == n_columns
        positions = members if one_place_per_column else list(np.arange(len(members))[:, None])
        # A unit is tested if any of its columns is requested.
        requested = all_columns if columns is None else columns_named(columns, names, n_columns)
        chosen = np.unique(labels[requested])
        # A covariance matrix of the user is in the units of the data, before standardization.
        knockoffs = knockoffs_of(standard, rescaled(covariance, scales))
        places = tuple(positions[unit] for unit in chosen.tolist())
        tested_members = tuple(members[unit] for unit in chosen.tolist())
        return cls(standard, knockoffs.residuals, places, tested_members, knockoffs.words)


def p_values(
    X: Any,
    y: ArrayLike,
    columns: Any = None,
    *,
    groups: Any = None,
    covariance: Any = "factors",
    loss: str | Loss = "auto",
    n_alphas: int = 20,
    cv: int | Literal["auto"] = "auto",
    rng: int = 0,
) -> FeatureTests:
    r"""Return p-values of features by the distilled conditional randomization test (dCRT).

    The null hypothesis of feature j is that y is independent of x_j given all other columns. With
    r_j the residuals of a lasso of y on all columns except x_j, and e_j = x_j - E(x_j | others),
    the statistic e_j'r_j then has mean 0. Its variance is the larger one of the robust estimate
    sum_i e_ij^2 r_ij^2 and the variance under random permutations of e_j. If few rows
    dominate the sum (rare columns, rare classes, heavy tails), the p-value comes from a saddlepoint
    approximation to the distribution of the sum. The lasso is fitted again without each column in
    its support; for the other columns the fit does not change, up to the proved duality gap.

    Parameters
    ----------
    X : (n_samples, n_features)
        Held in memory as a dense array. Words, dates and gaps of a data frame become numbers as in
        the estimators; the columns of a category are tested together.
    y : (n_samples,)
        Numbers, labels (one test per feature, for all classes together) or survival times.
    columns : column indices or names, optional
        The columns to test, all by default. Fewer columns need fewer fits.
    groups : lists of columns, labels (n_features,) or "auto", optional
        Test one hypothesis per group: that no column of the group has an effect. "auto": each
        cluster of columns with all pairwise correlations above 0.95 is tested by its mean, given
        the means of the other clusters. A test of a single column of such a cluster has hardly any
        power.
    covariance : {"auto", "factors", "sparse_precision", "ledoit_wolf"} or (p, p) array
        The covariance of the columns or its estimator, see ``KnockoffSelector``. "factors" is
        "auto" without Ledoit-Wolf shrinkage, which underestimates the dependence between columns,
        so that p-values would be too small.
    loss, n_alphas, cv
        Parameters of the lasso, see ``KnockoffSelector``.
    rng : int
        Seed of the cross-validation folds, if there are any.

    References
    ----------
    M. Liu, E. Katsevich, L. Janson, A. Ramdas. Fast and powerful conditional randomization testing
    via distillation. Biometrika 109 (2022) 277-293. E. Candes, Y. Fan, L. Janson, J. Lv. Panning
    for gold. JRSS B 80 (2018) 551-577.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings import p_values
    >>> X = np.random.default_rng(0).standard_normal((200, 40))
    >>> y = X[:, 3] - X[:, 8] + np.random.default_rng(1).standard_normal(200)
    >>> tests = p_values(X, y)
    >>> tests.selected(fdr=0.1)
    [3, 8]
    """
    # A data frame becomes numbers. The columns of one category are tested together.
    names = feature_names(X)
    encoded = table_as_numbers(X)
    if encoded is not None:
        encoding = encoded.encoding
        names = encoding.names
        columns = None if columns is None else encoding.columns_of(columns, "p_values")
        groups = np.unique(encoding.sources, return_inverse=True)[1] if groups is None else groups
        X = dense_part(encoded, np.arange(len(names)))
    target = targets_of_rows(X, y)
    units = TestedUnits.of(X, columns, groups, covariance)
    inferred_loss = loss_for(target, loss)
    # The fits read whole columns of X, so column-major order makes each column contiguous.
    table = np.asfortranarray(units.X)
    # Cross-validation chooses alpha for the mean of the losses; the fits below take that for their
    # sum.
    l1_weight = coefficients(table, target, L1(), inferred_loss, n_alphas, cv, rng)[1] * len(target)
    # With several classes there is one 0/1 target per class, written as -1 and 1.
    targets = [target]
    if inferred_loss.task == "classification":
        codes = class_codes(target)[1]
        targets = list(2.0 * numbers_of(inferred_loss.task, codes).T - 1.0)
    # For each unit: the chi-squared statistic of its residuals against those of the targets.
    squares, rank = np.zeros((2, len(units.places)))
    residuals = [_residuals(table, column, inferred_loss, l1_weight) for column in targets]
    for index, unit in enumerate(units.places):
        residuals_of_unit = np.column_stack([without(unit) for without in residuals])
        squares[index], rank[index] = _moment_statistic(units.residuals[:, unit], residuals_of_unit)
    # A unit whose residuals are all zero has no degree of freedom; its p-value is 1.
    tested = rank > 0
    probabilities = np.ones(rank.size)
    probabilities[tested] = chi2.sf(squares[tested], rank[tested])
    condition = "the lasso of the target was chosen on the same rows"
    column_names = () if names is None else tuple(map(str, names))
    return FeatureTests(
        units.members, probabilities, np.sqrt(squares), units.law, condition, column_names
    )


def _moment_statistic(unit_residuals: Array, residuals: Array) -> tuple[float, int]:
    """Return the chi-squared statistic of the moments unit_residuals' residuals, and its rank.

    The statistic is sum_l m_l^2 / max(v_l, 1). The m_l are the k * q moments, whitened by their
    covariance under permutations of the rows and rotated to the eigenvectors of the robust
    covariance. The v_l are its eigenvalues. So the variance along each eigenvector is the larger
    one of the permutation variance (1) and the robust variance.

    If few rows dominate, the robust variance is far too small and is not used. That is the case if
    the relative error of some pair of a column and a target exceeds ``MOST_NOISE``. Each pair also
    has a factor of at most 1 that corrects its own statistic for heavy tails (saddlepoint
    approximation). The statistic is multiplied by the smallest factor. The rank is the number of
    degrees of freedom.

    Parameters
    ----------
    unit_residuals : (n, k)
        Residuals of the k columns of a unit given all other columns.
    residuals : (n, q)
        Residuals of the q targets.
    """
    residuals = residuals - residuals.mean(axis=0)
    # Row i holds the k * q products of its residuals; their sums over the rows are the moments.
    sums = (unit_residuals[:, :, None] * residuals[:, None, :]).reshape(len(residuals), -1)
    # The covariance of the moments under random permutations of the rows, and its square root.
    covariance = np.kron(unit_residuals.T @ unit_residuals, residuals.T @ residuals) / len(
        residuals
    )
    values, vectors = la.eigh(covariance)
    is_positive = values > RANK * max(values[-1], TINY)
    whiten = vectors[:, is_positive] / np.sqrt(values[is_positive])
    # The robust covariance in the whitened coordinates: eigenvalues and eigenvectors.
    robust, vectors_of_sums = la.eigh(whiten.T @ (sums.T @ sums) @ whiten)
    pairs = [
        SumOfProducts(unit_column, target_column)
        for unit_column in unit_residuals.T
        for target_column in residuals.T
        if unit_column.any() and target_column.any()
    ]
    is_reliable = all(pair.noise <= MOST_NOISE for pair in pairs)
    moments = vectors_of_sums.T @ whiten.T @ sums.sum(axis=0)
    square = float(np.sum(moments**2 / np.maximum(robust if is_reliable else 1.0, 1.0)))
    factors = [pair.tail_correction(is_reliable) for pair in pairs]
    return square * min(factors, default=1.0), moments.size


def _residuals(X: Array, y: Any, loss: Loss, l1_weight: float) -> Callable[[Columns], Array]:
    """Return a function from columns to residuals (n,) of a lasso of y on all other columns.

    Residuals are negative gradients of the loss. Each fit is warm-started from the lasso on all
    columns. l1_weight : the factor of the l1 norm next to the sum of the losses.
    """
    penalty = Regularizer(L1(), "penalized", l1_weight)
    has_intercept = loss.task != "survival"  # a hazard has no intercept
    problem = Problem.build(as_design(X), y, loss, penalty, fit_intercept=has_intercept)

    def fit_residuals(problem: Problem, start: WarmStart | None = None) -> tuple[Array, WarmStart]:
        """Return the residuals of the fit to this problem, and its warm start."""
        result = Settings(tol=GAP).run(problem, start)
        return -loss_gradient(problem, result.predict(problem.design)), result.warm_start()

    full_fit, start = fit_residuals(problem)

    def residuals_without(unit: Columns) -> Array:
        """Return the residuals of the fit without the columns ``unit``.

        A column leaves the fit by a prohibitive l1 weight, so that X is not copied.
        """
        is_kept = ~np.isin(start.columns, unit)
        # A lasso that uses none of these columns does not change without them.
        if is_kept.all():
            return full_fit
        prices = np.ones(X.shape[1])
        prices[unit] = BARRED
        warm = replace(start, columns=start.columns[is_kept], weights=start.weights[is_kept])
        return fit_residuals(changed(problem, norm=L1(weights=prices)), warm)[0]

    return residuals_without


def conditional_importance(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    columns: Any = None,
    *,
    groups: Any = None,
    covariance: Any = "factors",
    test_fraction: float = 0.3,
    n_draws: int | None = None,
    rng: int = 0,
) -> FeatureTests:
    """Return the conditional permutation importance of features for any model, with p-values.

    A clone is fitted to a part of the rows. On the held-out rows the residual of x_j given the
    other columns is permuted between rows, while its conditional mean is kept. The importance is
    the mean increase of the held-out loss; the p-value is the share of permutations whose loss is
    no larger than the loss without a permutation.

    Parameters
    ----------
    estimator : regressor or classifier with the interface of scikit-learn
        The loss is the squared error; for classifiers the log loss if there is ``predict_proba``,
        else the error rate.
    X, y : (n_samples, n_features), (n_samples,)
    columns, groups, covariance : see ``p_values``
    test_fraction : float
        Share of the rows that are held out.
    n_draws : int, optional
        Maximum number of permutations; the smallest possible p-value is 1 / (n_draws + 1). A test
        stops early once ten permutations have a loss no larger than without a permutation
        (sequential Monte Carlo). By default ten times the number of tests, so that a single
        feature can be detected at a false discovery rate of 0.1; at least 199 and at most 4,999.
    rng : int
        Seed of the split and the permutations.

    References
    ----------
    A. Chamma, D. Engemann, B. Thirion. Statistically valid variable importance assessment through
    conditional permutations. NeurIPS 36 (2023). W. Tansey, V. Veitch, H. Zhang, R. Rabadan, D.
    Blei. The holdout randomization test for feature selection in black box models. JCGS 31 (2022)
    151-162. J. Besag, P. Clifford. Sequential Monte Carlo p-values. Biometrika 78 (1991) 301-304.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from atomlearn.findings import conditional_importance
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).standard_normal(200)
    >>> found = conditional_importance(LinearRegression(), X, y)
    >>> bool(found.p_values[0] < 0.01 < found.p_values[1:].min())
    True
    """
    target = targets_of_rows(X, y)
    random = generator(rng)
    X = encoded_rows(estimator, X)
    units = TestedUnits.of(X, columns, groups, covariance)
    design = as_design(X)
    table = dense_part(design, np.arange(design.shape[1]))
    codes = class_codes(target)[1] if is_classifier(estimator) else None
    # The model is fitted to some rows, and its loss measured on the others.
    train, test = held_out(len(target), test_fraction, rng, codes)
    model = clone(estimator).fit(table[train], target[train])
    losses = _losses_of(model, target[test])
    # Ten permutations per test allow a p-value small enough for one discovery at rate 0.1.
    if n_draws is None:
        n_draws = min(max(10 * len(units.places), 199), 4999)
    n_draws = whole_number("conditional_importance", "n_draws", n_draws)
    values, sizes = np.ones((2, len(units.places)))
    for index, (positions, members) in enumerate(zip(units.places, units.members, strict=True)):
        unit_residuals = units.residuals[:, positions]
        unit_table = table[:, members]
        # These residuals are known up to a factor per column. Least squares of the raw columns on
        # them gives the residuals in the units of the raw columns.
        contributions = (
            unit_residuals
            @ np.linalg.lstsq(unit_residuals, unit_table - unit_table.mean(axis=0), rcond=None)[0]
        )
        values[index], sizes[index] = _permuted(
            losses, table[test], members, contributions[test], n_draws, random
        )
    condition = "the model was fitted to other rows"
    return FeatureTests(units.members, values, sizes, units.law, condition)


def _losses_of(model: Any, y: NDArray[Any]) -> Callable[[Array], float]:
    """Return a function from held-out rows X to the mean loss of the model against the target y.

    The loss is the squared error of a regressor, the log loss of a classifier with
    ``predict_proba``, and the error rate of any other classifier.
    """
    if not is_classifier(model):
        return lambda X: float(np.mean((y - model.predict(X)) ** 2))
    if not hasattr(model, "predict_proba"):
        return lambda X: float(np.mean(y != model.predict(X)))
    true_class = np.searchsorted(model.classes_, y)
    rows = np.arange(y.size)
    return lambda X: (
        -float(np.mean(np.log(np.maximum(model.predict_proba(X)[rows, true_class], TINY))))
    )


def _permuted(
    loss: Callable[[Array], float],
    X: Array,
    columns: Columns,
    contributions: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the p-value of a permutation test, and the mean increase of the loss.

    loss : function from X to the mean loss. columns : indices of the k columns under test in X.
    contributions : (n, k) their residuals given all other columns. Each draw permutes the rows of
    ``contributions`` jointly. The test is the sequential one of Besag and Clifford: it stops at
    ``n_draws`` permutations, or earlier after ``ENOUGH`` of them with a loss no larger than before.
    ``rng`` is the generator of the permutations.
    """
    loss_before = loss(X)
    losses = list[float]()
    permuted = X.copy()
    n_small = 0
    while len(losses) < n_draws and n_small < ENOUGH:
        permuted[:, columns] = X[:, columns] - contributions + rng.permutation(contributions)
        losses.append(loss(permuted))
        n_small += losses[-1] <= loss_before
    # After early stopping, the share of small losses is a valid p-value (Besag and Clifford).
    # Otherwise the data count as one more draw.
    share = n_small / len(losses) if n_small == ENOUGH else (1 + n_small) / (1 + len(losses))
    return share, float(np.mean(losses)) - loss_before
