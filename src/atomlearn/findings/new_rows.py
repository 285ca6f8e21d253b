"""monitor: optimality gap of a fitted model on new rows, and a test for distribution shift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from atomlearn.core import (
    Array,
    ArrayScores,
    Problem,
    Rows,
    as_compressed,
    as_design,
    loss_value,
    part_of,
    readable,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import checked_design, input_names
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.dependent_rows import folds
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.findings.kept import Kept, Point, gap_of, linear_at, row_summary
from atomlearn.findings.one_step import of_single_rows
from atomlearn.findings.trials import LOOSE_GAP
from atomlearn.storage.formats.format import stacked

#: Number of folds, and maximum number of rows that the test compares.
N_FOLDS = 5
MOST_ROWS = 20_000
#: Permutations of the test.
N_DRAWS = 999


@dataclass(frozen=True, slots=True)
class Monitored:
    """The optimality gap of a model on old and new rows, and a test for distribution shift.

    Attributes
    ----------
    gap : float
        A proved upper bound on (F - F*) / F, with F the objective of the old model on all rows and
        F* its minimum.
    p_value : float
        Of the permutation test that old and new rows are exchangeable.
    differs : str
        The statistic of the residuals that differs the most.
    n_old, n_new : int
        Numbers of rows.
    model : object
        Warm-started refit to all rows, if requested and the gap is large, else None.
    """

    gap: float
    p_value: float
    differs: str
    n_old: int
    n_new: int
    model: Any = None

    def __str__(self) -> str:
        """Return two lines: the gap on all rows, and the p-value of the test for a shift."""
        pays = "a re-fit pays" if self.gap > LOOSE_GAP else "a re-fit would change little"
        return (
            f"on all {self.n_old + self.n_new:,} rows the objective of the old model is within "
            f"{100 * self.gap:.2g}% of the optimum, which is proved: {pays}\n"
            f"rows like the old ones would differ as much as the {self.n_new:,} new ones with "
            f"p = {self.p_value:.2g}, if rows are independent (the most in {self.differs})"
        )


def keep(estimator: Any, X: Any, y: ArrayLike, *, rng: int = 0) -> Kept:
    """Return a summary of the rows of a fit, with which ``monitor`` works after they are deleted.

    It takes a few passes over X and five fits, each without a fifth of the rows. The summary holds
    p numbers for each active column for the squared loss, p numbers for other losses, and 3 numbers
    for each of at most 20,000 rows. It can be pickled.

    Parameters
    ----------
    estimator : fitted regression, or classifier of two classes
        Of ours, over plain columns, with a smooth loss of single rows, without covariates
        (``unpenalized=``), weights and offsets.
    X, y : the data of the fit
    rng : int
        Seed of the folds.
    """
    model, problem = _problem(estimator, X, y)
    point = _point(estimator)
    # Sums over the rows from which ``monitor`` computes a lower bound of the objective.
    table, conjugate, relative_error = row_summary(problem, point)
    n_rows = problem.y.size
    target = np.asarray(y)
    codes = problem.y > 0 if problem.loss.task == "classification" else None
    # Residuals and predictions of each row by the fit of the fold that leaves it out.
    left_out = np.empty((n_rows, 2))
    fold = np.empty(n_rows, dtype=np.int64)
    fits = []
    for number, (train, test) in enumerate(folds(n_rows, N_FOLDS, rng, codes)):
        train_design = part_of(problem.design, rows=train)
        fits.append(_point(clone(model).fit(train_design, target[train])))
        left_out[test] = _residuals(problem, fits[-1], test)
        fold[test] = number
    sample = np.random.default_rng([rng, 1]).permutation(n_rows)[:MOST_ROWS]
    value = loss_value(problem, linear_at(problem.design, point))
    return Kept(
        n_rows, point, value, relative_error, table, conjugate, left_out[sample], fold[sample], fits
    )


def monitor(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    kept: Kept | None = None,
    *,
    old: tuple[Any, ArrayLike] | None = None,
    refit: bool = False,
    rng: int = 0,
) -> Monitored:
    """Return the gap of a model on old and new rows, and a test that new rows differ from old ones.

    Parameters
    ----------
    estimator : the fitted model
    X, y : the new rows, columns as in the fit
    kept : the result of ``keep`` for the old rows
    old : (X, y) of the old rows, if they still exist; then ``kept`` is not needed
    refit : bool
        With ``old``: whether to fit to all rows if the gap exceeds 1%, warm-started at the old
        model with the same alpha.
    rng : int
        Seed of the test.

    Notes
    -----
    The gap takes one pass over the new rows; for the squared loss a small problem is solved too.
    The gap is an upper bound, for the alpha of the model. For losses other than the squared one it
    is seldom much smaller than the share of the new rows.

    The test is a permutation test. Each old row is predicted by the fit that left it out, and each
    new row by one of these fits, drawn at random. Old and new rows are exchanged within each fit.
    The statistic is the largest of three standardized differences between old and new rows: of the
    mean residual, of the mean absolute residual, and of the mean product of residual and
    prediction. For independent rows p is exact, except that alpha was chosen on the old rows. A
    shift of X that changes no residual is not detected.

    Either ``kept`` or ``old`` is required. Without them, only a gap of about the share of the new
    rows could be proved. The test also needs residuals of the old rows that no fit has seen.

    References
    ----------
    P. H. Westfall, S. S. Young. Resampling-based multiple testing. Wiley, 1993 (the largest of
    several statistics).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, findings
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((330, 20))
    >>> y = X[:, 0] + rng.standard_normal(330)
    >>> model = AtomicRegressor(alpha=0.1).fit(X[:300], y[:300])
    >>> kept = findings.keep(model, X[:300], y[:300])
    >>> same = findings.monitor(model, X[300:], y[300:], kept)
    >>> other = findings.monitor(model, X[300:], y[300:] + 2, kept)
    >>> bool(same.gap < 0.01 < other.gap), bool(other.p_value < 0.05 < same.p_value)
    (True, True)
    """
    if kept is None:
        if old is None:
            raise ValueError(
                "monitor needs something of the old rows: kept=findings.keep(model, X, y), made "
                "when the model was fitted, or old=(X, y)"
            )
        kept = keep(estimator, *old, rng=rng)
    # Columns, weights and intercept of the model must be those of the kept fit.
    pairs: list[Any] = [*zip(_point(estimator), kept.point, strict=True)]
    if not all(np.array_equal(a, b) for a, b in pairs):
        raise ValueError("kept is of another fit; make it again with findings.keep(model, X, y)")
    if refit and old is None:
        raise ValueError("a re-fit needs the old rows: pass old=(X, y), or refit=False")
    _, problem = _problem(estimator, X, y)
    gap = gap_of(problem, kept)
    p_value, differs = _difference(problem, kept, np.random.default_rng([rng, 0x6D6F6E]))
    refitted = None
    if refit and old is not None and gap > LOOSE_GAP:
        refitted = _refitted(estimator, (old[0], X), (old[1], y))
    return Monitored(gap, p_value, differs, kept.n_rows, problem.y.size, refitted)


def _problem(estimator: Any, X: Any, y: Any) -> tuple[AtomicModel, Problem]:
    """Return an unfitted model at the fitted alpha, and its problem over these rows.

    estimator : the fitted model. X, y : the rows. Raises ValueError for models whose gap on new
    rows cannot be computed from sums over the old rows.
    """
    if not isinstance(estimator, AtomicModel) or not len(estimator.results_):
        raise TypeError(f"monitor is of fitted models of ours, got {type(estimator).__name__}")
    model = _at_chosen_level(estimator)
    # New rows may be of one class only, so they are not checked like the rows of a fit.
    X = checked_design(estimator, X, reset=False)
    has_classes = is_classifier(estimator)
    data = _labelled(model, X, y, estimator.classes_) if has_classes else model._checked(X, y, None)
    problem = model._problems(data, *model._regularized_by())[0]
    # Scores of zero, to ask whether the norm bounds coefficients (``excess`` is then not None).
    scores = ArrayScores(np.zeros(problem.design.shape[1])) if problem.design.listable else None
    if (
        len(estimator.results_) != 1
        or scores is None
        or estimator.features != "linear"
        or estimator.standardize
        or problem.free is not None
        or not of_single_rows(problem.loss)
        or estimator.get_params(deep=False).get("class_weight") is not None
        or problem.regularizer.norm.excess(scores) is not None
    ):
        raise ValueError(
            "monitor is of models of plain columns with one output, a smooth loss of single rows, "
            "no covariates, no class weights, no bounds on coefficients and standardize=False"
        )
    return model, problem


def _labelled(model: AtomicModel, X: Any, y: Any, classes: Any) -> Any:
    """Return the data of new rows with labels encoded as in the fit; one class may be missing.

    model : an unfitted classifier. X, y : the new rows and their labels. classes : the two labels
    of the fit. Raises ValueError for other labels.
    """
    labels = np.asarray(y)
    unknown = np.setdiff1d(labels, classes)
    if unknown.size or len(classes) != 2:
        raise ValueError(f"y holds {unknown[:1]}, and the model knows two classes: {classes}")
    # The checks need both classes, and y may have one: check the first row twice, once with each
    # label, and then put the actual rows in.
    design = as_design(X)
    data = model._checked(part_of(design, rows=np.zeros(2, dtype=np.int64)), classes, None)
    weight = np.full(labels.size, 1.0 / labels.size)
    target = np.where(labels == classes[1], 1.0, -1.0)
    return replace(data, design=design, y=labels, targets=[target], weight=weight, codes=None)


def _at_chosen_level(estimator: Any) -> AtomicModel:
    """Return an unfitted clone; for a search, a model with the chosen norm and alpha.

    ``estimator`` is the fitted estimator.
    """
    if not isinstance(estimator, CrossValidatedModel):
        unfitted: AtomicModel = clone(estimator)
        return unfitted
    norm, alpha, l1_ratio = estimator._regularized_by()
    kind = AtomicClassifier if estimator.task == "classification" else AtomicRegressor
    form = estimator.form or estimator._candidates()[0].usual_form
    # In the constrained form the search chooses the radius instead of alpha.
    names = ("loss", "tol", "features", "unpenalized", "fit_intercept")
    parameters = {name: estimator.get_params(deep=False)[name] for name in names}
    model: AtomicModel = kind(norm, alpha, l1_ratio=l1_ratio, form=form, radius=alpha, **parameters)
    return model


def _point(estimator: Any) -> Point:
    """Return the columns with a weight, their weights, and the intercept of a fitted estimator."""
    result = estimator.results_[0]
    return result.columns, result.weights, float(result.intercept)


def _residuals(problem: Problem, fit: Point, rows: Rows) -> Array:
    """Return residuals (negative loss gradients) and linear predictors of rows by a fit, (r, 2).

    problem : the problem with all rows. fit : the point (columns, weights, intercept) of the model.
    """
    linear = linear_at(problem.design, fit)[rows]
    residual = -problem.loss.gradient(problem.y[rows], linear, np.ones(rows.size))
    return np.column_stack([residual, linear])


def _difference(problem: Problem, kept: Kept, rng: np.random.Generator) -> tuple[float, str]:
    """Return the p-value of the permutation test, and the name of the most different statistic.

    problem : the problem over the new rows. kept : the summary of the old rows. rng : generator of
    the permutations. Each new row is assigned to one of the folds at random; rows are permuted
    within a fold only. The p-value is the share of permutations whose largest standardized
    difference is at least that of the data.
    """
    rows = rng.permutation(problem.y.size)[:MOST_ROWS]
    statistics = []
    newness = []
    fold_labels = []
    # Per fold, old rows first: residuals, their magnitudes, and their products with the
    # predictions, each centered.
    for fold, fit in enumerate(kept.fits):
        fold_rows = rows[fold :: len(kept.fits)]
        table = np.vstack([kept.left_out[kept.fold == fold], _residuals(problem, fit, fold_rows)])
        residual = table[:, 0]
        linear = table[:, 1] - table[:, 1].mean()
        statistics_of_fold = np.column_stack([residual, np.abs(residual), residual * linear])
        statistics.append(statistics_of_fold - statistics_of_fold.mean(axis=0))
        newness.append(np.arange(len(table)) >= len(table) - fold_rows.size)
        fold_labels.append(np.full(len(table), fold))
    values, is_new_row, fold_of_row = map(np.concatenate, (statistics, newness, fold_labels))
    # Row 0 are the sums over the new rows as observed, the other rows those of permutations. Both
    # ``order`` and ``permuted`` sort the rows by fold, the latter in random order within a fold.
    order = np.argsort(fold_of_row, kind="stable")
    draws = np.empty((N_DRAWS + 1, 3))
    draws[0] = is_new_row @ values
    for draw in draws[1:]:
        permuted = np.lexsort((rng.random(order.size), fold_of_row))
        draw[:] = is_new_row[order] @ values[permuted]
    # Each statistic is divided by its standard deviation; the maximum of the three is compared.
    deviations = draws[1:].std(axis=0)
    largest = np.abs(draws / np.where(deviations > 0, deviations, 1.0))
    maxima = largest.max(axis=1)
    p_value = float(np.mean(maxima >= maxima[0] - 1e-12))
    words = ("residuals", "sizes of residuals", "residuals along the prediction")
    return p_value, words[int(largest[0].argmax())]


def _refitted(estimator: Any, X: tuple[Any, Any], y: tuple[Any, Any]) -> Any:
    """Return a fit to all rows, warm-started at the fitted estimator.

    X, y : pairs of the old and the new rows.
    """
    tables = [as_compressed(readable(rows)) for rows in X]
    joined_rows = stacked(tables, "csr")
    model: Any = _at_chosen_level(estimator).set_params(warm_start=True)
    model.results_ = estimator.results_
    if is_classifier(estimator):
        model.classes_ = estimator.classes_
    model.fit(joined_rows, np.concatenate([np.asarray(targets) for targets in y]))
    if input_names(estimator) is not None:
        model.feature_names_in_ = estimator.feature_names_in_
    return model
