"""Trials: a selection and fit procedure, tested on held-out rows or by cross-validation.

If there are few held-out rows, all rows are cross-validated instead. For the p-value the whole
cross-validation, with all choices that the procedure makes, is repeated with permuted rows of X.
Targets, weights and offsets stay together; only their relation to the features is lost. The
repetitions end as soon as enough of them score as well as the data (Besag and Clifford), which
keeps the test exact. Their maximum number depends on the size of the data, never on seconds, so
that the result does not depend on the machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from atomlearn.core import Array, Design, Fold, Mask, Rows, Task, dense_part
from atomlearn.estimators.dependent_rows import folds, permuted_rows, unit_numbers
from atomlearn.findings.precision import standardized
from atomlearn.findings.ranking import (
    LEVEL,
    MOST_PAIRED,
    POWER,
    Ranked,
    comparable,
    concordance_rows,
    correlation_interval,
    correlation_rows,
    guess_area,
    null_of,
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
    with_curves,
)
from atomlearn.survival.target import checked_survival

#: Minimum number of held-out rows for a verdict: with 50 at an AUC of 0.65 every second verdict is
#: "too few rows to tell". Measured by ``benchmarks/findings/few_rows.py``.
FEW_ROWS = 50
#: Maximum and minimum number of repetitions of the whole cross-validation; it is 20 k - 1, so that
#: p can equal the significance level.
N_REPEATS = 199
FEWEST = 19
#: Number of matrix entries that all repetitions together may fit (six seconds on one core), and the
#: number that takes as long as the fixed cost of a fit.
MOST_WORK = 200_000_000
A_FIT = 200_000
#: Relative gap of the fits, below which no difference between fits changes a verdict.
LOOSE_GAP = 1e-2
#: Number of simulated tables with a signal: rows are too few if less than POWER of the signals are
#: detected, ...
N_PLANTED = 10
#: ... number of features with a signal, and the correlation of the signal with the order of the
#: target. A model that finds the signal has a correlation of 0.3 for numbers, an AUC of 0.65 for
#: two equal classes, and a concordance of 0.65 for survival times.
FEATURES_PLANTED = 2
PLANTED = {"regression": USEFUL, "classification": 0.34, "survival": 0.45}

#: (training rows, test rows, target or None, order of the features or None) -> decisions.
Decide = Callable[[Rows, Rows, NDArray[Any] | None, Rows | None], Array]


@dataclass(frozen=True, slots=True)
class Trial:
    """A fitting procedure with the data on which it is tested.

    Attributes
    ----------
    decide : Decide
        Function (train, test, values, order) -> decisions at the test rows. It fits to the training
        rows. ``values`` replaces the target and ``order`` permutes the rows of X, unless they are
        None. Decisions of regressions with covariates are linear predictors.
    task : {"classification", "regression", "survival"}
        Kind of the target.
    values : (n_rows,)
        Class codes, numbers, or records of (event, time).
    rng : int
        Seed of folds and permutations.
    ranks : bool
        Whether the target is heavy-tailed, so that rank correlations are used.
    known : (n_rows, q) float64, optional
        Covariates of the baseline, or None.
    inputs : Design, optional
        The columns of X, None if there are too many to list.
    groups, order : object
        Dependence of the rows as in ``dependent_rows``.
    repeated : Rows, optional
        (n_rows,) labels shared by duplicate rows, or None.
    work : float
        Number of data entries that one call of ``decide`` reads, plus ``A_FIT`` per fit, infinite
        if repeated calls are too expensive.
    say : Callable[[str], None]
        Receives messages.
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
    repeated: Rows | None = None
    work: float = np.inf
    say: Callable[[str], None] = field(default=lambda line: None)

    def verdict(self, train: Rows, test: Rows, decisions: Array) -> Verdict:
        """Return the verdict on ``decisions`` (n_test, m) of a model fitted to ``train``.

        With few test rows it comes from repeated cross-validation of all rows instead.
        """
        copies = self.copies(train, test)
        if copies.all():
            return no_verdict("every held-out row is a training row too, or nearly")
        test = test[~copies]
        decisions = decisions[~copies]
        result = self.of_rows(test, decisions)
        try:
            if self._is_few(test):
                result = self._cross_validated() or result
            elif result.verdict == "no better":
                result = self._with_power(result, [(train, test)])
        except KeyboardInterrupt:  # after Ctrl-C, use the trials so far
            self.say("interrupted: the verdict is of the held-out rows")
        return result

    def copies(self, train: Rows, test: Rows) -> Mask:
        """Return a mask of the test rows that duplicate a training row or an earlier test row.

        train, test : row indices; the mask has the shape of ``test``.
        """
        if self.repeated is None:
            return np.zeros(test.size, dtype=bool)
        is_copy = np.ones(test.size, dtype=bool)
        is_copy[np.unique(self.repeated[test], return_index=True)[1]] = False
        return is_copy | self.across(train, test)

    def across(self, train: Rows, test: Rows) -> Mask:
        """Return a mask (n_test,) of the rows ``test`` that duplicate one of the rows ``train``."""
        if self.repeated is None:
            return np.zeros(test.size, dtype=bool)
        return np.asarray(np.isin(self.repeated[test], self.repeated[train]))

    @property
    def folds(self) -> list[Fold]:
        """The cross-validation folds, pairs (training rows, test rows); empty if impossible.

        There are five folds, or as many as the rarest class has rows if these are fewer. Survival
        data have two classes here, events and censored rows. Test rows that duplicate a training
        row or an earlier test row are left out.
        """
        n_folds = 5 if self._codes is None else min(5, int(np.bincount(self._codes).min()))
        if n_folds < 2:
            return []
        try:
            all_folds = folds(len(self.values), n_folds, self.rng, self._codes, self.groups)
        except ValueError:
            return []
        return [(train, test[~self.copies(train, test)]) for train, test in all_folds]

    def parts(self, verdict: Verdict, train: Rows, test: Rows) -> list[Fold]:
        """Return the training and test rows of a verdict: the folds, or the held-out part.

        train, test : the rows of the held-out part, used if the verdict does not come from folds.
        """
        return self.folds if verdict.n_folds else [(train, test[~self.copies(train, test)])]

    def of_rows(self, test: Rows, decisions: Array) -> Verdict:
        """Return the verdict on the decisions (n_test, m) for the rows ``test``.

        If rows depend on each other, the test permutes groups or shifts the series.
        """
        # Rows with equal numbers belong to one group.
        units = unit_numbers(len(self.values), self.groups, self.order)[test]
        if self.order is not None or np.unique(units).size < test.size:
            return self._permuted_verdict(test, decisions)
        known, words = with_curves(self.known, test.size)
        known = None if known is None else known[test]
        truth = self.values[test]
        verdict = verdict_on(self.task, truth, decisions, self.rng, ranks=self.ranks, known=known)
        return replace(verdict, how=verdict.how | words)

    def _permuted_verdict(self, test: Rows, decisions: Array) -> Verdict:
        """Return the verdict on dependent rows, by a permutation test that keeps the dependence.

        test : the held-out rows. decisions : (n_test, m) for these. Targets of held-out groups are
        permuted as blocks. Targets of a series are shifted cyclically, which keeps the
        autocorrelation except at the ends.
        """
        if self.order is None and np.unique(np.asarray(self.groups)[test]).size < 2:
            return no_verdict("the held-out rows are one group")
        per_fold = [decisions.reshape(test.size, -1)]
        rng = np.random.default_rng(self.rng)
        # The pair (score, standard error) of the data, and those of 999 permuted targets with the
        # same decisions.
        observed = self._measure(self.values, [test], per_fold)
        null = list[tuple[float, float]]()
        for _ in range(999):
            if self.order is None:
                sources = np.arange(len(self.values))
                sources[test] = test[permuted_rows(test.size, rng, np.asarray(self.groups)[test])]
            else:
                sources = permuted_rows(len(self.values), rng, None, self.order)
            null.append(self._measure(self.values[sources], [test], per_fold))
        permuted = (
            "groups of held-out targets" if self.order is None else "the target along the series"
        )
        return self._verdict(observed, null, test.size, 0, f"permutations of {permuted}")

    def _is_few(self, test: Rows) -> bool:
        """Return whether the held-out rows ``test`` have the precision of few balanced rows.

        A group of dependent rows counts as one row.
        """
        # With covariates, repetitions exceed the error rate of 5 %. Without any effect, 10 % of 200
        # tables of 60 rows were called better with simulated targets, 8 of 84 with permuted rows.
        if self.known is not None or self.order is not None or self.values.ndim > 1:
            return False
        # Only events carry information on survival times; two unequal classes as much as a smaller
        # balanced sample.
        n_rows = float(test.size)
        effective_rows = float(test.size)
        if self.task == "survival":
            effective_rows = float(np.count_nonzero(self._codes[test]))
        elif self.task == "classification":
            n_rarest = float(np.bincount(self.values[test], minlength=self.values.max() + 1).min())
            effective_rows = 4 * n_rarest * (n_rows - n_rarest) / n_rows
        units = unit_numbers(len(self.values), self.groups)[test]
        return effective_rows * np.unique(units).size / n_rows < FEW_ROWS

    @property
    def _codes(self) -> Any:
        """The class or event of each row, for stratified folds; None for numbers."""
        if self.task == "survival":
            return checked_survival(self.values)["event"].astype(np.int64)
        return self.values if self.task == "classification" else None

    def _cross_validated(self) -> Verdict | None:
        """Return the verdict by repeated cross-validation; None if it takes too much work.

        A repetition permutes the rows of X, which removes their relation to the target, and then
        cross-validates again. The number of repetitions depends only on the rows and columns that
        are fitted to.
        """
        # The number of repetitions that the work allows, of the form 20 k - 1.
        all_folds = self.folds
        entries_fitted = max(len(all_folds), 1) * self.work
        most_repeats = min(20 * int(MOST_WORK / (20 * entries_fitted)) - 1, N_REPEATS)
        if not all_folds or most_repeats < FEWEST:
            return None
        self.say(
            f"few rows: cross-validation is repeated up to {most_repeats} times, without a relation"
        )
        # ``observed`` is the pair (score, standard error) of the data, and ``null`` has such a pair
        # for each repetition.
        observed = self._measure(self.values, *self.decisions(all_folds))
        null = list[tuple[float, float]]()
        rng = np.random.default_rng(self.rng)
        # Stop as soon as this number of repetitions is as good as the data: p then exceeds the
        # level. A repetition is compared by its t-statistic, (score - baseline) / standard error.
        n_needed = int(LEVEL * (most_repeats + 1))
        baseline = self._score_and_baseline[1]
        t_value = _t_statistic(*observed, baseline)
        while len(null) < most_repeats:
            order = permuted_rows(len(self.values), rng, self.groups)
            null.append(self._measure(self.values, *self.decisions(all_folds, None, order)))
            n_as_good = sum(
                _t_statistic(score, error, baseline) >= t_value - 1e-12 for score, error in null
            )
            if n_as_good >= n_needed and len(null) >= FEWEST:
                break
        words = "permutations of the rows, each with its own cross-validation and all choices made "
        words += "in it,"
        n_rows = sum(test.size for _, test in all_folds)
        verdict = self._verdict(observed, null, n_rows, len(all_folds), words)
        return self._with_power(verdict, all_folds) if verdict.verdict == "no better" else verdict

    def _verdict(
        self,
        observed: tuple[float, float],
        null: list[tuple[float, float]],
        n_rows: int,
        n_folds: int,
        draws: str,
    ) -> Verdict:
        """Return the verdict on an observed score and error, from those of permuted targets.

        observed, null : (score, standard error) of the data, and of each permutation. n_rows :
        number of scored rows. n_folds : number of folds, 0 for a held-out part. draws : in words,
        how the null distribution was drawn.
        """
        score, guess_error = observed
        name, baseline, guess = self._score_and_baseline
        scores, errors = np.array(null).T
        is_correlation = baseline == 0.0
        # Correlations are compared on Fisher's scale. The spread of permuted scores is scaled by
        # the ratio of the error of these rows to that of permuted ones.
        transformed = np.arctanh(np.clip(scores, -0.999, 0.999)) if is_correlation else scores
        ratio = max(guess_error / np.median(errors), 1.0) if np.median(errors) > 0 else 1.0
        error = float(np.std(transformed)) * ratio
        null_scores = null_of(scores, errors, baseline, guess_error)
        ranked = Ranked(score, error, baseline, null_scores, float(np.std(scores)) or np.inf)
        interval = correlation_interval(ranked) if is_correlation else plain_interval(ranked)
        words = "as wide as scores of permuted rows spread"
        verdict = judged(ranked, interval, name, n_rows, words, n_folds, guess, draws)
        return replace(verdict, how=verdict.how | with_curves(self.known, n_rows)[1])

    @property
    def _score_and_baseline(self) -> tuple[str, float, str]:
        """The name of the score, the score of a baseline, and the name of the baseline."""
        is_multiclass = self.task == "classification" and self.values.max() > 1
        return measure(self.task, is_multiclass, self.ranks, self.known is not None)

    def decisions(
        self, parts: Sequence[Fold], values: NDArray[Any] | None = None, order: Rows | None = None
    ) -> tuple[list[Rows], list[Array]]:
        """Return the test rows and decisions of each fold, without folds that cannot be fitted.

        parts : (training rows, test rows) of each fold. values : a target to fit instead of the
        real one. order : a permutation of the rows of X; None for none.
        """
        rows = list[Rows]()
        per_fold = list[Array]()
        for train, test in parts:
            try:
                with warnings.catch_warnings(action="ignore"):
                    decisions = self.decide(train, test, values, order)
            except ValueError:  # such as a fold without one of the classes
                continue
            rows.append(test)
            per_fold.append(np.asarray(decisions, dtype=np.float64).reshape(test.size, -1))
        return rows, per_fold

    def _measure(
        self, truth: NDArray[Any], rows: list[Rows], per_fold: list[Array]
    ) -> tuple[float, float]:
        """Return the score of the decisions, and its standard error under a baseline.

        truth : the target of all rows. rows, per_fold : test rows and their decisions (n_test, m)
        for each fold. Decisions are compared only within a fold, since their scale differs between
        the models of the folds. The error is clustered by groups of rows.
        """
        baseline = self._score_and_baseline[1]
        all_rows = np.concatenate(rows) if rows else np.arange(0)
        contributions = list[Array]()
        scores = list[float]()
        weights = list[int]()
        # AUC or concordance: the mean over the folds, weighted by their rows; a fold without a
        # score has weight 0. Else a correlation over all folds.
        if baseline > 0.0:
            for fold_rows, fold_decisions in zip(rows, per_fold, strict=True):
                score, contributions_of_fold = self._ranks(truth[fold_rows], fold_decisions)
                is_known = not np.isnan(score)
                scores = [*scores, score if is_known else 0.0]
                weights = [*weights, is_known * fold_rows.size]
                contributions.append(contributions_of_fold * weights[-1])
            total = max(sum(weights), 1)
            shares = [contribution / total for contribution in contributions]
            mean_score = float(np.dot(scores, weights)) / total
        else:
            mean_score, shares = self._correlation(truth, rows, per_fold)
        if not rows:
            return baseline, 0.0
        units = unit_numbers(len(self.values), self.groups)[all_rows]
        # Rows of a group are not independent: add their contributions before squaring.
        sums = np.bincount(units, np.concatenate(shares))
        return baseline + mean_score, float(np.linalg.norm(sums))

    def _ranks(self, truth: NDArray[Any], decisions: Array) -> tuple[float, Array]:
        """Return AUC or concordance minus one half, and the contributions of rows to it, (n,).

        truth, decisions : targets (n,) and scores (n, m) of one fold. The contributions are those
        of ``ranking``: their sum is twice the score. The score is NaN if there is nothing to
        compare. If there are many survival times, an evenly spaced subset is compared.
        """
        if self.task == "classification":
            if np.unique(truth).size < 2:
                return float("nan"), np.zeros(truth.size)
            score, contributions = guess_area(truth, decisions)
            return score, contributions / max(1, decisions.shape[1])
        # The step is rounded up, so that at most MOST_PAIRED rows are compared.
        judged_rows = np.arange(0, truth.size, -(-truth.size // MOST_PAIRED))
        first, second = comparable(checked_survival(truth[judged_rows]))
        contributions = np.zeros(truth.size)
        contributions[judged_rows] = concordance_rows(decisions[judged_rows, 0], first, second)
        return float(contributions.sum()) / 2 if first.size else float("nan"), contributions

    def _correlation(
        self, truth: NDArray[Any], rows: list[Rows], per_fold: list[Array]
    ) -> tuple[float, list[Array]]:
        """Return the partial correlation given folds and covariates, and its terms, in a list.

        truth : the target of all rows. rows, per_fold : test rows of each fold, and their
        decisions. The correlation is the sum of the terms, one for each test row of all folds.
        """
        if not rows:
            return 0.0, []
        numbers = numbers_of(self.task, truth)
        all_rows = np.concatenate(rows)
        if self.ranks and self.known is None:
            numbers = rankdata(numbers, axis=0)
            per_fold = [
                rankdata(fold_decisions, axis=0) / len(fold_decisions)
                for fold_decisions in per_fold
            ]
        # The mean of each fold is projected out, and so are the covariates.
        fold_indicators = np.repeat(
            np.eye(len(rows)), [fold_rows.size for fold_rows in rows], axis=0
        )
        curves = with_curves(self.known, all_rows.size)[0]
        if curves is not None:
            fold_indicators = np.hstack([fold_indicators, curves[all_rows]])
        decisions = np.concatenate(per_fold)[:, : numbers.shape[1]]
        contributions = correlation_rows(numbers[all_rows], decisions, fold_indicators)
        return float(contributions.sum()), [contributions]

    def _with_power(self, verdict: Verdict, parts: Sequence[Fold]) -> Verdict:
        """Return a verdict of "no better" with the estimated power for a useful signal.

        parts : the folds or the held-out part of the verdict. In each of up to N_PLANTED
        simulations the values of the target are reordered by a signal of FEATURES_PLANTED random
        features plus noise, and the test is repeated. The simulations stop once it is decided
        whether the share of detected signals reaches POWER; below POWER the verdict becomes "too
        few rows to tell".
        """
        work = len(parts) * N_PLANTED * self.work
        if self.inputs is None or self.values.ndim > 1 or work > MOST_WORK:
            return verdict
        baseline = self._score_and_baseline[1]
        error = self._measure(self.values, *self.decisions(parts))[1]
        # The critical score as a t-statistic, which applies to simulations, too.
        critical_t = (verdict.critical - baseline) / error if error > 0 else float(norm.isf(LEVEL))
        rng = np.random.default_rng([self.rng, 1])
        n_detected = 0
        n_missed = 0
        n_needed = int(np.ceil(POWER * N_PLANTED))
        while n_detected < n_needed and n_missed <= N_PLANTED - n_needed:
            values = self._planted_target(rng)
            measured = self._measure(values, *self.decisions(parts, values))
            is_detected = _t_statistic(*measured, baseline) >= critical_t
            n_detected = n_detected + is_detected
            n_missed = n_missed + (not is_detected)
        power = n_detected / (n_detected + n_missed)
        return replace(
            verdict,
            power=power,
            verdict="no better" if n_detected >= n_needed else "too few rows to tell",
        )

    def _planted_target(self, rng: np.random.Generator) -> NDArray[Any]:
        """Return the target values, reordered so that they follow a few random features plus noise.

        rng : the generator of features and noise. The values are kept, only their order changes.
        """
        assert self.inputs is not None
        # The signal: a sum of standardized features with random signs, averaged over groups of
        # rows.
        n_rows, n_columns = self.inputs.shape
        units = unit_numbers(n_rows, self.groups)
        survives = self.task == "survival"
        # The target in increasing order; early deaths are last, since they have a high risk.
        order_by = -checked_survival(self.values)["time"] if survives else self.values
        ordered = self.values[np.argsort(order_by, kind="stable")]
        columns = np.sort(rng.permutation(n_columns)[:FEATURES_PLANTED])
        planted_columns = standardized(dense_part(self.inputs, columns))[0]
        signal = planted_columns @ rng.choice([-1.0, 1.0], columns.size)
        noise = rng.standard_normal(n_rows)[units]  # rows of a group have the same noise
        signal = standardized((np.bincount(units, signal) / np.bincount(units))[units, None])[0]
        share = PLANTED[self.task]
        score = share * signal[:, 0] + np.sqrt(1 - share**2) * noise
        rank = np.argsort(np.argsort(score, kind="stable"))
        return np.asarray(ordered[rank])


def _t_statistic(score: float, error: float, baseline: float) -> float:
    """Return the t-statistic (score - baseline) / error, 0 if the error is 0.

    ``error`` is the standard error of the score, and ``baseline`` the score without any relation.
    """
    return (score - baseline) / error if error > 0 else 0.0
