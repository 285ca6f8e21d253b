"""The paths: data from a seed, alphas, and the objective at each of them in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax, xlogy

Array = NDArray[np.float64]
#: Intercepts (n_levels,) and coefficients (n_levels, n_features) of one path, or with one more
#: axis for classes.
Fitted = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Data:
    """The data of one path.

    y : (n,) numbers; labels 0, 1, ... of classes; (n, 4) time, event, entry, stratum of "cox".
    weight : (n,) sample weights of mean 1. factors : (p,) of the penalty, 0 for a free column.
    folds : rows of the training parts of a cross-validation; empty for one path.
    """

    X: Array
    y: Array
    weight: Array
    factors: Array
    alphas: Array
    folds: list[NDArray[np.int64]]

    def part(self, rows: NDArray[np.int64]) -> Data:
        """Return the data of one fold."""
        weight = self.weight[rows]
        X: Any = self.X[rows]
        X = sparse.csc_array(X) if sparse.issparse(X) else np.asfortranarray(X)
        return replace(
            self, X=X, y=self.y[rows], weight=weight * rows.size / weight.sum(), folds=[]
        )


@dataclass(frozen=True, slots=True)
class PathProblem:
    """min mean loss + alpha * penalty, for ``n_alphas`` alphas down to ``ratio`` of the largest.

    rho : correlation of adjacent columns. group : columns of a group (1: the lasso). classes : of
    "multinomial", which has no intercept here, like "cox". ties, strata, entry : of "cox".
    density : share of the entries that are stored, in compressed columns; 0: dense.
    weighted : whether samples have weights. free : columns without a penalty. folds : of a
    cross-validation, or 0. n_true, noise : columns in the target, and its noise.
    """

    name: str
    loss: str
    n: int
    p: int
    ratio: float = 0.01
    rho: float = 0.3
    n_alphas: int = 100
    group: int = 1
    classes: int = 0
    ties: bool = False
    strata: int = 1
    entry: bool = False
    density: float = 0.0
    weighted: bool = False
    free: int = 0
    folds: int = 0
    n_true: int = 50
    noise: float = 2.0

    @property
    def intercept(self) -> bool:
        """Whether the model has one."""
        return self.loss not in ("cox", "multinomial")

    def small(self) -> PathProblem:
        """Return the same path of few rows and columns: it loads and compiles what is needed."""
        p = 40 if self.p > self.n else min(self.p, 20)
        density = 0.3 if self.density else 0.0
        n = 30 if p == 40 else 60
        return replace(self, n=n, p=p, n_alphas=10, ratio=0.1, n_true=3, density=density)

    def data(self) -> Data:
        """Return the data, the same in every process."""
        rng = np.random.default_rng(0)
        X = self._words(rng) if self.density else self._columns(rng)
        true = rng.choice(self.p, min(self.n_true, self.p), replace=False)
        signals = X[:, true] @ rng.standard_normal((true.size, max(self.classes, 1)))
        signals *= 2.0 / signals.std(axis=0)
        y = self._answers(signals, rng)
        weight = rng.uniform(0.2, 2.0, self.n) if self.weighted else np.ones(self.n)
        factors = np.ones(self.p)
        factors[: self.free] = 0.0
        order = rng.permutation(self.n)
        folds = [np.sort(np.delete(order, part)) for part in _parts(self.n, self.folds)]
        found = Data(X, y, weight / weight.mean(), factors, np.zeros(0), folds)
        largest = self._largest(found)
        shares = self.ratio ** (np.arange(self.n_alphas) / (self.n_alphas - 1))
        return replace(found, alphas=0.999 * largest * shares)

    def _columns(self, rng: np.random.Generator) -> Array:
        X = rng.standard_normal((self.n, self.p))
        for j in range(1, self.p):
            X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1 - self.rho**2) * X[:, j]
        return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))

    def _words(self, rng: np.random.Generator) -> Any:
        """Return counts of words, rare ones and frequent ones, each divided by its deviation."""
        shares = self.density * self.p * rng.dirichlet(np.full(self.p, 0.5))
        X = sparse.csc_array(rng.poisson(np.minimum(shares, 3.0), (self.n, self.p)).astype(float))
        deviations = np.sqrt(X.multiply(X).mean(axis=0) - X.mean(axis=0) ** 2)
        X = sparse.csc_array(X @ sparse.diags_array(1.0 / np.where(deviations, deviations, 1.0)))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X

    def objectives(self, data: Data, fitted: Fitted) -> Array:
        """Return the objective of one path at each alpha, the same function for all solvers."""
        intercepts, coefs = fitted
        shape = (len(coefs), self.p, -1)
        if sparse.issparse(data.X):
            predictions = np.array([data.X @ w for w in coefs.reshape(shape)])
        else:
            predictions = np.einsum("np,lpk->lnk", data.X, coefs.reshape(shape), optimize=True)
        predictions += np.reshape(intercepts, (len(coefs), 1, -1))
        losses = [VALUES[self.loss](data.y, z, data.weight) / len(data.y) for z in predictions]
        return np.array(losses) + data.alphas * self._penalty(coefs, data.factors)

    def _penalty(self, coefs: Array, factors: Array) -> Array:
        sizes = np.abs(coefs).reshape(len(coefs), self.p, -1).sum(axis=2)
        if self.group > 1:
            by_group = coefs.reshape(len(coefs), -1, self.group)
            return np.asarray(np.linalg.norm(by_group, axis=2).sum(axis=1))
        return np.asarray(sizes @ factors)

    def _answers(self, signals: Array, rng: np.random.Generator) -> Array:
        z = signals[:, 0]
        if self.loss == "logistic":
            return np.asarray(rng.random(self.n) < 1 / (1 + np.exp(-z)), dtype=np.float64)
        if self.loss == "poisson":
            # Sums of rare words have long tails: one row would have most of the counts.
            z = np.clip(z, -4.0, 4.0) if self.density else z
            return rng.poisson(np.exp(0.5 * z)).astype(float)
        if self.loss == "gamma":
            return rng.gamma(2.0, 0.5 * np.exp(0.5 * z))
        if self.loss == "multinomial":
            shares = softmax(signals, axis=1).cumsum(axis=1)
            drawn = (rng.random((self.n, 1)) > shares).sum(axis=1)
            return np.minimum(drawn, self.classes - 1).astype(float)
        if self.loss == "cox":
            return self._times(z, rng)
        noise = rng.standard_normal(self.n) if self.loss == "squared" else rng.standard_t(2, self.n)
        y = z + self.noise * noise
        return np.asarray(y - y.mean())

    def _times(self, z: Array, rng: np.random.Generator) -> Array:
        times = rng.exponential(np.exp(-z))
        censored = rng.exponential(2.0 * np.exp(-z.mean()), self.n)
        time = np.minimum(times, censored)
        entry = np.zeros(self.n)
        if self.ties:
            edges = np.quantile(time, np.linspace(0, 1, 60))
            time = 1.0 + np.searchsorted(edges, time)
        if self.entry:
            entry = time * rng.uniform(0.0, 0.5, self.n)
        stratum = rng.integers(self.strata, size=self.n).astype(float)
        return np.column_stack([time, times <= censored, entry, stratum])

    def _largest(self, data: Data) -> float:
        """Return the least alpha at which the penalized coefficients are zero."""
        start = np.zeros((1, self.n, max(self.classes, 1)))[0]
        if self.intercept:
            start += _level(self.loss, data)
        if self.free:
            start[:, 0] = _free_fit(self.loss, data, self.free)
        slope = GRADIENTS[self.loss](data.y, start, data.weight)
        z = data.X.T @ slope / self.n
        if self.group > 1:
            return float(np.linalg.norm(z.reshape(-1, self.group), axis=1).max())
        return float(np.abs(z[data.factors > 0]).max())


def _parts(n: int, count: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), count) if count else []


def _level(loss: str, data: Data) -> float:
    """Return the best intercept alone."""
    mean = float(data.weight @ data.y / data.weight.sum())
    if loss == "logistic":
        return float(np.log(mean / (1 - mean)))
    if loss in ("poisson", "gamma"):
        return float(np.log(mean))
    if loss == "huber":
        from scipy.optimize import minimize_scalar

        value = partial(VALUES["huber"], data.y)
        return float(minimize_scalar(lambda c: value(np.full((len(data.y), 1), c), data.weight)).x)
    return mean


def _free_fit(loss: str, data: Data, count: int) -> Array:
    """Return the predictions of an intercept and the free columns alone, by Newton's method."""
    A = np.column_stack([np.ones(len(data.y)), data.X[:, :count]])
    w = np.zeros(A.shape[1])
    for _ in range(50):
        z = A @ w
        slope = GRADIENTS[loss](data.y, z[:, None], data.weight)[:, 0]
        q = 1 / (1 + np.exp(-z))
        bend = data.weight * (q * (1 - q) if loss == "logistic" else np.ones(z.size))
        w -= np.linalg.solve((A.T * bend) @ A, A.T @ slope)
    return np.asarray(A @ w)


