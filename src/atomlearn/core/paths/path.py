"""path: the solutions at a list of levels, each started from the one before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn.core.data.convert import as_design, feature_names
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import (
    Array,
    Columns,
    Design,
    Form,
    Loss,
    Norm,
    Scores,
    own_parameters,
)
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.norms.names import named, named_columns
from atomlearn.core.norms.registry import as_norm
from atomlearn.core.paths.ends import End
from atomlearn.core.paths.levels import (
    check_levels,
    largest_useful_level,
    level_grid,
    scores_at_zero,
    with_l1_ratio,
)
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result, together
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.schedule import drive
from atomlearn.core.solvers.solver import MAX_ITER, TOLERANCE, Solver
from atomlearn.core.solvers.stopping import StoppingRule


@dataclass(frozen=True, slots=True)
class PathResult:
    """The solutions along a path.

    levels : (n_levels,) levels, or radii of the constrained form, the most regularized first;
    results : one Result a level; n_features : number of columns of X;
    passes : readings of the data, however many levels each served; interrupted : whether Ctrl-C cut
    it short. A path cut short from the keyboard holds the levels solved until then.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> found = paths.path(np.eye(3), np.array([3.0, 0.5, -2.0]), levels=[1.0, 2.5])
    >>> found.levels.tolist(), found.n_selected.tolist()
    ([2.5, 1.0], [1, 2])
    """

    levels: Array
    results: list[Result] = field(repr=False)
    n_features: int
    passes: float
    interrupted: bool = False

    def at(self, level: float) -> Result | None:
        """Return the solution at one of the levels, None if the path has none there."""
        pairs = zip(self.levels, self.results, strict=True)
        return next((result for place, result in pairs if place == level), None)

    def first(self, count: int | None) -> PathResult:
        """Return the path up to its first levels, of which there are ``count``; None: all."""
        return replace(self, levels=self.levels[:count], results=self.results[:count])

    @property
    def columns(self) -> Columns:
        """Columns with a non-zero coefficient at one level or more, increasing."""
        return together(self.results)[0]

    @property
    def coefs(self) -> Array:
        """Coefficients of ``columns`` (all others are zero), shape (n_levels, len(columns))."""
        return together(self.results)[1]

    @property
    def intercepts(self) -> Array:
        """Intercepts, shape (n_levels,)."""
        return np.array([result.intercept for result in self.results])

    @property
    def objectives(self) -> Array:
        """Objectives, shape (n_levels,)."""
        return np.array([result.objective for result in self.results])

    @property
    def relative_gaps(self) -> Array:
        """Proved relative gaps, shape (n_levels,)."""
        return np.array([result.relative_gap for result in self.results])

    @property
    def n_selected(self) -> Columns:
        """Number of selected columns at each level, shape (n_levels,)."""
        return np.array([result.columns.size for result in self.results], dtype=np.int64)

    @property
    def converged(self) -> bool:
        """True where the requested gap is proved at every level, and none is missing."""
        return not self.interrupted and all(result.converged for result in self.results)

    def predict(self, design: Design) -> Array:
        """Return X w + b at every level, shape (n_levels, n_samples); formed together."""
        columns, coefs = together(self.results)
        linear = design.product(coefs.T, columns).T
        return linear + self.intercepts[:, None]


@own_parameters
def path(
    X: object,
    y: object,
    *,
    loss: str | Loss = "squared",
    norm: str | Norm = "l1",
    form: Form = "penalized",
    levels: object = None,
    n_levels: int = 50,
    ratio: float | None = None,
    l1_ratio: float = 1.0,
    intercept: bool = False,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    gap: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    stop: StoppingRule | None = None,
    solver: Solver | None = None,
    observers: Iterable[Observer] = (),
    until: End | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> PathResult:
    """Minimise  sum_i s_i loss_i + R(w) + (tau/2) ||w||^2  at every level of a grid.

    Parameters
    ----------
    X, y, loss, norm, form, intercept, sample_weight, offset, unpenalized, gap, max_iter
        As in ``solve``. A fit to some rows has coefficients of its own for free columns.
    l1_ratio : float
        Share of the norm in the penalty, in (0, 1]: tau = level * (1 - l1_ratio) / l1_ratio at
        each level. 1.0 means no ridge term; the constrained form needs it.
    stop, solver, observers
        As in ``solve``; rules are asked at every level.
    levels : array, optional
        Levels (radii of the constrained form) to solve at, in any order. Default: a grid.
    n_levels, ratio : int, float
        Size and range of the default grid, see ``level_grid``. It begins at
        ``largest_useful_level``.
    until : End, optional
        Where the path has gone far enough: ``NumberOfFeatures(50)``, ``ExplainedDeviance(0.99)``,
        ``NoImprovement(X_other, y_other)``. The level at which it ends is the last one given back.
    checkpoint : folder, optional
        Keeps the path: the same call goes on where an earlier one was killed. Levels that were
        solved begin at the points that were kept, and are proved anew.

    Returns
    -------
    PathResult
        ``levels`` with the most regularized first, ``results``, ``columns``, ``coefs``.

    Notes
    -----
    The next levels are solved together, on a pool of likely columns, each from the solution before
    it; one reading of the data prices all of them, and proves the gap of each at its own point. So
    a path takes a dozen readings, and ``result.passes`` is how many of them a level had a part in.
    So it is with norms over lifted coordinates (latent groups, chains, trees, unions). With a
    ``solver`` of your own, or a norm that rates no columns (OWL, l2, nonnegative and matrix norms),
    levels are solved one by one: about two passes a level. Observers see each level after each
    reading that it had a part in.
    """
    names = feature_names(X)
    regularizer = Regularizer(named(as_norm(norm), names), form, 1.0)
    built = Problem.build(
        as_design(X),
        y,
        as_loss(loss),
        regularizer,
        fit_intercept=intercept,
        sample_weight=sample_weight,
        offset=offset,
        unpenalized=named_columns(unpenalized, names, "unpenalized"),
    )
    problem = with_l1_ratio(replace(built, design=Counted(built.design)), l1_ratio)
    zero = None
    if levels is None:
        zero = scores_at_zero(problem)
        largest = largest_useful_level(problem, zero)
        grid = level_grid(largest, n_levels, ratio, form)
    else:
        grid = check_levels(levels, form)
    settings = Settings(gap, max_iter, solver, stop, checkpoint=checkpoint)
    return path_of(problem, grid, settings, observers, zero=zero, until=until)


def path_of(
    problem: Problem,
    levels: Array,
    settings: Settings,
    observers: Iterable[Observer] = (),
    zero: Scores | None = None,
    until: End | None = None,
) -> PathResult:
    """Return the solutions of a problem that is already built, at the levels in their order.

    ``zero`` : the scores at w = 0, where they are known; the reading they took counts as one.
    """
    counted = Counted.of(problem.design)
    problem = replace(problem, design=counted)
    before = counted.passes - (zero is not None)
    settings = replace(settings, observers=(*settings.observers, *observers))
    reached = None if until is None else until.begin()
    task = settings.task(problem, levels, zero=zero, reached=reached)
    interrupted = drive(counted, [task])
    if not task.results:
        raise KeyboardInterrupt("interrupted before a level was solved")
    return path_result(problem, levels, task.results, counted.passes - before, interrupted)


def path_result(
    problem: Problem, levels: Array, results: list[Result], readings: float, interrupted: bool
) -> PathResult:
    """Return the results at the first of these levels, without what solvers knew at the end.

    A solver's state holds a copy of the active columns: a result kept for long must not.
    """
    for result in results:
        result.state = None
    kept = np.asarray(levels[: len(results)])
    return PathResult(kept, results, problem.design.shape[1], readings, interrupted)
