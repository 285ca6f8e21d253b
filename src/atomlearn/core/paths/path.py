"""path: the solutions at a list of levels, each started from the solution before it.

A level is the weight of the norm in the objective, or the radius of the constrained form. A reading
of the data is one pass: it computes the scores X'v for one or more vectors v.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

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
from atomlearn.core.norms.registry import as_norm
from atomlearn.core.paths.ends import End
from atomlearn.core.paths.levels import (
    alpha_grid,
    check_levels,
    l1_ratio_of,
    largest_useful_alpha,
    scores_at_zero,
    with_l1_ratio,
)
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem, checked_problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result, together
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.schedule import drive
from atomlearn.core.solvers.solver import MAX_ITER, TOLERANCE, Solver
from atomlearn.core.solvers.stopping import StoppingRule


@dataclass(frozen=True, slots=True)
class PathResult:
    """The solutions along a path.

    Attributes
    ----------
    levels : (n_alphas,) float64
        alphas * l1_ratio, the weights of the norm: the most regularized first. For the constrained
        form the radii.
    results : list of Result
        One result for each alpha.
    n_features : int
        Number of columns of X.
    passes : float
        Number of readings of the data; one reading may serve several alphas.
    interrupted : bool
        Whether Ctrl-C ended the path early. It then has the alphas that were solved by then.
    l1_ratio : float
        Share of the norm in the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> y = np.array([3.0, 0.5, -2.0, 0.0])
    >>> found = paths.path(np.eye(4), y, alphas=[0.25, 0.6], fit_intercept=False)
    >>> found.alphas.tolist(), found.n_selected.tolist()
    ([0.6, 0.25], [1, 2])
    """

    levels: Array = field(repr=False)
    results: list[Result] = field(repr=False)
    n_features: int
    passes: float
    interrupted: bool = False
    l1_ratio: float = 1.0

    @property
    def alphas(self) -> Array:
        """Strengths of the penalty, or radii, shape (n_alphas,): the most regularized first."""
        return self.levels / self.l1_ratio

    def result_at(self, alpha: float) -> Result | None:
        """Return the solution at ``alpha``; None if the path does not have this alpha."""
        positions = np.flatnonzero(np.isclose(self.alphas, alpha, rtol=1e-12, atol=0.0))
        return self.results[positions[0]] if positions.size else None

    def first(self, count: int | None) -> PathResult:
        """Return the path with its first ``count`` levels only; with all of them if it is None."""
        return replace(self, levels=self.levels[:count], results=self.results[:count])

    @property
    def columns(self) -> Columns:
        """Columns with a non-zero coefficient for one alpha or more, increasing."""
        return together(self.results)[0]

    @property
    def coefs(self) -> Array:
        """Coefficients of ``columns`` (all others are zero), shape (n_alphas, len(columns))."""
        return together(self.results)[1]

    @property
    def intercepts(self) -> Array:
        """Intercepts, shape (n_alphas,), or (n_alphas, n_targets)."""
        return np.array([result.intercept for result in self.results])

    @property
    def objectives(self) -> Array:
        """Objectives, shape (n_alphas,)."""
        return np.array([result.objective for result in self.results])

    @property
    def relative_gaps(self) -> Array:
        """Proved relative gaps, shape (n_alphas,)."""
        return np.array([result.relative_gap for result in self.results])

    @property
    def n_selected(self) -> Columns:
        """Number of selected columns for each alpha, shape (n_alphas,)."""
        return np.array([result.columns.size for result in self.results], dtype=np.int64)

    @property
    def converged(self) -> bool:
        """Whether the requested gap is proved for every alpha, and no alpha is missing."""
        return not self.interrupted and all(result.converged for result in self.results)

    def predict(self, design: Design) -> Array:
        """Return the predictions X w + b for every alpha, shape (n_alphas, n_samples).

        ``design`` is the data X. With several targets the second axis has n_samples * n_targets
        entries: the predictions for the targets of one sample are adjacent.
        """
        columns, coefs = together(self.results)
        linear = design.product(coefs.T, columns).T
        # Add (n_alphas, 1, n_targets) intercepts to (n_alphas, n_samples, n_targets) predictions.
        shifts = self.intercepts.reshape(len(linear), 1, -1)
        rows = linear.reshape(len(linear), -1, shifts.shape[2])
        return (rows + shifts).reshape(linear.shape)


@own_parameters
def path(
    X: object,
    y: object,
    *,
    loss: str | Loss = "squared",
    norm: str | Norm = "l1",
    form: Form = "penalized",
    alphas: object = None,
    n_alphas: int = 100,
    alpha_ratio: float | None = None,
    l1_ratio: float = 1.0,
    fit_intercept: bool = True,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    stop: StoppingRule | None = None,
    solver: Solver | None = None,
    observers: Iterable[Observer] = (),
    until: End | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> PathResult:
    """Minimize the mean loss plus a penalty, for each alpha of a grid.

    The penalty is  alpha (l1_ratio R(w) + (1 - l1_ratio)/2 ||w||^2),  see ``solve``.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
        Data.
    y : array (n_samples,) or (n_samples, n_targets)
        Targets. With several targets, the columns of the problem are the entries of the matrix of
        coefficients: column j * n_targets + t is column j of X for target t.
    loss : str or Loss, default="squared"
        Loss of one sample.
    norm : str or Norm, default="l1"
        Norm of the penalty.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the norm enters, see ``solve``.
    alphas : array, optional
        Strengths of the penalty (radii for the constrained form), in any order. Default: a grid.
    n_alphas : int, default=100
        Size of the default grid, which begins at ``largest_useful_alpha``.
    alpha_ratio : float, optional
        Range of the default grid, see ``alpha_grid``.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, in (0, 1]. The constrained form needs 1.0: no ridge term.
    fit_intercept : bool, default=True
        Whether to fit an unpenalized intercept. Survival losses have none.
    sample_weight : array (n_samples,), optional
        Weights of the mean, >= 0 and not all zero.
    offset : array of the shape of y, optional
        Numbers added to the predictions.
    unpenalized : indices, mask or names of columns, optional
        Columns that are free of the penalty.
    tol : float, default=1e-6
        Relative duality gap to prove for each alpha.
    max_iter : int, default=1000
        Bound on the number of steps for each alpha.
    stop : StoppingRule, optional
        Further rules, which apply to each alpha.
    solver : Solver, optional
        Default: the one that the norm needs.
    observers : iterable of callables, default=()
        Called with the Progress of each alpha after each step.
    until : End, optional
        Ends the path early: ``NumberOfFeatures(50)``, ``ExplainedDeviance(0.99)``,
        ``NoImprovement(X_other, y_other)``. The alpha that fulfills it is the last one returned.
    checkpoint : folder, optional
        Keeps the path: the same call resumes a run that was killed. It starts at the points that
        were kept, and proves them again.

    Returns
    -------
    PathResult
        ``alphas`` with the most regularized first, ``results``, ``columns``, ``coefs``.

    Notes
    -----
    Several alphas are solved together over a pool of likely columns, each from the solution before
    it. One reading of the data then computes the scores X'v of all of them, which prove the gap of
    each. A path takes a dozen readings, and ``result.passes`` counts the readings that served an
    alpha. The same holds for norms over lifted coordinates (latent groups, chains, trees, unions),
    in which a column is repeated for each set that has it. With a ``solver`` of your own, or a norm
    that does not rate columns one by one (OWL, l2, nonnegative and matrix norms), alphas are solved
    one by one: in about two passes each. Observers are called for each alpha after each reading
    that served it.
    """
    # The strengths 1.0 and 0.0 are placeholders: ``with_l1_ratio`` sets the ridge term relative to
    # the level, and each alpha sets its level.
    penalty = Regularizer(as_norm(norm), form, 1.0)
    built = checked_problem(
        X, y, loss, penalty, 0.0, fit_intercept, sample_weight, offset, unpenalized
    )
    problem = with_l1_ratio(replace(built, design=Counted(built.design)), l1_ratio)
    # The default grid begins at the largest useful alpha, which the scores at w = 0 give.
    zero = None
    if alphas is None:
        zero = scores_at_zero(problem)
        levels = alpha_grid(largest_useful_alpha(problem, zero), n_alphas, alpha_ratio, form)
    else:
        levels = check_levels(alphas, form, "alphas") * l1_ratio
    settings = Settings(tol, max_iter, solver, stop, checkpoint=checkpoint)
    found = path_of(problem, levels, settings, observers, zero=zero, until=until)
    return replace(found, l1_ratio=l1_ratio)


def path_of(
    problem: Problem,
    levels: Array,
    settings: Settings,
    observers: Iterable[Observer] = (),
    zero: Scores | None = None,
    until: End | None = None,
) -> PathResult:
    """Return the solutions of a problem that is already built, at the levels in their order.

    Parameters
    ----------
    problem : Problem
        Its norm, form and share of the norm are used; its level does not matter.
    levels : (n_levels,)
        Weights of the norm, or radii, the most regularized first.
    settings : Settings
        Accuracy, solver and limits.
    observers : iterable of callables
        Called after each step, in addition to those of ``settings``.
    zero : Scores, optional
        The scores at w = 0 if they are known; their reading is counted as one pass.
    until : End, optional
        Ends the path early.
    """
    counted = Counted.of(problem.design)
    problem = replace(problem, design=counted)
    before = counted.passes - (zero is not None)
    settings = replace(settings, observers=(*settings.observers, *observers))
    reached = None if until is None else until.begin()
    # The task asks for scores, and ``drive`` answers by passes over the data until it is done.
    task = settings.task(problem, levels, zero=zero, reached=reached)
    interrupted = drive(counted, [task])
    if not task.results:
        raise KeyboardInterrupt("interrupted before a level was solved")
    return path_result(problem, levels, task.results, counted.passes - before, interrupted)


def path_result(
    problem: Problem, levels: Array, results: list[Result], readings: float, interrupted: bool
) -> PathResult:
    """Return the ``results`` at the first of these ``levels`` as the PathResult of ``problem``.

    ``readings`` is the number of passes over the data, ``interrupted`` whether Ctrl-C ended them.
    The states of the solvers are dropped, since each has a copy of the active columns.
    """
    for result in results:
        result.state = None
    kept = np.asarray(levels[: len(results)])
    n_features = problem.design.shape[1]
    share = l1_ratio_of(problem)
    return PathResult(kept, results, n_features, readings, interrupted, share)
