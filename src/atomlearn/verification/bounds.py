"""Check a claim of optimality from the data and the claim: NumPy, and no code of the solvers.

The claim: w and b have an objective within ``gap`` of the least one. The objective is
F = (sum_i s_i loss(y_i, z_i)) / W + R(D w) + tau/2 ||D w||^2 with z = X w + b + offset, W = sum s,
and D the standard deviations of the columns, or 1. For v with sum v = 0 (if there is a b) and Z'v =
0 (Z: the columns without penalty), any d, and 0 <= c <= 1, Fenchel's inequality says that no w, b
have W F < -sum_i s_i loss*(-c v_i / s_i) - c <v, offset> - c^2 W tau/2 ||d||^2 - R*(c x), with
x = D^-1 X'v - W tau d. All roundings are counted: EPS is two units of roundoff, so that a sum of n
terms is off by n EPS times the sum of their magnitudes at most, in any order, and an elementary
function by a few EPS. Losses and conjugates are convex: over an interval, largest at an end.
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
    """Return objective, best (no model has less), gap, relative_gap; ValueError if not proved."""
    expect("format", ["atomlearn-claim", 1], [claim.get("format"), claim.get("version")])
    expect("sha256 of the claim", claim["sha256"], claim_digest(claim))
    expect("rows and columns of X", [claim["n_rows"], claim["n_columns"]], list(X.shape))
    X = X.tocsc() if hasattr(X, "tocsc") else X
    s = np.ones(X.shape[0]) if weight is None else np.asarray(weight, float)
    o = np.zeros((X.shape[0], claim["outputs"]))
    o = o if offset is None else o + np.reshape(np.asarray(offset, float), (X.shape[0], -1))
    received = data_digest(X, y, s, o, claim["sparse"])
    expect("sha256 of X, y, weights and offsets", claim["data"], received)
    numbers = proved(claim, X, np.asarray(y), s, o)
    agrees = abs(claim["objective"] - numbers["objective"]) <= numbers["off"]
    demand_that(agrees, f"objective: {numbers['objective']:.17g}", claim["objective"])
    demand_that(
        numbers["gap"] <= claim["gap"], f"gap: {claim['gap']:.6g}", f"{numbers['gap']:.6g} proved"
    )
    return numbers


def proved(claim: Any, X: Any, y: Any, s: Any, o: Any) -> dict[str, float]:
    """Return the numbers of ``check``: first those of the point, then those of the bound."""
    W = math.fsum(s)
    is_weighted = s > 0
    slack = (X.shape[0] + 40) * EPS
    form = claim["form"]
    T = claim["outputs"]
    free = claim["free"]
    norm = checked_norm_entry(claim["norm"], X.shape[1] * T)
    amount = claim["radius"] if form == "constrained" else claim["alpha"] * claim["l1_ratio"] * W
    tau = claim["alpha"] * (1 - claim["l1_ratio"]) * W if claim["alpha"] else 0.0
    fits = 0 <= claim["l1_ratio"] <= 1 and amount > 0 and tau >= 0 and (s >= 0).all()
    demand_that(fits, "positive weights and strengths", [amount, tau])
    demand_that(T == 1 or not free, "one output, if columns have no penalty", T)
    d, gauge, z, r = claimed_point(claim, X, s, norm, amount)
    b = np.array(claim["intercepts"], float)
    demand_that(
        claim["intercept"] or claim["loss"]["name"] == "cox" or not b.any(), "no intercept", b
    )
    magnitudes = np.abs(b)
    if claim["intercept"] and claim["loss"]["name"] in ("squared", "huber", "quantile"):
        # Shifting the targets gives the same problem, because v adds up to 0; targets far from 0
        # then lose no digits.
        y = y.reshape(o.shape) - b
        b = 0 * b
        magnitudes = np.abs(y)
    r = (len(claim["columns"]) + 40) * EPS * (r + magnitudes + np.abs(o))
    loss = loss_of(claim["loss"], y[is_weighted], s[is_weighted, None])
    value, top = loss["value"]((z + b + o)[is_weighted], r[is_weighted])
    penalty = {"penalized": amount * gauge, "squared": amount / 2 * gauge**2, "constrained": 0.0}
    ridge = tau / 2 * math.fsum(d * d)
    objective = value + ridge + penalty[form]
    top = top + (ridge + penalty[form]) * (1 + slack)
    v = np.zeros(o.shape)
    e = np.zeros(o.shape)
    v[is_weighted], e[is_weighted] = loss["dual"](claim, s, is_weighted, X)
    x, errors = scores(X, v, e, s, W, claim, slack)
    x = x - tau * d
    errors = errors + 8 * EPS * tau * np.abs(d)
    x[free] = errors[free] = 0.0
    polar, boxed = polar_above(norm, x, errors, amount, form)
    polar *= 1 + slack
    scaled = form == "penalized" and polar > amount * (1 - 8 * EPS)
    c = (amount / polar if scaled else 1.0) * (1 - 32 * EPS)
    conjugate = loss["conjugate"](c) + c * math.fsum((v * o).ravel())
    conjugate += float((np.abs(o) * (4 * EPS * np.abs(v) + e)).sum()) * (1 + slack)
    dual = {"penalized": 0.0, "squared": polar**2 / 2 / amount, "constrained": amount * polar}
    rounding = (dual[form] + boxed + c * c * ridge) * (1 + slack)
    gap = (
        (top + conjugate + rounding + 8 * EPS * (top + abs(conjugate) + rounding))
        / W
        * (1 + 8 * EPS)
    )
    demand_that(math.isfinite(top) and gap == gap, "a finite gap", gap)
    gap = min(gap, top / W)  # no loss and no norm is negative
    relative = gap / max(objective / W, TINY)
    errors = 1e-12 * objective / W + (top - objective) / W
    numbers = {"objective": objective / W, "best": top / W - gap, "gap": gap, "off": errors}
    return {**numbers, "relative_gap": relative}


def claimed_point(claim: Any, X: Any, s: Any, norm: Any, amount: float) -> tuple[Any, ...]:
    """Return D w, an upper bound on its gauge, X w, and |X| |w| as a measure of its rounding."""
    T = claim["outputs"]
    numbers = np.array(claim["columns"], int)
    w = np.array(claim["coefficients"], float)
    demand_that(((numbers >= 0) & (numbers < X.shape[1] * T)).all(), "columns of X", "others")
    features, inverse = np.unique(numbers // T, return_inverse=True)
    B = X[:, features].astype(float)
    sd = deviations(B, s, math.fsum(s))[1][inverse] if claim["standardize"] else np.ones(w.size)
    paid = ~np.isin(numbers, claim["free"])
    gauge, factor = gauge_above(
        norm, numbers[paid], (w * sd)[paid], np.array(claim["sets"] or numbers, int)[paid]
    )
    shrink = min(factor, amount / gauge if claim["form"] == "constrained" and gauge else 1.0)
    demand_that(
        shrink > 1 - 1e-8, "coefficients within their bounds", f"{1 / shrink:.9g} times these"
    )
    w = np.where(paid, w * (shrink * (1 - 4 * EPS) if shrink < 1 else 1.0), w)
    C = np.zeros((features.size, T))
    S = np.zeros((features.size, T))
    d = np.zeros(X.shape[1] * T)
    np.add.at(C, (inverse, numbers % T), w)
    np.add.at(S, (inverse, numbers % T), np.abs(w))
    np.add.at(d, numbers[paid], (w * sd)[paid])
    return d, gauge, B @ C, abs(B) @ S


def expect(name: str, expected: Any, received: Any) -> None:
    """Raise ValueError if the two differ."""
    demand_that(expected == received, f"{name}: {expected}", received)


def claim_digest(claim: Any) -> str:
    """Return the sha256 of a claim without its own entry, as JSON with sorted keys."""
    content = {key: item for key, item in claim.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def data_digest(X: Any, y: Any, s: Any, o: Any, sparse: bool) -> str:
    """Return the sha256 of weights, offsets, targets and X, column after column, in float64.

    Of sparse X: the number of non-zeros of each column, their rows and their values.
    """
    y = np.asarray(y)
    targets = [y] if y.dtype.names is None else [y[name] for name in sorted(y.dtype.names)]
    digest = hashlib.sha256(b"".join(np.asarray(a, "<f8").tobytes() for a in (s, o, *targets)))
    for B in blocks(X):
        parts: Any = (dense(B).T,)
        if sparse:
            column, row = np.nonzero(parts[0])
            parts = np.bincount(column, minlength=B.shape[1]), row, parts[0][column, row]
        for part in parts:
            digest.update(np.ascontiguousarray(part, "<f8").data)
    return digest.hexdigest()


def blocks(X: Any) -> Any:
    """Yield the columns in pieces, as float64 copies of 4 million numbers if dense."""
    step = max(1, 2**22 // max(X.shape[0], 1))
    return (X[:, start : start + step].astype(float) for start in range(0, X.shape[1], step))


def deviations(B: Any, s: Any, W: float) -> tuple[Any, Any]:
    """Return bounds on the standard deviations of columns, which are 1 for constant columns."""
    slack = (B.shape[0] + 40) * EPS
    rows = B[s > 0]
    if hasattr(B, "tocsc"):
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
    """Return D^-1 X'v and bounds on the errors, (n_columns * outputs,) each, for v off by e."""
    sums = claim["intercept"] or claim["loss"]["name"] == "cox"
    scores = []
    for B in blocks(X):
        low, high = deviations(B, s, W) if claim["standardize"] else np.ones((2, B.shape[1]))
        if sums and not hasattr(B, "tocsc"):
            B = B - s @ B / W  # adding a constant changes no score, because v adds up to 0
        x = (B.T @ v) / low[:, None]
        errors = abs(B).T @ (slack * np.abs(v) + e) * (1 + slack) / low[:, None]
        scores.append((x, errors + np.abs(x) * ((high - low) / low + 8 * EPS)[:, None]))
    x, errors = (np.concatenate(parts).ravel() for parts in zip(*scores, strict=True))
    return x, errors
