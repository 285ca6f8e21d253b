"""Problem: a penalized empirical risk; functions that transform it and evaluate its objective.

The norm is called a gauge, as it may be infinite for some w. The level is the strength of the
penalty. Free columns are columns without a penalty; their coefficients are fitted by the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn._support import check_offset, check_weight, mean_weight
from atomlearn.core.catalogue import TARGETS, loaded
from atomlearn.core.data.convert import as_design, feature_names
from atomlearn.core.data.lifted import Lifted
from atomlearn.core.data.scores import ShiftedScores
from atomlearn.core.interfaces import (
    EPS,
    Array,
    Columns,
    Deadline,
    Design,
    Lift,
    Loss,
    Norm,
    Scores,
)
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.interfaces.forwarding import wrappers
from atomlearn.core.losses import pieces
from atomlearn.core.losses.around import Offset, bare_loss
from atomlearn.core.losses.free_columns import FreeColumns, free_columns, known_offset, plain_loss
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.losses.shift import optimal_shift, without_surplus
from atomlearn.core.norms.names import named_columns
from atomlearn.core.problem.checks import check_free, check_intercept, check_loss, check_tau
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import Measured, less


@dataclass(frozen=True)
class Problem:
    """min over w, b of  f(X w + b) + (tau/2) ||w||^2 + R(w),  f(z) = sum_i s_i loss(y_i, z_i).

    y are the targets, s the sample weights, b the intercept and R the penalty. ``Problem.build``
    checks all parts; the constructor and ``dataclasses.replace`` check nothing. Functions of this
    module evaluate the objective and its gradient, and make one problem of another; duality gaps
    are in the module ``proof``.

    Parameters
    ----------
    loss : Loss
        It includes any offset and unpenalized columns (``Offset``, ``FreeColumns``). With
        unpenalized columns, f is the minimum over their coefficients, so that solvers need not
        handle them.
    design : Design
        The data X, shape (n_samples, n_features).
    y, weight : array (n_samples,)
        Targets and sample weights, float64, checked.
    regularizer : Regularizer
        R: norm, form and amount.
    tau : float, default=0.0
        Weight of the ridge term.
    fit_intercept : bool, default=False
        Whether b is fitted, without a penalty.
    metric : array, optional
        M of a ridge term (tau/2) w'Mw: U'U if w are the weights of atoms U. None: the identity.
    measured : Measured
        A cache of the Euclidean norms of columns, which bounds on rounding errors need.
    deadline : Deadline
        When masters and long steps return their best point; set by ``run``.
    origin : float, default=0.0
        Number that was subtracted from the targets; the intercept of a result includes it.
    free : array of int, optional
        Columns of X without a penalty; their coefficients belong to the loss.

    References
    ----------
    [V] section 2 and [L] section 3 for the problem, its dual and the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> X, y = designs.as_design(np.eye(2)), np.array([3.0, 1.0])
    >>> penalty = problem.Regularizer(norms.L1(), "penalized", 1.0)
    >>> task = problem.Problem.build(X, y, losses.as_loss("squared"), penalty)
    >>> w = np.array([2.0, 0.0])
    >>> gap = problem.prove(task, None, w, prediction=w).certificate.gap
    >>> 0.0 < gap < 1e-13  # the optimum, up to rounding
    True
    """

    loss: Loss
    design: Design
    y: Array
    weight: Array
    regularizer: Regularizer
    tau: float = 0.0
    fit_intercept: bool = False
    metric: Array | None = None
    measured: Measured = field(default_factory=Measured, compare=False, repr=False)
    deadline: Deadline = field(default_factory=Deadline)
    origin: float = 0.0
    free: Columns | None = None

    @classmethod
    def build(
        cls,
        design: Design,
        y: object,
        loss: Loss,
        regularizer: Regularizer,
        *,
        tau: float = 0.0,
        fit_intercept: bool = False,
        sample_weight: object = None,
        offset: object = None,
        unpenalized: object = None,
    ) -> Problem:
        """Return the problem of these parts, after checks of each part and that they fit together.

        Parameters
        ----------
        design : Design
            The data X.
        y : array (n_samples,), or None
            Targets; None if they are stored with the rows of the design.
        loss : Loss
        regularizer : Regularizer
            The penalty R.
        tau : float, default=0.0
            Weight of the ridge term.
        fit_intercept : bool, default=False
        sample_weight : array (n_samples,), optional
            Weights >= 0; None: all 1.
        offset : array (n_samples,), optional
            Numbers that are added to the predictions.
        unpenalized : indices or mask, optional
            Columns without a penalty.

        Returns
        -------
        Problem

        Raises
        ------
        ValueError, TypeError
            Before any arithmetic, with the remedy.
        """
        n_samples = design.shape[0]
        # Ones replace the targets for now if y is None.
        target = np.ones(n_samples) if y is None else loss.check_target(y)
        if target.shape[0] != n_samples:
            raise ValueError(
                f"X has {n_samples} rows and y has {target.shape[0]} targets; "
                "they must describe the same samples"
            )
        check_tau(tau)
        weight = check_weight(sample_weight, n_samples)
        problem = of_checked_data(design, target, weight, loss, regularizer, fit_intercept)
        problem = replace(problem, tau=float(tau))
        unpenalized = () if unpenalized is None else unpenalized
        problem = changed(problem, offset=offset, unpenalized=unpenalized)
        if y is not None:
            return problem
        # The targets are stored with the rows, on other machines. ``over_sums`` returns a problem
        # that uses them; if it cannot, the targets are missing.
        summed = over_sums(replace(problem, y=np.zeros(0)))
        if not summed.y.size:
            loss.check_target(y)  # which raises, and names the targets of this loss
        return summed


def of_checked_data(
    design: Design, y: Array, s: Array, loss: Loss, penalty: Regularizer, intercept: bool
) -> Problem:
    """Return the problem of targets ``y`` and sample weights ``s`` that were already checked.

    ``design`` is X, ``penalty`` is R, and ``intercept`` is whether an intercept is fitted. Only the
    norm and the value of ``loss`` at 0 are checked here.
    """
    # ``on`` checks the norm for this number of columns, and for the shape of the matrix if the
    # columns are the entries of a matrix.
    norm = penalty.norm.on(design.shape[1], design.traits.matrix_shape)
    check_loss(loss, y, s, intercept)
    return Problem(loss, design, y, s, penalty.of(norm), fit_intercept=bool(intercept))


def checked_problem(
    X: object,
    y: object,
    loss: str | Loss,
    penalty: Regularizer,
    tau: float,
    fit_intercept: bool,
    sample_weight: object,
    offset: object,
    unpenalized: object,
) -> Problem:
    """Return the checked problem of the arguments of ``solve``; its sample weights add up to 1.

    Several targets become one long target, whose loss fits one intercept for each of them.

    Parameters
    ----------
    X, y : object
        Data and targets, in any form that ``solve`` accepts.
    loss : str or Loss
    penalty : Regularizer
        R, with the norm as the user gave it.
    tau : float
        Weight of the ridge term.
    fit_intercept : bool
    sample_weight, offset, unpenalized : object
        As in ``solve``; None: none.
    """
    # Counts of successes and failures in two columns become one target with weights.
    the_loss = as_loss(loss)
    y, sample_weight = the_loss.one_target(y, sample_weight)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    names = None if unpenalized is None else feature_names(X)
    design = as_design(X)
    weight = mean_weight(sample_weight, design.shape[0])
    if the_loss.task == "survival":
        fit_intercept = False
    check_intercept(fit_intercept)
    # Several targets: a function of the catalogue, loaded here, returns X, one long target, and the
    # weights and loss for it.
    if len(shape) == 2 and shape[1] > 1:
        long = loaded(TARGETS[-1])(X, y, weight, the_loss, fit_intercept)
        X, y, weight, the_loss, fit_intercept = long
        design = as_design(X)
    # Names of columns in the norm become indices. A norm that needs names says so if X has none.
    column_names = feature_names(X)
    the_norm = penalty.norm if column_names is None else penalty.norm.with_names(column_names)
    return Problem.build(
        design,
        y,
        the_loss,
        penalty.of(the_norm),
        tau=tau,
        fit_intercept=fit_intercept,
        sample_weight=weight,
        offset=None if offset is None else np.reshape(np.asarray(offset), -1),
        unpenalized=_free_columns(unpenalized, names, shape, design),
    )


def _free_columns(
    unpenalized: object, names: list[str] | None, shape: tuple[int, ...], design: Design
) -> object:
    """Return the unpenalized columns of the problem by index; None if there are none.

    ``unpenalized`` are indices, a mask or names of columns of X, and ``names`` are the names of all
    columns of X. ``shape`` is the shape of the user's y. With several targets, the columns of
    ``design`` are the entries of a matrix W, row after row, and a column of X is a row of W.
    """
    free = named_columns(unpenalized, names, "unpenalized")
    if free is None or len(shape) != 2 or shape[1] <= 1:
        return free
    # With q targets, row i of W has the columns i q, ..., i q + q - 1 of the design.
    rows = check_free(free, design.shape[1] // shape[1])
    return (rows[:, None] * shape[1] + np.arange(shape[1])).reshape(-1)


def over_sums(problem: Problem) -> Problem:
    """Return an equivalent problem that needs only sums over rows, for rows on other machines.

    It is ``problem`` itself if its rows are in this process, or if sums over rows do not suffice.
    """
    # ``row_access`` states how the rows are reached; by default it returns the problem unchanged.
    summed: Problem = problem.design.row_access.summed(problem)
    if summed is problem:
        return problem
    # Wrappers such as the counter of passes are put around the new design.
    design = summed.design
    for wrapper in wrappers(problem.design):
        design = wrapper.around(design)
    return replace(summed, design=design)


def changed(
    problem: Problem,
    *,
    norm: Norm | None = None,
    amount: float | None = None,
    offset: object = None,
    unpenalized: object = None,
    deadline: Deadline | None = None,
) -> Problem:
    """Return ``problem`` with other parts; a part that is None stays as it is.

    Parameters
    ----------
    problem : Problem
    norm : Norm, optional
        Replaces the norm. Columns that it does not penalize become free.
    amount : float, optional
        The level of the penalty, or the radius. The ridge weight ``tau`` is scaled with the level,
        so that the ridge term keeps its share of the penalty. A radius leaves ``tau`` unchanged.
    offset : array (n_samples,), optional
        It is added to X w + b, and to an offset that the problem has already.
    unpenalized : indices or mask, optional
        More columns without a penalty, and those that the norm does not penalize; see
        ``_with_free``. Without indices, ``()``, it is only the latter.
    deadline : Deadline, optional
        A time limit, unless that of the problem is earlier.
    """
    if offset is not None:
        problem = _with_offset(problem, offset)
    if norm is not None:
        norm = norm.on(problem.design.shape[1], problem.design.traits.matrix_shape)
        problem = replace(problem, regularizer=problem.regularizer.of(norm))
        unpenalized = () if unpenalized is None else unpenalized
    if unpenalized is not None:
        problem = _with_free(problem, unpenalized)
    penalty = problem.regularizer
    if amount is not None and amount != penalty.amount:
        share = 1.0 if penalty.form == "constrained" else amount / penalty.amount
        penalty = replace(penalty, amount=amount)
        problem = replace(problem, regularizer=penalty, tau=problem.tau * share)
    sooner = problem.deadline if deadline is None else problem.deadline.sooner(deadline)
    return problem if sooner is problem.deadline else replace(problem, deadline=sooner)


def _with_offset(problem: Problem, offset: object) -> Problem:
    """Return ``problem`` with ``offset`` (n_samples,) added to X w + b, and to a known offset."""
    numbers = check_offset(offset, problem.y.size)
    # Unpenalized columns are part of the loss. They are taken off it, and put back at the end.
    free = free_columns(problem.loss)
    bare = bare_loss(problem.loss)
    known = known_offset(problem.loss)
    numbers = numbers if known is None else numbers + known
    # For these losses the offset is subtracted from the targets. Their loss must not overflow.
    if bare.translates:
        check_loss(bare, problem.y - numbers, problem.weight, problem.fit_intercept)
    loss = Offset(bare, numbers)
    return replace(problem, loss=loss if free is None else free.around(loss))


def _with_free(problem: Problem, unpenalized: object) -> Problem:
    """Return ``problem`` in which the columns ``unpenalized`` (indices or a mask) have no penalty.

    Columns that are free already stay free, and columns that the norm does not penalize become
    free. All of them remain columns of X, but their coefficients are fitted by the loss. At every
    point the loss is minimal in these coefficients, so that the scores X'v of free columns are 0.
    Hence their entries of w stay 0, if setting an entry to 0 never increases the norm.
    """
    n_features = problem.design.shape[1]
    norm = problem.regularizer.norm
    free = check_free(unpenalized, n_features)
    if problem.free is not None:
        free = np.union1d(problem.free, free)
    # Add the columns that the norm itself does not penalize.
    free, norm = norm.without(free, n_features)
    if not free.size:
        return problem
    regularizer = problem.regularizer.of(norm)
    if problem.free is not None and np.array_equal(free, problem.free):
        return replace(problem, regularizer=regularizer)
    free_data = np.asarray(problem.design.gather(free).dense(), dtype=np.float64)
    # Samples of weight 0 must not affect the scale of the free columns.
    free_data = np.where((problem.weight > 0.0)[:, None], free_data, 0.0)
    intercept = problem.fit_intercept
    earlier = free_columns(problem.loss)
    if earlier is not None:
        # The loss has free columns already. Sparse ones are the intercepts of several targets: all
        # are kept. Of dense ones, the first ``n_before`` are the columns ``problem.free`` of X,
        # which ``free_data`` has, too. The others are kept.
        intercept = earlier.intercept
        other_columns = earlier.columns
        n_before = 0 if problem.free is None else problem.free.size
        other_columns = (
            other_columns.toarray() if earlier.is_sparse else other_columns[:, n_before:]
        )
        free_data = np.hstack([free_data, other_columns])
    loss = FreeColumns(plain_loss(problem.loss), free_data, intercept)
    return replace(problem, loss=loss, fit_intercept=False, free=free, regularizer=regularizer)


def restrict(problem: Problem, block: Design, columns: Columns) -> Problem:
    """Return the problem over the coefficients of ``columns`` only; all others are zero.

    ``block`` has the data of these columns.
    """
    norm = problem.regularizer.norm
    restricted = norm.restrict(columns, problem.design.shape[1])
    if restricted is None:
        raise TypeError(
            f"{type(norm).__name__} cannot be restricted to a few columns; "
            "use a solver over its atoms, or FISTA over all columns"
        )
    # If the rows are on other machines, the restricted problem has to use them too.
    smaller = replace(problem, design=block, regularizer=problem.regularizer.of(restricted))
    result: Problem = problem.design.row_access.restrict(smaller, block)
    return result


def enter(problem: Problem, lifts: bool) -> tuple[Problem, Lift | None]:
    """Return the problem in lifted coordinates u, and the lift; (problem, None) without a lift.

    Some norms are inf { inner(u) : L u = w }, for a simpler norm ``inner`` of more coordinates u.
    The lift is the pair of this norm and the matrix L. The problem min over w of f(X w) + R(norm of
    w) then equals min over u of f(X L u) + R(inner(u)). A point u gives the point w = L u, and the
    objective and duality gap at u are valid bounds for w.

    ``lifts`` : whether the solver accepts lifted coordinates.
    """
    norm = problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1]) if lifts else None
    if lift is None:
        return problem, None
    if problem.tau:
        raise ValueError(
            f"a ridge term mixes the overlapping parts of {type(norm).__name__}, which are "
            "solved for apart; use l1_ratio=1, or a solver over atoms such as "
            "solvers.AtomGeneration()"
        )
    design = Lifted(problem.design, lift.expansion)
    return replace(problem, design=design, regularizer=problem.regularizer.of(lift.norm)), lift


def center_targets(problem: Problem) -> Problem:
    """Return the equivalent problem with targets y - c, for c the best constant prediction.

    c is added to ``origin``, and a Result adds ``origin`` back to the intercept. Residuals of
    targets such as 1e6 + noise then lose no digits. Without an intercept c = 0. An offset of the
    predictions is subtracted from the targets, too. The problem is unchanged if loss(y, z + c)
    differs from loss(y - c, z).
    """
    if not problem.loss.translates:
        return problem
    loss = problem.loss
    free = free_columns(problem.loss)
    constant = 0.0
    # The loss without its offset, since the offset is subtracted from the targets. ``around`` puts
    # the unpenalized columns back.
    known = known_offset(loss)
    offset: Array | float = 0.0 if known is None else known
    if known is not None:
        loss = bare_loss(loss) if free is None else free.around(bare_loss(loss))
    if problem.fit_intercept or (free is not None and free.intercept):
        y = problem.y - offset
        constant = optimal_shift(bare_loss(loss), y, problem.weight, np.zeros(y.size))
    # Both are subtracted with one rounding.
    y = less(problem.y, offset, constant)
    return replace(problem, loss=loss, y=y, origin=problem.origin + constant)


# --- values and slopes -----------------------------------------------------------------------


def objective_at(
    problem: Problem, weights: Array, prediction: Array, gauge: float | None = None
) -> float:
    """Return the objective F of ``problem`` at a point with predictions ``prediction`` = X w + b.

    ``weights`` are the coefficients; ``gauge`` is their gauge, which is computed if it is None.
    """
    gauge = problem.regularizer.norm.value(weights) if gauge is None else gauge
    smooth = loss_value(problem, prediction)
    if problem.tau:
        smooth += 0.5 * float(weights @ ridge_slope(problem, weights))
    return smooth + problem.regularizer.value(gauge)


def ridge_slope(problem: Problem, weights: Array) -> Array:
    """Return the gradient of the ridge term, tau w, or tau M w with a metric M; w = ``weights``."""
    return problem.tau * (weights if problem.metric is None else problem.metric @ weights)


def loss_value(problem: Problem, linear: Array, shift: float = 0.0) -> float:
    """Return f(linear + shift) for predictions ``linear`` (n_samples,) and a constant ``shift``.

    f is the loss of ``problem``. It is computed without a temporary array of n_samples numbers.
    """
    return pieces.value(problem.loss, problem.y, linear, problem.weight, shift)


def loss_gradient(problem: Problem, linear: Array, shift: float = 0.0) -> Array:
    """Return f'(linear + shift), (n_samples,), for X w = ``linear`` and a constant ``shift``.

    f is the loss of ``problem``.
    """
    return pieces.gradient(problem.loss, problem.y, linear, problem.weight, shift)


def negligible_objective(problem: Problem) -> float:
    """Return the largest objective of ``problem`` that rounding cannot distinguish from 0.

    For numbers y, it is the objective of residuals of 8 eps times y. For labels y, whose losses
    only tend to 0, it is eps f(0) / 1000.
    """
    least = 1e-3 * EPS if problem.loss.task == "classification" else 64.0 * EPS**2
    return least * loss_at_zero(problem)


def is_perfect(problem: Problem, certificate: Certificate) -> bool:
    """Return whether the objective in ``certificate``, and with it the gap, is 0 up to rounding.

    ``certificate`` has the objective, the gap, and a bound on their rounding errors. If the means
    of columns are much larger than their deviations, that bound is large. Then a larger objective
    of ``problem`` counts as 0, too, up to the objective of residuals of 1e-12 times y.
    """
    # Squared residuals of 1e-12 times y are 1e-24 times f(0), which is about eps^1.5.
    allowed = min(certificate.rounding, EPS**1.5 * loss_at_zero(problem))
    return bool(certificate.objective <= max(negligible_objective(problem), allowed))


def loss_at_zero(problem: Problem) -> float:
    """Return f(0) of the bare loss of ``problem`` (without offset and unpenalized columns).

    ``negligible_objective`` and tolerances are relative to it.
    """
    return problem.measured.loss_at_zero(problem.loss, problem.y, problem.weight)


def shrink_inside(problem: Problem, columns: Columns | None, weights: Array) -> Array:
    """Return the weights on ``columns``, scaled into the ball for the form "constrained".

    The ball is { w : gauge(w) <= radius }. For other forms the weights are unchanged. ``problem``
    has the norm, the form and the radius. ``columns`` None: the weights are on all columns.
    """
    if problem.regularizer.form != "constrained" or not weights.size:
        return weights
    return problem.regularizer.inside(weights, gauge_of(problem, columns, weights))


def gauge_of(problem: Problem, columns: Columns | None, weights: Array) -> float:
    """Return the gauge (norm) of the point with ``weights`` on ``columns``; None: on all.

    The norm is that of ``problem``.
    """
    norm = problem.regularizer.norm
    n_features = problem.design.shape[1]
    if columns is not None:
        # The norm over these columns only is cheaper, if there is one.
        restricted = norm.restrict(columns, n_features)
        if restricted is not None:
            return restricted.value(weights)
        dense = np.zeros(n_features)
        dense[columns] = weights
        weights = dense
    return norm.value(weights)


def negative_gradient(problem: Problem, prediction: Array) -> Array:
    """Return v = -f'(z), (n_samples,), at z = ``prediction``; sum(v) = 0 if there is an intercept.

    At the optimal intercept the sum is 0 up to rounding. The remainder is subtracted from the
    positive entries if it is positive, else from the negative ones. These entries only shrink
    towards 0, so -v stays in the domain of f* and is a feasible dual point. The duality gap is then
    a bound for every intercept b.
    """
    v = loss_gradient(problem, prediction)
    np.negative(v, out=v)
    return without_surplus(v) if problem.fit_intercept else v


def optimal_intercept(problem: Problem, linear: Array, start: float = 0.0) -> float:
    """Return argmin_b f(linear + b) by safeguarded Newton steps from ``start``, O(n_samples) each.

    ``linear`` is X w. The result is 0.0 if ``problem`` has no intercept. At the result, the
    derivative of f in b is 0 up to rounding, as duality gaps require. If the minimum is at infinity
    (one class only), the steps end where the derivative is 0 up to rounding.
    """
    if not problem.fit_intercept:
        return 0.0
    return optimal_shift(problem.loss, problem.y, problem.weight, linear, start)


def with_ridge(problem: Problem, scores: Scores, columns: Columns | None, weights: Array) -> Scores:
    """Return the negative gradient of loss plus ridge term, X'v - tau w, from ``scores`` = X'v.

    tau is the ridge weight of ``problem``, and ``weights`` are the coefficients w on ``columns``;
    None: all columns.
    """
    if not problem.tau or not weights.size:
        return scores
    slope = ridge_slope(problem, weights)
    if columns is None:
        columns = np.flatnonzero(slope)
        slope = slope[columns]
    return ShiftedScores(scores, columns, slope)


def free_part(problem: Problem, prediction: Array) -> tuple[Array, float] | None:
    """Return the unpenalized coefficients and the intercept that were fitted inside the loss.

    Both are optimal for ``prediction`` (n_samples,), the predictions of the penalized columns at a
    point of ``problem``. None if the loss fits neither coefficients nor an intercept.
    """
    free = free_columns(problem.loss)
    if free is not None:
        fitted: tuple[Array, float] = free.free_part(problem.y, prediction, problem.weight)
        return fitted
    # If the rows are on other machines, their part of the problem fits the intercept.
    intercept = problem.design.row_access.intercept(prediction)
    return None if intercept is None else (np.zeros(0), intercept)
