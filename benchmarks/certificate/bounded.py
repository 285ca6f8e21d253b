"""l1 problems with bounds on coefficients: every loss, form and kind of bound, with free columns.

Their optima are known from elsewhere: linear programs of the pinball loss are solved by HiGHS, all
others by Clarabel through CVXPY, from formulas that share nothing with the package. What comes out
is a point: a gap that it lies below is refuted, however exact or inexact the other solver was.

    python -m benchmarks.certificate.bounded --problems 2000 --seed 0

tries so many problems of every loss, and counts what was found.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from atomlearn import losses, norms
from atomlearn.testing.loss_oracles import LOSS_ORACLES
from benchmarks.certificate.drawn import FORMS, Task, amount

NAMES = (*LOSS_ORACLES, "cox")
#: lower, upper: a number is what finite bounds are about, in units of the data.
BOUNDS = ((0.0, np.inf), (-np.inf, 0.0), (-0.3, np.inf), (-np.inf, 0.3), (-0.3, 0.3), (0.0, 0.3),
          (-0.3, 0.0), (-np.inf, np.inf), "mixed")  # fmt: skip


def draw_bounded(rng: Any, seed: int, name: str | None = None) -> Task:
    """Return a problem, of this loss if one is named."""
    name = name or NAMES[int(rng.integers(len(NAMES)))]
    loss: Any = {
        "huber": lambda: losses.Huber(float(rng.uniform(0.2, 2))),
        "quantile": lambda: losses.Quantile(float(rng.uniform(0.1, 0.9))),
        "tweedie": lambda: losses.Tweedie(float(rng.uniform(1.1, 1.9))),
        "negative_binomial": lambda: losses.NegativeBinomial(float(rng.uniform(0.5, 5))),
        "cox": lambda: losses.Cox(ties=("efron", "breslow")[int(rng.integers(2))]),
    }.get(name, lambda: losses.as_loss(name))()
    n, p = int(rng.integers(4, 25)), int(rng.integers(1, 9))
    X = rng.standard_normal((n, p))
    numbers = X @ (rng.standard_normal(p) * (rng.random(p) < 0.6)) + 0.5 * rng.standard_normal(n)
    arguments: dict[str, Any] = {"form": FORMS[int(rng.integers(3))], "tau": 0.0}
    weight, free = np.ones(n), np.zeros(0, dtype=np.int64)
    y, at_zero = numbers, numbers
    if name == "cox":
        event = (rng.random(n) < 0.7) | (np.arange(n) == 0)
        y = losses.survival_target(event, np.ceil(3 * np.exp(-0.3 * numbers)))
        at_zero = event - event.mean()
    else:
        y = LOSS_ORACLES[name].targets(numbers)
        at_zero = y / 2 if loss.task == "classification" else y - y.mean()
        weight = _weights(rng, n)
        arguments["fit_intercept"] = bool(rng.random() < 0.5)
    if p > 1 and rng.random() < 0.3:
        free = rng.choice(p, size=int(rng.integers(1, min(p, 4))), replace=False)
        arguments["unpenalized"] = free
    elif rng.random() < 0.2:
        arguments["tau"] = float(rng.uniform(0.05, 1))
    if name != "cox" and rng.random() < 0.15:
        arguments["offset"] = 0.3 * rng.standard_normal(n)
    norm, sides = _norm(rng, p, free)
    radius = arguments["form"] == "constrained"
    amounts = amount(rng, arguments["form"], name, norms.L1(), X, at_zero)
    arguments |= {"radius" if radius else "level": amounts, "sample_weight": weight}

    def gauge(w: np.ndarray) -> Any:
        price, low, high = sides
        slack = 1e-8 * np.minimum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        outside = (w < low - slack) | (w > high + slack)
        return np.inf if outside.any() else np.abs(w) @ price

    kind = (name, "BoundedL1", arguments["form"], "free" if free.size else "bounded")
    task = Task(seed, kind, X, X, y, weight, loss, norm, arguments, gauge)
    return replace(task, rival=lambda: _rival(task, *sides))


def _weights(rng: Any, n: int) -> np.ndarray:
    """Return ones, small whole numbers with zeros, or numbers of many sizes."""
    way = rng.random()
    if way < 0.4:
        return np.ones(n)
    if way < 0.8:
        return (rng.integers(0, 4, n) + (np.arange(n) < 2)).astype(float)
    return 10.0 ** rng.uniform(-2, 2, n)


def _norm(rng: Any, p: int, free: np.ndarray) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return the norm, and prices and bounds as they count: none of free columns."""
    chosen = BOUNDS[int(rng.integers(len(BOUNDS)))]
    size = 10.0 ** rng.uniform(-1.5, 0.5)
    if chosen == "mixed":
        low = rng.choice([-np.inf, -size, 0.0], p)
        high = rng.choice([np.inf, size, 0.0], p)
    else:
        low, high = (np.full(p, side * (size / 0.3 if side else 1.0)) for side in chosen)
    price = np.ones(p) if rng.random() < 0.5 else rng.random(p) + 0.1
    norm: Any = norms.L1(None if (price == 1.0).all() else price, low, high)
    if rng.random() < 0.15:
        factor = float(rng.uniform(0.3, 3))
        norm, price = norms.Scaled(norm, factor), factor * price
    price, low, high = price.copy(), low.copy(), high.copy()
    price[free], low[free], high[free] = 0.0, -np.inf, np.inf
    return norm, (price, low, high)


