"""cross_validate: held-out scores over (norm x level), folds side by side, X never copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from atomlearn.core.data.parts import part_of
from atomlearn.core.interfaces import Norm
from atomlearn.core.paths.path import path_of
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Status

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Rule by which one (norm, level) is chosen from the scores.
Rule = Literal["best", "one_standard_error"]
#: score(decisions (n_test, n_outputs), test rows) -> a number, the larger the better.
Score = Callable[[Array, Rows], float]


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Held-out scores of every (norm, level, fold).

    norms : the candidates; levels : (n_norms, n_levels), the most regularized first; scores,
    passes, n_selected, relative_gaps : (n_norms, n_levels, n_folds), the last three summed or
    (gaps) maximized over outputs.
    """

    norms: tuple[Norm, ...]
    levels: Array
    scores: Array
    passes: Array
    n_selected: Array
    relative_gaps: Array

    @property
    def mean(self) -> Array:
        """Mean score over folds, shape (n_norms, n_levels)."""
        mean: Array = self.scores.mean(axis=2)
        return mean

    @property
    def standard_error(self) -> Array:
        """Standard error of the mean score over folds, shape (n_norms, n_levels)."""
        n_folds = self.scores.shape[2]
        if n_folds < 2:
            return np.zeros(self.scores.shape[:2])
        error: Array = self.scores.std(axis=2, ddof=1) / np.sqrt(n_folds)
        return error

    def choose(self, rule: Rule = "best") -> tuple[int, int]:
        """Return (norm index, level index) by the rule.

        "best" : the highest mean score, of equal ones the most regularized. "one_standard_error" :
        for the norm of the best, the most regularized level whose mean score is within one
        standard error of it.
        """
        if rule not in ("best", "one_standard_error"):
            raise ValueError(f"selection must be 'best' or 'one_standard_error', got {rule!r}")
        mean = self.mean
        if not np.isfinite(mean).any():
            raise ValueError(
                "every mean held-out score is NaN or infinite; check the scoring, and that every "
                "fold has samples of positive weight and, for classification, of every class"
            )
        score = np.where(np.isfinite(mean), mean, -np.inf)
        # argmax over levels first: ties go to the earliest, which is the most regularized.
        level, norm = np.unravel_index(np.argmax(score.T), score.T.shape)
        if rule == "one_standard_error":
            bound = score[norm, level] - self.standard_error[norm, level]
            level = np.argmax(score[norm] >= bound)
        return int(norm), int(level)

    def table(self) -> dict[str, Any]:
        """Return scikit-learn's ``cv_results_``: a dict of arrays, one entry a (norm, level)."""
        n_norms, n_levels, n_folds = self.scores.shape
        norms = np.empty(n_norms * n_levels, dtype=object)
        norms[:] = [norm for norm in self.norms for _ in range(n_levels)]
        alphas = self.levels.ravel()
        flat = self.scores.reshape(-1, n_folds)
        mean = self.mean.ravel()
        sortable = np.where(np.isnan(mean), -np.inf, mean)
        table: dict[str, Any] = {
            "params": [
                {"norm": norm, "alpha": float(alpha)}
                for norm, alpha in zip(norms, alphas, strict=True)
            ],
            "param_norm": norms,
            "param_alpha": alphas,
        }
        for fold in range(n_folds):
            table[f"split{fold}_test_score"] = flat[:, fold]
        table["mean_test_score"] = mean
        table["std_test_score"] = flat.std(axis=1)
        table["standard_error"] = self.standard_error.ravel()
        table["rank_test_score"] = 1 + np.array([(sortable > s).sum() for s in sortable])
        table["mean_n_selected"] = self.n_selected.mean(axis=2).ravel()
        table["mean_passes"] = self.passes.mean(axis=2).ravel()
        table["max_relative_gap"] = self.relative_gaps.max(axis=2).ravel()
        return table


