"""Trials: a way to select and fit, judged by held-out rows, or where these are few by all of them.

Few held-out rows alone tell little. There the whole cross-validation is repeated, with all choices
that are made in it, over rows whose features are permuted: targets, weights and offsets stay
together, and nothing but their connection with the features is lost. The permutations end as soon
as enough of them did as well (Besag and Clifford), which keeps the test exact.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from atomlearn.core.data.parts import dense_part
from atomlearn.core.interfaces import Array, Design, Mask, Rows, Task
from atomlearn.core.paths.folds import Fold
from atomlearn.estimators.dependent_rows import folds, permuted_rows, unit_numbers
from atomlearn.findings.copies import known_already
from atomlearn.findings.precision import standardized
from atomlearn.findings.ranking import (
    LEVEL,
    Ranked,
    correlation_interval,
    correlations,
    mean_area,
    plain_interval,
)
from atomlearn.findings.verdict import (
    USEFUL,
    Verdict,
    judged,
    measure,
    no_verdict,
    numbers_of,
    verdict_on,
)
from atomlearn.survival.cox import concordance
from atomlearn.survival.target import checked_survival

#: Held-out rows below which they alone tell too little: 50 at an area of 0.65 do so every second
#: time. These numbers are measured by ``benchmarks/findings/few_rows.py``.
FEW_ROWS = 50
#: The most repetitions of the whole cross-validation, as far as their time is within ...
N_REPEATS = 199
#: ... so many seconds of the processor; one split decides where not even 19 are.
MOST_SECONDS = 10.0
#: Relative gap below which differences of fits decide nothing.
LOOSE_GAP = 1e-2
#: Tables with a signal put in: rows are too few where less than half of them are told, ...
N_PLANTED = 9
#: ... and features that share the signal.
FEATURES_PLANTED = 2

#: Of (training rows, test rows, target or None, order of the features or None), decisions.
Decide = Callable[[Rows, Rows, NDArray[Any] | None, Rows | None], Array]


@dataclass(frozen=True, slots=True)
class Trial:
    """A way to select and fit, with the rows that it is judged by.

    decide : fits to training rows, with another target or with features in another order where
    such are given, and returns decisions at test rows, those of regressions with covariates before
    the link; values : codes of classes, numbers, or records of (event, time); ranks : whether
    numbers have a long tail; known : (n_rows, q) what a guess knows, such as covariates; inputs :
    the columns of the data, None where they are too many to look at, or no numbers; groups, order :
    as in ``dependent_rows``; repeats : whether ``decide`` may be called often.
    """

    decide: Decide
    task: Task
    values: NDArray[Any]
    rng: int
    ranks: bool = False
    known: Array | None = None
    inputs: Design | None = None
    groups: Any = None
    order: Any = None
    repeats: bool = True
    say: Callable[[str], None] = field(default=lambda line: None)

    def verdict(self, train: Rows, test: Rows, decisions: Array, seconds: float) -> Verdict:
        """Return the verdict on ``decisions`` at the test rows of the model of the others.

        ``seconds`` : that it took to fit it.
        """
        copies = self.copies(train, test)
        if copies.all():
            return no_verdict("every held-out row is a training row too, or nearly")
        test, decisions = test[~copies], decisions[~copies]
        found = self._of_rows(test, decisions)
        try:
            if self._is_few(test):
                found = self._cross_validated(seconds) or found
            done = found.better or not found.n_rows or found.n_folds
            if not done and seconds * N_PLANTED <= MOST_SECONDS:
                found = self._with_power(found, [(train, test)])
        except KeyboardInterrupt:  # Ctrl-C leaves what is known so far
            self.say("interrupted: the verdict is of the held-out rows")
        return found

    def copies(self, train: Rows, test: Rows) -> Mask:
        """Return which test rows are training rows too, or nearly."""
        if self.inputs is None:
            return np.zeros(test.size, dtype=bool)
        return known_already(self.inputs, train, test)

    def _of_rows(self, test: Rows, decisions: Array) -> Verdict:
        if self.groups is not None or self.order is not None:
            return self._of_units(test, decisions)
        known = None if self.known is None else self.known[test]
        truth = self.values[test]
        return verdict_on(self.task, truth, decisions, self.rng, ranks=self.ranks, known=known)

    def _of_units(self, test: Rows, decisions: Array) -> Verdict:
        """Return the verdict on rows that belong together, whose targets are moved together.

        Those of held-out groups are exchanged. Those of a series are shifted along all of it: so
        what is next to each other stays so, where its end alone would break apart.
        """
        if self.order is None and np.unique(np.asarray(self.groups)[test]).size < 2:
            return no_verdict("the held-out rows are one group")
        told = [decisions.reshape(test.size, -1)]
        score, rng = self._measure(self.values, [test], told), np.random.default_rng(self.rng)
        null = []
        for _ in range(999):
            if self.order is None:
                whence = np.arange(len(self.values))
                whence[test] = test[permuted_rows(test.size, rng, np.asarray(self.groups)[test])]
            else:
                whence = permuted_rows(len(self.values), rng, None, self.order)
            null.append(self._measure(self.values[whence], [test], told))
        return self._judged(score, null, test.size, 0)

    def _is_few(self, test: Rows) -> bool:
        """Return whether held-out rows are few: as many balanced ones as would tell as much."""
        # Permuted features lose what they share with covariates: 8 of 84 tables of noise passed.
        if self.known is not None or self.order is not None or self.values.ndim > 1:
            return False
        n_rows, count = float(test.size), float(test.size)
        if self.task == "survival":
            count = float(np.count_nonzero(self._codes[test]))
        elif self.task == "classification":
            rarest = float(np.bincount(self.values[test], minlength=self.values.max() + 1).min())
            count = 4 * rarest * (n_rows - rarest) / n_rows
        units = unit_numbers(len(self.values), self.groups)[test]
        return self.repeats and count * np.unique(units).size / n_rows < FEW_ROWS

    @property
    def _codes(self) -> Any:
        if self.task == "survival":
            return checked_survival(self.values)["event"].astype(np.int64)
        return self.values if self.task == "classification" else None

    def _cross_validated(self, seconds: float) -> Verdict | None:
        """Return the verdict by permutations of the whole cross-validation, None without time."""
        n_folds = 5 if self._codes is None else min(5, int(np.bincount(self._codes).min()))
        if n_folds < 2 or seconds * n_folds > MOST_SECONDS / 4:
            return None
        try:
            parts = folds(len(self.values), n_folds, self.rng, self._codes, self.groups)
        except ValueError:
            return None
        parts = [(train, test[~self.copies(train, test)]) for train, test in parts]
        began = time.process_time()
        score = self._score(parts)
        each = time.process_time() - began
        # With one draw less than a multiple of 20 p can be the level itself.
        affordable = int(MOST_SECONDS / max(each, 1e-9)) // 20
        total = min(20 * affordable - 1, N_REPEATS)
        if total < 0:
            return None
        self.say(
            f"few rows: cross-validation is repeated with permuted rows, at most {total} times "
            f"({total * each:.0f} s)"
        )
        null, rng = list[float](), np.random.default_rng(self.rng)
        enough = int(LEVEL * (total + 1))  # as many that do as well: p is above the level
        while len(null) < total and np.count_nonzero(np.array(null) >= score - 1e-12) < enough:
            late = time.process_time() - began > MOST_SECONDS
            if late and len(null) >= 19:  # permuted rows took longer to fit
                break
            order = permuted_rows(len(self.values), rng, self.groups)
            null.append(self._score(parts, None, order))
        found = self._judged(score, null, sum(test.size for _, test in parts), len(parts))
        return found if found.better else self._with_power(found, parts)

    def _judged(self, score: float, null: list[float], n_rows: int, n_folds: int) -> Verdict:
        """Return the verdict on a score by what permuted rows score."""
        draws, (name, baseline, guess) = np.array(null), self._asked
        numbers = baseline == 0.0
        error = float(np.std(np.arctanh(np.clip(draws, -0.999, 0.999)) if numbers else draws))
        ranked = Ranked(score, error, baseline, draws)
        interval = correlation_interval(ranked) if numbers else plain_interval(ranked)
        words = "as wide as scores of permuted rows spread"
        return judged(ranked, interval, name, n_rows, words, n_folds, guess)

    @property
    def _asked(self) -> tuple[str, float, str]:
        """What the score is called, what a guess has, and what the guess is."""
        several = self.task == "classification" and self.values.max() > 1
        return measure(self.task, several, self.ranks, self.known is not None)

    def _score(
        self, parts: Sequence[Fold], values: NDArray[Any] | None = None, order: Rows | None = None
    ) -> float:
        """Return how well test rows of folds are told, in comparison with others of their fold.

        For models differ from fold to fold in more than their order of rows. What cannot be fitted
        tells nothing.
        """
        rows, told = list[Rows](), list[Array]()
        for train, test in parts:
            try:
                with warnings.catch_warnings(action="ignore"):
                    decisions = self.decide(train, test, values, order)
            except ValueError:
                continue
            rows.append(test)
            told.append(np.asarray(decisions, dtype=np.float64).reshape(test.size, -1))
        return self._measure(self.values if values is None else values, rows, told)

    def _measure(self, truth: NDArray[Any], rows: list[Rows], told: list[Array]) -> float:
        """Return how well these decisions tell the target of rows, in each part by itself."""
        baseline = self._asked[1]
        if not rows:
            return baseline
        if baseline > 0.0:
            areas = self.task == "classification"
            scores = np.array(
                [
                    mean_area(truth[r], d)[0]
                    if areas
                    else concordance(checked_survival(truth[r]), d[:, 0])
                    for r, d in zip(rows, told, strict=True)
                ]
            )
            known = ~np.isnan(scores)
            sizes = np.array([r.size for r in rows])
            return float(np.average(scores[known], weights=sizes[known])) if known.any() else 0.5
        # The correlation given the means of parts, and what a guess knows.
        numbers, every = numbers_of(self.task, truth), np.concatenate(rows)
        if self.ranks and self.known is None:
            numbers = rankdata(numbers, axis=0)
            told = [rankdata(d, axis=0) / len(d) for d in told]
        known = np.repeat(np.eye(len(rows)), [r.size for r in rows], axis=0)
        if self.known is not None:
            known = np.hstack([known, self.known[every]])
        decisions = np.concatenate(told)[:, : numbers.shape[1]]
        ranked = correlations(numbers[every], decisions, known, None)
        return 0.0 if ranked is None else ranked.score

    def _with_power(self, found: Verdict, parts: Sequence[Fold]) -> Verdict:
        """Return a verdict that is not "better" with its power: how often signals are told.

        So many are put into the data as a few features would carry, of a useful size: their sum
        with noise orders the values of the target.
        """
        if self.inputs is None or not self.inputs.listable or self.values.ndim > 1:
            return found
        rng, told, (n_rows, n_columns) = np.random.default_rng([self.rng, 1]), 0, self.inputs.shape
        units = unit_numbers(n_rows, self.groups)
        survives = self.task == "survival"
        by = -checked_survival(self.values)["time"] if survives else self.values
        ordered = self.values[np.argsort(by, kind="stable")]
        for _ in range(N_PLANTED):
            columns = np.sort(rng.permutation(n_columns)[:FEATURES_PLANTED])
            block = standardized(dense_part(self.inputs, columns))[0]
            signal = block @ rng.choice([-1.0, 1.0], columns.size)
            noise = rng.standard_normal(n_rows)[units]  # rows of a group share what is not told
            signal = standardized((np.bincount(units, signal) / np.bincount(units))[units, None])[0]
            score = USEFUL * signal[:, 0] + np.sqrt(1 - USEFUL**2) * noise
            place = np.argsort(np.argsort(score, kind="stable"))
            told += self._score(parts, ordered[place]) >= found.critical
        power = told / N_PLANTED
        return replace(
            found, power=power, verdict="no better" if power >= 0.5 else "too few rows to tell"
        )
