"""held_out_verdict: whether an estimator predicts better than a baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_response_method

from atomlearn.core import (
    Array,
    Columns,
    Design,
    Fold,
    Loss,
    Rows,
    Task,
    as_compressed,
    as_design,
    dense_part,
    part_of,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import encoded_rows, unpenalized_columns
from atomlearn.estimators.dependent_rows import fit_parameters, held_out
from atomlearn.estimators.targets import class_codes, targets_of_rows
from atomlearn.findings.copies import joined, numbers_of_table, repeated_rows
from atomlearn.findings.trials import A_FIT, LOOSE_GAP, Trial
from atomlearn.findings.verdict import LONG_TAILED, Verdict, no_verdict

#: Cost of the first best-subset search, in fits: it takes 13 to 28 ms, a lasso takes 5 ms (60 x
#: 80).
SUBSET_FITS = 4


def held_out_verdict(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    test_fraction: float = 0.3,
    rng: int = 0,
    groups: Any = None,
    order: Any = None,
) -> Verdict:
    """Return whether an estimator predicts better than a baseline, tested on held-out rows.

    A clone is fitted to a part of the rows and scored on the others.

    Duplicate and near-duplicate rows stay together in every split, and count once. They are found
    in X as it is given, words and gaps included. If there are few held-out rows, all rows are
    cross-validated instead. For the p-value the whole cross-validation, with all choices that the
    estimator makes, is repeated with permuted rows of X: up to 199 times, less often for large
    data.

    Parameters
    ----------
    estimator : scikit-learn estimator, fitted or not
        A pipeline selects features on the rows of the fit only, as it must. Columns that are
        ``unpenalized`` are covariates: the test is whether other columns add to them and to a cubic
        spline of each.
    X, y : array (n_samples, n_features), array (n_samples,)
    test_fraction : float
        Share of the rows that are held out; classes keep their shares.
    rng : int
        Seed of the splits and of the permutations.
    groups : (n_samples,) array, optional
        Rows with one value belong together, as visits of one patient do: they are held out and
        permuted together.
    order : (n_samples,) array, optional
        Dates or positions of a series, whose end is held out.

    Notes
    -----
    Rows, or groups of rows, are assumed to be independent. "better" means: if the target did not
    depend on the features, a score this far above that of a guess would occur in at most one of
    twenty data sets. "no better" is returned only if a signal of correlation 0.3 (AUC 0.65), added
    to these data, was detected in four of five trials.

    References
    ----------
    J. Besag, P. Clifford. Sequential Monte Carlo p-values. Biometrika 78 (1991) 301-304.
    R. Shah, J. Peters. The hardness of conditional independence testing and the generalised
    covariance measure. Annals of Statistics 48 (2020) 1514-1538 (given covariates).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import held_out_verdict
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> held_out_verdict(AtomicRegressor(alpha=0.1), X, X[:, 0]).verdict
    'better'
    """
    target = targets_of_rows(X, y)
    # Duplicate rows join one group, so that no fold separates them.
    repeated = repeated_rows(X)
    groups = groups if order is not None else joined(len(target), groups, repeated)
    if groups is not None and np.unique(groups).size < 2:
        return no_verdict("all rows repeat each other")
    train, test = split_of(estimator, target, test_fraction, rng, groups, order)
    if not test.size:
        return no_verdict("each class is one group of rows, so that none can be held out")
    if is_classifier(estimator) and np.unique(target[train]).size < np.unique(target).size:
        return no_verdict("a class is missing before the end of the series that is held out")
    return held_out_test(estimator, X, target, (train, test), rng, groups, order, repeated)[2]


def held_out_test(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    parts: Fold,
    rng: int,
    groups: Any = None,
    order: Any = None,
    repeated: Rows | None = None,
) -> tuple[Any, Trial, Verdict]:
    """Return a clone fitted to the training rows, its ``Trial``, and its ``Verdict``.

    The ``Trial`` holds the data and the functions that refit the estimator, for tests on other
    splits. X, y : the data. parts : (training rows, test rows). rng : seed of the permutations.
    groups, order : the dependence of the rows. repeated : (n,) labels shared by duplicate rows, or
    None. ``estimator`` has the interface of scikit-learn.
    """
    train, test = parts
    fitted = fitted_to(unproved(estimator), X, y, train, groups, order)
    trial = trial_of(fitted, X, y, rng, groups, order, repeated)
    # Given covariates, decisions are linear predictors, before the link.
    decisions = decisions_of(fitted, rows_of(X, test), trial.known is not None)
    return fitted, trial, trial.verdict(train, test, decisions)


def split_of(
    estimator: Any, y: NDArray[Any], fraction: float, rng: int, groups: Any, order: Any
) -> tuple[Rows, Rows]:
    """Return a train-test split as (training rows, test rows), stratified by class or event.

    y : (n,) the target. fraction : share of the test rows. rng : seed of the split. groups : labels
    of rows that stay together. order : positions of a series, whose end is the test part.
    ``estimator`` has the interface of scikit-learn.
    """
    codes = None
    if is_classifier(estimator):
        codes = class_codes(y)[1]
    elif y.dtype.names is not None:
        codes = y[y.dtype.names[0]]  # the first field of survival times is the event
    return held_out(len(y), fraction, rng, codes, groups, order)


def trial_of(
    fitted: Any,
    X: Any,
    y: NDArray[Any],
    rng: int,
    groups: Any = None,
    order: Any = None,
    repeated: Rows | None = None,
) -> Trial:
    """Return the ``Trial`` of a fitted estimator on the rows of X (n, p) and y (n,).

    A ``Trial`` holds the data and a function that refits the estimator, for permutation tests.
    rng : seed of folds and permutations. groups, order : the dependence of the rows. repeated :
    (n,) labels shared by duplicate rows, or None.
    """
    task, values, known, ranks = _trial_inputs(fitted, X, y)
    model = clone(fitted)
    for submodel in models_of(model):  # a test that fits many times needs no smaller gap
        submodel.set_params(tol=max(submodel.tol, LOOSE_GAP))

    def decide(train: Rows, test: Rows, values: Any, order_of_rows: Rows | None) -> Array:
        """Return decisions for the rows ``test`` of a clone fitted to the rows ``train``.

        ``values`` : permuted targets, None for y. ``order_of_rows`` : permuted rows of X, or None.
        """
        target = y
        if values is not None:
            target = fitted.classes_[values] if task == "classification" else values
        table = X if order_of_rows is None else rows_of(X, order_of_rows)
        refitted = fitted_to(model, table, target, train, groups, order)
        return decisions_of(refitted, rows_of(table, test), known is not None)

    # The cost of one call of ``decide``: entries that its fits read, plus a fixed cost per fit.
    inputs = numbers_of_table(X)
    work = (float(inputs.shape[0]) * inputs.shape[1] + A_FIT) * fits_of(fitted)
    arguments = inputs if inputs.listable else None, groups, order, repeated, work
    return Trial(decide, task, values, rng, ranks, known, *arguments)


def fits_of(fitted: Any, searched: bool = True) -> int:
    """Return an estimate of the number of model fits in one call of ``fit``, from its settings.

    It counts the final fit, the fits of cross-validation, and those of half-samples. A best-subset
    search (attribute ``l2_``) counts as SUBSET_FITS fits. Feature generation (``selected_at_``)
    makes one fit per pass at a fixed C. More than two classes count as that number of fits. No time
    is measured, so the result is the same on every machine. ``searched`` is False for a refit with
    the parameters that a search chose, which needs no cross-validation (see ``at_choices``).
    ``fitted`` is the fitted estimator.
    """
    steps = [step for _, step in fitted.get_params(deep=False).get("steps", ())]
    count = 1
    n_classes = 2
    # Each fitted attribute shows which searches ran, in an estimator and in the steps of a
    # pipeline.
    for parameters in [
        vars(step) for step in (fitted, *steps) if step not in (None, "passthrough")
    ]:
        count += int(parameters.get("n_resamples") or 0) + SUBSET_FITS * ("l2_" in parameters)
        n_classes = max(n_classes, np.size(parameters.get("classes_", ())))
        table = parameters.get("cv_results_", {}) if searched else {}
        count += sum(np.size(table[name]) for name in table if name.startswith("split"))
        choice = parameters.get("C_choice_") if searched else None
        if choice is not None:
            count += choice.scores.size
        elif "selected_at_" in parameters:
            count += parameters["n_iter_"]
    return count * (n_classes if n_classes > 2 else 1)


def fitted_to(
    model: Any, X: Any, y: NDArray[Any], rows: Rows, groups: Any = None, order: Any = None
) -> Any:
    """Return a clone of the model, fitted to these rows of X and y.

    Their groups and order are passed to ``fit`` if the model holds out rows itself.
    """
    fit_arguments = fit_parameters(model, rows, groups, order)
    return clone(model).fit(rows_of(X, rows), y[rows], **fit_arguments)


def models_of(estimator: Any) -> list[AtomicModel]:
    """Return the models of atomlearn in an estimator: itself, or steps of a pipeline."""
    candidates = [estimator, *estimator.get_params().values()]
    return [each for each in candidates if isinstance(each, AtomicModel)]


def unproved(estimator: Any) -> Any:
    """Return a clone that skips the certificate of optimality, for faster refits.

    ``estimator`` has the interface of scikit-learn.
    """
    model = clone(estimator)
    for submodel in models_of(model):
        submodel.skip_proof()
    return model


def at_choices(fitted: Any) -> Any:
    """Return an unfitted estimator, or pipeline, with the parameters that its searches chose.

    ``fitted`` is the fitted estimator.
    """
    model = best_of_search(fitted)
    if isinstance(model, Pipeline):
        name, estimator = model.steps[-1]
        return Pipeline([*clone(model).steps[:-1], (name, at_choices(estimator))])
    return model.without_search() if isinstance(model, AtomicModel) else clone(model)


def judged_rows(fitted: Any, X: Any, y: NDArray[Any], rng: int = 0) -> Verdict:
    """Return the verdict on a fitted estimator, on rows that it was not fitted to.

    X, y : these rows; those of a class that the estimator does not know are left out. rng : seed of
    the permutations.
    """
    all_rows = np.arange(len(y))
    if is_classifier(fitted):
        all_rows = np.flatnonzero(np.isin(y, fitted.classes_))
    X = rows_of(X, all_rows)
    y = y[all_rows]
    task, values, known, ranks = _trial_inputs(fitted, X, y)
    decisions = decisions_of(fitted, X, known is not None)
    trial = Trial(lambda *_: decisions, task, values, rng, ranks, known)
    return trial.of_rows(np.arange(len(y)), decisions)


def _trial_inputs(
    fitted: Any, X: Any, y: NDArray[Any]
) -> tuple[Task, NDArray[Any], Array | None, bool]:
    """Return (task, values, known, ranks) as in ``Trial``, for the rows X (n, p) and y (n,).

    task : "classification", "regression" or "survival". values : the encoded target. known : (n, q)
    covariates or None. ranks : whether the loss is of a heavy-tailed target (Poisson, gamma,
    Tweedie), which is scored by rank correlation. ``fitted`` is the fitted estimator.
    """
    loss = fitted.get_params(deep=False).get("loss")
    ranks = (loss.name if isinstance(loss, Loss) else loss) in LONG_TAILED
    columns = covariates_of(fitted, X)
    known = None
    if columns is not None:
        known = dense_part(as_design(_model_and_table(fitted, X)[1]), columns)
    if is_classifier(fitted):
        return "classification", np.searchsorted(fitted.classes_, y), known, ranks
    return "regression" if y.dtype.names is None else "survival", y, known, ranks


def covariates_of(fitted: Any, X: Any) -> Rows | None:
    """Return the unpenalized columns of X of a model of atomlearn, also in a pipeline.

    ``fitted`` is the fitted estimator.
    """
    model, table = _model_and_table(fitted, X)
    return unpenalized_columns(model, as_design(table)) if isinstance(model, AtomicModel) else None


def _model_and_table(fitted: Any, X: Any) -> tuple[Any, Any]:
    """Return the best model of a search, or the last step of a pipeline, and its input table.

    The table is X as this model receives it: after the other steps, with words as numbers.
    ``fitted`` is the fitted estimator.
    """
    model = best_of_search(fitted)
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X) if len(model) > 1 else X
        model = model[-1]
    return model, encoded_rows(model, X)


def best_of_search(estimator: Any) -> Any:
    """Return the best estimator of a search of scikit-learn, or the estimator itself."""
    return getattr(estimator, "best_estimator_", estimator)


def decisions_of(fitted: Any, X: Any, before_link: bool = False) -> Array:
    """Return the decision function or class probabilities of a classifier, else predictions.

    The result is (n,) or (n, n_outputs) for the n rows X; of two probabilities, only that of the
    second class. before_link : whether a regression returns its linear predictor if it has one.
    ``fitted`` is the fitted estimator.
    """
    methods = ["decision_function", "predict_proba"] if is_classifier(fitted) else ["predict"]
    if before_link and not is_classifier(fitted):
        methods = ["decision_function", "predict"]
    response = _check_response_method(fitted, methods)
    decisions = np.asarray(response(X), dtype=np.float64)
    if response.__name__ == "predict_proba" and decisions.shape[1] == 2:
        return decisions[:, 1]
    return decisions


def rows_of(X: Any, rows: Columns) -> Any:
    """Return some rows of a data frame, an array, a sparse matrix, lists or a design."""
    if isinstance(X, Design):
        return part_of(X, rows=rows)
    return _safe_indexing(as_compressed(X), rows)
