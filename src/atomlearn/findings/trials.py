"""Trials: a way to select and fit, judged by held-out rows, or where these are few by all of them.

Few held-out rows alone tell little. There the whole cross-validation is repeated, with all choices
that are made in it, over rows whose features are permuted: targets, covariates, weights and offsets
stay together, and nothing but their connection with the features is lost. The permutations end as
soon as enough of them did as well (Besag and Clifford), which keeps the test exact.
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

from atomlearn.core.interfaces import Array, Design, Mask, Rows, Task
from atomlearn.core.paths.folds import Fold
from atomlearn.estimators.dependent_rows import folds, permuted_rows, units_of
from atomlearn.findings.copies import known_already
from atomlearn.findings.ranking import Ranked, area_of, partial_of
from atomlearn.findings.settings import SETTINGS
from atomlearn.findings.verdict import (
    Verdict,
    events_and_times,
    judged,
    no_new_rows,
    numbers_of,
    verdict_on,
)
from atomlearn.survival.concordance import concordance
from atomlearn.survival.target import survival_target

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
    as in ``dependent_rows``; moves : whether ``decide`` can permute the features.
    """

    decide: Decide
    task: Task
    values: NDArray[Any]
    ranks: bool = False
    known: Array | None = None
    inputs: Design | None = None
    groups: Any = None
    order: Any = None
    rng: int = 0
    moves: bool = True
    say: Callable[[str], None] = field(default=lambda line: None)

    def verdict(self, train: Rows, test: Rows, decisions: Array, seconds: float) -> Verdict:
        """Return the verdict on ``decisions`` at the test rows of the model of the others.

        ``seconds`` : that it took to fit it.
        """
        copies = self.copies(train, test)
        if copies.all():
            return no_new_rows()
        test, decisions = test[~copies], decisions[~copies]
        found = self._of_rows(test, decisions)
        try:
            if self._is_few(test):
                found = self._cross_validated(seconds) or found
            done = found.better or not found.n_rows or found.n_folds
            if not done and seconds * SETTINGS.n_planted <= SETTINGS.most_seconds:
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
        orders = None
        if self.order is not None:
            return self._of_series(test, decisions)
        if self.groups is not None:
            own = np.asarray(self.groups)[test]
            try:
                orders = np.array([permuted_rows(test.size, self.rng + k, own)
                                   for k in range(999)])  # fmt: skip
            except ValueError:  # one group
                orders = np.tile(np.arange(test.size), (19, 1))
        known = None if self.known is None else self.known[test]
        return verdict_on(self.task, self.values[test], decisions, self.rng, ranks=self.ranks,
                          known=known, orders=orders)  # fmt: skip

    def _of_series(self, test: Rows, decisions: Array) -> Verdict:
        """Return the verdict on the end of a series: the targets of all of it are moved along.

        So that what is next to each other stays so. Moved within the end alone, targets would break
        apart where the end is joined to its beginning, and noise would tell less than it does.
        """
        told = [np.asarray(decisions, dtype=np.float64).reshape(test.size, -1)]
        score, rng = self._measure(self.values, [test], told), np.random.default_rng(self.rng)
        moved = (permuted_rows(len(self.values), rng, None, self.order) for _ in range(999))
        return self._judged(score, [self._measure(self.values[m], [test], told) for m in moved],
                            test.size, 0)  # fmt: skip

    def _is_few(self, test: Rows) -> bool:
        """Return whether held-out rows are few: as many balanced ones as would tell as much."""
        # Permuted features lose what they share with covariates too: 8 of 84 noise tables passed.
        if self.known is not None:
            return False
        if self.order is not None or self.values.ndim > 1 or not self.moves:
            return False
        n_rows, count = float(test.size), float(test.size)
        if self.task == "survival":
            count = float(np.count_nonzero(events_and_times(self.values)[0][test]))
        elif self.task == "classification":
            rarest = float(np.bincount(self.values[test], minlength=self.values.max() + 1).min())
            count = 4 * rarest * (n_rows - rarest) / n_rows
        units = units_of(len(self.values), self.groups)[test]
        return count * np.unique(units).size / n_rows < SETTINGS.few_rows

    @property
    def _codes(self) -> Any:
        if self.task == "survival":
            return events_and_times(self.values)[0].astype(np.int64)
        return self.values if self.task == "classification" else None

    def _cross_validated(self, seconds: float) -> Verdict | None:
        """Return the verdict by permutations of the whole cross-validation, None without time."""
        n_folds = 5 if self._codes is None else min(5, int(np.bincount(self._codes).min()))
        if n_folds < 2 or seconds * n_folds > SETTINGS.most_seconds / 4:
            return None
        try:
            parts = folds(len(self.values), n_folds, self.rng, self._codes, self.groups)
        except ValueError:
            return None
        parts = [(train, test[~self.copies(train, test)]) for train, test in parts]
        began = time.process_time()
        score = self._score(parts)
        each = time.process_time() - began
        affordable = [n for n in SETTINGS.n_repeats if n * each <= SETTINGS.most_seconds]
        if not affordable:
            return None
        total = affordable[0]
        self.say(
            f"few rows: cross-validation is repeated with permuted rows, at most {total} times "
            f"({total * each:.0f} s)"
        )
        null, rng = list[float](), np.random.default_rng(self.rng)
        enough = int(SETTINGS.level * (total + 1))  # as many that do as well: p is above the level
        while len(null) < total and np.count_nonzero(np.array(null) >= score - 1e-12) < enough:
            late = time.process_time() - began > SETTINGS.most_seconds
            if late and len(null) >= SETTINGS.n_repeats[-1]:  # permuted rows took longer to fit
                break
            order = permuted_rows(len(self.values), rng, self.groups)
            null.append(self._score(parts, None, order))
        found = self._judged(score, null, sum(test.size for _, test in parts), len(parts))
        return found if found.better else self._with_power(found, parts)

    def _judged(self, score: float, null: list[float], n_rows: int, n_folds: int) -> Verdict:
        """Return the verdict on a score by what permuted rows score."""
        draws = np.array(null)
        numbers = self._baseline == 0.0
        error = float(np.std(np.arctanh(np.clip(draws, -0.999, 0.999)) if numbers else draws))
        return judged(
            Ranked(score, error, draws, self._baseline), self._name, n_rows,
            "as wide as scores of permuted rows spread",
            int(min(np.bincount(self._codes))) if self._codes is not None else 0, n_folds,
            "a guess" if self.known is None else "the covariates alone",
        )  # fmt: skip

    @property
    def _name(self) -> str:
        if self.known is not None:
            return "partial correlation"
        if self.task == "regression":
            return "rank correlation" if self.ranks else "correlation"
        if self.task == "survival":
            return "concordance"
        return "AUC" if self.values.max() == 1 else "mean AUC"

    @property
    def _baseline(self) -> float:
        return 0.0 if self.known is not None or self.task == "regression" else 0.5

    def _score(
        self, parts: Sequence[Fold], values: NDArray[Any] | None = None, order: Rows | None = None
    ) -> float:
        """Return how well test rows of folds are told, in comparison with others of their fold.

        For models differ from fold to fold in more than their order of rows. What cannot be fitted
        tells nothing.
        """
        truth = self.values if values is None else values
        rows, told = list[Rows](), list[Array]()
        for train, test in parts:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    decisions = self.decide(train, test, values, order)
            except ValueError:
                continue
            rows.append(test)
            told.append(np.asarray(decisions, dtype=np.float64).reshape(test.size, -1))
        return self._measure(truth, rows, told)

    def _measure(self, truth: NDArray[Any], rows: list[Rows], told: list[Array]) -> float:
        """Return how well these decisions tell the target of rows, in each part by itself."""
        if not rows:
            return self._baseline
        if self._baseline == 0.0:
            return self._correlation(truth, rows, told)
        scores = [_order_told(self.task, truth[r], d) for r, d in zip(rows, told, strict=True)]
        weights = [r.size * (score is not None) for r, score in zip(rows, scores, strict=True)]
        if not any(weights):
            return 0.5
        return float(np.average([0.5 if score is None else score for score in scores],
                                weights=weights))  # fmt: skip

    def _correlation(self, truth: NDArray[Any], rows: list[Rows], told: list[Array]) -> float:
        numbers = numbers_of(self.task, truth)
        if self.ranks and self.known is None:
            numbers = rankdata(numbers, axis=0)
            told = [rankdata(d, axis=0) / len(d) for d in told]
        if self.known is None:
            numbers = np.concatenate([numbers[r] - numbers[r].mean(axis=0) for r in rows])
        else:
            numbers = numbers[np.concatenate(rows)]
        known = None if self.known is None else self.known[np.concatenate(rows)]
        centered = np.concatenate([d - d.mean(axis=0) for d in told])
        return partial_of(numbers, centered[:, : numbers.shape[1]], known) or 0.0

    def _with_power(self, found: Verdict, parts: Sequence[Fold]) -> Verdict:
        """Return a verdict that is not "better" with its power: how often signals are told.

        So many are put into the data as a few features would carry, of a useful size: their sum
        with noise orders the values of the target.
        """
        if self.inputs is None or not self.inputs.listable or self.values.ndim > 1:
            return found
        rng, told = np.random.default_rng([self.rng, 1]), 0
        for _ in range(SETTINGS.n_planted):
            told += self._score(parts, self._planted(rng)) >= found.critical
        power = told / SETTINGS.n_planted
        return replace(
            found, power=power, verdict="no better" if power >= 0.5 else "too few rows to tell"
        )

    def _planted(self, rng: np.random.Generator) -> NDArray[Any]:
        assert self.inputs is not None
        n_rows, n_columns = self.inputs.shape
        columns = np.sort(rng.permutation(n_columns)[: SETTINGS.features_planted])
        block = np.asarray(self.inputs.gather(columns).dense(), dtype=np.float64)
        spread = block.std(axis=0)
        signal = (block / np.where(spread > 0, spread, 1.0)) @ rng.choice([-1.0, 1.0], columns.size)
        units = units_of(n_rows, self.groups)
        noise = rng.standard_normal(n_rows)[units]  # rows of a group share what is not told
        signal = (np.bincount(units, signal) / np.bincount(units))[units]
        signal = (signal - signal.mean()) / (signal.std() or 1.0)
        r = SETTINGS.useful_correlation
        place = np.argsort(np.argsort(r * signal + np.sqrt(1 - r**2) * noise, kind="stable"))
        by = -events_and_times(self.values)[1] if self.task == "survival" else self.values
        return np.asarray(self.values[np.argsort(by, kind="stable")][place])


def _order_told(task: Task, truth: NDArray[Any], decisions: Array) -> float | None:
    """Return the area, its mean over classes, or the concordance; None where there is none."""
    if task == "survival":
        found = concordance(survival_target(*events_and_times(truth)), decisions[:, 0])
        return None if np.isnan(found) else found
    codes = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    positive = [truth == code for code in codes]
    areas = [
        area_of(column, mine)[0]
        for column, mine in zip(decisions.T, positive, strict=True)
        if mine.any() and not mine.all()
    ]
    return float(np.mean(areas)) if areas else None