def cross_validate(
    problems: Sequence[Problem],
    norms: Sequence[Norm],
    levels: Array,
    folds: Sequence[tuple[Rows, Rows]],
    score: Score,
    settings: Settings,
    n_jobs: int | None = None,
) -> CrossValidation:
    """Return held-out scores of warm-started paths over (norm, fold), in parallel.

    Parameters
    ----------
    problems : sequence of Problem
        One an output (a single one, except for one-against-rest classes), on one design.
    norms : sequence of Norm
        Candidates; each replaces the norm of the problems.
    levels : (n_norms, n_levels)
        Levels or radii of each norm, the most regularized first.
    folds : sequence of (train rows, test rows)
    score : callable
        ``score(decisions, test)`` of the (n_test, n_outputs) predictions at the test rows.
    settings : Settings
        Its deadline is that of the whole search: each (norm, fold) has its part of what is left.
    n_jobs : int, optional
        Number of (norm, fold) at a time, in threads that share X (kernels release the GIL); a
        ``joblib.parallel_config`` around the call chooses processes instead.

    Notes
    -----
    Data is read through row numbers, checked once by the caller, and never copied. The sample
    weights of each training part are scaled to the sum they have over all samples, so that a
    level means the same for a fold as for the whole.
    """
    _check_folds(folds, problems[0])
    for norm in norms:
        norm.check(problems[0].design.shape[1])
    tasks = [(norm, grid, fold) for norm, grid in zip(norms, levels, strict=True) for fold in folds]
    at_once = effective_n_jobs(n_jobs)
    parts = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_one_fold)(problems, *task, score, partial(settings.share, len(tasks) - k, at_once))
        for k, task in enumerate(tasks)
    )
    shape = (len(norms), len(folds), levels.shape[1])
    columns = [np.array(part).reshape(shape).swapaxes(1, 2) for part in zip(*parts, strict=True)]
    return CrossValidation(tuple(norms), np.asarray(levels), *columns)


def _one_fold(
    problems: Sequence[Problem],
    norm: Norm,
    levels: Array,
    fold: tuple[Rows, Rows],
    score: Score,
    settings_of_now: Callable[[], Settings],
) -> tuple[Array, Array, Array, Array]:
    """Return scores, passes, numbers of columns and gaps at every level of one norm and fold.

    ``settings_of_now`` is asked when the fold begins: its part of the time left is known then.
    """
    train, test = fold
    settings = settings_of_now()
    design = problems[0].design
    training, testing = part_of(design, rows=train), part_of(design, rows=test)
    decisions = np.empty((levels.size, test.size, len(problems)))
    passes, n_selected, gaps = np.zeros((3, levels.size))
    for output, problem in enumerate(problems):
        weight = problem.weight[train]
        part = problem.of_rows(train, training, weight * (problem.weight.sum() / weight.sum()))
        part = part.with_norm(norm)
        solutions = path_of(part, levels, settings.share(len(problems) - output))
        if solutions.results[-1].status is Status.INTERRUPTED:
            raise KeyboardInterrupt("cross-validation was interrupted before a level was chosen")
        decisions[:, :, output] = solutions.predict(testing)
        if problem.offset is not None:
            decisions[:, :, output] += problem.offset[test]
        passes += [result.passes for result in solutions.results]
        n_selected += solutions.n_selected
        gaps = np.maximum(gaps, solutions.relative_gaps)
    scores = np.array([score(at_level, test) for at_level in decisions])
    return scores, passes, n_selected, gaps


def held_out_loss(problems: Sequence[Problem]) -> Score:
    """Return the score "minus the mean held-out loss", weighted, summed over outputs."""

    def score(decisions: Array, test: Rows) -> float:
        total = 0.0
        for output, problem in enumerate(problems):
            held_out = decisions[:, output]
            total += problem.loss.mean_loss(problem.y[test], held_out, problem.weight[test])
        return -total

    return score


def _check_folds(folds: Sequence[tuple[Rows, Rows]], problem: Problem) -> None:
    if not folds:
        raise ValueError("cv gave no folds; it must give at least one (train, test) pair")
    for number, fold in enumerate(folds):
        for name, rows in zip(("training", "test"), fold, strict=True):
            if len(rows) == 0 or not problem.weight[rows].any():
                raise ValueError(
                    f"fold {number} has no {name} sample of positive weight; use fewer folds, or "
                    "a splitter that spreads the weights"
                )
