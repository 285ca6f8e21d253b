"""Verdicts, rows that repeat, and sets of predictions: level, power and coverage."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    findings,
)
from atomlearn.findings.verdict import verdict_on
from benchmarks.evidence.settings import Figures, add

# --- noise that is called better ----------------------------------------------------------------


def judged(model, X, y, rng, **more) -> Figures:
    with warnings.catch_warnings(action="ignore"):
        found = findings.held_out_verdict(model, X, y, rng=int(rng.integers(2**31)), **more)
    return {
        "better": (found.better, 1),
        "no better": (found.verdict == "no better", 1),
        "too few rows": (found.verdict == "too few rows to tell", 1),
    }


def spread(rng):
    X = rng.standard_t(3, (240, 20))
    y = np.abs(X[:, 0]) ** 1.5 * rng.standard_normal(240)
    return judged(AtomicRegressor(alpha=0.05), X / X.std(axis=0), y, rng)


def noise(rng):
    X, y = rng.standard_normal((240, 20)), rng.standard_normal(240)
    return judged(AtomicRegressor(alpha=0.05), X, y, rng)


def rare_outcome(rng):
    X, y = rng.poisson(0.1, (400, 60)) * 1.0, rng.permutation(np.arange(400) < 20).astype(int)
    return judged(AtomicClassifier(alpha=0.01), X, y, rng)


def bent_covariate(rng):
    age, X = rng.standard_normal(300), rng.standard_normal((300, 60))
    bend = (age**2 - 1) / 2
    X[:, :10] += bend[:, None] + 0.5 * age[:, None]
    X = np.column_stack([age, X])
    y = age + bend + rng.standard_normal(300)
    return judged(AtomicRegressor(alpha=0.1, unpenalized=[0]), X / X.std(axis=0), y, rng)


def few_beside_covariates(rng):
    age, X = rng.standard_normal(60), rng.standard_normal((60, 30))
    X[:, :10] += age[:, None]
    y = (age + rng.standard_normal(60) > 0).astype(int)
    X = np.column_stack([age, X])
    return judged(AtomicClassifier(alpha=0.05, unpenalized=[0], tol=1e-3), X, y, rng)


def copied(kind: str) -> Callable[[np.random.Generator], Figures]:
    """Noise of 300 rows, half of them twice, in tables of every kind."""

    def draw(rng: np.random.Generator) -> Figures:
        n_rows = 2000 if kind == "many rows, rounded" else 300
        X, y = rng.standard_normal((n_rows, 60)), rng.integers(0, 2, n_rows)
        rows = rng.permutation(np.r_[np.arange(n_rows), rng.permutation(n_rows)[: n_rows // 2]])
        model, table = AtomicClassifier(alpha=0.03), X
        if kind == "one value missing":
            X[0, 0] = np.nan
            model = make_pipeline(SimpleImputer(), model)
        if kind == "a category":
            table = pd.DataFrame(X, columns=[f"g{j}" for j in range(60)])
            table["site"] = rng.choice(list("abc"), n_rows)
            encoded = (OneHotEncoder(sparse_output=False), ["site"])
            model = make_pipeline(make_column_transformer(encoded, remainder="passthrough"), model)
            return judged(model, table.iloc[rows].reset_index(drop=True), y[rows], rng)
        if kind == "sparse":
            table = scipy.sparse.random_array((n_rows, 200), density=0.05, rng=rng, format="csr")
        if kind == "many rows, rounded":
            again = np.isin(np.arange(rows.size), np.unique(rows, return_index=True)[1])
            return judged(model, np.where(again[:, None], X[rows], X[rows].round(3)), y[rows], rng)
        return judged(model, table[rows], y[rows], rng)

    return draw


def signal(correlation: float, n_rows: int) -> Callable[[np.random.Generator], Figures]:
    def draw(rng: np.random.Generator) -> Figures:
        X = rng.standard_normal((n_rows, 60))
        told = X[:, :2].sum(axis=1) / np.sqrt(2)
        y = correlation * told + np.sqrt(1 - correlation**2) * rng.standard_normal(n_rows)
        return judged(AtomicRegressor(alpha=0.12), X, y, rng)

    return draw


# --- intervals of the score ---------------------------------------------------------------------


def interval(kind: str, n_rows: int = 66) -> Callable[[np.random.Generator], Figures]:
    """The truth is the correlation of 20,000 other rows of the same law, the median of nine."""

    def drawn(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        told, error = rng.standard_normal((2, size))
        if kind == "t2.2 noise":
            error = rng.standard_t(2.2, size)
        if kind == "leverage":
            scale = np.exp(rng.standard_normal(size))
            told, error = told * scale, error * scale
        return told, told + error

    def draw(rng: np.random.Generator) -> Figures:
        others = [np.corrcoef(*drawn(rng, 20_000))[0, 1] for _ in range(9)]
        told, truth = drawn(rng, n_rows)
        low, high = verdict_on("regression", truth, told).interval
        return {"held": (low <= np.median(others) <= high, 1), "width": (high - low, 1)}

    return draw


# --- sets of predictions ------------------------------------------------------------------------

OLD, NEW = slice(0, 400), slice(400, 1400)


def rare_class(rng):
    X = rng.standard_normal((1400, 5))
    score = X[:, 0] + 0.7 * X[:, 1] + rng.standard_normal(1400)
    y = (score > np.quantile(score, 0.94)).astype(int)
    search = AtomicClassifierCV(n_alphas=6).fit(X[OLD], y[OLD])
    rare, found = y[NEW] == 1, {}
    for name, by in (("of all rows", None), ("by class", "class")):
        held = findings.prediction_sets(search, X[OLD], y[OLD], X[NEW], by=by)[1]
        found[f"{name}: the class of 6% held"] = (held[rare, 1].sum(), rare.sum())
        found[f"{name}: the other class held"] = (held[~rare, 0].sum(), (~rare).sum())
    return found


def inside(found: tuple[np.ndarray, ...], y: np.ndarray) -> np.ndarray:
    return (found[1] <= y) & (y <= found[2])


def subgroup(rng):
    X, part = rng.standard_normal((1400, 5)), rng.random(1400) < 0.08
    y = X[:, 0] + rng.standard_normal(1400) * np.where(part, 3, 1)
    search = AtomicRegressorCV(n_alphas=6).fit(X[OLD], y[OLD])
    own = findings.prediction_sets(search, X[OLD], y[OLD], X[NEW], by=(part[OLD], part[NEW]))
    every = search.predict(X[NEW], interval=0.9)
    mine = part[NEW]
    return {
        "of all rows: the part of 8% held": (inside(every, y[NEW])[mine].sum(), mine.sum()),
        "by part: the part of 8% held": (inside(own, y[NEW])[mine].sum(), mine.sum()),
    }


def shifted(rng):
    X = rng.standard_normal((1400, 5))
    X[NEW, 0] += 1.5
    y = X[:, 0] + np.exp(0.7 * X[:, 0]) * rng.standard_normal(1400)
    search = AtomicRegressorCV(n_alphas=6).fit(X[OLD], y[OLD])
    found = {}
    for shift in (False, True):
        sets = findings.prediction_sets(search, X[OLD], y[OLD], X[NEW], shift=shift)
        found[f"shift={shift}: held"] = (inside(sets, y[NEW]).mean(), 1)
    return found


def drift(rng):
    X, order = rng.standard_normal((200, 5)), np.arange(200)
    noise, found = rng.standard_normal(200), {}
    alike = np.convolve(rng.standard_normal(210), 0.7 ** np.arange(11), "valid")
    for name, error in (("grows", (1 + order / 100) * noise), ("autocorrelated", alike)):
        search = AtomicRegressorCV(n_alphas=5).fit(X, X[:, 0] + error, order=order)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            search.predict(X, interval=0.9)
        found[f"{name}: warned of"] = (bool(told), 1)
    return found


LEVEL = {"better": "<= .05"}
add("verdict, noise", noise, LEVEL)
add("verdict, spread alone depends on x", spread, {"better": "<= .07"})
add("verdict, 5% cases and rare counts", rare_outcome, LEVEL)
add("verdict, a covariate acts by a curve", bent_covariate, LEVEL)
add("verdict, 60 rows beside a covariate", few_beside_covariates, LEVEL)
for kind in ("array", "one value missing", "a category", "sparse", "many rows, rounded"):
    add(f"verdict, noise, half of the rows twice: {kind}", copied(kind), LEVEL)
add("verdict, signal of correlation .3, 200 rows", signal(0.3, 200), {"no better": "<= .2"})
add("verdict, signal of correlation .3, 600 rows", signal(0.3, 600), {"no better": "<= .2"})
for kind in ("normal", "t2.2 noise", "leverage"):
    add(f"interval of the score, 66 rows: {kind}", interval(kind), {"held": ".90"})
WANTED = {"by class: the class of 6% held": ".90", "by class: the other class held": ".90"}
add("sets by class", rare_class, WANTED)
add("intervals by part", subgroup, {"by part: the part of 8% held": ".90"})
add("intervals of shifted rows", shifted, {"shift=True: held": ".90"})
add("drift along order", drift, {"autocorrelated: warned of": "<= .05"})
