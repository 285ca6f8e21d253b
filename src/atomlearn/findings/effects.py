"""Confidence intervals of coefficients: debiased lasso and post-selection inference."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike
from scipy.stats import f
from scipy.stats import norm as normal
from scipy.stats import t as student
from sklearn.base import clone

from atomlearn.core import (
    L1,
    TINY,
    Array,
    Columns,
    as_design,
    check_share,
    is_opened,
    is_quadratic,
    l1_weights,
    own_parameters,
)
from atomlearn.estimators.checks import amount_of, input_names
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.dependent_rows import fit_parameters, held_out
from atomlearn.estimators.subsets import SubsetRegressor
from atomlearn.findings.carving import REACH, Found, carved, truncated
from atomlearn.findings.given import Given, Step, unpenalized_fit
from atomlearn.findings.halves import own_problem
from atomlearn.findings.held_out import rows_of
from atomlearn.findings.intervals import Estimates
from atomlearn.findings.lasso_line import LassoLine, lasso_line
from atomlearn.findings.nodewise import directions
from atomlearn.findings.precision import columns_named
from atomlearn.findings.subset_line import SubsetLine, subset_line

#: Grid of the relaxed lasso from which the initial fit of the debiased lasso is chosen (0: the
#: lasso, 1: the unpenalized refit): less shrinkage of the other coefficients means less bias.
RELAX = (0.0, 0.5, 1.0)


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
    estimator : a fitted linear model of numbers, counts or two classes
    X, y : (n_samples, n_features), (n_samples,)
        The data of the fit: arrays, tables, sparse matrices, designs.
    columns : numbers or names of columns, or lists of them, optional
        Named *before the data was seen*; a list in the list is a group that is tested as a whole.
        Each is estimated given all other columns, by a de-biased lasso. None: the
        columns that the estimator selects on a part of the rows.
    how : {"auto", "carved", "split", "exact"}
        For selected columns. "split": from the other rows only. "carved": from all rows, given the
        selection; for l1 at one alpha ("auto" takes it there if its intervals are shorter).
        "exact": all rows select and estimate; for l1 at one alpha, and best subsets of one size.
    confidence : float
        Coverage of the intervals.
    fraction : float
        Share of the rows that selects.
    sigma : float, optional
        For "exact": the standard deviation of y given X, if it is known. None: that of the
        residuals of an l1 fit with alpha by cross-validation, and somewhat wider intervals.
    sample_weight : (n_samples,), optional
        The weights of the fit: inverse to variances.
    groups : (n_samples,), optional
        Rows that belong together: errors allow for that, and no group is cut.
    rng : int
        Seed of the split.

    Notes
    -----
    Named columns: with z_j the residual of a lasso of x_j (one l1 path for each column, all of
    which share every reading of the data), b_j + z_j'r / z_j'W x_j has an error sigma sqrt(z_j'W
    z_j) / \|z_j'W x_j\|, where b is an l1 fit with alpha by cross-validation, r its residuals
    (minus the gradient of the loss) and W the curvature. For a group the same, with the residuals
    of columns outside it.

    Selected columns: the estimator, made anew, selects on a share of the rows. Effects are those of
    a model of only the selected columns: the whole model only if nothing was overlooked. They
    are fitted by Firth's likelihood, which keeps them finite and not too large where rows are few.

    References
    ----------
    C.-H. Zhang, S. Zhang. Confidence intervals for low dimensional parameters in high dimensional
    linear models. JRSS B 76 (2014) 217-242. S. van de Geer, P. Buhlmann, Y. Ritov, R. Dezeure. On
    asymptotically optimal confidence regions and tests. Annals of Statistics 42 (2014) 1166-1202.
    W. Fithian, D. Sun, J. Taylor. Optimal inference after model selection. arXiv:1410.2597 (2014).
    D. Firth. Bias reduction of maximum likelihood estimates. Biometrika 80 (1993) 27-38.
    J. Lee, D. Sun, Y. Sun, J. Taylor. Exact post-selection inference, with application to the
    lasso. Annals of Statistics 44 (2016) 907-927.

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
    if sigma is not None and (how != "exact" or not sigma > 0):
        raise ValueError(f'sigma={sigma!r} must be above 0, and needs how="exact"')
    data = Given.of(estimator, X, y, sample_weight, groups)
    if columns is not None:
        if how != "auto":
            raise ValueError(f"how={how!r} is for selected columns; leave columns= or how= out")
        return _named(estimator, X, y, data, columns, confidence)
    if how == "exact":
        return _exact(estimator, X, y, data, confidence, sigma)
    return _selected(estimator, X, y, data, how, confidence, fraction, rng)


def _named(
    estimator: Any, X: Any, y: Any, data: Given, columns: Any, confidence: float
) -> Estimates:
    units = _units(estimator, columns, data.design.shape[1])
    fit, prediction, used = _searched(X, y, data)
    # Rows of a group have correlated errors, so no degrees-of-freedom correction undoes overfitting
    # to them: residuals come from the cross-validation fits without the fold of the group.
    left_out = None if data.units is None else _left_out(fit, data)
    W = data.loss.curvature(data.y, prediction, data.weight)
    found = directions(data.design, W, units, data.lengths(W), data.free)
    steps = []
    tests = []
    for unit, Z in zip(units, found, strict=True):
        b = _coefficients(fit, unit)
        step = Step.of(data, prediction, Z, data.columns_of(unit), b, used, left_out)
        covariance = _chosen(data, step)
        steps.append((step.values, np.sqrt(np.diag(covariance))))
        square = float(step.values @ la.pinvh(covariance) @ step.values)
        rank = np.linalg.matrix_rank(covariance)
        tests.append(float(f.sf(square / max(rank, 1), rank, step.left)))
    values, errors = (np.concatenate(part) for part in zip(*steps, strict=True))
    rows = _student(values, errors, step.left, confidence)
    every = np.concatenate(units)
    p_values = np.array(tests)
    return _told(estimator, data, every, rows, confidence, "named", tuple(units), p_values)


def _searched(X: Any, y: Any, data: Given) -> tuple[Any, Array, int]:
    """Return an l1 fit with alpha chosen by cross-validation, as (fit, prediction, n_used).

    prediction : (n,) linear predictor; n_used : number of nonzero coefficients and the intercept.
    """
    search = AtomicClassifierCV if data.loss.task == "classification" else AtomicRegressorCV
    norm = L1(weights=data.lengths(data.weight) / np.sqrt(data.y.size))
    fit = search(norm, loss=data.loss, features=data.model.features, tol=1e-5, relax=RELAX,
                 unpenalized=data.model.unpenalized)  # fmt: skip
    fit.fit(X, y, sample_weight=data.weight, groups=data.units)
    used = nonzero_coefficients(fit.coef_)[0].size + 1
    return fit, fit._linear(X)[:, 0].astype(np.float64), used


def _left_out(fit: Any, data: Given) -> Array | None:
    """Return the cross-validated prediction (n,): each row by the fit without its fold, or None."""
    known = fit._out_of_fold
    if known is None:
        return None
    prediction = np.zeros(data.y.size)
    prediction[known.rows] = known.decisions(data.design)[known.rows, known.folds, 0]
    return prediction


def _units(estimator: Any, columns: Any, n_columns: int) -> list[Columns]:
    """Return the named columns as arrays of column indices, one array per tested unit."""
    names = input_names(estimator)
    entries = [columns] if isinstance(columns, str) else list(columns)
    if not entries:
        raise ValueError("columns names none; name at least one, or leave it out for selected ones")
    return [columns_named(entry, names, n_columns) for entry in entries]


def _chosen(data: Given, step: Step) -> Array:
    """Return the robust covariance of a Newton step, inflated unless the loss is quadratic.

    For counts and classes it is scaled so that each standard error is at least the model-based one:
    with few rows the scores have heavy tails, and either standard error may be too small.
    """
    if is_quadratic(data.loss):
        return step.robust
    model = np.diag(step.covariance)
    robust = np.diag(step.robust)
    factors = np.sqrt(np.maximum(model / np.maximum(robust, TINY), 1.0))
    return np.asarray(factors[:, None] * step.robust * factors)


def _student(values: Array, errors: Array, left: int, confidence: float) -> Array:
    """Return (m, 4): values, lower and upper ends of Student t intervals, two-sided p-values.

    errors : (m,) standard errors; left : degrees of freedom.
    """
    width = float(student.isf((1 - confidence) / 2, left)) * errors
    p_values = 2 * student.sf(np.abs(values) / errors, left)
    return np.column_stack([values, values - width, values + width, p_values])


def _coefficients(fitted: Any, columns: Columns) -> Array:
    """Return the coefficients of these columns in a fitted model with one output, 0 if unused."""
    used, weights = nonzero_coefficients(fitted.coef_)
    found = np.zeros(columns.size)
    _, at, of = np.intersect1d(columns, used, return_indices=True)
    found[at] = weights[0][of]
    return found


def _selected(
    estimator: Any,
    X: Any,
    y: Any,
    data: Given,
    how: str,
    confidence: float,
    fraction: float,
    rng: int,
) -> Estimates:
    n_rows = data.y.size
    target = np.asarray(y)
    codes = data.y > 0 if data.loss.task == "classification" else None
    train, rest = held_out(n_rows, 1 - fraction, rng, codes, groups=data.units)
    part = rows_of(as_design(X) if is_opened(X) else X, train)
    own = fit_parameters(estimator, train, data.units)
    if np.ptp(data.weight):
        own["sample_weight"] = data.weight[train]
    fitted = clone(estimator).fit(part, target[train], **own)
    columns, weights = nonzero_coefficients(fitted.coef_)
    if columns.size >= rest.size - 1:
        raise ValueError(
            f"{columns.size} features are selected from {train.size} rows, and the other "
            f"{rest.size} rows are too few to estimate them; select fewer (a larger alpha)"
        )
    can = is_quadratic(data.loss) and _prices(fitted, part, target[train], data) is not None
    if how == "carved" and not can:
        raise ValueError(
            'how="carved" is of AtomicRegressor with the squared loss and the l1 norm at one '
            'alpha, for rows that do not belong together; use how="split"'
        )
    other = unpenalized_fit(data.rows(rest), columns)
    if how == "split" or not can:
        errors = np.sqrt(np.diag(_chosen(data, other))[1:])
        rows = _student(other.values[1:], errors, other.left, confidence)
        return _told(estimator, data, columns, rows, confidence, "split")
    found = _carved(data, train, columns, weights[0], fitted, other, confidence)
    return _told(estimator, data, columns, found, confidence, "carved")


def _widened(spread: Any, left: float, confidence: float) -> Any:
    """Return a variance scaled so that normal intervals have the width of Student t intervals.

    spread : the estimated variance; left : its degrees of freedom.
    """
    side = (1 - confidence) / 2
    return spread * float(student.isf(side, left) / normal.isf(side)) ** 2


def _prices(fitted: Any, X: Any, y: Any, data: Given) -> Array | None:
    """Return the l1 penalty of each column times n, (n_columns,), infinite for free columns.

    None unless the estimator is a lasso at one alpha, with an intercept and independent rows.
    """
    problem = own_problem(clone(fitted), X, y)
    if (
        problem is None
        or problem.regularizer.form != "penalized"
        or problem.tau
        or data.units is not None
        or not fitted.fit_intercept  # which the refit has
    ):
        return None
    n_columns = problem.design.shape[1]
    others = np.setdiff1d(np.arange(n_columns), data.free)
    norm = problem.regularizer.norm.restrict(others, n_columns)
    weights = None if norm is None else l1_weights(norm, others.size)
    if weights is None:
        return None
    prices = np.full(n_columns, np.inf)
    prices[others] = weights * amount_of(fitted) * data.y.size
    return prices


def _exact(
    estimator: Any, X: Any, y: Any, data: Given, confidence: float, sigma: float | None
) -> Estimates:
    """Return exact post-selection estimates, conditional on the columns that all rows select.

    The estimates are truncated normal: along each direction the set of targets with the same
    selection is found by following the solution path.
    """
    spread = 1.0 if sigma is None else sigma**2
    left = np.inf
    if sigma is None and data.loss.dispersed:
        _, prediction, used = _searched(X, y, data)
        ones = np.ones((data.y.size, 1))
        step = Step.of(data, prediction, ones, ones, np.zeros(1), used)
        spread = step.spread
        left = step.left
    line = exact_line(estimator, X, y, data, spread)
    whole = unpenalized_fit(data, line.columns)
    found = []
    inverse = la.pinvh(whole.information)
    # Directions in target space along which one coefficient of the refit changes by 1 and all
    # others stay constant, in the weighted least-squares problem of the line.
    moves = whole.weighed @ (inverse / np.diag(inverse))
    moves /= np.maximum(line.data.weight, TINY)[:, None]
    for value, own, move in list(zip(whole.values, np.diag(inverse), moves.T, strict=True))[1:]:
        error = float(np.sqrt(float(_widened(spread, left, confidence)) * own))
        found.append(truncated(value, error, *line.kept(move, REACH * error), confidence))
    how = "exact" if is_quadratic(data.loss) else "quadratic"
    return _told(estimator, data, line.columns, found, confidence, how)


def exact_line(
    estimator: Any, X: Any, y: Any, data: Given, spread: float
) -> LassoLine | SubsetLine:
    """Return the solution path along lines of targets: of a best subset, else of a lasso."""
    if isinstance(estimator, SubsetRegressor) and is_quadratic(data.loss) and data.units is None:
        line = subset_line(estimator, X, y, data, spread)
        if line is not None:
            return line
    return line_of_lasso(estimator, X, y, data)


def line_of_lasso(estimator: Any, X: Any, y: Any, data: Given) -> LassoLine:
    """Return the solution path of a lasso at one alpha along lines of targets y + t move."""
    prices = _prices(estimator, X, y, data)
    if prices is None:
        raise ValueError(
            "targets are followed for AtomicRegressor and AtomicClassifier with l1 at one alpha "
            "(exact intervals: for SubsetRegressor with one size and one l2, too), with an "
            'intercept, for rows that do not belong together; else use how="split", or '
            "predict(X, interval=0.9) of a search"
        )
    columns, weights = nonzero_coefficients(estimator.coef_)
    mine = ~np.isin(columns, data.free)
    z = estimator._linear(X)[:, 0].astype(np.float64)
    return lasso_line(data, prices, columns[mine], np.sign(weights[0, mine]), z)


def _told(
    estimator: Any,
    data: Given,
    columns: Columns,
    rows: Any,
    confidence: float,
    how: Any,
    groups: tuple[Columns, ...] = (),
    p_values: Array | None = None,
) -> Estimates:
    """Return ``Estimates`` from rows (m, 4) of value, lower end, upper end and p-value."""
    values, *ends, p = np.reshape(rows, (-1, 4)).T
    known = columns, _coefficients(estimator, columns), values, np.column_stack(ends), p
    return Estimates(*known, confidence, how, groups, p_values, data.units is not None)


def _carved(
    data: Given,
    train: Columns,
    columns: Columns,
    weights: Array,
    fitted: Any,
    other: Step,
    confidence: float,
) -> list[Found]:
    """Return data-carving estimates from all rows, given that a lasso on ``train`` selected.

    columns, weights : the selected columns and their lasso coefficients; fitted : that lasso;
    other : the unpenalized fit to the held-out rows, from which the noise variance is estimated.
    """
    whole = unpenalized_fit(data, columns)
    part = data.rows(train)
    Z = np.column_stack([np.ones(train.size), part.columns_of(columns)])
    b = np.concatenate([np.ravel(fitted.intercept_)[:1], weights])
    # A Newton step from the lasso to the unpenalized fit gives the debiased coefficients on which
    # the signs of the selected columns impose linear constraints.
    step = Step.of(part, Z @ b, Z, Z, b, b.size)
    signs = np.concatenate([[0.0], np.sign(weights)])
    signs[1 + np.flatnonzero(np.isin(columns, data.free))] = 0.0
    # The dispersion for each coefficient at which the model-based standard error equals the robust
    # standard error from the held-out rows.
    model = np.diag(other.covariance)
    chosen = np.diag(_chosen(data, other))
    ratio = np.divide(chosen, model, out=np.zeros(model.size), where=model > 0)
    spreads = _widened(other.spread * ratio, other.left, confidence)
    one = la.pinvh(whole.information)
    selecting = la.pinvh(step.information)
    d = step.values - whole.values
    c = step.values - b
    return [
        carved(whole.values, spread * one, d, spread * (selecting - one), signs, c, j, confidence)
        for j, spread in enumerate(spreads[1:], 1)
    ]
