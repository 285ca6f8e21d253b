"""solve: minimize the mean loss plus a penalty, to a proved relative gap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.interfaces import (
    Form,
    Loss,
    Norm,
    WarmStart,
    is_number,
    own_parameters,
    positive,
)
from atomlearn.core.norms.registry import as_norm
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import checked_problem
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
    alpha: float | None = None,
    l1_ratio: float = 1.0,
    form: Form = "penalized",
    radius: float | None = None,
    fit_intercept: bool = True,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    solver: Solver | None = None,
    stop: StoppingRule | None = None,
    observers: Iterable[Observer] = (),
    warm_start: Any = None,
    time_limit: float | None = None,
) -> Result:
    """Minimize the mean loss plus  alpha (l1_ratio R(w) + (1 - l1_ratio)/2 ||w||^2).

    The mean loss is  sum_i s_i loss(y_i, x_i'w + b + o_i) / sum_i s_i. R(w) is the gauge of the
    norm ("penalized"), half its square ("squared"), or 0 within the radius ("constrained").

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
        Data. float32 stays float32 and sparse stays sparse.
    y : array (n_samples,), or (n_samples, n_tasks)
        Targets; for classification the labels -1 and +1 (or 0 and 1). Two dimensions make it a
        problem over W (n_features, n_tasks), with predictions X W: ``designs.Tasks``. The loss is
        then summed over tasks, and its mean is taken over samples.
    loss : str or Loss, default="squared"
        Loss of one sample, for example ``"logistic"`` or ``losses.Huber(1.5)``.
    norm : str or Norm, default="l1"
        Norm, for example ``"l1"`` or ``norms.KSupport(k=100)``.
    alpha : float
        Strength of the penalty. The constrained form needs no alpha; with ``l1_ratio`` below 1 it
        is the strength of the ridge term.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, in (0, 1]; the rest is the ridge term. In the constrained
        form, where R is 0 or infinite, it may be 0: the ridge term is (alpha/2) ||w||^2 then.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the norm enters.
    radius : float
        Bound on the norm, for the constrained form.
    fit_intercept : bool, default=True
        Whether to fit an unpenalized intercept b. Survival losses have none.
    sample_weight : array (n_samples,), optional
        Weights s_i >= 0, not all zero. A sample of weight 0 does not count.
    offset : array (n_samples,), optional
        Numbers o_i added to the predictions, such as the logarithm of an exposure.
    unpenalized : indices, mask or names of columns, optional
        Columns without a penalty, such as age and sex. The loss is minimized over their
        coefficients as over the intercept. They may depend on each other; ``coef`` has their
        coefficients in their places.
    tol : float, default=1e-6
        Relative duality gap to prove: gap / abs(objective).
    max_iter : int, default=1000
        Bound on the number of steps.
    solver : Solver, optional
        Default: column generation with the semismooth Newton master; ``AtomGeneration`` for a norm
        that is known by its best atom only (``norms.UserNorm``).
    stop : StoppingRule, optional
        Further rules, for example ``stopping.Seconds(60) | stopping.Passes(100)``.
    observers : iterable of callables, default=()
        Called with the Progress after each step, for example ``PrintProgress()``.
    warm_start : Result, WarmStart or coefficients, optional
        Where to begin: an earlier result, or an array (n_features,), with a new intercept.
    time_limit : float, optional
        Seconds after which the best point so far is returned with its proved gap and the status
        ``TIME_LIMIT``. The first pass over the data is always finished.

    Returns
    -------
    Result
        ``coef, intercept, objective, gap, relative_gap, status, passes, seconds, history``, in
        float64 also if X is float32. The objective and the gap are of the mean loss.
        ``verify()`` computes both bounds again.

    Raises
    ------
    ValueError, TypeError
        Before any arithmetic. The message names the error and the remedy.

    Notes
    -----
    Each step costs one pass over X plus the re-fit over the active columns. A result with
    ``status.is_converged`` has the gap proved at the returned point, intercept and sample
    weights included.
    """
    # Check the settings, then the penalty, then the data; nothing is computed before.
    tol = positive("tol", tol, "relative duality gap to prove, for example 1e-6")
    settings = Settings(tol, max_iter, solver, _with_time_limit(stop, time_limit), tuple(observers))
    amount, tau = _amounts(form, alpha, l1_ratio, radius)
    penalty = Regularizer(as_norm(norm), form, amount)
    with single_threaded_blas():
        problem = checked_problem(
            X, y, loss, penalty, tau, fit_intercept, sample_weight, offset, unpenalized
        )
        result = settings.run(problem, _start(warm_start, problem.design.shape[1]))
        result.problem = problem
        return result


def _with_time_limit(stop: StoppingRule | None, time_limit: float | None) -> StoppingRule | None:
    """Return the rule ``stop`` combined with a limit of ``time_limit`` seconds.

    Each of the two may be None, if the user gave none; None for both returns None.
    """
    if time_limit is None:
        return stop
    limit = Seconds(positive("time_limit", time_limit, "seconds, for example 60"))
    return limit if stop is None else limit | stop


def _start(warm_start: Any, n_features: int) -> WarmStart | None:
    """Return the initial point of a solve as a WarmStart; None means w = 0.

    ``warm_start`` is a result, a warm start or an array of ``n_features`` coefficients.
    """
    if isinstance(warm_start, Result):
        return warm_start.warm_start()
    if warm_start is None or isinstance(warm_start, WarmStart):
        return warm_start
    # Otherwise these are coefficients, one for each column, in any shape.
    coef = np.asarray(warm_start)
    if coef.dtype.kind not in "iuf" or coef.size != n_features:
        raise TypeError(
            f"warm_start must be a Result, a WarmStart, or {n_features} coefficients, got "
            f"{type(warm_start).__name__} of shape {coef.shape}"
        )
    weights = coef.astype(np.float64).ravel()
    columns = np.flatnonzero(weights)
    return WarmStart(columns, weights[columns])


def _amounts(
    form: str, alpha: float | None, l1_ratio: float, radius: float | None
) -> tuple[float, float]:
    """Return the amount of the regularizer and the weight tau of the ridge term.

    The arguments are those of ``solve``; raise if they do not fit together. For the form
    "constrained" the amount is the radius, else it is alpha * l1_ratio.
    """
    if not (is_number(l1_ratio) and 0 <= l1_ratio <= 1):
        raise ValueError(f"l1_ratio must be a number from 0 to 1, got {l1_ratio!r}")
    if alpha is not None:
        alpha = positive("alpha", alpha, "strength of the penalty of the mean loss")
    if form == "constrained":
        return _constrained(alpha, l1_ratio, radius)
    if alpha is None:
        raise ValueError(
            f"form={form!r} needs alpha=, a positive number; a first value: "
            "0.1 * paths.path(X, y, n_alphas=1, loss=..., norm=..., form=...).alphas[0]"
        )
    if radius is not None:
        raise ValueError(f"form={form!r} takes alpha= and not radius=; leave radius out")
    if l1_ratio == 0:
        raise ValueError(
            "l1_ratio=0 leaves no weight for the norm; for the ridge penalty alone use norm='l2' "
            "and form='squared'"
        )
    return alpha * l1_ratio, alpha * (1 - l1_ratio)


def _constrained(alpha: float | None, l1_ratio: float, radius: float | None) -> tuple[float, float]:
    """Return the radius and the weight tau of the ridge term, for the form "constrained".

    The arguments are those of ``solve``. ``alpha`` and ``l1_ratio`` below 1 are given only for a
    ridge term, of weight alpha * (1 - l1_ratio).
    """
    if radius is None:
        raise ValueError(
            "form='constrained' needs radius=, a positive number; a first value: half of "
            "norm.value(result.coef) of a penalized fit"
        )
    if (alpha is None) != (l1_ratio == 1):
        raise ValueError(
            "form='constrained' takes radius=, and alpha= only for a ridge term: leave alpha and "
            f"l1_ratio out, or give both, with l1_ratio below 1; got alpha={alpha!r} and "
            f"l1_ratio={l1_ratio!r}"
        )
    return radius, 0.0 if alpha is None else alpha * (1 - l1_ratio)
