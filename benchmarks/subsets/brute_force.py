"""Small problems of every kind, against all subsets: is a bound, a column proved in or out wrong?

Each subset is fitted by Newton's method on formulas written here, which share nothing with the
package. Problems are drawn with ties, weights (zeros among them), offsets, an intercept, free
columns, groups, equal columns, targets without signal, ridges from 1e-3 to 10, and a price for each
column.

    python -m benchmarks.subsets.brute_force --problems 2000 --seed 0 --cut-short 300

Of those that are cut short, the deadline passes after a drawn number of questions for it: no clock
decides where.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from atomlearn import losses
from atomlearn._support import Work
from atomlearn.core.interfaces import Deadline
from atomlearn.subsets.result import SubsetStatus
from tests.oracles.subset_sums import subset_sum

#: Relative: two objectives of Newton's method are the same up to this.
SAME = 1e-8
#: Relative: subsets this near to the best one are as good, so that none is proved out.
TIED = 1e-9


def squared(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    """Return the value, the gradient and the Hessian of a loss at predictions z."""
    return 0.5 * float(s @ (z - y) ** 2), s * (z - y), np.diag(s)


def logistic(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    p = 1.0 / (1.0 + np.exp(np.clip(y * z, -700, 700)))
    return float(s @ np.logaddexp(0.0, -y * z)), -s * y * p, np.diag(s * p * (1.0 - p))


def squared_hinge(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    short = np.maximum(1.0 - y * z, 0.0)
    return 0.5 * float(s @ short**2), -s * y * short, np.diag(s * (short > 0.0))


def poisson(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    mean = np.exp(np.minimum(z, 700.0))
    least = np.where(y > 0.0, y * np.log(np.maximum(y, 1e-300)), 0.0) - y
    return float(s @ (mean - y * z + least)), s * (mean - y), np.diag(s * mean)


def huber(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    r = z - y
    inside = np.abs(r) <= 1.0
    value = np.where(inside, 0.5 * r * r, np.abs(r) - 0.5)
    # The parabola above the loss that touches it here: steps go down from everywhere.
    return float(s @ value), s * np.clip(r, -1.0, 1.0), np.diag(s / np.maximum(np.abs(r), 1.0))


def cox(y: Any, z: Any, s: Any) -> tuple[float, Any, Any]:
    times, events = y
    value, slope, bend = 0.0, np.zeros(z.size), np.zeros((z.size, z.size))
    for i in np.flatnonzero(events):
        risk = np.where(times >= times[i], np.exp(z), 0.0)
        share = risk / risk.sum()
        value += np.log(risk.sum()) - z[i]
        slope += share
        slope[i] -= 1.0
        bend += np.diag(share) - np.outer(share, share)
    return value, slope, bend


FORMULAS = {
    "squared": squared,
    "logistic": logistic,
    "squared_hinge": squared_hinge,
    "poisson": poisson,
    "huber": huber,
    "cox": cox,
}


@dataclass
class Drawn:
    """A problem: what solve_subset is given, and the units a subset is made of."""

    X: Any
    y: Any
    loss: str
    given: dict[str, Any]
    units: list[list[int]]
    free: list[int]


def draw(seed: int) -> Drawn:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 30)), int(rng.integers(4, 9))
    X = rng.standard_normal((n, p))
    if rng.random() < 0.3:
        X = np.round(X)  # ties
    if rng.random() < 0.3:
        X[:, 1] = X[:, 0] * rng.choice([1.0, -2.0])
    if rng.random() < 0.2:
        X[:, 2] = 0.0
    if rng.random() < 0.2:
        X += rng.normal(scale=5.0, size=p)
    loss = str(rng.choice(list(FORMULAS)))
    intercept = loss != "cox" and bool(rng.random() < 0.5)
    signal = X @ (rng.standard_normal(p) * (rng.random(p) < 0.4)) * rng.choice([0.0, 0.5, 2.0])
    noisy = signal + rng.standard_normal(n)
    y: Any = noisy
    if loss in ("logistic", "squared_hinge"):
        y = np.where(noisy > np.median(noisy), 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(noisy, -3.0, 3.0))).astype(float)
    elif loss == "cox":
        y = np.exp(-noisy), rng.random(n) < 0.7
        y[1][0] = True
    k = int(rng.integers(1, min(4, p - 1)))
    given: dict[str, Any] = {"n_features": k, "ridge": float(10.0 ** rng.uniform(-3.0, 1.0))}
    given["fit_intercept"] = intercept
    if loss != "cox":
        if rng.random() < 0.3:
            given["sample_weight"] = rng.integers(0, 3, n).astype(float) + (np.arange(n) < 4)
        if rng.random() < 0.2:
            given["offset"] = 0.3 * rng.standard_normal(n)
    free: list[int] = []
    if rng.random() < 0.25 and p > k + 1:
        free = [p - 1]
        given["unpenalized"] = free
    units = [[j] for j in range(p) if j not in free]
    if not free and rng.random() < 0.25 and p // 2 >= k:
        given["groups"] = np.arange(p) // 2
        units = [list(np.flatnonzero(given["groups"] == g)) for g in range((p + 1) // 2)]
    if rng.random() < 0.3:
        given["within"] = float(rng.choice([0.01, 0.1]))
    if rng.random() < 0.3:
        given["price"] = float(10.0 ** rng.uniform(-3.0, 1.0))
    return Drawn(X, y, loss, given, units, free)


def fitted(task: Drawn, columns: list[int], fixed: tuple[int, float] | None = None) -> float:
    """Return the least objective over these columns, with the free ones and the intercept.

    fixed : a column, which is none of them, and its coefficient.
    """
    n, given = len(task.X), task.given
    if fixed is not None:
        at, value_at = fixed
        offset = given.get("offset", np.zeros(n)) + value_at * task.X[:, at]
        free = {**given, "offset": offset}
        rest = fitted(Drawn(task.X, task.y, task.loss, free, task.units, task.free), columns)
        return rest + 0.5 * given["ridge"] * value_at**2
    s = given.get("sample_weight", np.ones(n))
    extra = [task.X[:, task.free]] + ([np.ones((n, 1))] if given["fit_intercept"] else [])
    A = np.hstack([task.X[:, columns], *extra])
    price = np.r_[np.full(len(columns), given["ridge"]), np.zeros(A.shape[1] - len(columns))]
    w, formula, start = np.zeros(A.shape[1]), FORMULAS[task.loss], given.get("offset", np.zeros(n))

    def value(w: Any) -> float:
        return formula(task.y, A @ w + start, s)[0] + 0.5 * float(price @ w**2)

    best = value(w)
    for _ in range(2000 if w.size else 0):
        _, slope, bend = formula(task.y, A @ w + start, s)
        gradient = A.T @ slope + price * w
        H = A.T @ bend @ A + np.diag(price) + 1e-12 * np.eye(w.size)
        step, length = np.linalg.lstsq(H, gradient, rcond=None)[0], 1.0
        while length > 1e-12 and not value(w - length * step) <= best:
            length *= 0.5
        w = w - length * step if length > 1e-12 else w
        before, best = best, min(best, value(w))
        if before - best <= 1e-14 * abs(best):
            break
    return best


def end_of_range(task: Drawn, columns: list[int], at: int, limit: float, sign: float) -> float:
    """Return the largest (sign 1) or smallest coefficient of a column with an objective in reach.

    limit : largest objective, at least the smallest one over the columns.
    """
    rest = [each for each in columns if each != at]

    def value(size: float) -> float:
        return fitted(task, rest, (at, size)) - limit

    best = minimize_scalar(value, method="brent").x
    if value(best) >= 0.0:
        return float(best)
    width = 1e-3
    while value(best + sign * width) < 0.0:
        width *= 2.0
    low, high = sorted((best, best + sign * width))
    return float(brentq(value, low, high, xtol=1e-12, rtol=1e-10))


def faults_of_near(task: Drawn, models: Any, everything: dict[Any, float], of_unit: Any) -> Any:
    """Yield what is wrong with the columns in all and in no near model, and with the ranges.

    everything : the objective of each subset of units.
    """
    price = task.given.get("price") or 0.0
    k = task.given["n_features"]
    limit = min(everything.values()) * (1.0 + task.given["within"])
    scale = max(abs(min(everything.values())), 1e-4)
    inside = {
        each: value
        for each, value in everything.items()
        if value <= limit - SAME * scale and (price or len(each) == k)
    }
    listed = {of_unit(unit) for unit in (*models.in_all, *models.in_some)}
    open_units = None if models.undecided is None else {of_unit(u) for u in models.undecided}
    for each in inside:
        if not {of_unit(unit) for unit in models.in_all} <= set(each):
            yield f"near: {models.in_all} are said to be in all, not in {each}"
        if open_units is not None and not set(each) <= listed | open_units:
            yield f"near: {set(each) - listed - open_units} are said to be in none"
    if models.complete and open_units:
        yield "near: complete with undecided columns"
    if not models.complete or len(inside) > 8 or task.loss == "cox":
        return
    ranges = models.coefficients
    for at, column in enumerate(models.columns.tolist()):
        ends = []
        for each in inside:
            columns = sorted(itertools.chain(*(task.units[u] for u in each)))
            if column not in columns:
                ends.append((0.0, 0.0))
                continue
            reach = limit - price * len(each)
            ends.append(
                tuple(end_of_range(task, columns, column, reach, sign) for sign in (-1.0, 1.0))
            )
        if not ends:
            continue
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        off = 1e-5 * (high - low) + 1e-7
        if ranges.lower[at] > low + off or ranges.upper[at] < high - off:
            yield f"near: column {column} in {low, high}, said {ranges.lower[at], ranges.upper[at]}"
        if ranges.least[at] < low - off or ranges.most[at] > high + off:
            known = {each for each, value in everything.items() if value <= limit + SAME * scale}
            if len(known) == len(inside):
                yield f"near: column {column} in {low, high}, said to attain {ranges.least[at]}"
        if high - low < 0.5 * (ranges.upper[at] - ranges.lower[at]) - off:
            yield f"near: column {column} in {low, high}, far from {ranges.lower[at]}"


def fault_of_status(result: Any) -> str:
    """Return what is wrong between the status and the numbers that are reported with it."""
    gap = (result.objective - result.lower_bound) / max(abs(result.objective), 1e-300)
    proved = result.status is SubsetStatus.OPTIMAL
    if proved != (gap <= result.fitted.tol):
        return f"{result.status.name} with a gap of {gap} of {result.fitted.tol}"
    if result.fitted.converged != result.status.is_proof or abs(result.gap - gap) > 1e-12:
        return f"{result.status.name}: fit {result.fitted.status.name}, gap {result.gap} for {gap}"
    return ""


def faults(seed: int, steps: int | None = None) -> list[str]:
    """Return what is wrong with the result of a problem: nothing, one hopes.

    steps : questions after which the deadline passes; None: never.
    """
    task = draw(seed)
    k, within, price = task.given["n_features"], task.given.get("within"), task.given.get("price")
    everything = {
        each: fitted(task, sorted(itertools.chain(*(task.units[u] for u in each))))
        + (price or 0.0) * size
        for size in range(k if price is None else 0, k + 1)
        for each in itertools.combinations(range(len(task.units)), size)
    }
    best = min(everything.values())
    # Where the least value is 0 at infinity, Newton's method stops at some 1e-13 on the way there.
    scale = max(abs(best), 1e-4)
    y: Any = task.y
    loss: Any = losses.Huber(1.0) if task.loss == "huber" else task.loss
    if task.loss == "cox":
        y = np.array(list(zip(y[1], y[0], strict=True)), dtype=[("event", bool), ("time", float)])
    deadline = Deadline() if steps is None else Deadline(math.inf, Work(steps))
    with mock.patch.object(Deadline, "limited", return_value=deadline):
        result = subset_sum(task.X, y, loss=loss, **task.given)
    wrong = [fault_of_status(result)] if fault_of_status(result) else []
    if steps is None and not result.status.is_proof:
        wrong.append(f"status {result.status}")
    if result.lower_bound > best + SAME * scale:
        wrong.append(f"bound {result.lower_bound} above the best {best}")
    most = best + (1e-4 + SAME) * scale if result.status.is_proof else math.inf
    if not best - SAME * scale <= result.objective <= most:
        wrong.append(f"objective {result.objective}, the best is {best}")
    numbers = {tuple(unit): index for index, unit in enumerate(task.units)}
    of_unit = (lambda c: numbers[c,]) if "groups" not in task.given else (lambda g: int(g))
    optimal = [set(each) for each, value in everything.items() if value <= best + TIED * scale]
    for unit in map(of_unit, result.proved_in.tolist()):
        if any(unit not in each for each in optimal):
            wrong.append(f"{unit} is said to be in all best subsets")
    assert result.open_columns is not None
    left = set(map(of_unit, result.open_columns.tolist()))
    for each in optimal:
        if not each <= left:
            wrong.append(f"{each - left} is said to be in no best subset")
    if within is not None:
        assert result.near is not None
        found = {tuple(sorted(map(of_unit, near.columns.tolist()))) for near in result.near}
        limit = best * (1.0 + within)
        must = {e for e, v in everything.items() if v <= limit - SAME * scale}
        may = {e for e, v in everything.items() if v <= limit + SAME * scale}
        if result.near_complete and not must <= found <= may:
            wrong.append(f"near: missing {must - found}, too many {found - may}")
        if steps is None and not result.near_complete:
            wrong.append("near is not complete")
        wrong += faults_of_near(task, result.near_models, everything, of_unit)
    return [f"seed {seed}, steps {steps}, {task.loss}, {task.given}: {each}" for each in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cut-short", type=int, default=0, help="problems with a deadline")
    given = parser.parse_args()
    began, wrong, kinds = time.process_time(), 0, Counter[str]()
    rng = np.random.default_rng(given.seed)
    tasks: list[tuple[int, int | None]] = [(seed, None) for seed in range(given.problems)]
    tasks += [(seed, int(10 ** rng.uniform(0.0, 3.0))) for seed in range(given.cut_short)]
    for number, steps in tasks:
        seed = given.seed + number
        try:
            found = faults(seed, steps)
        except Exception as error:
            found = [f"seed {seed}, steps {steps}: {type(error).__name__}: {error}"]
        kinds[draw(seed).loss] += 1
        wrong += bool(found)
        for each in found:
            print(each, flush=True)
    seconds = time.process_time() - began
    print(
        f"{given.problems} problems and {given.cut_short} cut short {dict(kinds)}, "
        f"{wrong} with faults, {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