def _cox_sums(y: Array, z: Array, weight: Array) -> list[tuple[Any, ...]]:
    """Return rows, order, and sums over the risk sets at the event times, for each stratum."""
    found = []
    for label in np.unique(y[:, 3]):
        rows = np.flatnonzero(y[:, 3] == label)
        time, event, entry = y[rows, 0], y[rows, 1] > 0, y[rows, 2]
        shift = float(z[rows].max())
        terms = weight[rows] * np.exp(z[rows] - shift)
        at = np.unique(time[event])
        deaths = np.zeros(at.size)
        np.add.at(deaths, np.searchsorted(at, time[event]), weight[rows][event])
        by_time, by_entry = np.argsort(time), np.argsort(entry)
        later = np.append(terms[by_time][::-1].cumsum()[::-1], 0.0)
        unseen = np.append(terms[by_entry][::-1].cumsum()[::-1], 0.0)
        risk = later[np.searchsorted(time[by_time], at)]
        risk = risk - unseen[np.searchsorted(entry[by_entry], at)]
        found.append((rows, time, event, entry, shift, terms, at, deaths, risk))
    return found


def _cox(y: Array, z: Array, weight: Array) -> float:
    total = 0.0
    for rows, _, event, _, shift, _, _, deaths, risk in _cox_sums(y, z[:, 0], weight):
        total += float(deaths @ (np.log(risk) + shift))
        total -= float(weight[rows][event] @ z[rows, 0][event])
    return total


