"""How many features generation selects, and with which C: what rows that were held out choose."""

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

#: Sizes that are tried; beyond half the rows nothing is told apart.
SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)
#: C of the weights: values that are tried.
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: C while features are selected, from one of them on: the first with as many as are asked for.
#: Models of a small C fit less noise, which is what they select next; those of a large one tell
#: what is left to explain. Where the number is chosen it is the last but one: at the last,
#: features join that do not help.
RISING = STRENGTHS[1::2]
#: A number of features is as good as the best within so many standard errors of their difference,
#: or such a share of what the best gains over none. None is chosen unless such a share of the folds
#: gains, and on average more than so many standard errors. On 16 real sets the mean AUC (or R^2)
#: is .003 below that of the best number; of 10 to 20 false features of made tables few are left.
AS_GOOD = 1.5
SHARE_OF_GAIN = 0.01
SHARE_OF_FOLDS = 0.8
CHANCE = 0.45


#: A number of features, and values of C to select at.
Tried = tuple[int, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Choice:
    """Values of a parameter that were tried, and which of them was chosen.

    scores : (n_values, n_folds), larger is better; cut : what ended the trials early.
    """

    values: tuple[Any, ...]
    scores: Array
    chosen: Any
    cut: Status | None = None


class Trials:
    """Fits of an estimator to the training rows of each fold, scored at the others.

    The score is minus the log loss where there are probabilities, else that of the estimator: the
    share of labels that are right, R^2, the concordance. ``given`` : y, sample_weight, offset,
    groups and order, as ``fit`` takes them; ``cv`` : a splitter, or a number of folds;
    ``settings`` : of ``fits``. Without two rows of a class no fold is made.
    """

    def __init__(
        self,
        estimator: Any,
        design: Design,
        given: Sequence[Any],
        cv: Any,
        settings: Settings | None = None,
    ) -> None:
        if is_number(cv) and given[1] is not None:  # rows without weight have no say
            rows = np.flatnonzero(np.asarray(given[1]))
            design = RowSubset(design, rows)
            given = [None if values is None else np.asarray(values)[rows] for values in given]
        self.estimator = estimator
        self.design = design
        self.settings = settings
        y, self.weight, self.offset, groups, order = given
        y = np.asarray(y)
        self.y = y = y.ravel() if y.size == len(y) else y  # of one column, too
        of_classes = (loss := as_loss(estimator.loss)).task == "classification"
        classes = np.unique(y, return_inverse=True)[1] if of_classes else None
        self.likely = of_classes and has_probabilities(loss)
        self.folds = list[Fold]()
        if not is_number(cv):
            told = {} if groups is None else {"groups": groups}
            self.folds += splits(cv, y, y, of_classes, groups, order, told)
            return
        counts = [y.size] if classes is None else np.bincount(classes)
        n_folds = int(min(whole("cv", cv), *counts))
        if n_folds > 1:
            self.folds += folds(y.size, n_folds, 0, classes, groups, order)

    def score(self, tried: dict[str, Any], how: tuple[Any, ...] = ()) -> list[Any]:
        """Return the score of these parameters at the test rows of each fold.

        ``how`` : values of C to select at, and of models over what is selected, as ``fits`` takes
        them: then a list of the scores of these models.
        """
        found = [list(self._scores(tried, fold, how)) for fold in self.folds]
        return found if how else [each for [each] in found]

    def _scores(self, tried: dict[str, Any], fold: Fold, how: tuple[Any, ...]) -> Iterator[float]:
        # A copy knows the names of the columns.
        model = copy(self.estimator).set_params(**tried, verbose=0, observers=None)
        if self.settings is not None and not how:
            left = self.settings.deadline.left
            model.set_params(time_limit=max(left, 1e-3) if left < np.inf else None)
        rows = self.weight, self.offset
        (weight, offset), (tested, moved) = (
            [None if values is None else np.asarray(values)[part] for values in rows]
            for part in fold
        )
        fitted, (seen, y) = [(RowSubset(self.design, part), self.y[part]) for part in fold]
        given = *fitted, weight, offset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in model.fits(*given, *how, self.settings) if how else [model.fit(*given)]:
                if model.results_[0].status is Status.INTERRUPTED or self._late():
                    raise KeyboardInterrupt
                if self.likely:
                    told = model.predict_proba(seen, moved)
                    at = np.searchsorted(model.classes_, y)
                    likely = np.maximum(told[np.arange(y.size), at], EPS)
                    yield float(np.average(np.log(likely), weights=tested))
                else:
                    yield float(model.score(seen, y, tested, moved))

    def _late(self) -> bool:
        return self.settings is not None and self.settings.deadline.passed

    def choose(
        self,
        tried: Sequence[Tried],
        strengths: Sequence[float],
        usual: float,
    ) -> tuple[Choice, Choice]:
        """Return the choices of a number of features with values of C to select at, and of C.

        Each is judged at the best C of weights for it. Of several numbers the least that is as good
        as the best is chosen (``_least``), then one below it that is no worse; trials end after two
        in a row that are worse by two standard errors. Of one number the best C is often best by
        chance, so it is the least within one standard error. After Ctrl-C, or out of time, it is
        one of those tried until then, or the ``usual`` C.
        """
        several = self.estimator.n_features == "auto"
        if several and not self.folds:
            wanted = "two rows of each class at least, to hold some out; give a number of features"
            raise ValueError(f"n_features='auto' needs {wanted}")
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
        """Return the scores of a number of features, (n_strengths, n_folds)."""
        given = {"n_features": one[0], "selected_tol": 1e-3}
        return np.array(self.score(given, (one[1], strengths))).T

    def _chosen(self, judged: dict[Tried, Array], several: bool) -> Tried:
        """Return the best of those judged, or of several numbers the least that is as good."""
        best = np.array([_at_best(scores) for scores in judged.values()])
        at = self._least(best) if several else int(np.mean(best, axis=1).argmax())
        return list(judged)[at]

    def _smaller(
        self, chosen: Tried, judged: dict[Tried, Array], strengths: Sequence[float]
    ) -> Iterator[Tried]:
        """Judge numbers below the one that was chosen, and yield those that are no worse.

        Down to the next one that was tried; a small share of the gain over none is no loss.
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
    def _least(best: Array) -> int:
        """Return the place of the least number of features that is as good as the best.

        best : (n_numbers, n_folds) scores of none and of more and more features. As good means: by
        the differences in folds, within some standard errors, or by a small share of what the best
        gains over none. None, where few folds gain, or hardly beyond chance.
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
        """Return which mean scores are below the best by more than so many of its errors."""
        means = np.mean(scores, axis=1)
        best = means.argmax()
        n_folds = len(self.folds)
        error = np.std(scores[best], ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return np.asarray(means < means[best] - errors * error)


def _at_best(scores: Array) -> Array:
    """Return the scores in folds of the best of several C."""
    found: Array = max(scores, key=np.mean)
    return found


def sizes_of(design: Design) -> list[int]:
    """Return the numbers of features that are tried, none at all among them."""
    n_rows, n_columns = design.shape
    most = max(1, min(n_columns, n_rows // 2))
    return sorted({size for size in (0, *SIZES, n_columns) if size <= most and size <= SIZES[-1]})
