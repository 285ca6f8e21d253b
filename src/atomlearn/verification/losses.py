"""Losses for ``bounds``: values, slopes and conjugates with their roundings, in NumPy only.

A loss is convex, and so is its conjugate: over an interval each is largest at one of the ends. EPS
is two units of roundoff. The relative error of elementary functions is assumed to be a few EPS.
Shapes below: n rows and T outputs; y and s (n, T) or (n, 1) are targets and sample weights.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

EPS = 2.0**-52
TINY = 2.0**-1022


def demand_that(holds: Any, expected: str, received: Any) -> None:
    """Raise ValueError with what was ``expected`` and ``received`` unless ``holds`` is true."""
    if not holds:
        raise ValueError(f"expected {expected}; received {received}")


def formulas(spec: Any, y: Any) -> Any:
    """Return for each name of a loss a tuple (value_terms, conjugate_terms, low, high).

    The terms ``value_terms(z)`` add up to loss(y, z) at predictions z, and ``conjugate_terms(a)``
    to the conjugate loss*(-a). Lists of terms are returned, because their magnitudes bound the
    rounding of the sums. The slopes a must satisfy low <= a <= high. ``spec`` has the parameters of
    the loss, and y (n, T) are the targets. Terms of y alone make the least value of each loss 0.
    """
    inf = np.full(y.shape, np.inf)
    t = spec.get("delta", 0.0)  # of the Huber loss
    q = spec.get("q", 0.0)  # the quantile

    def log(p: Any) -> Any:
        """Return log p without a warning at 0."""
        return np.log(np.maximum(p, TINY))

    def log1p(p: Any) -> Any:
        """Return log(1 + p) without a warning at -1."""
        return np.log1p(np.maximum(p, EPS - 1))

    return {
        "squared": (lambda z: [(z - y) ** 2 / 2], lambda a: [a * a / 2, -a * y], -inf, inf),
        "huber": (
            lambda z: [np.minimum(abs(z - y), t) * (abs(z - y) - np.minimum(abs(z - y), t) / 2)],
            lambda a: [a * a / 2, -a * y],
            np.full(y.shape, -t),
            np.full(y.shape, t),
        ),
        "quantile": (
            lambda z: [np.maximum(q * (y - z), (1 - q) * (z - y))],
            lambda a: [-a * y],
            np.full(y.shape, q - 1),
            np.full(y.shape, q),
        ),
        "logistic": (
            lambda z: [np.log1p(np.exp(-abs(z))), np.maximum(-y * z, 0)],
            lambda a: [y * a * log(y * a), (1 - y * a) * log1p(-y * a)],
            np.minimum(y, 0),
            np.maximum(y, 0),
        ),
        "squared_hinge": (
            lambda z: [np.maximum(1 - y * z, 0) ** 2 / 2],
            lambda a: [a * a / 2, -y * a],
            np.where(y > 0, 0, -inf),
            np.where(y > 0, inf, 0),
        ),
        "poisson": (
            lambda z: [np.exp(z), -y * z, y * log(y), -y],
            lambda a: [(y - a) * log(y - a), a - y, -y * log(y), y],
            -inf,
            y,
        ),
        "gamma": (
            lambda z: [y * np.exp(-z), z, -np.ones(y.shape), -log(y)],
            lambda a: [(1 + a) * log1p(a), -a, -a * log(y)],
            np.full(y.shape, -1.0),
            inf,
        ),
        "multinomial": (
            log_of_sum,
            lambda a: [np.where(y == 1, (1 - a) * log1p(-a), (y - a) * log(y - a))],
            y - 1,
            y,
        ),
    }


def log_of_sum(z: Any) -> Any:
    """Return terms of log sum_k exp(z_k) for each row of z (n, T).

    The terms 1 and -1 are added, because the rounding of the logarithm is relative to 1.
    """
    largest = z.max(axis=1, keepdims=True)
    ones = np.ones(largest.shape)
    return [largest, np.log(np.exp(z - largest).sum(axis=1, keepdims=True)), ones, -ones]


def loss_of(spec: Any, y: Any, s: Any) -> Any:
    """Return the functions ``value``, ``dual`` and ``conjugate`` of a loss.

    ``spec`` has the name and the parameters of the loss, y are the targets and s (n, 1) the
    weights of the rows with positive weight.

    ``value(z, r)`` returns the loss at predictions z (n, T), and an upper bound on it for
    errors of z up to r. ``dual(claim, s, is_weighted, X)`` returns the stored dual point v (n,
    T), and bounds e (n, T) on its distance from a feasible point. A feasible point is
    orthogonal to the columns of X without penalty. Its sum is 0 if there is an intercept, and a
    = v / s must be slopes of the loss. ``is_weighted`` is the mask of the rows with positive
    weight among all rows. ``conjugate(c)`` returns an upper bound on sum s loss*(-c v / s).
    """
    name = spec["name"]
    if name == "cox":
        return cox(spec, y, s[:, 0])
    y = y.astype(float).reshape(s.size, -1)
    y = 1.0 * (np.arange(spec["n_classes"]) == y) if name == "multinomial" else y
    table = formulas(spec, y)
    demand_that(name in table, f"a loss of {sorted([*table, 'cox'])}", name)
    value_at, conjugate_at, low, high = table[name]
    slopes: Any = {}  # ``dual`` stores the slopes for ``conjugate``

    def bound(f: Any, center: Any, radius: Any, low: Any = -np.inf, high: Any = np.inf) -> float:
        """Return an upper bound on sum s f(u), |u - center| <= radius, f a convex sum of terms."""
        ends = [f(np.clip(center + k * (radius + EPS * abs(center)), low, high)) for k in (-1, 1)]
        upper = np.maximum(*(sum(terms) for terms in ends))
        magnitude = np.maximum(*(sum(map(np.abs, terms)) for terms in ends))
        return math.fsum((s * upper).ravel()) + 32 * EPS * math.fsum((s * magnitude).ravel())

    def value(z: Any, r: Any) -> tuple[float, float]:
        """Return the loss at z, and an upper bound on it for errors of z up to r."""
        if name == "multinomial":  # the loss log sum_k exp(z_k - z_y) increases with each z_k - z_y
            z = z - (y * z).sum(axis=1, keepdims=True)
            r = 2 * r.max(axis=1, keepdims=True) + EPS * np.abs(z).max(axis=1, keepdims=True)
        return math.fsum((s * sum(value_at(z))).ravel()), bound(value_at, z, r)

    def dual(claim: Any, _: Any, is_weighted: Any, X: Any) -> tuple[Any, Any]:
        """Return the stored dual point v, and bounds e on its distance from a feasible one."""
        steps = np.array(claim["dual"]["steps"].split(), dtype=np.int64).reshape(
            is_weighted.size, -1
        )
        demand_that(np.abs(steps).max() < 2**53, "dual: steps below 2^53", np.abs(steps).max())
        sums = [sum(column) for column in steps.T.tolist()]
        demand_that(not (claim["intercept"] and any(sums)), "dual: a sum of 0", sums)
        demand_that(not steps[~is_weighted].any(), "dual: 0 in rows of weight 0", "another number")
        v = steps[is_weighted] * 2.0 ** claim["dual"]["exponent"]
        if name == "multinomial":
            demand_that(not steps.sum(axis=1).any(), "dual: rows that add up to 0", "another sum")
        a = v / s
        e = np.zeros(v.shape)
        if claim["free"]:
            # v_i may change by s_i min(a_i - low_i, high_i - a_i): a_i remains a slope of the loss.
            slack = s * np.clip(np.minimum(a - low, high - a), 0.0, np.abs(a).max())
            Z = dense(X[:, claim["free"]][is_weighted])
            Z = np.hstack([np.ones((Z.shape[0], int(claim["intercept"]))), Z])
            e = slack * nearby(Z, slack[:, 0], v[:, 0])[:, None]
        slopes.update(a=a, radius=e / s * (1 + 4 * EPS))
        # Slopes may leave the interval by the rounding of its ends.
        edge = 8 * EPS * np.where(np.isfinite(low), np.abs(low), 0)
        is_valid = a - slopes["radius"] >= low - edge
        edge = 8 * EPS * np.where(np.isfinite(high), np.abs(high), 0)
        is_valid &= a + slopes["radius"] <= high + edge
        demand_that(is_valid.all(), "dual: slopes of the loss", "others")
        return v, e

    def conjugate(c: float) -> float:
        """Return an upper bound on sum s loss*(-c v / s), v the dual point that ``dual`` read."""
        a = c * slopes["a"]
        return bound(conjugate_at, a, c * slopes["radius"] + 4 * EPS * np.abs(a), low, high)

    return {"value": value, "dual": dual, "conjugate": conjugate}


def dense(B: Any) -> Any:
    """Return B, a dense or sparse matrix, as an array of float64."""
    return np.asarray(B.toarray() if hasattr(B, "tocsc") else B, float)


def risk_terms(y: Any, s: Any, times: Any, efron: bool) -> Any:
    """Yield (rows, a, q, omega, share) for each term of Cox's partial likelihood, one an event.

    The term is omega (log sum_i a_i exp(z_i) - <q, z>), over the ``rows`` at risk at the time of
    the event. a are their weights, and q the weights of the events at that time, divided by their
    sum. If ``efron``, Efron's method subtracts ``share`` of the weights of tied events from a.
    y are the survival records, s (n,) the weights, and ``times`` the pairs of a stratum and a time
    with events.
    """
    # A row is at risk if it entered before the time and its own time is not earlier.
    for stratum, time in times:
        risk = (y["stratum"] == stratum) & (y["entry"] < time) & (y["time"] >= time)
        risk = np.flatnonzero(risk)
        tied = y["event"][risk] & (y["time"][risk] == time)
        total = math.fsum(s[risk][tied])
        n_tied = int(tied.sum())
        for j in range(n_tied):
            share = j / n_tied if efron else 0.0
            yield risk, s[risk] * (1 - share * tied), s[risk] * tied / total, total / n_tied, share


def totals(terms: Any) -> tuple[float, float, int]:
    """Return the sum of the least values of ``terms``, the sum of their omega, and their number.

    ``terms`` are those of ``risk_terms``. The least value of a term over all predictions is
    omega (log(omega m) + log(1 - share)), with m the number of events at its time. The loss of
    ``cox`` is the sum of terms minus the sum of their least values, so it is at least 0.
    """
    least = 0.0
    weight = 0.0
    count = 0
    for _, _, q, omega, share in terms:
        least += omega * (math.log(omega * (q > 0).sum()) + math.log1p(-share))
        weight += omega
        count += 1
    return least, weight, count


def softmax_at(z: Any, a: Any) -> tuple[Any, float, float]:
    """Return p_i = a_i exp(z_i) / sum, the logarithm of the sum, and a bound on both errors.

    The sum is sum_i a_i exp(z_i), for predictions z and weights a of the rows at risk. The error of
    p is relative.
    """
    largest = z.max()
    p = a * np.exp(z - largest)
    total = float(p.sum())
    # An exponent's rounding grows with its magnitude; beyond 750, exp(-750) is 0.
    error = (z.size + min(largest - z.min(), 750.0) + 40) * EPS
    return p / total, largest + math.log(total), error


def cox(spec: Any, y: Any, s: Any) -> Any:
    """Return the functions of ``loss_of`` for Cox's partial likelihood.

    ``spec`` says how ties are handled, y are the survival records and s (n,) the weights. The
    loss is a sum of terms omega (log sum_i a_i exp(z_i) - <q, z>), see ``risk_terms``. Claims store
    no dual point for this loss. It is computed from the predictions z, which ``value`` must
    receive first: v = sum omega (q - p), with p the softmax of each term. The point c v belongs to
    p' = c p + (1 - c) q, and its conjugate is the sum of omega p' log(p' / a).

    The dictionary ``cache`` has "z", the predictions, and "moved", by the size of a risk set, the
    relative change of p by which ``dual`` satisfies Z'v = 0. Exponents add at most 750 EPS to the
    relative errors, see ``softmax_at``.
    """
    n = s.size
    cache: dict[str, Any] = {}
    demand_that(not y["competing"].any(), "no competing events", "some")
    demand_that(y["event"].any(), "an event", "none")
    times = sorted(set(y[["stratum", "time"]][y["event"]].tolist()))
    terms = partial(risk_terms, y, s, times, spec["ties"] == "efron")
    least, weight, n_terms = totals(terms())

    def softmax(risk: Any, a: Any) -> tuple[Any, float, float]:
        """Return ``softmax_at`` for the stored predictions of rows ``risk`` and their weights a."""
        p, log, error = softmax_at(cache["z"][risk], a)
        return p, log, error + cache["moved"].get(risk.size, 0.0)

    def value(z: Any, r: Any) -> tuple[float, float]:
        """Return the loss at predictions z (n, 1), and an upper bound for errors of z up to r."""
        cache.update(z=z[:, 0], moved={})
        sums = [-least]
        magnitude = abs(least)
        for risk, a, q, omega, _ in terms():
            _, log, _ = softmax(risk, a)
            sums.append(omega * (log - q @ z[risk, 0]))
            magnitude += omega * (abs(log) + 1 + 2 * np.abs(z[risk]).max())
        rounding = (n + 750 + 40) * EPS * magnitude + 2 * r.max(initial=0) * weight
        return math.fsum(sums), math.fsum(sums) + rounding

    def dual(claim: Any, _: Any, is_weighted: Any, X: Any) -> tuple[Any, Any]:
        """Return the dual point v, and bounds e on its distance from a feasible one."""
        v, magnitude, e = np.zeros((3, n))
        largest: Any = None
        for risk, a, q, omega, _ in terms():
            p, _, error = softmax(risk, a)
            v[risk] += omega * (q - p)
            magnitude[risk] += omega * (q + p)
            e[risk] += omega * p * error
            if largest is None or risk.size > largest[0].size:
                largest = risk, omega * p
        e += (n_terms + 8) * EPS * magnitude
        if claim["free"]:  # the largest risk sets absorb the remaining violation of Z'v = 0
            slack = np.bincount(largest[0], largest[1], n)
            Z = np.hstack([np.ones((n, 1)), dense(X[:, claim["free"]][is_weighted])])
            h = nearby(Z, slack, v, e)
            demand_that(h.max() < 0.5, "predictions at an optimum over the free columns", h.max())
            cache["moved"][largest[0].size] = h.max()
            e += slack * h * (1 + 4 * EPS)
        return v[:, None], e[:, None]

    def conjugate(c: float) -> float:
        """Return an upper bound on the conjugate of the loss at c v."""
        sums = [least]
        rounding = (n + 40) * EPS * abs(least)
        for risk, a, q, omega, _ in terms():
            p, _, error = softmax(risk, a)
            p = c * p + (1 - c) * q
            logs = np.log(np.maximum(p, TINY) / a)
            sums.append(omega * math.fsum(p * logs))
            rounding += omega * float((p * ((error + 32 * EPS) * np.abs(logs) + error)).sum())
        return float(math.fsum(sums) + rounding * (1 + 40 * EPS))

    return {"value": value, "dual": dual, "conjugate": conjugate}


def nearby(Z: Any, width: Any, v: Any, e: Any = 0.0) -> Any:
    """Return h (n,) such that |u_i - v_i| <= width_i h_i for some u with Z'u = 0 exactly.

    Z (n, m) has the columns without penalty, ``width`` (n,) says how far each entry may move,
    and each v_i has an error of up to e_i (``e`` is (n,) or 0). Let Wd = diag(width). Then
    u = v - P (Z'P)^-1 Z'v, with P = Wd Q and Q near Z (Z' Wd Z)^-1. So Z'P = I - E with a small E,
    and h_i = sum_j |Q_ij| max |Z'v| / (1 - ||E||) by the Neumann series, in the maximum norm.
    """
    # Columns are scaled by powers of two, which is exact.
    Z = Z / 2.0 ** np.round(np.log2(np.maximum(np.abs(Z).max(axis=0), TINY)))
    slack = (Z.shape[0] + 40) * EPS
    Q = Z @ np.linalg.pinv(Z.T @ (width[:, None] * Z))
    P = width[:, None] * Q
    E = np.abs(np.eye(Z.shape[1]) - Z.T @ P) + slack * (np.abs(Z).T @ np.abs(P))
    error_norm = E.sum(axis=1).max()  # ||E||
    demand_that(
        error_norm < 0.5,
        "columns without penalty that do not depend on each other",
        f"{error_norm:.2g}",
    )
    residuals = np.abs(Z.T @ v) + np.abs(Z).T @ (slack * np.abs(v) + e)
    return np.abs(Q).sum(axis=1) * residuals.max() / (1 - error_norm) * (1 + slack)
