"""The random problems of the campaign, each of a seed, and their objectives in long double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import designs, losses, norms, solve

FORMS = ("penalized", "squared", "constrained")
LOSSES = ("squared", "logistic", "squared_hinge", "poisson", "gamma", "tweedie", "huber",
          "quantile", "negative_binomial")  # fmt: skip
LIMIT = 1.0


@dataclass(frozen=True)
class Task:
    """A problem: what ``solve`` is given, and the dense X to compute its objective with."""

    seed: int
    kind: tuple[str, ...]
    X: Any
    dense: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    loss: Any
    norm: Any
    arguments: dict[str, Any]
    #: None: nobody knows the gauge, and the objective is the one that is claimed.
    gauge: Callable[[np.ndarray], float] | None
    #: Relative error of the gauge, beyond rounding.
    slack: float = 0.0

    def run(self, gap: float, solver: Any = None) -> Any:
        return solve(self.X, self.y, loss=self.loss, norm=self.norm, gap=gap, solver=solver,
                     time_limit=LIMIT, **self.arguments)  # fmt: skip

    def objective(self, result: Any) -> float:
        """Return F at the point as the user gets it, in long double; nan outside of the ball."""
        if self.gauge is None:
            return np.longdouble(result.objective)
        w = np.asarray(result.coef, dtype=np.longdouble).ravel()
        z = self.dense.astype(np.longdouble) @ w
        y = self.y if self.y.dtype.names else self.y.astype(np.longdouble)
        # Of targets far from zero even the long double z + b keeps too few digits: y - b is exact.
        if losses.as_loss(self.loss).name in ("squared", "huber", "quantile"):
            y = y - np.longdouble(result.intercept)
        else:
            z = z + np.longdouble(result.intercept)
        z = z + self.arguments.get("offset", 0.0)
        gauge = np.longdouble(self.gauge(np.asarray(w, dtype=np.float64)))
        total = (self.weight * per_sample(self.loss, y, z)).sum()
        total += self.arguments["tau"] * (w @ w) / 2
        amount = self.arguments.get("level", self.arguments.get("radius"))
        form = self.arguments["form"]
        if form == "constrained":
            return total if gauge <= amount * (1 + 1e-7) else np.longdouble("nan")
        return total + (amount * gauge if form == "penalized" else amount * gauge**2 / 2)


def per_sample(loss: Any, y: Any, z: Any) -> Any:
    """Return the loss of each sample by formulas of its own: zero where it is least."""
    name = losses.as_loss(loss).name
    if name == "squared":
        return (z - y) ** 2 / 2
    if name == "logistic":
        return np.logaddexp(0, -y * z)
    if name == "squared_hinge":
        return np.maximum(1 - y * z, 0) ** 2 / 2
    if name == "huber":
        size = np.abs(z - y)
        return np.where(size <= loss.delta, size**2 / 2, loss.delta * (size - loss.delta / 2))
    if name == "quantile":
        return np.maximum(loss.q * (y - z), (1 - loss.q) * (z - y))

    if name == "cox":
        return _partial(loss.ties, y, z)
    if name == "multinomial":
        rows, shares = z.reshape(-1, loss.n_classes), y.reshape(-1, loss.n_classes)
        return (np.logaddexp.reduce(rows, axis=1) - (rows * shares).sum(axis=1)).sum() / z.size

    def raw(eta: Any) -> Any:
        if name == "poisson":
            return np.exp(eta) - y * eta
        if name == "gamma":
            return y * np.exp(-eta) + eta
        if name == "tweedie":
            p = np.longdouble(loss.power)
            return np.exp((2 - p) * eta) / (2 - p) - y * np.exp((1 - p) * eta) / (1 - p)
        theta = np.longdouble(loss.theta)
        return (y + theta) * np.log(np.exp(eta) + theta) - y * eta

    with np.errstate(all="ignore"):
        least = raw(np.log(np.where(y > 0, y, 1)))
    theta = np.longdouble(getattr(loss, "theta", 1.0))
    empty = theta * np.log(theta) if name == "negative_binomial" else np.longdouble(0)
    return raw(z) - np.where(y > 0, least, empty)


def _partial(ties: str, y: Any, z: Any) -> Any:
    """Return minus the log partial likelihood, less its least value, over the number of samples."""
    total, hazard = np.longdouble(0), np.exp(z)
    for time in np.unique(y["time"][y["event"]]):
        here = y["event"] & (y["time"] == time)
        count = int(here.sum())
        share = np.arange(count) / np.longdouble(count) * (ties == "efron")
        at_risk, ours = hazard[y["time"] >= time].sum(), hazard[here].sum()
        total += np.log((at_risk - share * ours) / (count * (1 - share))).sum() - z[here].sum()
    return total / z.size


def norm_of(rng: np.random.Generator, p: int) -> tuple[str, Any]:
    """Return a norm for p columns, with its name."""
    k = int(rng.integers(1, p + 1))
    labels = rng.integers(0, max(p // 2, 1), p)
    disjoint = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels)]
    width = min(2, p)
    overlapping = [list(range(j, min(j + width, p))) for j in range(p)]
    makers: list[Callable[[], Any]] = [
        lambda: norms.L1(), lambda: norms.L2(), lambda: norms.KSupport(k),
        lambda: norms.ElasticNetNorm(k), lambda: norms.Groups(disjoint), lambda: norms.LInf(),
        lambda: norms.OWL(np.sort(rng.random(p) + 0.1)[::-1]), lambda: norms.Chains(width),
        lambda: norms.LatentGroups(overlapping), lambda: norms.Nonnegative(norms.L1()),
        lambda: norms.Scaled(norms.KSupport(k), 2.0), lambda: norms.Union([norms.L1(), norms.L2()]),
        lambda: norms.KSupport(max(1, len(disjoint) // 2), groups=labels),
        lambda: norms.L1(weights=rng.random(p) + 0.2),
    ]  # fmt: skip
    norm = makers[int(rng.integers(len(makers)))]()
    return type(norm).__name__, norm


def draw(seed: int) -> Task:
    """Return the problem of a seed."""
    rng = np.random.default_rng([7, seed])
    n, p = int(rng.integers(3, 40)), int(rng.integers(1, 30))
    name = LOSSES[int(rng.integers(len(LOSSES)))]
    loss = {
        "huber": lambda: losses.Huber(float(rng.uniform(0.2, 2))),
        "quantile": lambda: losses.Quantile(float(rng.uniform(0.1, 0.9))),
        "tweedie": lambda: losses.Tweedie(float(rng.uniform(1.1, 1.9))),
        "negative_binomial": lambda: losses.NegativeBinomial(float(rng.uniform(0.5, 5))),
    }.get(name, lambda: losses.as_loss(name))()
    X = rng.standard_normal((n, p))
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = X[:, 0]
    counts = name in ("poisson", "gamma", "tweedie", "negative_binomial")
    X *= 10.0 ** (0 if counts else int(rng.choice([-6, -3, 0, 0, 0, 0, 3, 6])))
    X += 10.0 ** int(rng.integers(0, 5)) if rng.random() < 0.15 and not counts else 0.0
    signal = X @ (rng.standard_normal(p) * (rng.random(p) < 0.5))
    signal = (signal - signal.mean()) / (signal.std() or 1.0)
    y = signal + 0.5 * rng.standard_normal(n)
    if losses.as_loss(loss).is_classification:
        y = np.where(y > np.median(y), 1.0, -1.0)
    elif counts:
        y = rng.poisson(np.exp(y)).astype(float) + (0.0 if name != "gamma" else 0.5)
    else:
        y = 10.0 ** int(rng.integers(-6, 7)) * y
        y += 10.0 ** int(rng.integers(3, 9)) * (rng.random() < 0.15)
    design, dense, kept = stored(rng, X)
    norm_name, norm = norm_of(rng, p)
    form = FORMS[int(rng.integers(3))]
    weight = rng.integers(0, 4, n) + (np.arange(n) < 2.0) if rng.random() < 0.3 else np.ones(n)
    lifted = norm_name in ("Chains", "LatentGroups", "Union")
    tau = float(rng.uniform(0.05, 1)) if rng.random() < 0.2 and not lifted else 0.0
    arguments: dict[str, Any] = {
        "form": form, "tau": tau, "intercept": bool(rng.random() < 0.6),
        "sample_weight": weight.astype(float),
    }  # fmt: skip
    arguments["radius" if form == "constrained" else "level"] = amount(
        rng, form, name, norm, dense.astype(np.float64), y
    )
    kind = (name, norm_name, form, kept)
    gauge = norm.on(p).value
    return Task(seed, kind, design, dense, y, weight.astype(float), loss, norm, arguments, gauge)


def amount(rng: Any, form: str, name: str, norm: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return a level or radius in natural units, weak to strong."""
    at_zero = y / 2 if name in ("logistic", "squared_hinge") else y - y.mean()
    polar = norm.on(X.shape[1]).polar(designs.ArrayScores(X.T @ at_zero)) or 1.0
    value = float(at_zero @ at_zero) / 2 or 1.0
    strength = float(np.exp(rng.uniform(np.log(0.01), np.log(1.2))))
    return strength * {
        "penalized": polar, "squared": polar**2 / value, "constrained": 2 * value / polar,
    }[form]  # fmt: skip


def stored(rng: Any, X: np.ndarray) -> tuple[Any, np.ndarray, str]:
    """Return X as a design or array, X as it is then, dense, and the name of the way."""
    way = ("C", "F", "float32", "csr", "csc", "standardized")[int(rng.integers(6))]
    if way == "float32":
        X = X.astype(np.float32)
        return X, X.astype(np.float64), way
    if way in ("csr", "csc"):
        X = X * (rng.random(X.shape) < 0.4)
        return (sparse.csr_array(X) if way == "csr" else sparse.csc_array(X)), X, way
    if way == "standardized" and (X.std(axis=0) > 1e-9 * np.abs(X).max()).all() and len(X) > 2:
        made = designs.Standardized(designs.as_design(X))
        # By its definition of the float64 means and scales, in long double: not as it is computed.
        return made, (X.astype(np.longdouble) - made.means) * made.factors, way
    return (np.asfortranarray(X) if way == "F" else X), X, "F" if way == "F" else "C"
