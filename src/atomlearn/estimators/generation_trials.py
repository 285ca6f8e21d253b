"""Cross-validated choice of C and of the number of features of feature generation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import EPS, is_number
from atomlearn.core import (
    Array,
    Design,
    Fold,
    RowSubset,
    Settings,
    Status,
    as_loss,
    has_probabilities,
)
from atomlearn.estimators.checks import checked_design, whole
from atomlearn.estimators.dependent_rows import folds, splits
from atomlearn.estimators.encoded import was_encoded

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


#: Relative gap of the fits that are scored, which is far below the differences between folds.
SCORED_GAP = 1e-3

#: A candidate: a number of features, and the increasing values of C for its selection.
Tried = tuple[int, Sequence[float]]
#: C of the coefficients -> its held-out score in each fold.
Scored = dict[float, Array]


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


@dataclass(frozen=True, slots=True)
class FoldRows:
    """The rows of a fold: design, target, sample weights and offset of both parts."""

    fitted: tuple[Any, ...]
    held_out: tuple[Any, ...]


class Trials:
    """Cross-validation of the parameters of an estimator.

    The held-out score is the negative log loss if the loss has probabilities. For survival times it
    is minus the mean loss of the rows of a fold among themselves. Else it is the score of the
    estimator: accuracy or R^2. There are no folds if a class, or the events, have fewer than two
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
    expanded : Design, optional
        The features that ``estimator`` makes of ``design``, of which folds take their rows. None:
        each fold makes its own.
    """

    def __init__(
        self,
        estimator: Any,
        design: Design,
        given: Sequence[Any],
        cv: Any,
        settings: Settings | None = None,
        expanded: Design | None = None,
    ) -> None:
        """Check the target and make the folds; see the class for the parameters."""
        if is_number(cv) and given[1] is not None:  # rows without weight do not count
            rows = np.flatnonzero(np.asarray(given[1]))
            design = RowSubset(design, rows)
            expanded = None if expanded is None else expanded.with_rows(rows)
            given = [None if values is None else np.asarray(values)[rows] for values in given]
        self.estimator = estimator
        self.design = design
        self.expanded = expanded
        self.settings = settings
        #: The number of features of the last candidate, and its fits of all folds.
        self._size = -1
        self._fits = list[FoldFits]()
        y, self.weight, self.offset, groups, order = given
        y = np.asarray(y)
        self.y = y = y.ravel() if y.size == len(y) else y  # also if y has one column
        self.loss = loss = as_loss(estimator.loss)
        is_classification = loss.task == "classification"
        classes = np.unique(y, return_inverse=True)[1] if is_classification else None
        if loss.task == "survival":
            records: Any = loss.check_target(y)
            self.y = y = records
            classes = records["event"].astype(np.int64)
        self.uses_log_loss = is_classification and has_probabilities(loss)
        self.folds = list[Fold]()
        if not is_number(cv):
            params = {} if groups is None else {"groups": groups}
            self.folds += splits(cv, y, y, is_classification, groups, order, params)
            return
        # No more folds than rows, or than rows of the rarest class.
        counts = [y.size] if classes is None else np.bincount(classes)
        n_folds = int(min(whole("cv", cv), *counts))
        if n_folds > 1:
            self.folds += folds(y.size, n_folds, 0, classes, groups, order)

    def score(self, parameters: dict[str, Any]) -> list[float]:
        """Return the held-out score of these parameters of the estimator in each fold."""
        scores = list[float]()
        for fold in self.folds:
            model = self.model(parameters)
            rows = self.rows(fold)
            if self.settings is not None:
                seconds = self.settings.deadline.left
                model.set_params(time_limit=max(seconds, 1e-3) if seconds < np.inf else None)
            with warnings.catch_warnings(action="ignore"):
                model.fit(*rows.fitted)
                scores.append(self.held_out(model, rows))
        return scores

    def model(self, parameters: dict[str, Any]) -> Any:
        """Return an unfitted copy of the estimator with these parameters."""
        # copy keeps the feature names of the estimator; sklearn.clone would drop them.
        return copy(self.estimator).set_params(**parameters, verbose=0, observers=None)

    def rows(self, fold: Fold) -> FoldRows:
        """Return the rows of a fold that are fitted to and those that are held out."""
        # The weights and offsets of both parts, None if there are none.
        arrays = self.weight, self.offset
        (weight, offset), (test_weight, test_offset) = (
            [None if values is None else np.asarray(values)[part] for values in arrays]
            for part in fold
        )
        train, test = fold
        fitted = RowSubset(self.design, train), self.y[train], weight, offset
        return FoldRows(
            fitted, (RowSubset(self.design, test), self.y[test], test_weight, test_offset)
        )

    def held_out(self, model: Any, rows: FoldRows) -> float:
        """Return the held-out score of a fitted model, larger if better.

        rows : the rows of the fold. Raises KeyboardInterrupt if the fit of the model ended early.
        """
        test_design, y, test_weight, test_offset = rows.held_out
        if model.results_[0].status is Status.INTERRUPTED or self._is_too_late():
            raise KeyboardInterrupt
        if self.loss.task == "survival":
            weight = np.ones(y.size) if test_weight is None else test_weight
            risk = np.asarray(model.predict(test_design, test_offset), dtype=np.float64)
            return -self.loss.value(y, risk, weight) / float(weight.sum())
        if not self.uses_log_loss:
            return float(model.score(test_design, y, test_weight, test_offset))
        probability = model.predict_proba(test_design, test_offset)
        true_class = np.searchsorted(model.classes_, y)
        probability_of_truth = np.maximum(probability[np.arange(y.size), true_class], EPS)
        return float(np.average(np.log(probability_of_truth), weights=test_weight))

    def _is_too_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.settings is not None and self.settings.deadline.passed

    def choose(
        self, tried: Sequence[Tried], strengths: Sequence[float], usual: float
    ) -> tuple[Choice, Choice]:
        """Choose a number of features with its selection values of C, and C of the final fit.

        If the number of features is "auto", each candidate number has the score of its best C. The
        smallest number that is as good as the best one (see ``_smallest``) is chosen. A bisection
        then looks for a smaller number that is no worse. Cross-validation ends early after two
        successive numbers that are worse than the best by two standard errors.

        If the number is fixed, cross-validation ends after a candidate that is worse than the best
        one by a standard error of their difference. C is the smallest value within one standard
        error of the best score, because the best value is often the best by chance.

        Values of C are scored next to the best one so far, until the score falls on both sides; the
        others are not fitted. After Ctrl-C or at the time limit, the choice is among the values
        scored so far. Without any it is the first candidate and the ``usual`` C.

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
        is_auto = self.estimator.n_features == "auto"
        if is_auto and not self.folds:
            raise ValueError(
                "n_features='auto' needs at least two rows of each class, to hold some out; give a "
                "number of features"
            )
        n_errors = 0.0 if is_auto else 1.0
        if not is_auto and all(fits.selections.takes_all for fits in self._fits_of(tried[0][0])):
            tried = tried[-1:]  # C of the selection has nothing to choose
        scores_of_candidates = dict[Tried, Scored]()
        chosen = tried[0]
        cut = None
        try:
            # Score the candidates in turn, until they get clearly worse.
            for parameters in tried if self.folds else ():
                scores_of_candidates[parameters] = self._scores_by_C(
                    parameters, strengths, scores_of_candidates
                )
                chosen = self._best_candidate(scores_of_candidates, is_auto)
                best_rows = [
                    _best_row(scores) for (size, _), scores in scores_of_candidates.items() if size
                ]
                if is_auto and best_rows and self._is_clearly_worse(best_rows, 2.0)[-2:].sum() == 2:
                    break
                if not is_auto and self._falls_clearly(
                    _best_row(scores_of_candidates[chosen]) - best_rows[-1]
                ):
                    break
            # Look for a smaller number, or for the smallest C that is as good.
            if is_auto:
                for smaller in self._smaller_candidates(chosen, scores_of_candidates, strengths):
                    chosen = smaller
            elif scores_of_candidates:
                self._extend(chosen, strengths[::-1], scores_of_candidates[chosen], n_errors)
        except KeyboardInterrupt:
            cut = Status.TIME_LIMIT if self._is_too_late() else Status.INTERRUPTED
        if not scores_of_candidates:
            return Choice((), np.zeros(0), chosen, cut), Choice((), np.zeros(0), usual, cut)
        # Both choices with the scores of all values that were fitted.
        values = tuple(sorted(scores_of_candidates, key=lambda candidate: candidate[0]))
        fitted = tuple(sorted(scores_of_candidates[chosen]))
        scores = np.array([scores_of_candidates[chosen][chosen_C] for chosen_C in fitted])
        chosen_C = fitted[int(self._is_clearly_worse(scores, n_errors).argmin())]
        best = np.array([_best_row(scores_of_candidates[parameters]) for parameters in values])
        return Choice(values, best, chosen, cut), Choice(fitted, scores, chosen_C, cut)

    def _scores_by_C(
        self, candidate: Tried, strengths: Sequence[float], known_scores: dict[Tried, Scored]
    ) -> Scored:
        """Return the held-out scores of a candidate by C: of the best C and those next to it.

        strengths : all values of C. known_scores : the scores of earlier candidates. The search
        begins at the best C of the last one of them, or else at the C of the selection.
        """
        first = min(strengths, key=lambda C: abs(np.log(C / candidate[1][0])))
        for scores in known_scores.values():
            first = max(scores, key=lambda C: float(np.mean(scores[C])))
        score_of = {first: self._scores(candidate, first)}
        self._extend(candidate, strengths, score_of, 0.0)
        self._extend(candidate, strengths[::-1], score_of, 0.0)
        return score_of

    def _extend(
        self, candidate: Tried, strengths: Sequence[float], scores: Scored, n_errors: float
    ) -> None:
        """Score further values of C, in the order of ``strengths``, until one is clearly worse.

        candidate : a number of features with its selection. scores : the scores by C, to which new
        ones are added. A C is clearly worse if its mean score is below the best one by more than
        ``n_errors`` standard errors. The values begin after the last one that is scored.
        """
        last = max(scores, key=strengths.index)
        for C in strengths[strengths.index(last) + 1 :]:
            is_worse = self._is_clearly_worse(list(scores.values()), n_errors)
            if is_worse[list(scores).index(last)]:
                return
            scores[C] = self._scores(candidate, C)
            last = C

    def _scores(self, candidate: Tried, C: float) -> Array:
        """Return the score of a candidate in each fold, with this C of the coefficients."""
        size, selection_C = candidate
        return np.array([fits.score(selection_C, C) for fits in self._fits_of(size)])

    def _fits_of(self, size: int) -> list[FoldFits]:
        """Return the fits of all folds with this number of features."""
        if size != self._size:
            self._size = size
            self._fits = [FoldFits(self, fold, size) for fold in self.folds]
        return self._fits

    def _best_candidate(self, known_scores: dict[Tried, Scored], prefers_small: bool) -> Tried:
        """Return the best candidate; with ``prefers_small``, the smallest one that is as good.

        known_scores : the held-out scores of each candidate, by C; its best C counts.
        """
        best = np.array([_best_row(scores) for scores in known_scores.values()])
        if prefers_small:
            return list(known_scores)[self._smallest(best)]
        # Of equal candidates the last one, whose selection begins at the C where the others end.
        means = np.mean(best, axis=1)
        return list(known_scores)[int(np.flatnonzero(means == means.max())[-1])]

    def _smaller_candidates(
        self, chosen: Tried, known_scores: dict[Tried, Scored], strengths: Sequence[float]
    ) -> Iterator[Tried]:
        """Search smaller numbers of features by bisection; yield each one that is no worse.

        A candidate is a number of features and the values of C of the selection. chosen : the
        candidate to begin at. known_scores : the scores of all candidates, a row for each of
        ``strengths``, to which new ones are added. strengths : the values of C of the final fit, of
        which the best counts. The bisection is between the chosen number
        and the next smaller one that was scored. A number is no worse if its mean score is lower by
        at most SHARE_OF_GAIN of the gain of the chosen number over no features.
        """
        sizes = [size for size, _ in known_scores]
        upper, selection_Cs = chosen
        lower = max((size for size in sizes if size < upper), default=upper)
        mean = float(np.mean(_best_row(known_scores[chosen])))
        empty_scores = next(
            (scores for (size, _), scores in known_scores.items() if not size), None
        )
        gain = 0.0 if empty_scores is None else mean - float(np.mean(_best_row(empty_scores)))
        while upper - lower > max(1, upper // 10):
            middle = (lower + upper) // 2, selection_Cs
            known_scores[middle] = self._scores_by_C(middle, strengths, known_scores)
            if np.mean(_best_row(known_scores[middle])) >= mean - SHARE_OF_GAIN * gain:
                upper = middle[0]
                yield middle
            else:
                lower = middle[0]

    @staticmethod
    def _smallest(best: Array) -> int:
        """Return the row of the smallest number of features that is as good as the best.

        ``best`` (n_numbers, n_folds) has the scores without features in row 0, and those of
        increasing numbers of features in the other rows. AS_GOOD defines "as good as". The result
        is 0 if the gain over no features is not significant (see SHARE_OF_FOLDS and CHANCE).
        """
        best_row = int(best[1:].mean(axis=1).argmax()) + 1 if len(best) > 1 else 0
        behind = best[best_row] - best
        means = behind.mean(axis=1)
        n_folds = best.shape[1]
        errors = behind.std(axis=1, ddof=min(1, n_folds - 1)) / np.sqrt(n_folds)
        gains = np.mean(behind[0] > 0) >= SHARE_OF_FOLDS and means[0] > CHANCE * errors[0]
        as_good = means <= np.maximum(AS_GOOD * errors, SHARE_OF_GAIN * means[0])
        return int(as_good[1:].argmax()) + 1 if gains else 0

    def _falls_clearly(self, falls: Array) -> bool:
        """Return whether a score falls from one candidate to the next by more than chance.

        falls : (n_folds,) the differences; their mean must exceed one standard error of it.
        """
        error = np.std(falls, ddof=1) / np.sqrt(falls.size) if falls.size > 1 else 0.0
        return bool(np.mean(falls) > max(error, EPS))

    def _is_clearly_worse(self, scores: Any, n_errors: float) -> NDArray[np.bool_]:
        """Return a mask of the rows whose mean is below the best by over ``n_errors`` errors.

        ``scores`` is (n_values, n_folds). The error is the standard error of the mean of the best
        row.
        """
        means = np.mean(scores, axis=1)
        best = means.argmax()
        n_folds = len(self.folds)
        error = np.std(scores[best], ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return np.asarray(means < means[best] - n_errors * error)


class FoldFits:
    """The fits to one fold with one number of features, each of them computed once.

    Candidates that are selected at the same C in this fold share their fits.
    """

    def __init__(self, trials: Trials, fold: Fold, size: int) -> None:
        """Prepare the selection from the training rows of a fold.

        trials : the cross-validation. size : the number of features to select.
        """
        assert trials.settings is not None
        self._trials = trials
        self._rows = trials.rows(fold)
        self._model = trials.model({"n_features": size, "selected_tol": SCORED_GAP})
        training, *targets = self._rows.fitted
        if was_encoded(training):  # imputed values are those of the training rows
            training = checked_design(self._model, training, reset=True)
        expanded = None if trials.expanded is None else trials.expanded.with_rows(fold[0])
        with warnings.catch_warnings(action="ignore"):
            self.selections = self._model.selections(training, *targets, trials.settings, expanded)
        self._scores = dict[tuple[float, float], float]()

    def score(self, rising_Cs: Sequence[float], strength: float) -> float:
        """Return the held-out score of the coefficients with C ``strength``.

        ``rising_Cs`` are increasing values of C for the selection.
        """
        with warnings.catch_warnings(action="ignore"):
            selected_at, _ = self.selections.first(rising_Cs)
            key = selected_at, strength
            if key not in self._scores:
                self._model.take(self.selections, rising_Cs, strength)
                self._scores[key] = self._trials.held_out(self._model, self._rows)
        return self._scores[key]


def _best_row(scores: Scored) -> Array:
    """Return the scores (n_folds,) of the C with the largest mean score.

    scores : by C, the score of each fold.
    """
    best: Array = max(scores.values(), key=np.mean)
    return best


def sizes_of(design: Design) -> list[int]:
    """Return the candidate numbers of features, in increasing order from 0.

    They are at most half the number of rows of ``design``, and its number of columns.
    """
    n_rows, n_columns = design.shape
    largest = min(max(1, min(n_columns, n_rows // 2)), SIZES[-1])
    return sorted({size for size in (0, *SIZES, n_columns) if size <= largest})
