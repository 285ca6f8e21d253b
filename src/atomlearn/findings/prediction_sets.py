"""prediction_sets: conformal prediction with coverage per group (Mondrian) or covariate shift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn._support import check_share, own_parameters
from atomlearn.core import Array, Design, Mask, as_design, dense_part
from atomlearn.estimators.checks import encoded_rows
from atomlearn.estimators.prediction_sets import OutOfFold

#: Probabilities of the classifier of old and new rows are clipped to this and one minus this.
LEAST_CHANCE = 0.01


@own_parameters
def prediction_sets(
    search: Any,
    X: Any,
    y: ArrayLike,
    X_new: Any,
    confidence: float = 0.9,
    *,
    by: Any = None,
    shift: bool = False,
) -> tuple[NDArray[Any], ...]:
    """Return predictions with conformal intervals, or label sets, with coverage in each group.

    ``search.predict(X_new, interval=confidence)`` covers that share of all rows together. It may
    cover far fewer rows of a rare class, or of one hospital. With ``by``, the sets of each group of
    rows are made from the errors of that group (Mondrian sets). With ``shift``, errors are weighted
    by how similar their rows are to new rows.

    Parameters
    ----------
    search : fitted ``AtomicRegressorCV`` or ``AtomicClassifierCV``
    X, y : the data of the fit
    X_new : (n_new, n_features)
    confidence : float in (0, 1), default=0.9
        Share of the targets of each group that the sets cover.
    by : "class", or a pair of arrays, optional
        The groups. "class": the rows of each class. A pair (values of the rows of X, values of the
        rows of X_new), such as one column of both: the rows with each value. In a group of fewer
        than 1 / (1 - confidence) rows, intervals are infinite and sets hold all labels.
    shift : bool
        Whether the distribution of x differs between X and X_new. Rows of X are then weighted by
        the odds that a similar row is in X_new. A cross-validated logistic regression on the
        columns that the fits use estimates the odds. The confidence holds for rows distributed as
        X_new if the distribution of the target given x is the same and these odds are right.

    Returns
    -------
    prediction, lower, upper : (n_new,) of numbers and counts
    label, set : (n_new,), (n_new, n_classes) of classes

    Notes
    -----
    The errors are those of the fits without each fold (see ``predict``). The sets cover the share
    ``confidence`` on average over data and new rows of the group, if all rows of the group are
    exchangeable. The theorem guarantees only 2 confidence - 1, and assumes that the folds were not
    used to choose alpha; in practice the share is near ``confidence``.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer. Algorithmic Learning in a Random World. Springer, 2005
    (Mondrian). R. J. Tibshirani, R. F. Barber, E. J. Candes, A. Ramdas. Conformal prediction under
    covariate shift. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicClassifierCV, findings
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 5))
    >>> y = (X[:, 0] + rng.standard_normal(400) > 1.8).astype(int)  # a rare class
    >>> search = AtomicClassifierCV(n_alphas=5).fit(X[:300], y[:300])
    >>> label, held = findings.prediction_sets(search, X[:300], y[:300], X[300:], by="class")
    >>> held.shape
    (100, 2)
    """
    check_share("confidence", confidence, 0.9)
    out_of_fold = vars(search).get("_out_of_fold")
    if out_of_fold is None:
        raise ValueError(
            f"prediction_sets is of a fitted search with rows left out of each fold, such as "
            f"AtomicRegressorCV().fit(X, y); got {type(search).__name__}"
        )
    predicted = search.predict(X_new)
    of_classes = out_of_fold.loss.task == "classification"
    by_class = str(by) == "class"
    if (
        out_of_fold.loss.task == "survival"
        or (by_class and not of_classes)
        or (by is not None and shift)
    ):
        raise ValueError(
            f"prediction_sets: by={by!r:.40} and shift={shift} for a {out_of_fold.loss.task}; "
            "by='class' is of classes, by and shift are one or the other, and of times take "
            "predict(interval=)"
        )
    old = as_design(encoded_rows(search, X))
    design = search._expanded(as_design(encoded_rows(search, X_new)))
    share: Any = confidence
    if shift:
        out_of_fold, share = _shifted(out_of_fold, search._expanded(old), design, confidence)
    if by_class:
        codes = np.searchsorted(search.classes_, np.asarray(y))[out_of_fold.rows]
        sets_by_class = [
            out_of_fold.among(codes == code).sets(design, confidence, None)
            for code in np.unique(codes)
        ]
        # Whether a class is in a set is decided by the errors of its own rows.
        return predicted, np.stack(
            [label_sets[:, code] for code, label_sets in enumerate(sets_by_class)], axis=1
        )
    # Other groups: the sets of each group, from the errors of its own rows, are written to its new
    # rows. A result is the ends of the intervals, or one mask of label sets.
    results: list[Any] = []
    for calibration, is_in_group in _row_groups(out_of_fold, by, old.shape[0], len(predicted)):
        if of_classes:
            ends: tuple[Any, ...] = (calibration.sets(design, share, None),)
        else:
            ends = tuple(
                end.reshape(predicted.shape) for end in calibration.interval(design, share, None)
            )
        results = results or [np.empty_like(end) for end in ends]
        for result, end in zip(results, ends, strict=True):
            result[is_in_group] = end[is_in_group]
    return predicted, *results


def _row_groups(
    out_of_fold: OutOfFold, by: Any, n_old: int, n_new: int
) -> Iterator[tuple[OutOfFold, Mask]]:
    """Yield, for each group, the out-of-fold errors of its old rows and a mask of its new rows.

    out_of_fold : the errors of all old rows. by : None for one group, or a pair of arrays, the
    group labels of the n_old old and the n_new new rows.
    """
    if by is None:
        yield out_of_fold, np.ones(n_new, dtype=bool)
        return
    values, new_values = (np.asarray(labels) for labels in by)
    if values.shape != (n_old,) or new_values.shape != (n_new,):
        raise ValueError(
            f"by must be 'class' or two arrays, of {n_old} and {n_new} rows, got shapes "
            f"{values.shape} and {new_values.shape}"
        )
    for value in np.unique(new_values):
        yield out_of_fold.among(values[out_of_fold.rows] == value), new_values == value


def _shifted(
    out_of_fold: OutOfFold, old: Design, new: Design, confidence: float
) -> tuple[OutOfFold, NDArray[Any]]:
    """Return out-of-fold errors weighted by likelihood ratios, and the required mass (n_new,).

    out_of_fold : the errors of the old rows. old, new : the columns of old and new rows. confidence
    : the share of the mass that a set must cover. The mass of a row is its weight in the quantile
    of the errors. The likelihood ratio of a row is the odds that it is a new row, by a
    cross-validated logistic regression, times n_old / n_new.
    """
    columns = out_of_fold.columns if out_of_fold.columns.size else np.arange(1)
    X = np.vstack([dense_part(design, columns) for design in (old, new)])
    is_new = np.repeat([0, 1], [old.shape[0], new.shape[0]])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    cv = StratifiedKFold(max(2, min(5, new.shape[0])), shuffle=True, random_state=0)
    new_probability = cross_val_predict(model, X, is_new, cv=cv, method="predict_proba")[:, 1]
    new_probability = np.clip(new_probability, LEAST_CHANCE, 1 - LEAST_CHANCE)
    odds: Array = new_probability / (1 - new_probability) * old.shape[0] / new.shape[0]
    mass = out_of_fold.mass * odds[out_of_fold.rows]
    scale = out_of_fold.mass.sum() / mass.sum()
    # Without weights, n old rows have the mass n / (n + 1) together, and the new row has the rest.
    # The rest is weighted by the odds of the new row.
    mass_of_new = (1.0 - out_of_fold.mass.sum()) * scale * odds[old.shape[0] :]
    total = out_of_fold.mass.sum() + mass_of_new
    return replace(out_of_fold, mass=mass * scale), confidence * total
