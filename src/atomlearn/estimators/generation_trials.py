"""Cross-validated choice of C and of the number of features of feature generation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    EPS,
    Array,
    Design,
    Fold,
    RowSubset,
    Settings,
    Status,
    as_loss,
    has_probabilities,
    is_number,
)
from atomlearn.estimators.checks import whole
from atomlearn.estimators.dependent_rows import folds, splits

#: Candidate numbers of features. Those above half the number of rows are left out, because their
#: scores hardly differ.
SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)
#: Candidate values of C for the fit of the coefficients of the selected features.
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: Increasing values of C for the selection: C is raised, from one of them on, until ``n_features``
#: features are selected. A small C selects fewer noise features; a large C finds more of the weak
#: effects. If the number of features is chosen too, C is the second-largest value, because at the
#: largest one irrelevant features are selected.
RISING = STRENGTHS[1::2]
#: A number of features is as good as the best if the difference of their scores is at most AS_GOOD
#: standard errors, or SHARE_OF_GAIN of the gain of the best over no features. No features are
#: chosen unless SHARE_OF_FOLDS of the folds gain, on average more than CHANCE standard errors. On
#: 16 real data sets the mean AUC (or R^2) is .003 below that of the best number; in simulated data
#: few of 10 to 20 false features remain.
AS_GOOD = 1.5
SHARE_OF_GAIN = 0.01
SHARE_OF_FOLDS = 0.8
CHANCE = 0.45


#: A candidate: a number of features, and the increasing values of C for its selection.
Tried = tuple[int, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The cross-validated choice of a parameter.

    Attributes
    ----------
    values : tuple
        The candidate values that were fitted.
    scores : (n_values, n_folds) float64
        Held-out score of each value in each fold; larger is better.
    chosen : object
        The chosen value.
    cut : Status or None
        INTERRUPTED or TIME_LIMIT if cross-validation ended early, else None.
    """

    values: tuple[Any, ...]
    scores: Array
    chosen: Any
    cut: Status | None = None


