"""Confidence intervals of coefficients: debiased lasso and post-selection inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike
from scipy.stats import chi2, f
from sklearn.base import clone

from atomlearn._support import TINY, check_share, own_parameters
from atomlearn.core import L1, Array, Columns, as_design, is_opened, is_quadratic, l1_weights
from atomlearn.estimators.checks import amount_of, encoded_rows, input_names
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.cross_validated_survival import AtomicSurvivalCV
from atomlearn.estimators.dependent_rows import fit_parameters, held_out
from atomlearn.estimators.subsets import SubsetRegressor
from atomlearn.findings.carving import REACH, Inference, carved, truncated
from atomlearn.findings.halves import own_problem
from atomlearn.findings.hazards import hazard_directions
from atomlearn.findings.held_out import rows_of
from atomlearn.findings.intervals import Estimates, scale_of_loss, t_intervals, widened
from atomlearn.findings.lasso_line import LassoLine, lasso_line
from atomlearn.findings.nodewise import directions
from atomlearn.findings.one_step import FitData, Step, unpenalized_fit
from atomlearn.findings.precision import columns_named
from atomlearn.findings.subset_line import SubsetLine, subset_line

#: Grid of the relaxed lasso from which the initial fit of the debiased lasso is chosen (0: the
#: lasso, 1: the unpenalized refit): less shrinkage of the other coefficients means less bias.
RELAX = (0.0, 0.5, 1.0)
#: Number of events per column from which hazard ratios are estimated without a penalty (P. Peduzzi
#: et al., Journal of Clinical Epidemiology 48 (1995) 1503-1510).
EVENTS_PER_COLUMN = 10


@own_parameters
def estimates(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    columns: Any = None,
    *,
    how: Literal["auto", "carved", "split", "exact"] = "auto",
    confidence: float = 0.95,
    fraction: float = 0.5,
    sigma: float | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    rng: int = 0,
) -> Estimates:
    r"""Return estimates of coefficients without penalization bias, with confidence intervals.

    Parameters
    ----------
    estimator : a fitted linear model of numbers, counts, two classes or survival times
    X, y : (n_samples, n_features), (n_samples,)
        The data of the fit: arrays, tables, sparse matrices, designs.
    columns : numbers or names of columns, or lists of them, optional
        Named *before the data was seen*; a list in the list is a group that is tested as a whole.
        Each is estimated given all other columns, by a de-biased lasso. A fit without a penalty
        replaces it if all columns of the estimator are ``unpenalized``, or if there are ten events
        for each column. None: the columns that the estimator selects on a part of the rows.
    how : {"auto", "carved", "split", "exact"}
        The method for selected columns. "split": the rows that did not select give the estimates.
        "carved": all rows do, conditional on the selection; for the squared loss and l1 at one
        where that is possible, else splits. "exact": all rows select and estimate, conditional on
        the selection; for l1 at one alpha, and best subsets of one size.
    confidence : float
        Coverage of the intervals.
    fraction : float
        Share of the rows that selects.
    sigma : float, optional
        For "exact": the standard deviation of y given X, if it is known. None: it is estimated from
        the residuals of an l1 fit with cross-validated alpha, and intervals are somewhat wider.
    sample_weight : (n_samples,), optional
        The weights of the fit: inverse to variances.
    groups : (n_samples,), optional
        Labels of rows that belong together. Standard errors allow for correlation within a group,
        and all rows of a group are on the same side of a split.
    rng : int
        Seed of the split.

    Notes
    -----
    Named columns: the estimate is b_j + z_j'r / z_j'W x_j, and its standard error is
    sigma sqrt(z_j'W z_j) / \|z_j'W x_j\|. Here b is an l1 fit with cross-validated alpha, r its
    residuals (minus the gradient of the loss), and W the diagonal matrix of curvatures of the loss.
    z_j is the residual of a lasso of x_j on all other columns. For a group of columns, these are
    the columns outside the group.

    Survival times: effects are log hazard ratios, and W is the Hessian of the partial likelihood.
    Intervals are normal, with the errors of the likelihood, or with those of Lin and Wei if
    ``groups`` are given.

    Selected columns: an unfitted clone of the estimator selects on a share of the rows. The
    estimates are coefficients in a model of only the selected columns. They equal the effects in
    the full model only if the selection missed no column with an effect. They are fitted by Firth's
    penalized likelihood, so that they stay finite and not too large if there are few rows.

    References
    ----------
    C.-H. Zhang, S. Zhang. Confidence intervals for low dimensional parameters in high dimensional
    linear models. JRSS B 76 (2014) 217-242. S. van de Geer, P. Buhlmann, Y. Ritov, R. Dezeure. On
    asymptotically optimal confidence regions and tests. Annals of Statistics 42 (2014) 1166-1202.
    W. Fithian, D. Sun, J. Taylor. Optimal inference after model selection. arXiv:1410.2597 (2014).
    D. Firth. Bias reduction of maximum likelihood estimates. Biometrika 80 (1993) 27-38.
    J. Lee, D. Sun, Y. Sun, J. Taylor. Exact post-selection inference, with application to the
    lasso. Annals of Statistics 44 (2016) 907-927. E. X. Fang, Y. Ning, H. Liu. Testing and
    confidence intervals for high dimensional proportional hazards models. JRSS B 79 (2017)
    1415-1437. D. Y. Lin, L. J. Wei. The robust inference for the Cox proportional hazards model.
    JASA 84 (1989) 1074-1078.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import estimates
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30))
    >>> y = 2 * X[:, 3] + rng.standard_normal(200)
    >>> model = AtomicRegressor(alpha=0.3).fit(X, y)
    >>> named = estimates(model, X, y, [3, 7])
    >>> bool(named.penalized[0] < 1.9 < named.intervals[0, 1]), bool(named.p_values[0] < 0.001)
    (True, True)
    >>> estimates(model, X, y).how
    'carved'
    """
    check_share("confidence", confidence, 0.95)
    X = encoded_rows(estimator, X)
    if sigma is not None and (how != "exact" or not sigma > 0):
        raise ValueError(f'sigma={sigma!r} must be above 0, and needs how="exact"')
    data = FitData.of(estimator, X, y, sample_weight, groups)
    if columns is not None:
        if how != "auto":
            raise ValueError(f"how={how!r} is for selected columns; leave columns= or how= out")
        return _debiased_estimates(estimator, X, y, data, columns, confidence)
    if how == "exact":
        return _exact(estimator, X, y, data, confidence, sigma)
    return _selected(estimator, X, y, data, how, confidence, fraction, rng)


def _debiased_estimates(
    estimator: Any, X: Any, y: Any, data: FitData, columns: Any, confidence: float
) -> Estimates:
    """Return debiased lasso estimates of columns that were chosen without looking at y.

    The estimate of a unit of columns X_u is b_u + (Z'W X_u)^-1 Z'r. Here b is an l1 fit, r is minus
    the gradient of its loss, and W is the diagonal matrix of curvatures. Z has the residuals of the
    columns X_u regressed on all others: the instruments of the unit. All units have the same
    degrees of freedom.

    X, y : the data as the user gave it. data : the same, checked. columns : the columns that the
    user named, with lists for groups. confidence : coverage of the intervals. If no column is
    penalized, or if there are ten events per column, an unpenalized fit is used. ``estimator`` is
    the fitted estimator.
    """
    n_columns = data.design.shape[1]
    units = _units(estimator, columns, n_columns)
    is_timed = data.loss.task == "survival"
    n_events = np.sum(data.y["event"]) if is_timed else 0  # type: ignore[call-overload]
    if data.free.size == n_columns or n_events >= EVENTS_PER_COLUMN * n_columns:
        return _unpenalized(estimator, data, units, confidence)
    fit, prediction, n_coefficients = _cross_validated_fit(X, y, data)
    # A fit can follow the correlated errors of a group, which makes residuals too small. So the
    # residuals of each group come from the cross-validation fit without its fold.
    left_out = None if data.row_groups is None or is_timed else _out_of_fold_predictions(fit, data)
    if is_timed:
        instruments = hazard_directions(data, prediction, units)
    else:
        W = data.loss.curvature(data.y, prediction, data.weight)
        instruments = directions(data.design, W, units, data.lengths(W), data.free)
    steps = []
    for unit, Z in zip(units, instruments, strict=True):
        initial = _coefficients(fit, unit)
        step = Step.of(
            data, prediction, Z, data.columns_of(unit), initial, n_coefficients, left_out
        )
        steps.append((step.values, _robust_covariance(data, step)))
    return _unit_estimates(estimator, data, units, steps, step.degrees, confidence, "named")


def _unpenalized(
    estimator: Any, data: FitData, units: Sequence[Columns], confidence: float
) -> Estimates:
    """Return the estimates of a model in which no column is penalized.

    units : the columns of each tested unit. confidence : coverage of the intervals. Position 0 of
    the fit is the intercept, so column j is coefficient 1 + j. ``estimator`` is the fitted
    estimator and ``data`` its data, checked.
    """
    step = unpenalized_fit(data, np.arange(data.design.shape[1]))
    covariance = _robust_covariance(data, step)[1:, 1:]
    steps = [(step.values[1 + unit], covariance[np.ix_(unit, unit)]) for unit in units]
    return _unit_estimates(estimator, data, units, steps, step.degrees, confidence, "unpenalized")


def _unit_estimates(
    estimator: Any,
    data: FitData,
    units: Sequence[Columns],
    steps: Sequence[tuple[Array, Array]],
    degrees: float,
    confidence: float,
    how: str,
) -> Estimates:
    """Return ``Estimates`` from the values and covariance matrix of each unit of columns.

    units : the columns of each unit. steps : their values (k,) and covariance matrices (k, k).
    degrees : degrees of freedom, infinite for normal intervals. confidence : coverage of the
    intervals. how : the method, as the result names it. The hypothesis that all coefficients of a
    unit are zero is tested by values' covariance^-1 values: chi-squared, or F for finite degrees.
    ``estimator`` is the fitted estimator and ``data`` its data, checked.
    """
    tests = []
    for values, covariance in steps:
        square = float(values @ la.pinvh(covariance) @ values)
        rank = np.linalg.matrix_rank(covariance)
        p = chi2.sf(square, rank)
        tests.append(float(p if np.isinf(degrees) else f.sf(square / max(rank, 1), rank, degrees)))
    values = np.concatenate([values for values, _ in steps])
    errors = np.concatenate([np.sqrt(np.diag(covariance)) for _, covariance in steps])
    rows = t_intervals(values, errors, degrees, confidence)
    columns = np.concatenate(units)
    p_values = np.array(tests)
    return _estimates(estimator, data, columns, rows, confidence, how, tuple(units), p_values)


def _cross_validated_fit(X: Any, y: Any, data: FitData) -> tuple[Any, Array, int]:
    """Return an l1 fit with alpha chosen by cross-validation, as (fit, prediction, n_used).

    X, y : the data as the user gave it. data : the same, checked. prediction : (n,) linear
    predictor. n_used : number of nonzero coefficients and the intercept.
    """
    # l1 weights are standard deviations, so that the units of columns do not matter.
    norm = L1(weights=data.lengths(data.weight) / np.sqrt(data.y.size))
    options: dict[str, Any] = {"features": data.model.features, "tol": 1e-5}
    options["unpenalized"] = data.model.unpenalized
    fit: Any
    if data.loss.task == "survival":  # hazard ratios of a refit to many columns have no bound
        fit = AtomicSurvivalCV(norm, ties=data.model.ties, **options)
    else:
        search = AtomicClassifierCV if data.loss.task == "classification" else AtomicRegressorCV
        fit = search(norm, loss=data.loss, relax=RELAX, **options)
    fit.fit(X, y, sample_weight=data.weight, groups=data.row_groups)
    n_used = nonzero_coefficients(fit.coef_)[0].size + 1
    return fit, fit._linear(X)[:, 0].astype(np.float64), n_used


def _out_of_fold_predictions(fit: Any, data: FitData) -> Array | None:
    """Return the predictions (n,) of each row by the fit without its fold, or None if not stored.

    fit : a cross-validated estimator, which keeps the fits without each fold in ``_out_of_fold``.
    ``data`` is its data, checked.
    """
    fits = fit._out_of_fold
    if fits is None:
        return None
    prediction = np.zeros(data.y.size)
    # ``decisions`` has the predictions of all rows by all folds' fits, (n, n_folds, n_outputs). The
    # fold of row ``fits.rows[i]`` is ``fits.folds[i]``.
    prediction[fits.rows] = fits.decisions(data.design)[fits.rows, fits.folds, 0]
    return prediction


def _units(estimator: Any, columns: Any, n_columns: int) -> list[Columns]:
    """Return the named columns as arrays of column indices, one array per tested unit.

    columns : indices, names, or lists of them, where a list is one unit. n_columns : number of
    columns. ``estimator`` is the fitted estimator.
    """
    names = input_names(estimator)
    entries = [columns] if isinstance(columns, str) else list(columns)
    if not entries:
        raise ValueError("columns names none; name at least one, or leave it out for selected ones")
    return [columns_named(entry, names, n_columns) for entry in entries]


def _robust_covariance(data: FitData, step: Step) -> Array:
    """Return the covariance matrix (k, k) of a Newton step that the intervals use.

    data : the data of the step. For a quadratic loss it is the robust (sandwich) covariance. For
    counts and classes the robust covariance is scaled so that each standard error is at least the
    model-based one. (With few rows, either standard error may be too small.) For survival times it
    is the model-based covariance, or the robust one if there are groups of rows.
    """
    if data.loss.task == "survival":
        return step.covariance if data.row_groups is None else step.robust
    if is_quadratic(data.loss):
        return step.robust
    model = np.diag(step.covariance)
    robust = np.diag(step.robust)
    factors = np.sqrt(np.maximum(model / np.maximum(robust, TINY), 1.0))
    return np.asarray(factors[:, None] * step.robust * factors)


def _coefficients(fitted: Any, columns: Columns) -> Array:
    """Return the coefficients (k,) of these columns in a fitted model with one output, 0 if unused.

    Only the nonzero coefficients of the model are read, so that a large sparse ``coef_`` stays
    sparse.
    """
    nonzero, weights = nonzero_coefficients(fitted.coef_)
    coefficients = np.zeros(columns.size)
    _, positions, nonzero_positions = np.intersect1d(columns, nonzero, return_indices=True)
    coefficients[positions] = weights[0][nonzero_positions]
    return coefficients


def _selected(
    estimator: Any,
    X: Any,
    y: Any,
    data: FitData,
    how: str,
    confidence: float,
    fraction: float,
    rng: int,
) -> Estimates:
    """Return estimates of columns that are selected on one part of the rows.

    how : "split" estimates them on the other rows, "carved" on all rows given the selection, "auto"
    carves if it can. fraction : share of the rows that selects. rng : seed of the split. confidence
    : coverage of the intervals. ``estimator`` is the fitted estimator and ``data`` its data,
    checked.
    """
    n_rows = data.y.size
    is_timed = data.loss.task == "survival"
    target = data.y if is_timed else np.asarray(y)
    codes: Any = target["event"] if is_timed else None  # type: ignore[call-overload]
    if data.loss.task == "classification":
        codes = data.y > 0
    train, inference_rows = held_out(n_rows, 1 - fraction, rng, codes, groups=data.row_groups)
    train_rows = rows_of(as_design(X) if is_opened(X) else X, train)
    parameters = fit_parameters(estimator, train, data.row_groups)
    if np.ptp(data.weight):
        parameters["sample_weight"] = data.weight[train]
    fitted = clone(estimator).fit(train_rows, target[train], **parameters)
    columns, weights = nonzero_coefficients(fitted.coef_)
    n_freedom = int(codes[inference_rows].sum()) if is_timed else inference_rows.size - 1
    if columns.size >= n_freedom:
        left = f"{n_freedom} events" if is_timed else f"{inference_rows.size} rows"
        raise ValueError(
            f"{columns.size} features are selected from {train.size} rows, and the {left} of the "
            "other rows are too few to estimate them; select fewer (a larger alpha)"
        )
    # Carving needs a selection that linear constraints describe: a lasso at one alpha.
    carves = (
        is_quadratic(data.loss)
        and _l1_penalties(fitted, train_rows, target[train], data) is not None
    )
    if how == "carved" and not carves:
        raise ValueError(
            'how="carved" is of AtomicRegressor with the squared loss and the l1 norm at one '
            'alpha, for rows that do not belong together; use how="split"'
        )
    # Coefficient 0 of the unpenalized fit is the intercept.
    held_out_fit = unpenalized_fit(data.rows(inference_rows), columns)
    if how == "split" or not carves:
        errors = np.sqrt(np.diag(_robust_covariance(data, held_out_fit))[1:])
        table = t_intervals(held_out_fit.values[1:], errors, held_out_fit.degrees, confidence)
        return _estimates(estimator, data, columns, table, confidence, "split")
    carved_table = _carved_estimates(
        data, train, columns, weights[0], fitted, held_out_fit, confidence
    )
    return _estimates(estimator, data, columns, carved_table, confidence, "carved")


def _l1_penalties(fitted: Any, X: Any, y: Any, data: FitData) -> Array | None:
    """Return the l1 penalty of each column times n, (n_columns,), infinite for free columns.

    fitted : the fitted estimator. X, y : its data. data : all checked data, for the free
    (unpenalized) columns and the groups. None unless the estimator is a lasso at one alpha, with an
    intercept and independent rows.
    """
    # The optimization problem of the estimator, None if it is not a single fit of ours.
    problem = own_problem(clone(fitted), X, y)
    if (
        problem is None
        or problem.regularizer.form != "penalized"
        or problem.tau
        or data.row_groups is not None
        or not fitted.fit_intercept  # the refit has an intercept
    ):
        return None
    n_columns = problem.design.shape[1]
    penalized = np.setdiff1d(np.arange(n_columns), data.free)
    # The weights of the columns in the norm, None if the norm is not a weighted l1 norm.
    norm = problem.regularizer.norm.restrict(penalized, n_columns)
    weights = None if norm is None else l1_weights(norm, penalized.size)
    if weights is None:
        return None
    penalties = np.full(n_columns, np.inf)
    penalties[penalized] = weights * amount_of(fitted) * data.y.size
    return penalties


def _exact(
    estimator: Any, X: Any, y: Any, data: FitData, confidence: float, sigma: float | None
) -> Estimates:
    """Return exact post-selection estimates, conditional on the columns that all rows select.

    sigma : the standard deviation of y given X; None to estimate it from the residuals of a
    cross-validated lasso. confidence : coverage of the intervals. The estimates are truncated
    normal: along each direction the set of targets with the same selection is found by following
    the solution path. ``estimator`` is the fitted estimator and ``data`` its data, checked.
    """
    variance_factor = 1.0 if sigma is None else sigma**2
    degrees = np.inf
    if sigma is None and data.loss.dispersed:
        _, prediction, n_used = _cross_validated_fit(X, y, data)
        # A Newton step estimates the dispersion, too; a column of ones keeps it small.
        ones = np.ones((data.y.size, 1))
        step = Step.of(data, prediction, ones, ones, np.zeros(1), n_used)
        variance_factor = step.dispersion
        degrees = step.degrees
    line = exact_line(estimator, X, y, data, variance_factor)
    full_fit = unpenalized_fit(data, line.columns)
    intervals = []
    inverse = la.pinvh(full_fit.information)
    # How the targets change with one coefficient of the refit, per unit of it, if the part of the
    # targets that is independent of this coefficient is fixed.
    moves = full_fit.weighted_X @ (inverse / np.diag(inverse))
    moves /= np.maximum(line.data.weight, TINY)[:, None]
    # One interval for each column; the first coefficient, the intercept, is left out.
    fits = zip(full_fit.values[1:], np.diag(inverse)[1:], moves.T[1:], strict=True)
    for value, variance, move in fits:
        error = float(np.sqrt(float(widened(variance_factor, degrees, confidence)) * variance))
        # The truncation set: the t for which the targets y + t move lead to the same selection.
        intervals.append(
            truncated(value, error, *line.same_selection(move, REACH * error), confidence)
        )
    method = "exact" if is_quadratic(data.loss) else "quadratic"
    return _estimates(estimator, data, line.columns, intervals, confidence, method)


def exact_line(
    estimator: Any, X: Any, y: Any, data: FitData, dispersion: float
) -> LassoLine | SubsetLine:
    """Return the solution path along lines of targets: of a best subset, or else of a lasso.

    estimator : the fitted estimator. X, y : its data. data : the same, checked. dispersion : the
    noise variance, which sets how many near-best subsets are compared.
    """
    if (
        isinstance(estimator, SubsetRegressor)
        and is_quadratic(data.loss)
        and data.row_groups is None
    ):
        line = subset_line(estimator, X, y, data, dispersion)
        if line is not None:
            return line
    return line_of_lasso(estimator, X, y, data)


def line_of_lasso(estimator: Any, X: Any, y: Any, data: FitData) -> LassoLine:
    """Return the solution path of a lasso at one alpha along lines of targets y + t move.

    estimator : the fitted estimator. X, y : its data. data : the same, checked. Raises ValueError
    for estimators whose path cannot be followed.
    """
    if data.loss.task == "survival":
        raise ValueError(
            "survival times have no exact intervals: a time that moves past another one changes "
            'which rows are at risk, so no line of targets leads through them; use how="split", '
            "which selects on one half of the rows and estimates hazard ratios on the other"
        )
    penalties = _l1_penalties(estimator, X, y, data)
    if penalties is None:
        raise ValueError(
            "targets are followed for AtomicRegressor and AtomicClassifier with l1 at one alpha "
            "(exact intervals: for SubsetRegressor with one size and one l2, too), with an "
            'intercept, for rows that do not belong together; else use how="split", or '
            "predict(X, interval=0.9) of a search"
        )
    columns, weights = nonzero_coefficients(estimator.coef_)
    is_penalized = ~np.isin(columns, data.free)
    prediction = estimator._linear(X)[:, 0].astype(np.float64)
    return lasso_line(
        data, penalties, columns[is_penalized], np.sign(weights[0, is_penalized]), prediction
    )


def _estimates(
    estimator: Any,
    data: FitData,
    columns: Columns,
    table: Any,
    confidence: float,
    how: Any,
    groups: tuple[Columns, ...] = (),
    p_values: Array | None = None,
) -> Estimates:
    """Return ``Estimates`` from a table (m, 4) of value, lower end, upper end and p-value.

    estimator : the fitted estimator. data : its data, checked. columns : (m,) the column indices of
    the rows of ``table``. confidence : coverage of the intervals. how : the method, as the result
    names it. groups, p_values : units of several columns and their joint p-values, if there are
    any.
    """
    scale = scale_of_loss(data.loss)
    values, *ends, p_of_columns = np.reshape(table, (-1, 4)).T
    fields = columns, _coefficients(estimator, columns), values, np.column_stack(ends), p_of_columns
    return Estimates(*fields, confidence, how, groups, p_values, data.row_groups is not None, scale)


def _carved_estimates(
    data: FitData,
    train: Columns,
    columns: Columns,
    weights: Array,
    fitted: Any,
    held_out_fit: Step,
    confidence: float,
) -> list[Inference]:
    """Return an estimate from all rows for each column that a lasso on the rows ``train`` selected.

    It is conditional on that selection (data carving). columns, weights : the selected columns and
    their lasso coefficients. fitted : that lasso. held_out_fit : the unpenalized fit to the
    held-out rows, from which the noise variance is estimated. confidence : coverage of the
    intervals.
    """
    full_fit = unpenalized_fit(data, columns)
    train_data = data.rows(train)
    train_columns = np.column_stack([np.ones(train.size), train_data.columns_of(columns)])
    start = np.concatenate([np.ravel(fitted.intercept_)[:1], weights])
    # A Newton step from the lasso to the unpenalized fit gives the debiased coefficients; the
    # selection imposes linear constraints on them.
    step = Step.of(
        train_data, train_columns @ start, train_columns, train_columns, start, start.size
    )
    # A sign of 0 means no constraint: the intercept and unpenalized columns are not selected.
    signs = np.concatenate([[0.0], np.sign(weights)])
    signs[1 + np.flatnonzero(np.isin(columns, data.free))] = 0.0
    # The dispersion for each coefficient at which the model-based standard error equals the robust
    # standard error from the held-out rows.
    model = np.diag(held_out_fit.covariance)
    robust = np.diag(_robust_covariance(data, held_out_fit))
    ratio = np.divide(robust, model, out=np.zeros(model.size), where=model > 0)
    dispersions = widened(held_out_fit.dispersion * ratio, held_out_fit.degrees, confidence)
    # The covariances of the estimates from all rows and from the rows ``train``, divided by the
    # dispersion. The estimates from all rows are independent of the difference of both, so that the
    # covariance of the difference is the difference of the covariances.
    full_covariance = la.pinvh(full_fit.information)
    train_covariance = la.pinvh(step.information)
    difference = step.values - full_fit.values
    # The lasso's coefficients are ``step.values - bounds``; their signs are the selection.
    bounds = step.values - start
    return [
        carved(
            full_fit.values,
            dispersion * full_covariance,
            difference,
            dispersion * (train_covariance - full_covariance),
            signs,
            bounds,
            j,
            confidence,
        )
        for j, dispersion in enumerate(dispersions[1:], 1)
    ]
