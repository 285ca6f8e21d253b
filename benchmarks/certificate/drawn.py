"""The random problems of the campaign, each of a seed, and their objectives in long double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import designs, losses, norms
from atomlearn.core.interfaces.scores import ArrayScores
from benchmarks.certificate import bounds
from benchmarks.certificate.bounds import Long, lengths, ordered
from tests.oracles.sums import solve_sum

FORMS = ("penalized", "squared", "constrained")
EASY = ("squared", "logistic", "squared_hinge", "poisson", "gamma", "tweedie", "huber",
        "negative_binomial")  # fmt: skip
LIFTED = ("Chains", "LatentGroups", "Union")
#: Processor seconds; most problems take a few milliseconds.
LIMIT = 0.05


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
    #: By a formula of ``bounds.py``; None where it has none, and only points can refute a gap.
    polar: Callable[[np.ndarray], Any] | None = None
    #: Another solver's point, None where it has none: anything with ``coef`` and ``intercept``.
    rival: Callable[[], Any] | None = None

    def run(self, gap: float, solver: Any = None, limit: float = LIMIT) -> Any:
        return solve_sum(self.X, self.y, loss=self.loss, norm=self.norm, tol=gap, solver=solver,
                     time_limit=limit, **self.arguments)  # fmt: skip

    def each(self, y: Any, z: Any) -> Any:
        """Return the loss of each sample."""
        return per_sample(self.loss, y, z)

    def cancels(self) -> float:
        """Return what long doubles may lose where a deviance near zero is a difference."""
        if self.loss.name in ("poisson", "gamma", "tweedie", "negative_binomial", "cox"):
            y = np.ones(len(self.weight)) if self.y.dtype.names else np.abs(self.y)
            return 1e-17 * float(self.weight @ ((1 + y) * (1 + np.log1p(y))))
        return 0.0

    def judged(self, result: Any) -> tuple[Any, Any]:
        """Return F at the point as the user gets it and a bound on F - F*, in long double.

        F is nan outside of the ball, the bound is infinite where nobody knows one.
        """
        if self.gauge is None:
            return Long(result.objective), Long("inf")
        w = np.asarray(result.coef, dtype=Long).ravel()
        z = self.dense.astype(Long) @ w
        y = self.y if self.y.dtype.names else self.y.astype(Long)
        # Of targets far from zero even the long double z + b keeps too few digits: y - b is exact.
        if self.loss.name in ("squared", "huber", "quantile"):
            y = y - Long(result.intercept)
        else:
            z = z + Long(result.intercept)
        z = z + self.arguments.get("offset", 0.0)
        gauge = Long(self.gauge(w))
        total = (self.weight * self.each(y, z)).sum()
        amount = self.arguments.get("level", self.arguments.get("radius"))
        form = self.arguments["form"]
        penalty = {"penalized": amount * gauge, "squared": amount * gauge**2 / 2,
                   "constrained": Long(0)}[form]  # fmt: skip
        if form == "constrained" and not gauge <= amount * (1 + 1e-7):
            return Long("nan"), Long("inf")
        bound = bounds.gap(self, w, y, z, penalty)
        return total + self.arguments["tau"] * (w @ w) / 2 + penalty, bound


def per_sample(loss: Any, y: Any, z: Any) -> Any:
    """Return the loss of each sample by formulas of its own: zero where it is least."""
    name = loss.name
    if name == "squared":
        return (z - y) ** 2 / 2
    if name == "logistic":
        return np.logaddexp(0, -y * z)
    if name == "binomial":
        return np.logaddexp(0, z) - y * z
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


def norm_of(rng: np.random.Generator, p: int) -> tuple[str, Any, Any, Any]:
    """Return a norm for p columns: its name, itself, its gauge and its polar by other formulas."""
    k = int(rng.integers(1, p + 1))
    labels = rng.integers(0, max(p // 2, 1), p)
    disjoint = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels)]
    width, m = min(2, p), max(1, len(disjoint) // 2)
    overlapping = [list(range(j, min(j + width, p))) for j in range(p)]
    weights = rng.random(p) + 0.2
    falling, root = np.sort(weights)[::-1], np.sqrt(Long(k))
    l1, l2 = lambda w: np.abs(w).sum(), lambda w: np.sqrt((w * w).sum())
    most = lambda w: np.abs(w).max()  # noqa: E731
    top = lambda z, k=k: l2(ordered(z)[:k])  # noqa: E731
    net = lambda w: max(l2(w), l1(w) / root)  # noqa: E731
    latent = lambda z: lengths(z, overlapping).max()  # noqa: E731
    # None: the gauge is an infimum, and the package's own is taken, which is a value of it.
    rows: dict[str, tuple[Any, Any, Any]] = {
        "L1": (norms.L1(), l1, most),
        "L2": (norms.L2(), l2, l2),
        "KSupport": (norms.KSupport(k), lambda w: bounds.ksupport(w, k), top),
        "ElasticNetNorm": (norms.ElasticNetNorm(k), net, lambda z: bounds.elastic_polar(z, k)),
        "Groups": (norms.Groups(disjoint), lambda w: lengths(w, disjoint).sum(),
                   lambda z: lengths(z, disjoint).max()),
        "LInf": (norms.LInf(), most, l1),
        "OWL": (norms.OWL(falling), lambda w: ordered(w) @ falling,
                lambda z: bounds.owl_polar(z, falling)),
        "Nonnegative": (norms.Nonnegative(norms.L1()),
                        lambda w: l1(w) if (w >= 0).all() else Long("inf"),
                        lambda z: np.maximum(z, 0).max()),
        "Scaled": (norms.Scaled(norms.KSupport(k), 2.0), lambda w: 2 * bounds.ksupport(w, k),
                   lambda z: top(z) / 2),
        "GroupKSupport": (norms.KSupport(m, groups=labels),
                          lambda w: bounds.ksupport(lengths(w, disjoint), m),
                          lambda z: top(lengths(z, disjoint), m)),
        "WeightedL1": (norms.L1(weights=weights), lambda w: np.abs(w) @ weights,
                       lambda z: (np.abs(z) / weights).max()),
        "Chains": (norms.Chains(width), None, latent),
        "LatentGroups": (norms.LatentGroups(overlapping), None, latent),
        "Union": (norms.Union([norms.L1(), norms.L2()]), None, l2),
    }  # fmt: skip
    names = list(rows)
    # Lifted norms, the last three, cost more than all others: one problem in twelve.
    chosen = -1 - int(rng.integers(3)) if rng.random() < 1 / 12 else int(rng.integers(11))
    name = names[chosen]
    norm, gauge, polar = rows[name]
    own = norm.on(p).value
    return name, norm, gauge or (lambda w: own(np.asarray(w, dtype=np.float64))), polar


def draw(seed: int) -> Task:
    """Return the problem of a seed."""
    rng = np.random.default_rng([10, seed])
    n, p = int(rng.integers(3, 31)), int(rng.integers(1, 31))
    # Smoothing of a loss with kinks takes a second for what others do in milliseconds.
    name = "quantile" if rng.random() < 0.01 else EASY[int(rng.integers(len(EASY)))]
    loss = {
        "huber": lambda: losses.Huber(float(rng.uniform(0.2, 2))),
        "quantile": lambda: losses.Quantile(float(rng.uniform(0.1, 0.9))),
        "tweedie": lambda: losses.Tweedie(float(rng.uniform(1.1, 1.9))),
        "negative_binomial": lambda: losses.NegativeBinomial(float(rng.uniform(0.5, 5))),
    }.get(name, lambda: losses.as_loss(name))()
    counts = name in ("poisson", "gamma", "tweedie", "negative_binomial")
    X, y = _data(rng, n, p, loss, counts)
    design, dense, kept = stored(rng, X)
    norm_name, norm, gauge, polar = norm_of(rng, p)
    form = FORMS[int(rng.integers(3))]
    weight = _weights(rng, n)
    lifted = norm_name in LIFTED
    tau = float(rng.uniform(0.05, 1)) if rng.random() < 0.2 and not lifted else 0.0
    arguments: dict[str, Any] = {
        "form": form,
        "tau": tau,
        "fit_intercept": bool(rng.random() < 0.6),
        "sample_weight": weight,
    }
    if rng.random() < 0.1:
        arguments["offset"] = rng.standard_normal(n) * (np.abs(y).max() if not counts else 0.3)
    arguments["radius" if form == "constrained" else "level"] = amount(
        rng, form, name, norm, dense.astype(np.float64), y
    )
    kind = (name, norm_name, form, kept)
    # The package's own gauge of a lifted norm is found by an iteration, to 1e-9 of it at the best.
    slack = 2e-8 if lifted else 0.0
    return Task(seed, kind, design, dense, y, weight, loss, norm, arguments, gauge, slack, polar)


def _data(rng: Any, n: int, p: int, loss: Any, counts: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of some scale, a few of them alike or far from zero, and targets."""
    X = rng.standard_normal((n, p))
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = X[:, 0]
    X *= 10.0 ** (0 if counts else int(rng.choice([-8, -6, -3, 0, 0, 0, 0, 3, 6, 8])))
    X += 10.0 ** int(rng.integers(0, 7)) if rng.random() < 0.15 and not counts else 0.0
    signal = X @ (rng.standard_normal(p) * (rng.random(p) < 0.5))
    signal = (signal - signal.mean()) / (signal.std() or 1.0)
    y = signal + 0.5 * rng.standard_normal(n)
    if loss.task == "classification":
        y = np.where(y > np.median(y), 1.0, -1.0)
    elif counts:
        y = rng.poisson(np.exp(y)).astype(float) + (0.0 if loss.name != "gamma" else 0.5)
    else:
        y = 10.0 ** int(rng.integers(-6, 7)) * y
        y += 10.0 ** int(rng.integers(3, 9)) * (rng.random() < 0.15)
    return X, y


def _weights(rng: Any, n: int) -> np.ndarray:
    """Return ones, small whole numbers with zeros, or numbers of many sizes."""
    way = rng.random()
    if way < 0.7:
        return np.ones(n)
    if way < 0.95:
        return (rng.integers(0, 4, n) + (np.arange(n) < 2)).astype(float)
    return 10.0 ** rng.uniform(-3, 3, n)


def amount(rng: Any, form: str, name: str, norm: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return a level or radius in natural units, weak to strong."""
    at_zero = y / 2 if name in ("logistic", "squared_hinge") else y - y.mean()
    polar = norm.on(X.shape[1]).polar(ArrayScores(X.T @ at_zero)) or 1.0
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
