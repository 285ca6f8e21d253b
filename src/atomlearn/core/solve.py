"""solve: minimise sum_i s_i loss_i + (tau/2)||w||^2 + R(w) to a proved relative gap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.catalogue import TARGETS, loaded
from atomlearn.core.data.convert import as_design, feature_names
from atomlearn.core.interfaces import Design, Form, Loss, Norm, WarmStart, own_parameters, positive
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.norms.names import named, named_columns
from atomlearn.core.norms.registry import as_norm
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.checks import check_free
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.solver import MAX_ITER, TOLERANCE, Solver
from atomlearn.core.solvers.stopping import Seconds, StoppingRule


@own_parameters
def solve(
    X: object,
    y: object,
    *,
    loss: str | Loss = "squared",
    norm: str | Norm = "l1",
    level: float | None = None,
    radius: float | None = None,
    form: Form = "penalized",
    tau: float = 0.0,
    intercept: bool = False,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    gap: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    solver: Solver | None = None,
    stop: StoppingRule | None = None,
    observers: Iterable[Observer] = (),
    warm_start: Any = None,
    time_limit: float | None = None,
) -> Result:
    """Minimise  sum_i s_i loss(y_i, x_i'w + b + o_i) + (tau/2) ||w||^2 + R(w)  to a proved gap.

    R(w) = level * gauge(w) ("penalized"), (level/2) * gauge(w)^2 ("squared"), or 0 where
    gauge(w) <= radius ("constrained").

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
        float32 stays float32 and sparse stays sparse.
    y : array (n_samples,), or (n_samples, n_tasks)
        Targets; for classification the labels -1 and +1 (or 0 and 1). Two dimensions make it a
        problem over W (n_features, n_tasks), with predictions X W: ``designs.Tasks``.
    loss : {"squared", "logistic", "squared_hinge"} or Loss
    norm : name or Norm
        For example ``"l1"`` or ``norms.KSupport(k=100)``.
    level : float
        Weight of the norm; for the penalized and the squared form.
    radius : float
        Bound on the norm; for the constrained form.
    form : {"penalized", "squared", "constrained"}
    tau : float
        Weight of the ridge term.
    intercept : bool
        Whether to fit an unpenalized intercept b.
    sample_weight : array (n_samples,), optional
        Weights s_i >= 0, not all zero.
    offset : array (n_samples,), optional
        Numbers o_i added to the predictions, such as the logarithm of an exposure.
    unpenalized : indices, mask or names of columns, optional
        Columns that neither the norm nor the ridge term sees, such as age and sex: f is minimized
        over their coefficients as over the intercept. In the norm their entries are at whatever
        is best for it: 0, for norms that no sign and no zero makes larger. They may depend on each
        other; ``coef`` has their coefficients in their places.
    gap : float
        Relative duality gap to prove: gap / abs(objective).
    max_iter : int
        Bound on steps.
    solver : Solver, optional
        Default: column generation with the semismooth Newton master; for a norm known by its
        best atom alone (``norms.UserNorm``), ``AtomGeneration``.
    stop : StoppingRule, optional
        Further rules, for example ``stopping.Seconds(60) | stopping.Passes(100)``.
    observers : iterable of callables
        Called with the Progress after each step, for example ``PrintProgress()``.
    warm_start : Result, WarmStart or coefficients, optional
        Where to begin: an earlier result, or an array (n_features,), the intercept found anew.
    time_limit : float, optional
        Seconds after which the best point so far is returned with its proved gap, and status
        ``TIME_LIMIT``. The first pass over the data is always finished.

    Returns
    -------
    Result
        ``coef, intercept, objective, gap, relative_gap, status, passes, seconds, history``. All of
        it in float64, also where X is float32. ``verify()`` computes both bounds again.

    Raises
    ------
    ValueError, TypeError
        Before any arithmetic, naming what is wrong and the remedy.

    Notes
    -----
    Each step costs one pass over X plus the re-fit over the active columns. A result with
    ``status.is_converged`` has the gap proved at the returned point, intercept and sample
    weights included.
    """
    gap = positive("gap", gap, "relative duality gap to prove, for example 1e-6")
    settings = Settings(gap, max_iter, solver, _limited(stop, time_limit), tuple(observers))
    penalty = Regularizer(as_norm(norm), form, _amount(form, level, radius))
    with single_threaded_blas():
        problem = checked_problem(
            X, y, loss, penalty, tau, intercept, sample_weight, offset, unpenalized
        )
        result = settings.run(problem, _start(warm_start, problem.design.shape[1]))
        result.problem = problem
        return result


def checked_problem(
    X: object,
    y: object,
    loss: str | Loss,
    penalty: Regularizer,
    tau: float,
    intercept: bool,
    sample_weight: object,
    offset: object,
    unpenalized: object,
) -> Problem:
    """Return the problem of what ``solve`` takes, checked; several targets are one long one."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    names = None if unpenalized is None else feature_names(X)
    if len(shape) == 2 and shape[1] > 1:
        X, y, sample_weight = loaded(TARGETS[-1])(X, y, sample_weight, intercept)
    the_loss = as_loss(loss)
    the_norm = named(penalty.norm, feature_names(X))
    design = as_design(X)
    return Problem.build(
        design,
        y,
        the_loss,
        penalty.of(the_norm),
        tau=tau,
        fit_intercept=intercept,
        sample_weight=sample_weight,
        offset=None if offset is None else np.reshape(np.asarray(offset), -1),
        unpenalized=_free(unpenalized, names, shape, design),
    )


def _limited(stop: StoppingRule | None, time_limit: float | None) -> StoppingRule | None:
    """Return the stopping rule with a limit of seconds, where one is given."""
    if time_limit is None:
        return stop
    limit = Seconds(positive("time_limit", time_limit, "seconds, for example 60"))
    return limit if stop is None else limit | stop


def _start(given: Any, n_features: int) -> WarmStart | None:
    """Return the point where a solve begins: a result, a warm start, or coefficients."""
    if isinstance(given, Result):
        return given.warm_start()
    if given is None or isinstance(given, WarmStart):
        return given
    coef = np.asarray(given)
    if coef.dtype.kind not in "iuf" or coef.size != n_features:
        raise TypeError(
            f"warm_start must be a Result, a WarmStart, or {n_features} coefficients, got "
            f"{type(given).__name__} of shape {coef.shape}"
        )
    weights = coef.astype(np.float64).ravel()
    columns = np.flatnonzero(weights)
    return WarmStart(columns, weights[columns])


def _free(
    unpenalized: object, names: list[str] | None, shape: tuple[int, ...], design: Design
) -> object:
    """Return free columns by index; of several targets a column of X is a row of W."""
    free = named_columns(unpenalized, names, "unpenalized")
    if free is None or len(shape) != 2 or shape[1] <= 1:
        return free
    rows = check_free(free, design.shape[1] // shape[1])
    return (rows[:, None] * shape[1] + np.arange(shape[1])).reshape(-1)


def _amount(form: str, level: float | None, radius: float | None) -> float:
    """Return level or radius, whichever the form needs; refuse the other one."""
    name = "level"
    given = level
    other = radius
    if form == "constrained":
        name = "radius"
        given = radius
        other = level
    if given is None:
        begin = "0.1 * paths.path(X, y, n_levels=1, loss=..., norm=..., form=...).levels[0]"
        if name == "radius":
            begin = "half of norm.value(result.coef) of a fit at a level"
        raise ValueError(
            f"form={form!r} needs {name}=, a positive number; for one to begin with: {begin}"
        )
    if other is not None:
        unused = "level" if name == "radius" else "radius"
        raise ValueError(f"form={form!r} takes {name}= and not {unused}=; leave {unused} out")
    return given
