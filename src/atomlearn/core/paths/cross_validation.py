"""cross_validate: held-out scores over (norm x level), folds side by side, X never copied.

A level is the strength of the norm in the penalty. A candidate is a norm with its share of the
penalty. An output is one of several problems on the same rows, such as one class against all
others. A reading is one pass over the data. A pool has the columns of X that are likely to be in
use on a path, gathered in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Literal, get_args

import numpy as np

from atomlearn.core.data.parts import part_of
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Array, Design, Norm, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.paths.ends import End
from atomlearn.core.paths.folds import (
    Fold,
    Score,
    check_folds,
    decisions_at,
    remote_score_of,
    training_part,
)
from atomlearn.core.paths.levels import l1_ratio_of, with_l1_ratio
from atomlearn.core.paths.path import PathResult, path_result
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.relax import relaxed_predictions
from atomlearn.core.paths.search_ends import SearchEnd, ended_by, known_folds, padded_levels, solved
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem, changed
from atomlearn.core.problem.result import together
from atomlearn.core.solvers.schedule import Task, drive

#: Rule by which one (norm, level) is chosen from the scores.
Rule = Literal["best", "one_standard_error"]


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Held-out scores of a grid search by cross-validation, for every (norm, level, fold).

    Attributes
    ----------
    norms : tuple[Norm, ...]
        The candidates; ``l1_ratios`` has the share of each in its penalty.
    levels : (n_norms, n_levels) float64
        The weights of the norms, the most regularized first.
    scores, level_passes, n_selected, relative_gaps : (n_norms, n_levels, n_folds) float64
        Held-out scores, larger is better; passes over the data, numbers of selected columns and
        proved relative gaps. With several outputs, passes and numbers are added up over them, and
        the gap is their largest.
    passes : float
        Readings of the data in the whole search; one reading may serve many levels and folds.
    relax : float
        The chosen share: predictions are (1 - relax) times the penalized fit plus relax times a
        refit of its columns without penalty.
    paths : tuple[tuple[tuple[PathResult, ...], ...], ...]
        By (norm, fold), the PathResult of each output.
    status : Status
        CONVERGED, or why the search ended early: INTERRUPTED or TIME_LIMIT. Scores of unsolved
        levels are then NaN, and only the complete folds are kept, or, if none is complete, those
        that had begun.
    smooth : bool
        Whether mean scores are smoothed over neighbouring levels of a norm before the best is
        chosen.
    l1_ratios : tuple[float, ...]
        Share of each norm in its penalty; empty if all are 1.
    """

    norms: tuple[Norm, ...]
    levels: Array
    scores: Array
    level_passes: Array
    n_selected: Array
    relative_gaps: Array
    passes: float
    relax: float
    paths: tuple[tuple[tuple[PathResult, ...], ...], ...] = field(default=(), repr=False)
    status: Status = Status.CONVERGED
    smooth: bool = False
    l1_ratios: tuple[float, ...] = ()

    @property
    def alphas(self) -> Array:
        """Strengths of the penalty, level / l1_ratio, shape (n_norms, n_levels)."""
        ratios: Array = np.array(self.l1_ratios or (1.0,) * len(self.norms))
        return self.levels / ratios[:, None]

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

        "best" : the highest mean score. Among equal scores it is the most regularized level.
        "one_standard_error" : the norm of the best score, at the most regularized level whose mean
        score is at most one standard error below it.
        """
        if rule not in get_args(Rule):
            raise ValueError(f"selection must be one of {get_args(Rule)}, got {rule!r}")
        mean = self.mean
        if not np.isfinite(mean).any():
            if self.status is Status.INTERRUPTED:
                raise KeyboardInterrupt("a search was interrupted before it had scored anything")
            raise ValueError(
                "every mean held-out score is NaN or infinite; check the scoring, and that every "
                "fold has samples of positive weight and, for classification, of every class"
            )
        if self.smooth:
            mean = _smoothed(mean)
        score = np.where(np.isfinite(mean), mean, -np.inf)
        # Transposed, so that argmax resolves ties to the earliest level, the most regularized.
        level, norm = np.unravel_index(np.argmax(score.T), score.T.shape)
        if rule == "one_standard_error":
            bound = score[norm, level] - self.standard_error[norm, level]
            level = np.argmax(score[norm] >= bound)
        return int(norm), int(level)

    def warm_starts(self, norm: int, level: int) -> list[WarmStart | None]:
        """Return a warm start for the refit to all samples, one per output.

        ``norm`` and ``level`` are indices. The start is the entrywise median over folds of the
        coefficients there. The median is zero at columns that few folds select; a mean would not
        be. None for a matrix norm, whose factors have no median.
        """
        found: list[WarmStart | None] = []
        amount = self.levels[norm, level]
        for of_output in zip(*self.paths[norm], strict=True):  # the paths of all folds
            of_folds = [path.result_at(amount / path.l1_ratio) for path in of_output]
            # A fold may end before this level.
            results = [result for result in of_folds if result is not None]
            if any(result.matrix_parts is not None for result in results):
                found.append(None)
                continue
            columns, weights = together(results)
            intercept = float(np.mean([result.intercept for result in results]))
            found.append(WarmStart(columns, np.median(weights, axis=0), intercept))
        return found

    def table(self) -> dict[str, Any]:
        """Return scikit-learn's ``cv_results_``: a dict of arrays, one entry per (norm, level)."""
        n_norms, n_levels, n_folds = self.scores.shape
        norms = np.empty(n_norms * n_levels, dtype=object)
        norms[:] = [norm for norm in self.norms for _ in range(n_levels)]
        alphas = self.alphas.ravel()
        ratios = np.repeat(self.l1_ratios or (1.0,) * n_norms, n_levels)
        flat = self.scores.reshape(-1, n_folds)
        mean = self.mean.ravel()
        # Unknown scores are ranked last.
        sortable = np.where(np.isnan(mean), -np.inf, mean)
        table: dict[str, Any] = {
            "params": [
                {"norm": norm, "alpha": float(alpha), "l1_ratio": float(ratio)}
                for norm, alpha, ratio in zip(norms, alphas, ratios, strict=True)
            ],
            "param_norm": norms,
            "param_alpha": alphas,
            "param_l1_ratio": ratios,
        }
        for fold in range(n_folds):
            table[f"split{fold}_test_score"] = flat[:, fold]
        table["mean_test_score"] = mean
        table["std_test_score"] = flat.std(axis=1)
        table["standard_error"] = self.standard_error.ravel()
        table["rank_test_score"] = 1 + np.array([(sortable > s).sum() for s in sortable])
        table["mean_n_selected"] = self.n_selected.mean(axis=2).ravel()
        table["mean_passes"] = self.level_passes.mean(axis=2).ravel()
        table["max_relative_gap"] = self.relative_gaps.max(axis=2).ravel()
        return table


