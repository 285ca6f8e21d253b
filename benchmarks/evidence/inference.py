"""p-values, intervals and knockoffs: their level, coverage, false discoveries and power."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from atomlearn import AtomicRegressor, KnockoffSelector, findings
from benchmarks.evidence.settings import Figures, add

# --- p-values of columns without an effect ------------------------------------------------------


def genotypes(rng: np.random.Generator, n: int, p: int, length: int = 15) -> np.ndarray:
    """Return genotypes in blocks of linkage disequilibrium, a mosaic of twelve haplotypes."""
    founders = (rng.random((12, p)) < rng.beta(1, 2, p)).astype(float)
    X = np.zeros((n, p))
    for _ in range(2):
        for start in range(0, p, length):
            block = slice(start, start + length)
            X[:, block] += founders[rng.integers(12, size=n), block]
    X, kept = X[:, X.std(axis=0) > 0.1], [0]
    alike = np.abs(np.corrcoef(X.T))
    for j in range(1, X.shape[1]):
        if alike[j, kept].max() < 0.9:
            kept.append(j)
    return X[:, kept]


def cases(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    return rng.permutation((np.arange(n) < share * n).astype(int))


def rare_both(rng):
    return rng.binomial(2, 0.02, (1000, 60)).astype(float), cases(rng, 1000, 0.05)


def rare_columns(rng):
    return rng.poisson(0.06, (400, 80)).astype(float), cases(rng, 400, 0.5)


def rare_outcome(rng):
    return rng.standard_normal((400, 80)), cases(rng, 400, 0.05)


def rare_counts(rng):
    X = rng.poisson(0.06, (400, 80)).astype(float)
    rate = np.exp(0.5 * rng.standard_normal(400) - 0.5)  # more spread than Poisson
    return X, rng.poisson(rate).astype(float)


def skewed(rng):
    return rng.binomial(2, 0.02, (1000, 60)).astype(float), np.exp(rng.standard_normal(1000))


def linked(rng):
    X = genotypes(rng, 400, 90)
    return X, X[:, 7] - X[:, 40] + 1.5 * rng.standard_normal(400)


def heavy_columns(rng):
    X = rng.standard_t(2, (330, 80))
    X /= X.std(axis=0)
    return X, 0.5 * X[:, 7] - 0.5 * X[:, 40] + rng.standard_normal(330)


def near_copies(rng):
    blocks = np.repeat(rng.standard_normal((200, 30)), 3, axis=1)
    X = blocks + 0.15 * rng.standard_normal(blocks.shape)
    return X, blocks[:, 21] + rng.standard_normal(200)


def unequal_spread(rng):
    X = rng.standard_normal((200, 80))
    return X, X[:, 7] + (0.2 + np.abs(X[:, 7]) ** 1.3) * rng.standard_normal(200)


#: How data is drawn, and the columns with an effect.
TABLES = {
    "rare columns, rare cases": (rare_both, ()),
    "rare columns": (rare_columns, ()),
    "rare cases": (rare_outcome, ()),
    "rare columns, counts": (rare_counts, ()),
    "rare columns, skewed numbers": (skewed, ()),
    "linkage": (linked, (7, 40)),
    "t2 columns": (heavy_columns, (7, 40)),
    "clusters of columns": (near_copies, (21, 22, 23)),
    "unequal spread": (unequal_spread, (7,)),
}


def small_p_values(make, true, rng: np.random.Generator) -> Figures:
    X, y = make(rng)
    kept = X.sum(axis=0) >= 3 if (X >= 0).all() else np.ones(X.shape[1], dtype=bool)
    groups = "auto" if make is near_copies else None
    loss = "poisson" if make is rare_counts else "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = findings.p_values(X[:, kept], y, groups=groups, loss=loss)
    number = np.flatnonzero(kept)
    null = np.array([not np.isin(number[unit], true).any() for unit in tests.units])
    p, any_false = tests.p_values[null], not true and bool(tests.selected(0.1))
    found = {
        "p <= .05": (np.count_nonzero(p <= 0.05), p.size),
        "p <= .001": (np.count_nonzero(p <= 0.001), p.size),
    }
    return found if true else {**found, "any selected at .1": (any_false, 1)}


for name, (make, true) in TABLES.items():
    asked = {"p <= .05": "<= .05", "p <= .001": "<= .001", "any selected at .1": "<= .1"}
    add(f"p-values: {name}", partial(small_p_values, make, true), asked)


# --- intervals ----------------------------------------------------------------------------------


def spread_by_column(rng):
    """The effect among any columns is the one among all: columns are independent."""
    X, b = rng.standard_normal((160, 30)), np.zeros(30)
    b[[3, 10]] = 1.0, -0.7
    noise = (0.2 + np.abs(X[:, 3]) ** 1.3) * rng.standard_normal(160)
    return X, X @ b + noise, b, None, 0.25


def equal_spread(rng):
    X, b = rng.standard_normal((160, 30)), np.zeros(30)
    b[[3, 10]] = 1.0, -0.7
    return X, X @ b + rng.standard_normal(160), b, None, 0.15


def grouped_rows(count, rng):
    """Groups of eight rows that share most of each column and half of the noise."""
    of = np.repeat(np.arange(count), 8)
    X = np.sqrt(0.6) * rng.standard_normal((count, 50))[of]
    X += np.sqrt(0.4) * rng.standard_normal((of.size, 50))
    b = np.zeros(50)
    b[[3, 30]] = 0.7
    noise = rng.standard_normal(count)[of] + rng.standard_normal(of.size)
    return X, X @ b + noise, b, of, 0.15


def held(make, how, rng: np.random.Generator) -> Figures:
    """Return how many 95% intervals hold the truth; of true columns, and of the others."""
    X, y, b, groups, alpha = make(rng)
    model = AtomicRegressor(alpha=alpha).fit(X, y)
    true = np.flatnonzero(b)
    named = {"columns": [*true, [20, 21, 22, 23]]} if how == "named" else {"how": how}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = findings.estimates(model, X, y, groups=groups, **named)
    low, high = found.intervals.T
    inside, effect = (low <= b[found.columns]) & (b[found.columns] <= high), b[found.columns] != 0
    figures = {
        "95% intervals hold": (inside.sum(), inside.size),
        "95% of true columns": (inside[effect].sum(), effect.sum()),
    }
    if how == "named":
        figures["p <= .05 of a group without an effect"] = (found.group_p_values[-1] <= 0.05, 1)
    return figures


for name, make, ways in (
    ("equal spread", equal_spread, ("named", "split", "carved")),
    ("spread by a column", spread_by_column, ("named", "split", "carved")),
    ("30 groups", partial(grouped_rows, 30), ("named", "split")),
    ("100 groups", partial(grouped_rows, 100), ("named", "split")),
):
    for how in ways:
        asked = {
            "95% intervals hold": ".95",
            "95% of true columns": ".95",
            "p <= .05 of a group without an effect": "<= .05",
        }
        add(f"intervals: {name}, {how}", partial(held, make, how), asked)


# --- knockoffs ----------------------------------------------------------------------------------


def autoregressive(rng, n, p, rho):
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def with_effects(rng, X, size=0.7, count=20, noise=1.0):
    """Return standardized columns, a target that depends on some of them, and which."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    true = rng.choice(X.shape[1], count, replace=False)
    y = X[:, true] @ rng.choice([-size, size], count) + noise * rng.standard_normal(len(X))
    return X, y, true