def _cox_gradient(y: Array, z: Array, weight: Array) -> Array:
    result = np.zeros_like(z)
    for rows, time, event, entry, _, terms, at, deaths, risk in _cox_sums(y, z[:, 0], weight):
        shares = np.append(0.0, np.cumsum(deaths / risk))
        seen = shares[np.searchsorted(at, time, "right")]
        seen = seen - shares[np.searchsorted(at, entry, "right")]
        result[rows, 0] = terms * seen - weight[rows] * event
    return result


def _multinomial(y: Array, z: Array, weight: Array) -> float:
    return float(weight @ (logsumexp(z, axis=1) - z[np.arange(y.size), y.astype(int)]))


def _huber(y: Array, z: Array, weight: Array) -> float:
    r = np.abs(z[:, 0] - y)
    return float(weight @ np.where(r <= 1.345, 0.5 * r * r, 1.345 * r - 0.5 * 1.345**2))


VALUES: dict[str, Any] = {
    "squared": lambda y, z, s: float(0.5 * s @ (y - z[:, 0]) ** 2),
    "logistic": lambda y, z, s: float(s @ (np.logaddexp(0, z[:, 0]) - y * z[:, 0])),
    "poisson": lambda y, z, s: float(s @ (np.exp(z[:, 0]) - y * z[:, 0] + xlogy(y, y) - y)),
    "gamma": lambda y, z, s: float(s @ (y * np.exp(-z[:, 0]) + z[:, 0] - 1 - np.log(y))),
    "huber": _huber,
    "multinomial": _multinomial,
    "cox": _cox,
}
GRADIENTS: dict[str, Any] = {
    "squared": lambda y, z, s: (s * (z[:, 0] - y))[:, None],
    "logistic": lambda y, z, s: (s * (1 / (1 + np.exp(-z[:, 0])) - y))[:, None],
    "poisson": lambda y, z, s: (s * (np.exp(z[:, 0]) - y))[:, None],
    "gamma": lambda y, z, s: (s * (1 - y * np.exp(-z[:, 0])))[:, None],
    "huber": lambda y, z, s: (s * np.clip(z[:, 0] - y, -1.345, 1.345))[:, None],
    "multinomial": lambda y, z, s: (
        s[:, None] * (softmax(z, axis=1) - np.eye(z.shape[1])[y.astype(int)])
    ),
    "cox": _cox_gradient,
}