def cross_validate(
    problems: Sequence[Problem],
    norms: Sequence[Norm],
    levels: Array,
    folds: Sequence[Fold],
    score: Score,
    settings: Settings,
    n_jobs: int | None = None,
    relax: Sequence[float] = (0.0,),
    until: End | None = None,
    pools: dict[int, Pool] | None = None,
    l1_ratios: Sequence[float] = (),
    of_folds: Sequence[Sequence[Problem]] = (),
) -> CrossValidation:
    """Compute the held-out scores of warm-started paths for each (norm, fold), in parallel.

    Parameters
    ----------
    problems : sequence of Problem
        One per output, on one design: a single problem, or one per class for one-vs-rest.
    norms : sequence of Norm
        Candidates; each replaces the norm of the problems.
    levels : (n_norms, n_levels)
        Levels or radii of each norm, the most regularized first.
    folds : sequence of (train rows, test rows)
        Row numbers of the training and the test samples of each fold.
    score : callable
        ``score(decisions, test)`` returns the score, larger is better, of the predictions
        (n_test, n_outputs) at the test rows.
    settings : Settings
        Accuracy, solver and limits of the fits. The deadline is that of the whole search.
    n_jobs : int, optional
        Number of (norm, fold) pairs that are solved at the same time, if they cannot share readings
        of X. They run in threads that share X, since kernels release the GIL.
    relax : sequence of float
        Shares of a refit without penalty to choose from, see ``relax.relaxed``. The share with the
        highest mean score at any norm and level is chosen, and the scores are its scores.
    until : End, optional
        Ends the paths of a norm early, when each of them has reached the end. ``NoImprovement()``
        without rows ends them when the mean score has stopped rising. Later levels have the score
        NaN.
    pools : dict, optional
        Receives the columns of X that were gathered. Pass it to the next search over the same
        problems and folds.
    l1_ratios : sequence of float, optional
        Share of the norm in the penalty, one for each of ``norms``; the same norm may be listed
        with several shares. Default: the share in the problems.
    of_folds : sequence of sequences of Problem, optional
        The problems of all rows for each fold, if the columns depend on its training rows, as
        imputed values do. Default: ``problems``, whose design all folds share.

    Returns
    -------
    CrossValidation
        Scores of all candidates, and their paths.

    Notes
    -----
    All folds, norms and outputs share the readings of the data: one reading computes the scores
    for the next levels of all of them. If that is not possible (see ``path``), each (norm, fold)
    is solved by separate steps. They take turns level by level, so that all of them have solved
    about the same levels if a time limit or Ctrl-C ends the search.
    Data is read through row numbers, checked once by the caller, and never copied. The sample
    weights of each training part are scaled to the sum of the weights of all samples, so that a
    level has the same effect for a fold as for all samples.
    The function computes the paths of all candidates and folds, then their scores at the test rows,
    and chooses the share of a refit with the best mean score.
    """
    check_folds(folds, problems[0])
    settings = replace(settings, search=True)
    for norm in norms:  # raises if a norm does not fit the number of columns
        norm.on(problems[0].design.shape[1])
    counted = Counted.of(problems[0].design)
    passes_before = counted.passes
    problems = [replace(problem, design=counted) for problem in problems]
    ratios = tuple(l1_ratios) or (l1_ratio_of(problems[0]),) * len(norms)
    candidates = list(zip(norms, ratios, strict=True))
    n_folds = len(folds)
    # One pool for each path, from a common source if all folds have the same columns.
    if of_folds:
        of_folds = [_counted(fold, counted) for fold in of_folds]
        path_pools = _own_pools(of_folds, candidates, settings)
    else:
        path_pools = _pools(problems, candidates, n_folds, settings, {} if pools is None else pools)
        of_folds = [problems] * n_folds
    each_fold = list(zip(of_folds, folds, strict=True))  # problems and row numbers of each fold
    testing = [part_of(fold[0].design, rows=test) for fold, (_, test) in each_fold]
    trained = [[training_part(p, train) for p in fold] for fold, (train, _) in each_fold]
    ends = [SearchEnd(until, problems, folds, score, testing) for _ in norms]  # one per norm
    tasks = [
        (grid, [_candidate(problem, *candidate) for problem in fold])
        for candidate, grid in zip(candidates, levels, strict=True)
        for fold in trained
    ]
    # The paths by candidate, then by fold, truncated at the common end of a candidate.
    found = _paths(tasks, settings, ends, n_jobs, path_pools)
    found = [tuple(map(ends[k // n_folds].cut, each)) for k, each in enumerate(found)]
    status = ended_by(found)
    arrays, share = _all_held_out(found, each_fold, testing, score, relax, levels.shape[1])
    scores, passes, selected, gaps = arrays
    kept = np.arange(n_folds) if status.is_converged else known_folds(scores)
    return CrossValidation(
        norms=tuple(norms),
        levels=np.asarray(levels),
        scores=scores[..., kept],
        level_passes=passes[..., kept],
        n_selected=selected[..., kept],
        relative_gaps=gaps[..., kept],
        passes=counted.passes - passes_before,
        relax=share,
        paths=tuple(tuple(found[k : k + n_folds]) for k in range(0, len(found), n_folds)),
        status=status,
        l1_ratios=ratios,
    )


def _counted(problems: Sequence[Problem], counted: Counted) -> list[Problem]:
    """Return the problems of a fold with a design whose readings ``counted`` counts as well.

    ``problems`` has one problem per output, all on one design.
    """
    design = counted.around(problems[0].design)
    return [replace(problem, design=design) for problem in problems]


def _candidate(problem: Problem, norm: Norm, l1_ratio: float) -> Problem:
    """Return the problem with this norm, whose share of the penalty is ``l1_ratio``."""
    return with_l1_ratio(changed(problem, norm=norm), l1_ratio)


def _smoothed(mean: Array) -> Array:
    """Return the mean scores smoothed over adjacent levels of each norm, with weights 1, 2, 1.

    ``mean`` is (n_norms, n_levels), NaN for levels without a score; these are left out. The first
    and the last score of a norm count as their own missing neighbors.
    """
    whole = np.full_like(mean, np.nan)
    for row, smooth in zip(mean, whole, strict=True):
        known = np.flatnonzero(np.isfinite(row))
        padded = np.pad(row[known], 1, mode="edge") if known.size else np.zeros(2)
        smooth[known] = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return whole


def _all_held_out(
    found: Sequence[tuple[PathResult, ...]],
    each_fold: Sequence[tuple[Sequence[Problem], Fold]],
    testing: Sequence[Design],
    score: Score,
    relax: Sequence[float],
    n_levels: int,
) -> tuple[list[Array], float]:
    """Return scores, passes, numbers of columns and gaps of all paths, and the best relax share.

    The four arrays are (n_norms, n_levels, n_folds). The best share has the highest mean score at
    any norm and level, and the scores are those of this share. found : the paths of each (norm,
    fold), norm after norm. each_fold : its problems (one per output) and row numbers. testing : the
    design of the test rows of each fold. score : returns the score of predictions (n_test,
    n_outputs) at given test rows. relax : shares of a refit without penalty. n_levels : number of
    levels in the grid.
    """
    n_folds = len(each_fold)
    parts = [
        _held_out(*each_fold[k % n_folds], testing[k % n_folds], paths, score, relax, n_levels)
        for k, paths in enumerate(found)
    ]
    scores_of_shares, *others = zip(*parts, strict=True)
    # Arrange all as (norm, level, fold).
    shape = (len(found) // n_folds, n_folds, n_levels)
    arranged = [np.array(values).reshape(shape).swapaxes(1, 2) for values in others]
    by_share = [
        np.array(values).reshape(shape).swapaxes(1, 2)
        for values in zip(*scores_of_shares, strict=True)
    ]
    best = int(np.argmax([_highest(scores) for scores in by_share]))
    return [by_share[best], *arranged], relax[best]


def _highest(scores: Array) -> float:
    """Return the highest mean over folds of scores (n_norms, n_levels, n_folds)."""
    mean = scores.mean(axis=2)
    return float(np.where(np.isfinite(mean), mean, -np.inf).max())


def _paths(
    tasks: Sequence[tuple[Array, list[Problem]]],
    settings: Settings,
    ends: Sequence[SearchEnd],
    n_jobs: int | None,
    pools: Iterator[Pool | None],
) -> list[tuple[PathResult, ...]]:
    """Return the paths of each (candidate, fold), one path per output.

    tasks : the levels and the problems (one per output) of each candidate and fold, ordered by
    candidate. settings : see ``cross_validate``. ends : the end of the search of each candidate,
    which its folds decide together. n_jobs : number of tasks at a time. pools : yields the pool of
    each problem.

    The problem of a fold is over all rows, with weight zero on those that it leaves out. Its dual
    vectors are zero there, so all folds share one design, and one pool gathers its columns. Folds
    with different designs are solved one after the other.
    """
    # Tasks over the same design are solved together; ``all_tasks`` has all of them in order.
    all_tasks = []
    groups: dict[int, tuple[Design, list[Task]]] = {}
    problems_and_grids = []
    n_folds = len(tasks) // len(ends)
    for number, (levels, fold) in enumerate(tasks):
        end = ends[number // n_folds]
        for output, problem in enumerate(fold):
            pool = next(pools)
            # The paths of a candidate are numbered by fold, then by output.
            reached = end.reached_by(number % n_folds * len(fold) + output)
            task = settings.task(problem, levels, pool, reached=reached, last=end.last_level)
            groups.setdefault(id(problem.design), (problem.design, []))[1].append(task)
            all_tasks.append(task)
            problems_and_grids.append((problem, levels))
    interrupted = False
    for design, tasks_of_design in groups.values():
        if not interrupted:
            interrupted = drive(design, tasks_of_design, n_jobs)
        else:
            for task in tasks_of_design:
                task.interrupt()
    found = [
        path_result(problem, levels, task.results, sum(r.passes for r in task.results), interrupted)
        for (problem, levels), task in zip(problems_and_grids, all_tasks, strict=True)
    ]
    size = len(fold)  # the number of outputs
    return [tuple(found[k : k + size]) for k in range(0, len(found), size)]


def _own_pools(
    of_folds: Sequence[Sequence[Problem]],
    candidates: Sequence[tuple[Norm, float]],
    settings: Settings,
) -> Iterator[Pool | None]:
    """Yield the pool of each path, if each fold has a different design.

    Pools are not shared between norms or folds. ``of_folds`` has the problems of each fold,
    ``candidates`` are norms with their share of the penalty, and ``settings`` are those of the
    paths.
    """
    for candidate in candidates:
        for fold in of_folds:
            yield from _pools(fold, [candidate], 1, settings, {})


def _pools(
    problems: Sequence[Problem],
    candidates: Sequence[tuple[Norm, float]],
    n_folds: int,
    settings: Settings,
    sources: dict[int, Pool],
) -> Iterator[Pool | None]:
    """Return an iterator over the pool of each path, None for paths that do not share readings.

    The paths are ordered by candidates, then by outputs and folds. All problems have the same X.
    Paths over the columns of X gather their columns from one common pool, the source. Paths of a
    norm over lifted coordinates (repeated columns) have a separate source. problems : one per
    output. candidates : norms, each with its ``l1_ratio``. n_folds : number of folds per candidate.
    settings : the settings of the paths. sources : known source pools, by key; new ones are added.
    """
    # The first output's problem with each candidate, and whether its norm is over lifted
    # coordinates.
    of_candidates = [_candidate(problems[0], *candidate) for candidate in candidates]
    lifted = [norm.lift(problems[0].design.shape[1]) is not None for norm, _ in candidates]
    # Paths with an equal key use the same source: 0 for columns of X, else a number of the norm.
    keys = [
        (id(norm) if lifts else 0) if settings.shares_levels(problem) else None
        for (norm, _), problem, lifts in zip(candidates, of_candidates, lifted, strict=True)
    ]
    count = n_folds * len(problems)  # paths of each candidate
    known: dict[int | None, Iterator[Pool | None]] = {None: repeat(None)}
    for key, problem in zip(keys, of_candidates, strict=True):
        if key not in known:
            assert key is not None
            # The source gathers columns for the paths with this key, one pool for each of them.
            source = sources.setdefault(key, Pool(problem))
            known[key] = iter(source.for_paths(keys.count(key) * count))
    return (next(known[key]) for key in keys for _ in range(count))


def _held_out(
    problems: Sequence[Problem],
    fold: Fold,
    testing: Design,
    paths: Sequence[PathResult],
    score: Score,
    relax: Sequence[float],
    n_levels: int,
) -> tuple[Array, Array, Array, Array]:
    """Return scores, passes, numbers of columns and gaps of the paths of one (norm, fold).

    problems, paths : one per output. fold : the numbers of its training and test rows. testing :
    the design of the test rows. score : returns the score of predictions (n_test, n_outputs) at
    given test rows. relax : shares of a refit without penalty. n_levels : number of levels in the
    grid.

    The scores are (n_shares, n_levels), and the others (n_levels,): passes and numbers are sums
    over outputs, gaps the largest. Levels that were not solved have NaN.
    """
    train, test = fold
    paths = solved(paths)  # truncated to the levels that all outputs have solved
    n_solved = paths[0].levels.size if len(paths) == len(problems) else 0
    if not n_solved:
        unknown = np.full(n_levels, np.nan)
        return np.tile(unknown, (len(relax), 1)), unknown, unknown, unknown
    # How often each row is in the training part.
    counts = np.bincount(train, minlength=problems[0].y.size)
    passes, n_selected, gaps = np.zeros((3, n_solved))
    for solutions in paths:
        passes += [result.passes for result in solutions.results]
        n_selected += solutions.n_selected
        gaps = np.maximum(gaps, solutions.relative_gaps)
    remote_score = None if any(relax) else remote_score_of(score, testing, test)
    if remote_score is not None:  # The rows are on other machines, which compute the score.
        results_by_level = zip(*(solutions.results for solutions in paths), strict=True)
        scores = np.tile(remote_score(list(results_by_level)), (len(relax), 1))
    else:
        # The predictions of each share, level, test row and output, with the offsets of the rows.
        decisions = np.empty((len(relax), n_solved, test.size, len(problems)))
        for output, (problem, solutions) in enumerate(zip(problems, paths, strict=True)):
            training = replace(problem, weight=problem.weight * counts)
            found = relaxed_predictions(training, solutions, testing, relax)
            decisions[..., output] = decisions_at(problem, found, test)
        scores = np.array([[score(level, test) for level in share] for share in decisions])
    padded = [padded_levels(values, n_levels) for values in (scores, passes, n_selected, gaps)]
    return padded[0], padded[1], padded[2], padded[3]