def linked_effects(rng):
    return with_effects(rng, genotypes(rng, 360, 165))


def factors(drives, rng):
    F = rng.standard_normal((330, 5))
    X = 0.9 * F @ rng.standard_normal((5, 150)) + rng.standard_normal((330, 150))
    X, y, true = with_effects(rng, X, 1.0)
    return X, y + drives * F.sum(axis=1), true


def equicorrelated(rng):
    X = np.sqrt(0.5) * (rng.standard_normal((330, 1)) + rng.standard_normal((330, 150)))
    return with_effects(rng, X)


def blocks(rng):
    X = np.repeat(rng.standard_normal((330, 15)), 10, axis=1) + rng.standard_normal((330, 150)) / 3
    return with_effects(rng, X, 1.0)


def heavy(df, rng):
    return with_effects(rng, rng.standard_t(df, (330, 150)), 0.8)


def sparse_counts(rng):
    X = rng.poisson(0.15, (330, 150)).astype(float)
    return with_effects(rng, X[:, X.sum(axis=0) > 5])


def labels(rng):
    X, y, true = with_effects(rng, autoregressive(rng, 400, 100, 0.3), 1.0)
    return X, (y > 0).astype(int), true


DESIGNS = {
    "AR 0.5": lambda rng: with_effects(rng, autoregressive(rng, 330, 150, 0.5)),
    "AR 0.9": lambda rng: with_effects(rng, autoregressive(rng, 330, 150, 0.9), 1.0),
    "AR 0.5, n < p": lambda rng: with_effects(rng, autoregressive(rng, 200, 300, 0.5)),
    "linkage": linked_effects,
    "equicorrelated 0.5": equicorrelated,
    "blocks of 0.9": blocks,
    "factors": partial(factors, 0.0),
    "factors that drive the target": partial(factors, 1.5),
    "t2 columns": partial(heavy, 2),
    "t3 columns": partial(heavy, 3),
    "sparse counts": sparse_counts,
    "classes": labels,
}


def false_share(make, fdr, cv, rng: np.random.Generator) -> Figures:
    X, y, true = make(rng)
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        chosen = (
            KnockoffSelector(fdr=fdr, random_state=seed, cv=cv).fit(X, y).get_support(indices=True)
        )
    false = np.count_nonzero(~np.isin(chosen, true)) / max(chosen.size, 1)
    power = np.isin(true, chosen).mean()
    return {"false": (false, 1), "power": (power, 1), "warned": (bool(warned), 1)}


for name, make in DESIGNS.items():
    for fdr in (0.1, 0.2):
        add(
            f"knockoffs: {name}, fdr {fdr}",
            partial(false_share, make, fdr, None),
            {"false": f"<= {fdr}"},
        )
for df in (2, 3):
    add(
        f"knockoffs: t{df} columns, five folds",
        partial(false_share, partial(heavy, df), 0.1, 5),
        {},
    )
