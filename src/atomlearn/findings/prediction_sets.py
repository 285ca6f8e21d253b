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

from atomlearn.core import Array, Design, Mask, as_design, check_share, dense_part, own_parameters
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
    cover far fewer rows of a rare class, or of one hospital. Here the errors of each part make the
    sets of that part (Mondrian sets), or errors are weighted by their likeness to new rows.

    Parameters
    ----------
    search : fitted ``AtomicRegressorCV`` or ``AtomicClassifierCV``
    X, y : the data of the fit
    X_new : (n_new, n_features)
    confidence : float in (0, 1), default=0.9
        Share of the targets of each part that the sets cover.
    by : "class", or a pair of arrays, optional
        The parts: each class; or rows with one value, (values of the
        rows of X, values of the rows of X_new), such as one column of both. A part of fewer than
        1 / (1 - confidence) rows says nothing: intervals are infinite, sets hold all labels.
    shift : bool
        Whether rows count by how much more often rows like them are among X_new than among X: by
        the odds of a logistic regression on the columns that the fits use, made without the fold of
        the row. Then the confidence is of rows that come from where X_new comes from, if only x has
        changed, the target given x has not, and these odds are right.

    Returns
    -------
    prediction, lower, upper : (n_new,) of numbers and counts
    label, set : (n_new,), (n_new, n_classes) of classes

    Notes
    -----
    From the fits without each fold (see ``predict``). The sets cover the share ``confidence`` on
    average over data and new rows of the part, if these are exchangeable with the rows of the part.
    The theorem promises 2 confidence - 1, for folds that chose nothing; in practice the share is
    near ``confidence``.

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
        return predicted, np.stack(
            [held[:, code] for code, held in enumerate(sets_by_class)], axis=1
        )
    parts: list[Any] = []
    for calibration, its in _parts(out_of_fold, by, old.shape[0], len(predicted)):
        if of_classes:
            ends: tuple[Any, ...] = (calibration.sets(design, share, None),)
        else:
            ends = tuple(
                e.reshape(predicted.shape) for e in calibration.interval(design, share, None)
            )
        parts = parts or [np.empty_like(end) for end in ends]
        for end, mine_of in zip(parts, ends, strict=True):
            end[its] = mine_of[its]
    return predicted, *parts


def _parts(known: OutOfFold, by: Any, n_old: int, n_new: int) -> Iterator[tuple[OutOfFold, Mask]]:
    """Yield, for each group, the out-of-fold errors of its old rows and a mask of its new rows."""
    if by is None:
        yield known, np.ones(n_new, dtype=bool)
        return
    values, of_new = (np.asarray(given) for given in by)
    if values.shape != (n_old,) or of_new.shape != (n_new,):
        raise ValueError(
            f"by must be 'class' or two arrays, of {n_old} and {n_new} rows, got shapes "
            f"{values.shape} and {of_new.shape}"
        )
    for value in np.unique(of_new):
        yield known.among(values[known.rows] == value), of_new == value


def _shifted(
    known: OutOfFold, old: Design, new: Design, confidence: float
) -> tuple[OutOfFold, NDArray[Any]]:
    """Return out-of-fold errors weighted by likelihood ratios, and the required mass (n_new,).

    The ratios of new to old data are the odds of a cross-validated logistic regression.
    """
    columns = known.columns if known.columns.size else np.arange(1)
    X = np.vstack([dense_part(design, columns) for design in (old, new)])
    is_new = np.repeat([0, 1], [old.shape[0], new.shape[0]])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    cv = StratifiedKFold(max(2, min(5, new.shape[0])), shuffle=True, random_state=0)
    chance = cross_val_predict(model, X, is_new, cv=cv, method="predict_proba")[:, 1]
    chance = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    odds: Array = chance / (1 - chance) * old.shape[0] / new.shape[0]
    mass = known.mass * odds[known.rows]
    scale = known.mass.sum() / mass.sum()
    # Before the odds are known, all rows have the mass units / (units + 1), and the new row has the
    # rest, weighted by its odds.
    needed = (1.0 - known.mass.sum()) * scale * odds[old.shape[0] :]
    total = known.mass.sum() + needed
    return replace(known, mass=mass * scale), confidence * total