_P = PathProblem
FULL = (
    _P("logistic 5000 x 1000", "logistic", 5000, 1000),
    _P("logistic 20,000 x 100", "logistic", 20_000, 100),
    _P("logistic 2000 x 500, AR .5", "logistic", 2000, 500, rho=0.5),
    _P("logistic 1000 x 10,000", "logistic", 1000, 10_000, ratio=0.05),
    _P("logistic 50,000 x 2000", "logistic", 50_000, 2000, ratio=0.05),
    _P("logistic 2000 x 20,000", "logistic", 2000, 20_000, ratio=0.1),
    _P("logistic 5000 x 50,000", "logistic", 5000, 50_000, ratio=0.1),
    _P("logistic 2000 x 500, weights, 3 free", "logistic", 2000, 500, weighted=True, free=3),
    _P("Cox 1000 x 5000", "cox", 1000, 5000, ratio=0.05, n_alphas=50),
    _P("Cox 20,000 x 200", "cox", 20_000, 200),
    _P("Cox 2000 x 500, ties", "cox", 2000, 500, ties=True),
    _P("Cox 2000 x 500, 5 strata, entry", "cox", 2000, 500, strata=5, entry=True),
    _P("Poisson 5000 x 500", "poisson", 5000, 500),
    _P("Poisson 500 x 5000", "poisson", 500, 5000, ratio=0.05),
    _P("gamma 5000 x 500", "gamma", 5000, 500),
    _P("gamma 500 x 5000", "gamma", 500, 5000, ratio=0.1),
    _P("multinomial of 3, 2000 x 200", "multinomial", 2000, 200, classes=3),
    _P("multinomial of 3, 500 x 3000", "multinomial", 500, 3000, ratio=0.1, classes=3),
    _P("multinomial of 10, 3000 x 100", "multinomial", 3000, 100, classes=10),
    _P("Huber 5000 x 500", "huber", 5000, 500),
    _P("Huber 500 x 5000", "huber", 500, 5000, ratio=0.1),
    _P("groups of 5, 5000 x 1000", "squared", 5000, 1000, group=5),
    _P("groups of 5, 500 x 5000", "squared", 500, 5000, ratio=0.05, group=5),
    _P("logistic groups of 5, 2000 x 500", "logistic", 2000, 500, group=5),
    _P("squared 1000 x 10,000", "squared", 1000, 10_000, ratio=0.05, rho=0.0, n_alphas=50),
    _P("squared 10,000 x 1000", "squared", 10_000, 1000),
    _P("squared 20,000 x 5000", "squared", 20_000, 5000, n_true=3000, noise=0.5),
    _P("logistic, words, 4000 x 3500", "logistic", 4000, 3500, density=0.01),
    _P("logistic, words, 20,000 x 20,000", "logistic", 20_000, 20_000, density=0.003),
    _P("Poisson, words, 4000 x 3500", "poisson", 4000, 3500, density=0.01),
    _P("squared, words, 4000 x 3500", "squared", 4000, 3500, density=0.01),
    _P("small, 330 x 3", "squared", 330, 3, n_true=3),
    _P("small, 200 x 10", "squared", 200, 10, n_true=5),
    _P("small, logistic 200 x 10", "logistic", 200, 10, n_true=5),
    _P("5 folds, logistic 2000 x 500", "logistic", 2000, 500, folds=5),
    _P("5 folds, squared 1000 x 5000", "squared", 1000, 5000, ratio=0.05, folds=5),
    _P("5 folds, Cox 1000 x 1000", "cox", 1000, 1000, ratio=0.05, n_alphas=50, folds=5),
    _P("5 folds, Poisson 2000 x 300", "poisson", 2000, 300, folds=5),
)  # fmt: skip
#: As FULL, with few rows and columns.
SMOKE = tuple(problem.small() for problem in FULL)
