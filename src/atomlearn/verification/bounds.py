"""Check a claim of optimality from the data and the claim: NumPy, and no code of the solvers.

The claim says that w and b have an objective within ``gap`` of the least one. The objective is

    F = (sum_i s_i loss(y_i, z_i)) / W + R(D w) + tau/2 ||D w||^2,    z = X w + b + offset,

with W = sum s, D the standard deviations of the columns (or 1), and R the norm penalty. Let Z have
the columns without penalty. Take a dual point v with Z'v = 0, and sum v = 0 if there is an
intercept b; any vector d; and 0 <= c <= 1. Fenchel's inequality says that for all w and b

    W F >= -sum_i s_i loss*(-c v_i / s_i) - c <v, offset> - c^2 W tau/2 ||d||^2 - R*(c x),

with x = D^-1 X'v - W tau d, and loss* and R* the convex conjugates. The polar is the dual norm.

All roundings are counted. EPS is two units of roundoff. So the error of a sum of n terms is at most
n EPS times the sum of their magnitudes, in any order, and that of an elementary function a few EPS.
Losses and conjugates are convex: over an interval, they are largest at an end.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from atomlearn.verification.losses import EPS, TINY, demand_that, dense, loss_of
from atomlearn.verification.norms import checked_norm_entry, gauge_above, polar_above


def check(claim: Any, X: Any, y: Any, weight: Any = None, offset: Any = None) -> dict[str, float]:
    """Return the numbers that are proved of a claim; ValueError if they are not as claimed.

    The keys are "objective", "best" (no model has a smaller objective), "gap" (their difference),
    "relative_gap", and "off" (a bound on the rounding of the objective). X, y, ``weight`` and
    ``offset`` are the data of the fit. The hashes of the claim and of the data must agree.
    """
    expect("format", ["atomlearn-claim", 1], [claim.get("format"), claim.get("version")])
    expect("sha256 of the claim", claim["sha256"], claim_digest(claim))
    expect("rows and columns of X", [claim["n_rows"], claim["n_columns"]], list(X.shape))
    # Without weights and offsets they are 1 and 0.
    X = X.tocsc() if hasattr(X, "tocsc") else X
    s = np.ones(X.shape[0]) if weight is None else np.asarray(weight, float)
    o = np.zeros((X.shape[0], claim["outputs"]))
    o = o if offset is None else o + np.reshape(np.asarray(offset, float), (X.shape[0], -1))
    received = data_digest(X, y, s, o, claim["sparse"])
    expect("sha256 of X, y, weights and offsets", claim["data"], received)
    # The claimed numbers must be those that are proved now.
    numbers = proved(claim, X, np.asarray(y), s, o)
    agrees = abs(claim["objective"] - numbers["objective"]) <= numbers["off"]
    demand_that(agrees, f"objective: {numbers['objective']:.17g}", claim["objective"])
    demand_that(
        numbers["gap"] <= claim["gap"], f"gap: {claim['gap']:.6g}", f"{numbers['gap']:.6g} proved"
    )
    return numbers


def proved(claim: Any, X: Any, y: Any, s: Any, o: Any) -> dict[str, float]:
    """Return the numbers of ``check`` for a claim on data without a check of hashes.

    y are the targets, s (n_rows,) the weights, and o (n_rows, outputs) the offsets. The first half
    bounds the objective at the claimed point from above, the second half the conjugates at the dual
    point. The sum of both bounds is W times the gap. The symbols are those of the module: W is the
    sum of s, z are the predictions, b the intercepts, d = D w, v is the dual point, x are its
    scores, and c scales it.
    """
    W = math.fsum(s)
    is_weighted = s > 0
    slack = (X.shape[0] + 40) * EPS  # relative rounding of a sum over rows and 40 operations
    form = claim["form"]
    n_outputs = claim["outputs"]
    free = claim["free"]
    norm = checked_norm_entry(claim["norm"], X.shape[1] * n_outputs)
    # The penalty of the sum of losses: ``amount`` times the norm, or the radius.
    amount = claim["radius"] if form == "constrained" else claim["alpha"] * claim["l1_ratio"] * W
    tau = claim["alpha"] * (1 - claim["l1_ratio"]) * W if claim["alpha"] else 0.0
    is_valid = 0 <= claim["l1_ratio"] <= 1 and amount > 0 and tau >= 0 and (s >= 0).all()
    demand_that(is_valid, "positive weights and strengths", [amount, tau])
    demand_that(n_outputs == 1 or not free, "one output, if columns have no penalty", n_outputs)
    d, gauge, z, r = claimed_point(claim, X, s, norm, amount)
    b = np.array(claim["intercepts"], float)
    demand_that(
        claim["intercept"] or claim["loss"]["name"] == "cox" or not b.any(), "no intercept", b
    )
    magnitudes = np.abs(b)
    if claim["intercept"] and claim["loss"]["name"] in ("squared", "huber", "quantile"):
        # For these losses the intercepts are subtracted from the targets instead, which is the same
        # problem, because v adds up to 0. So targets far from 0 lose no digits.
        y = y.reshape(o.shape) - b
        b = 0 * b
        magnitudes = np.abs(y)
    # The objective, and ``top``, an upper bound on it; r bounds the rounding of the predictions.
    r = (len(claim["columns"]) + 40) * EPS * (r + magnitudes + np.abs(o))
    loss = loss_of(claim["loss"], y[is_weighted], s[is_weighted, None])
    value, top = loss["value"]((z + b + o)[is_weighted], r[is_weighted])
    penalty = {"penalized": amount * gauge, "squared": amount / 2 * gauge**2, "constrained": 0.0}
    ridge = tau / 2 * math.fsum(d * d)
    objective = value + ridge + penalty[form]
    top = top + (ridge + penalty[form]) * (1 + slack)
    # The dual point v; a feasible one is within e of it. x are the scores, with their errors.
    v = np.zeros(o.shape)
    e = np.zeros(o.shape)
    v[is_weighted], e[is_weighted] = loss["dual"](claim, s, is_weighted, X)
    x, errors = scores(X, v, e, s, W, claim, slack)
    x = x - tau * d
    errors = errors + 8 * EPS * tau * np.abs(d)
    x[free] = errors[free] = 0.0  # v is orthogonal to the columns without a penalty
    polar, box_term = polar_above(norm, x, errors, amount, form)  # box_term: of bounds on w, in R*
    polar *= 1 + slack
    # The penalized form needs a polar of at most ``amount``, so the dual point is scaled by c.
    is_scaled = form == "penalized" and polar > amount * (1 - 8 * EPS)
    c = (amount / polar if is_scaled else 1.0) * (1 - 32 * EPS)
    conjugate = loss["conjugate"](c) + c * math.fsum((v * o).ravel())
    conjugate += float((np.abs(o) * (4 * EPS * np.abs(v) + e)).sum()) * (1 + slack)
    dual = {"penalized": 0.0, "squared": polar**2 / 2 / amount, "constrained": amount * polar}
    # The gap: the upper bound on the objective minus the lower bound on all objectives.
    penalty_bound = (dual[form] + box_term + c * c * ridge) * (1 + slack)
    gap = (top + conjugate + penalty_bound + 8 * EPS * (top + abs(conjugate) + penalty_bound)) / W
    gap *= 1 + 8 * EPS
    demand_that(math.isfinite(top) and gap == gap, "a finite gap", gap)
    gap = min(gap, top / W)  # no loss and no norm is negative
    relative = gap / max(objective / W, TINY)
    errors = 1e-12 * objective / W + (top - objective) / W
    numbers = {"objective": objective / W, "best": top / W - gap, "gap": gap, "off": errors}
    return {**numbers, "relative_gap": relative}


def claimed_point(claim: Any, X: Any, s: Any, norm: Any, amount: float) -> tuple[Any, ...]:
    """Return D w, an upper bound on its gauge, X w, and |X| |w|, which measures its rounding.

    w are the coefficients of the claim, s (n_rows,) the weights, ``norm`` its checked norm, and
    ``amount`` the radius of the constrained form. Coefficients outside their bounds or the radius
    by rounding are scaled down. D w is without the columns that have no penalty.
    """
    n_outputs = claim["outputs"]
    numbers = np.array(claim["columns"], int)
    w = np.array(claim["coefficients"], float)
    demand_that(
        ((numbers >= 0) & (numbers < X.shape[1] * n_outputs)).all(), "columns of X", "others"
    )
    # Coefficient number j * outputs + t belongs to column j and output t. B has the columns in use.
    # The upper bounds on standard deviations bound the norm of D w from above.
    features, inverse = np.unique(numbers // n_outputs, return_inverse=True)
    B = X[:, features].astype(float)
    sd = deviations(B, s, math.fsum(s))[1][inverse] if claim["standardize"] else np.ones(w.size)
    penalized = ~np.isin(numbers, claim["free"])
    sets = np.array(claim["sets"] or numbers, int)[penalized]
    gauge, factor = gauge_above(norm, numbers[penalized], (w * sd)[penalized], sets)
    # Only rounding may violate a bound or the radius: the factor of w must be nearly 1.
    shrink = min(factor, amount / gauge if claim["form"] == "constrained" and gauge else 1.0)
    demand_that(
        shrink > 1 - 1e-8, "coefficients within their bounds", f"{1 / shrink:.9g} times these"
    )
    w = np.where(penalized, w * (shrink * (1 - 4 * EPS) if shrink < 1 else 1.0), w)
    # Sums of the coefficients of each feature and output, and sums of their magnitudes.
    coefficients = np.zeros((features.size, n_outputs))
    magnitudes = np.zeros((features.size, n_outputs))
    d = np.zeros(X.shape[1] * n_outputs)
    np.add.at(coefficients, (inverse, numbers % n_outputs), w)
    np.add.at(magnitudes, (inverse, numbers % n_outputs), np.abs(w))
    np.add.at(d, numbers[penalized], (w * sd)[penalized])
    return d, gauge, B @ coefficients, abs(B) @ magnitudes


def expect(name: str, expected: Any, received: Any) -> None:
    """Raise ValueError unless ``expected`` equals ``received``; the error begins with ``name``."""
    demand_that(expected == received, f"{name}: {expected}", received)


def claim_digest(claim: Any) -> str:
    """Return the sha256 of a claim without its own entry, as JSON with sorted keys."""
    content = {key: item for key, item in claim.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def data_digest(X: Any, y: Any, s: Any, o: Any, sparse: bool) -> str:
    """Return the sha256 of weights, offsets, targets and X, column after column, in float64.

    s are the weights and o the offsets. If ``sparse``, the digest is of the number of non-zeros of
    each column, their rows and their values.
    """
    y = np.asarray(y)
    targets = [y] if y.dtype.names is None else [y[name] for name in sorted(y.dtype.names)]
    digest = hashlib.sha256(b"".join(np.asarray(a, "<f8").tobytes() for a in (s, o, *targets)))
    for B in blocks(X):
        arrays: Any = (dense(B).T,)
        if sparse:
            # Entries are in the order of columns, then rows, however X is stored.
            column, row = np.nonzero(arrays[0])
            arrays = np.bincount(column, minlength=B.shape[1]), row, arrays[0][column, row]
        for array in arrays:
            digest.update(np.ascontiguousarray(array, "<f8").data)
    return digest.hexdigest()


def blocks(X: Any) -> Any:
    """Return an iterator over blocks of consecutive columns of X, as float64 copies.

    A dense block has about 4 million numbers.
    """
    step = max(1, 2**22 // max(X.shape[0], 1))
    return (X[:, start : start + step].astype(float) for start in range(0, X.shape[1], step))


def deviations(B: Any, s: Any, W: float) -> tuple[Any, Any]:
    """Return lower and upper bounds on the standard deviations of columns, (n_columns,) each.

    B has the columns, s (n_rows,) are the weights, and W is their sum. Constant columns have the
    deviation 1.
    """
    # Relative rounding of a sum over the rows, with up to 40 other operations.
    slack = (B.shape[0] + 40) * EPS
    rows = B[s > 0]
    if hasattr(B, "tocsc"):
        # Var = E x^2 - (E x)^2 leaves zeros as they are. Its rounding is relative to E x^2. Dense
        # columns are centered, then squared: the error is that of the sum, and the square of the
        # mean that rounding has left.
        is_constant = (rows.max(axis=0).toarray() == rows.min(axis=0).toarray()).ravel()
        square = s @ B.power(2) / W
        var = square - (s @ B / W) ** 2
        errors = 4 * slack * square
    else:
        is_constant = rows.max(axis=0) == rows.min(axis=0)
        B = B - s @ B / W
        var = s @ B**2 / W
        errors = slack * var + (np.abs(s @ B) / W + slack * (s @ np.abs(B)) / W) ** 2
    demand_that(
        (is_constant | (var > errors)).all(), "columns that vary by more than rounding", "another"
    )
    low, high = (
        np.sqrt(np.where(is_constant, 1.0, np.maximum(var + k * errors, 0))) for k in (-1, 1)
    )
    return low * (1 - 4 * EPS), high * (1 + 4 * EPS)


def scores(X: Any, v: Any, e: Any, s: Any, W: float, claim: Any, slack: float) -> tuple[Any, Any]:
    """Return the scores D^-1 X'v and bounds on their errors, (n_columns * outputs,) each.

    The feasible dual point is within e of v, both (n_rows, outputs). s are the weights, W is their
    sum, and ``slack`` is the relative rounding of a sum over the rows.
    """
    sums_to_zero = claim["intercept"] or claim["loss"]["name"] == "cox"
    pieces = []
    for B in blocks(X):
        low, high = deviations(B, s, W) if claim["standardize"] else np.ones((2, B.shape[1]))
        if sums_to_zero and not hasattr(B, "tocsc"):
            # Centering changes no score, because v adds up to 0; it makes rounding smaller.
            B = B - s @ B / W
        # Errors: rounding of the sums, the distance e, and the two bounds on the deviations.
        x = (B.T @ v) / low[:, None]
        errors = abs(B).T @ (slack * np.abs(v) + e) * (1 + slack) / low[:, None]
        pieces.append((x, errors + np.abs(x) * ((high - low) / low + 8 * EPS)[:, None]))
    x, errors = (np.concatenate(parts).ravel() for parts in zip(*pieces, strict=True))
    return x, errors
