"""held_out_verdict: whether an estimator predicts better than a guess."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from atomlearn.core.interfaces import Array, Design, Rows, Task
from atomlearn.designs import as_design, is_opened
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import free_columns
from atomlearn.estimators.dependent_rows import fit_parameters, held_out
from atomlearn.findings.settings import SETTINGS
from atomlearn.findings.trials import Trial
from atomlearn.findings.verdict import LONG_TAILED, Verdict, no_verdict, verdict_on


def held_out_verdict(
    estimator: Any, X: Any, y: Any, *, test_fraction: float = 0.3, rng: int = 0,
    groups: Any = None, order: Any = None,
) -> Verdict:  # fmt: skip
    """Return the verdict on an estimator: a clone is fitted to a part of the rows.

    Held-out rows that are nearly training rows count for nothing, where X is a table of numbers.
    Where held-out rows are few, cross-validation of all rows is judged instead: it is repeated
    with permuted rows, all choices of the estimator included, as often as some seconds allow.

    Parameters
    ----------
    estimator : scikit-learn estimator, fitted or not
        A pipeline that selects features selects them on the rows of the fit only, as it must.
        Columns that are ``unpenalized`` are covariates: the question is what others add to them.
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

    References
    ----------
    J. Besag, P. Clifford. Sequential Monte Carlo p-values. Biometrika 78 (1991) 301-304.
    R. Shah, J. Peters. The hardness of conditional independence testing and the generalised
    covariance measure. Annals of Statistics 48 (2020) 1514-1538 (beside covariates).

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
    target = np.asarray(y)
    train, test = split_of(estimator, target, test_fraction, rng, groups, order)
    if not test.size:
        return no_verdict("each class is one group of rows, so that none can be held out")
    if is_classifier(estimator) and np.unique(target[train]).size < np.unique(target).size:
        return no_verdict("a class is missing before the end of the series that is held out")
    began = time.process_time()
    own = fit_parameters(estimator, train, groups, order)
    fitted = clone(estimator).fit(rows_of(X, train), target[train], **own)
    seconds = time.process_time() - began
    trial = trial_of(fitted, X, target, rng, groups, order)
    decisions = decisions_of(fitted, rows_of(X, test), trial.known is not None)
    return trial.verdict(train, test, decisions, seconds)


def split_of(
    estimator: Any, y: NDArray[Any], fraction: float, rng: int, groups: Any, order: Any
) -> tuple[Rows, Rows]:
    """Return rows to fit to and rows to hold out; classes, and events, keep their shares."""
    codes = None
    if is_classifier(estimator):
        codes = np.unique(y, return_inverse=True)[1]
    elif y.dtype.names is not None:
        codes = y[y.dtype.names[0]]
    return held_out(len(y), fraction, rng, codes, groups, order)


def trial_of(
    fitted: Any, X: Any, y: NDArray[Any], rng: int, groups: Any = None, order: Any = None
) -> Trial:
    """Return how this estimator is judged on these rows."""
    inputs, columns = _inputs(X), covariates_of(fitted, X)
    labels = fitted.classes_ if is_classifier(fitted) else None
    known = None if columns is None else _columns(fitted, X, columns)
    model = _loosened(fitted)

    def decide(train: Rows, test: Rows, values: Any, moved: Rows | None) -> Array:
        given = y if values is None else values if labels is None else labels[values]
        table = X if moved is None else _moved(X, moved, columns)
        own = fit_parameters(model, train, groups, order)
        again = clone(model).fit(rows_of(table, train), given[train], **own)
        return decisions_of(again, rows_of(table, test), known is not None)

    return Trial(
        decide, _task(y, labels), y if labels is None else np.searchsorted(labels, y),
        _has_link(fitted), known, inputs, groups, order, rng,
        moves=columns is None or not hasattr(X, "tocsr"),
    )  # fmt: skip


def judged_rows(fitted: Any, X: Any, y: NDArray[Any], rng: int = 0) -> Verdict:
    """Return the verdict on a fitted estimator by given rows that it was not fitted to."""
    labels, columns = fitted.classes_ if is_classifier(fitted) else None, covariates_of(fitted, X)
    known = None if columns is None else _columns(fitted, X, columns)
    mine = np.ones(len(y), dtype=bool) if labels is None else np.isin(y, labels)
    values = y if labels is None else np.searchsorted(labels, y)
    return verdict_on(
        _task(y, labels), values[mine], decisions_of(fitted, X, known is not None)[mine], rng,
        ranks=_has_link(fitted), known=None if known is None else known[mine],
    )  # fmt: skip


def covariates_of(fitted: Any, X: Any) -> Rows | None:
    """Return the columns of X that the model of an estimator of ours, or a pipeline, must use."""
    model = unsearched(fitted)
    if hasattr(model, "steps"):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    if getattr(model, "unpenalized", None) is None:
        return None
    return free_columns(model, as_design(X))


def unsearched(estimator: Any) -> Any:
    """Return the estimator that a search of scikit-learn found best, any other as it is."""
    return getattr(estimator, "best_estimator_", estimator)


def _columns(fitted: Any, X: Any, columns: Rows) -> Array:
    model = unsearched(fitted)
    data = model[:-1].transform(X) if hasattr(model, "steps") and len(model) > 1 else X
    return np.asarray(as_design(data).gather(columns).dense(), dtype=np.float64)


def _moved(X: Any, order: Rows, columns: Rows | None) -> Any:
    """Return X with its rows in another order, covariates as they were."""
    table = rows_of(X, order)
    if columns is None:
        return table
    table = table.copy()
    if hasattr(X, "iloc"):
        table.index = X.index
        table[X.columns[columns]] = X[X.columns[columns]]
    else:
        table[:, columns] = X[:, columns]
    return table


def _loosened(estimator: Any) -> Any:
    """Return the estimator with no closer gap than a test needs, that fits very often."""
    found = clone(estimator)
    for part in [found, *found.get_params().values()]:
        if isinstance(part, AtomicModel):
            part.set_params(tol=max(part.tol, SETTINGS.loose_gap))
    return found


def _inputs(X: Any) -> Design | None:
    """Return the design of a table of finite numbers, None for anything else."""
    table = X if hasattr(X, "tocsr") or is_opened(X) else np.asarray(X)
    if is_opened(X):
        return as_design(X)
    values = table.data if hasattr(X, "tocsr") else table
    if table.ndim != 2 or table.dtype.kind not in "buif" or not np.isfinite(values).all():
        return None
    return as_design(table)


def decisions_of(fitted: Any, X: Any, before_link: bool = False) -> Array:
    """Return what a fitted estimator says of rows: of classes its decisions, else predictions."""
    if is_classifier(fitted) and not hasattr(fitted, "decision_function"):
        told = np.asarray(fitted.predict_proba(X), dtype=np.float64)
        return told[:, 1] if told.shape[1] == 2 else told
    if is_classifier(fitted) or (before_link and hasattr(fitted, "decision_function")):
        return np.asarray(fitted.decision_function(X), dtype=np.float64)
    return np.asarray(fitted.predict(X), dtype=np.float64)


def _task(y: NDArray[Any], labels: Any) -> Task:
    if y.dtype.names is not None:
        return "survival"
    return "regression" if labels is None else "classification"


def _has_link(fitted: Any) -> bool:
    """Whether predictions are means through a link, of amounts with a long tail."""
    loss = getattr(fitted, "loss", None)
    name = loss if isinstance(loss, str) else getattr(loss, "name", "")
    return str(name) in LONG_TAILED


def rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a data frame, an array, a sparse matrix or lists."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):  # other sparse formats have no rows to take
        return X.tocsr()[rows]
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]