class Trials:
    """Cross-validation of the parameters of an estimator.

    The held-out score is the negative log loss if the loss has probabilities, else the score of
    the estimator: accuracy, R^2 or concordance. There are no folds if a class has fewer than two
    rows.

    Parameters
    ----------
    estimator : FeatureGenerator or SubsetModel
        The estimator, which is copied for each fit.
    design : Design
        The data (n_samples, n_features_in).
    given : sequence
        The arguments y, sample_weight, offset, groups and order of ``fit``.
    cv : int or splitter
        Number of folds, or a scikit-learn splitter.
    settings : Settings, optional
        Deadline and other settings of the fits.
    """

    def __init__(
        self,
        estimator: Any,
        design: Design,
        given: Sequence[Any],
        cv: Any,
        settings: Settings | None = None,
    ) -> None:
        if is_number(cv) and given[1] is not None:  # rows without weight do not count
            rows = np.flatnonzero(np.asarray(given[1]))
            design = RowSubset(design, rows)
            given = [None if values is None else np.asarray(values)[rows] for values in given]
        self.estimator = estimator
        self.design = design
        self.settings = settings
        y, self.weight, self.offset, groups, order = given
        y = np.asarray(y)
        self.y = y = y.ravel() if y.size == len(y) else y  # also if y has one column
        of_classes = (loss := as_loss(estimator.loss)).task == "classification"
        classes = np.unique(y, return_inverse=True)[1] if of_classes else None
        self.likely = of_classes and has_probabilities(loss)
        self.folds = list[Fold]()
        if not is_number(cv):
            params = {} if groups is None else {"groups": groups}
            self.folds += splits(cv, y, y, of_classes, groups, order, params)
            return
        counts = [y.size] if classes is None else np.bincount(classes)
        n_folds = int(min(whole("cv", cv), *counts))
        if n_folds > 1:
            self.folds += folds(y.size, n_folds, 0, classes, groups, order)

    def score(self, tried: dict[str, Any], strengths: tuple[Any, ...] = ()) -> list[Any]:
        """Return the held-out score of the parameters ``tried`` in each fold.

        Without ``strengths`` the result is a list of n_folds numbers. ``strengths`` is a pair, the
        arguments rising and strengths of ``FeatureGenerator.fits``: values of C for the selection,
        and values of C for the fits over the selected features. With it the result has, for each
        fold, a list with the score of each of these fits.
        """
        found = [list(self._scores(tried, fold, strengths)) for fold in self.folds]
        return found if strengths else [each for [each] in found]

    def _scores(
        self, tried: dict[str, Any], fold: Fold, strengths: tuple[Any, ...]
    ) -> Iterator[float]:
        """Fit the training rows of a fold; yield the score on its test rows for each model."""
        # copy keeps the feature names of the estimator; sklearn.clone would drop them.
        model = copy(self.estimator).set_params(**tried, verbose=0, observers=None)
        if self.settings is not None and not strengths:
            seconds = self.settings.deadline.left
            model.set_params(time_limit=max(seconds, 1e-3) if seconds < np.inf else None)
        rows = self.weight, self.offset
        (weight, offset), (tested, moved) = (
            [None if values is None else np.asarray(values)[part] for values in rows]
            for part in fold
        )
        fitted, (seen, y) = [(RowSubset(self.design, part), self.y[part]) for part in fold]
        arguments = *fitted, weight, offset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits = [model]
            if strengths:
                fits = model.fits(*arguments, *strengths, self.settings)
            else:
                model.fit(*arguments)
            for _ in fits:
                if model.results_[0].status is Status.INTERRUPTED or self._late():
                    raise KeyboardInterrupt
                if self.likely:
                    probability = model.predict_proba(seen, moved)
                    at = np.searchsorted(model.classes_, y)
                    likely = np.maximum(probability[np.arange(y.size), at], EPS)
                    yield float(np.average(np.log(likely), weights=tested))
                else:
                    yield float(model.score(seen, y, tested, moved))

    def _late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.settings is not None and self.settings.deadline.passed

    def choose(
        self,
        tried: Sequence[Tried],
        strengths: Sequence[float],
        usual: float,
    ) -> tuple[Choice, Choice]:
        """Choose a number of features with its selection values of C, and C of the final fit.

        If the number of features is "auto", each candidate number has the score of its best C. The
        smallest number that is as good as the best one (see ``_smallest``) is chosen, and refined
        by bisection to a smaller number that is no worse. Cross-validation ends early after two
        successive numbers that are worse than the best by two standard errors. If the number is
        fixed, C is the smallest value within one standard error of the best score, because the
        best value is often the best by chance. After Ctrl-C or at the time limit, the choice is
        among the values scored so far; without any it is the first candidate and the ``usual`` C.

        Parameters
        ----------
        tried : sequence of (int, sequence of float)
            Candidates: numbers of features, and values of C for their selection.
        strengths : sequence of float
            Candidate values of C for the final fit.
        usual : float
            The value of C if there are no folds, or no candidate was scored.

        Returns
        -------
        sizes, strength : Choice
            The choice among ``tried``, and the choice among ``strengths``.
        """
        several = self.estimator.n_features == "auto"
        if several and not self.folds:
            raise ValueError(
                "n_features='auto' needs at least two rows of each class, to hold some out; give a "
                "number of features"
            )
        judged = dict[Tried, Array]()
        chosen = tried[0]
        cut = None
        try:
            for one in tried if self.folds else ():
                judged[one] = self._judged(one, strengths)
                chosen = self._chosen(judged, several)
                some = [_at_best(scores) for (size, _), scores in judged.items() if size]
                if some and self._behind(some, 2.0)[-2:].sum() == 2:
                    break
            if several:
                for smaller in self._smaller(chosen, judged, strengths):
                    chosen = smaller
        except KeyboardInterrupt:
            cut = Status.TIME_LIMIT if self._late() else Status.INTERRUPTED
        if not judged:
            return Choice((), np.zeros(0), chosen, cut), Choice((), np.zeros(0), usual, cut)
        values = tuple(sorted(judged, key=lambda one: one[0]))
        scores = judged[chosen]
        C = strengths[int(self._behind(scores, 0.0 if several else 1.0).argmin())]
        best = np.array([_at_best(judged[one]) for one in values])
        return Choice(values, best, chosen, cut), Choice(tuple(strengths), scores, C, cut)

    def _judged(self, one: Tried, strengths: Sequence[float]) -> Array:
        """Return the held-out scores of a candidate for each C, (n_strengths, n_folds)."""
        parameters = {"n_features": one[0], "selected_tol": 1e-3}
        return np.array(self.score(parameters, (one[1], strengths))).T

    def _chosen(self, judged: dict[Tried, Array], several: bool) -> Tried:
        """Return the best candidate, or with ``several`` the smallest that is as good as it."""
        best = np.array([_at_best(scores) for scores in judged.values()])
        at = self._smallest(best) if several else int(np.mean(best, axis=1).argmax())
        return list(judged)[at]

    def _smaller(
        self, chosen: Tried, judged: dict[Tried, Array], strengths: Sequence[float]
    ) -> Iterator[Tried]:
        """Search smaller numbers of features by bisection; yield each one that is no worse.

        The bisection is between the chosen number and the next smaller one that was scored. A
        number is no worse if its mean score is lower by at most SHARE_OF_GAIN of the gain of the
        chosen number over no features.
        """
        sizes = [size for size, _ in judged]
        above, rising = chosen
        below = max((size for size in sizes if size < above), default=above)
        mean = float(np.mean(_at_best(judged[chosen])))
        none = next((scores for (size, _), scores in judged.items() if not size), None)
        gain = 0.0 if none is None else mean - float(np.mean(_at_best(none)))
        while above - below > max(1, above // 10):
            middle = (below + above) // 2, rising
            judged[middle] = self._judged(middle, strengths)
            if np.mean(_at_best(judged[middle])) >= mean - SHARE_OF_GAIN * gain:
                above = middle[0]
                yield middle
            else:
                below = middle[0]

    @staticmethod
    def _smallest(best: Array) -> int:
        """Return the row of the smallest number of features that is as good as the best.

        ``best`` (n_numbers, n_folds) has the scores without features in row 0, and those of
        increasing numbers of features in the other rows. AS_GOOD defines "as good as". The result
        is 0 if the gain over no features is not significant (see SHARE_OF_FOLDS and CHANCE).
        """
        at = int(best[1:].mean(axis=1).argmax()) + 1 if len(best) > 1 else 0
        behind = best[at] - best
        means = behind.mean(axis=1)
        n_folds = best.shape[1]
        errors = behind.std(axis=1, ddof=min(1, n_folds - 1)) / np.sqrt(n_folds)
        gains = np.mean(behind[0] > 0) >= SHARE_OF_FOLDS and means[0] > CHANCE * errors[0]
        as_good = means <= np.maximum(AS_GOOD * errors, SHARE_OF_GAIN * means[0])
        return int(as_good[1:].argmax()) + 1 if gains else 0

    def _behind(self, scores: Any, errors: float) -> NDArray[np.bool_]:
        """Return a mask of the rows whose mean is below the best by more than ``errors`` SE.

        ``scores`` is (n_values, n_folds). SE is the standard error of the mean of the best row.
        """
        means = np.mean(scores, axis=1)
        best = means.argmax()
        n_folds = len(self.folds)
        error = np.std(scores[best], ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return np.asarray(means < means[best] - errors * error)


def _at_best(scores: Array) -> Array:
    """Return the row of ``scores`` (n_strengths, n_folds) with the largest mean."""
    found: Array = max(scores, key=np.mean)
    return found


def sizes_of(design: Design) -> list[int]:
    """Return the candidate numbers of features, in increasing order from 0."""
    n_rows, n_columns = design.shape
    largest = min(max(1, min(n_columns, n_rows // 2)), SIZES[-1])
    return sorted({size for size in (0, *SIZES, n_columns) if size <= largest})