# --- optima from elsewhere ----------------------------------------------------------------------


def _rival(task: Task, price: Any, low: Any, high: Any) -> Any:
    """Return another solver's point, inside of the bounds, or None where it has none."""
    form, tau = task.arguments["form"], task.arguments["tau"]
    linear = task.loss.name == "quantile" and form != "squared" and not tau
    found = (_by_linear_program if linear else _by_cvxpy)(task, price, low, high)
    if found is None or not np.isfinite(found[0]).all():
        return None
    w, b = np.clip(found[0], low, high), found[1] if task.arguments.get("fit_intercept") else 0.0
    if form == "constrained" and (gauge := float(np.abs(w) @ price)) > task.arguments["radius"]:
        w = np.where(price > 0, w * (task.arguments["radius"] / gauge), w)
    return SimpleNamespace(coef=w, intercept=b)


def _by_linear_program(task: Task, price: Any, low: Any, high: Any) -> Any:
    """Return w and b by HiGHS: w, b, the parts of the residuals, and the magnitudes of w."""
    X, y, s, q = task.dense, task.y - task.arguments.get("offset", 0.0), task.weight, task.loss.q
    n, p = X.shape
    intercept, radius = task.arguments["fit_intercept"], task.arguments.get("radius")
    one, none = np.ones((n, 1)) * intercept, np.zeros((n, p))
    equal = np.hstack([X, one, np.eye(n), -np.eye(n), none])
    cost = np.concatenate([np.zeros(p + 1), q * s, (1 - q) * s, np.zeros(p)])
    eye, rest = np.eye(p), np.zeros((p, 2 * n + 1))
    above, most = np.vstack([np.hstack([eye, rest, -eye]), np.hstack([-eye, rest, -eye])]), 0.0
    limit = np.full(2 * p, most)
    if radius is None:
        cost[-p:] = task.arguments["level"] * price
    else:
        above = np.vstack([above, np.concatenate([np.zeros(p + 1 + 2 * n), price])])
        limit = np.append(limit, radius)
    ends = [*zip(low, high, strict=True), (None, None), *[(0, None)] * (2 * n + p)]
    found = linprog(cost, A_ub=above, b_ub=limit, A_eq=equal, b_eq=y, bounds=ends, method="highs")
    return (found.x[:p], float(found.x[p])) if found.status == 0 else None


def _by_cvxpy(task: Task, price: Any, low: Any, high: Any) -> Any:
    """Return w and b by Clarabel."""
    import cvxpy as cp

    p, arguments, s = task.dense.shape[1], task.arguments, task.weight
    w, b = cp.Variable(p), cp.Variable()
    z = (
        task.dense @ w
        + b * float(arguments.get("fit_intercept", False))
        + arguments.get("offset", 0.0)
    )
    if task.loss.name == "cox":
        smooth = _partial(cp, task.loss.ties, task.y, z)
    else:
        smooth = LOSS_ORACLES[task.loss.name].expression(cp, task.y, z, s, task.loss)
    gauge, size = price @ cp.abs(w), arguments.get("level", arguments.get("radius"))
    total = smooth + 0.5 * arguments["tau"] * cp.sum_squares(w)
    inside = [w[j] >= low[j] for j in np.flatnonzero(np.isfinite(low))]
    inside += [w[j] <= high[j] for j in np.flatnonzero(np.isfinite(high))]
    if arguments["form"] == "constrained":
        inside.append(gauge <= size)
    else:
        total += size * gauge if arguments["form"] == "penalized" else 0.5 * size * gauge**2
    if not arguments.get("fit_intercept", False):
        inside.append(b == 0.0)
    try:
        cp.Problem(cp.Minimize(total), inside).solve(solver="CLARABEL")
    except cp.SolverError:
        return None
    return None if w.value is None else (np.asarray(w.value), float(b.value))


def _partial(cp: Any, ties: str, y: Any, z: Any) -> Any:
    """Return minus the log partial likelihood."""
    total: Any = 0.0
    for time_ in np.unique(y["time"][y["event"]]):
        here = y["event"] & (y["time"] == time_)
        risk, count = np.flatnonzero(y["time"] >= time_), int(here.sum())
        for place in range(count):
            share = place / count * (ties == "efron")
            logs = np.log(np.where(here[risk], 1.0 - share, 1.0))
            total += cp.log_sum_exp(z[risk] + logs)
        total -= cp.sum(z[np.flatnonzero(here)])
    return total


def main() -> int:
    """Try so many problems of every loss; return 1 where a certificate was wrong."""
    from benchmarks.certificate.campaign import judge

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100, help="of every loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", nargs="*", default=NAMES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    time.monotonic, bad = time.process_time, 0
    for name in options.losses:
        counts: Counter[str] = Counter()
        for seed in range(options.seed, options.seed + options.problems):
            rng = np.random.default_rng([11, NAMES.index(name), seed])
            try:
                row = judge(draw_bounded(rng, seed, name), rng)
            except Exception as error:
                row = {"verdict": "failed", "what": f"{type(error).__name__}: {error}"}
            counts.update([row["verdict"], row.get("status", "raised")])
            if row["what"]:
                print(name, seed, row["verdict"], row["what"], flush=True)
        bad += counts["wrong"] + counts["failed"]
        print(name, dict(counts), flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
