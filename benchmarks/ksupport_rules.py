"""Rules that choose k and level of the k-support norm from held-out errors: which loses least?

python -m benchmarks.ksupport_rules [--draws 10] [--form squared] [--work FOLDER]

Solves all k and 20 levels on three times five folds of each draw of the settings of
``benchmarks.ksupport`` (but for their seeds), keeps the errors in a folder, and compares rules on
them. A row of the CSV is a rule on a setting: mean R^2 at 2000 other rows, the share of the true
features found and the number of false ones. The best fixed k is the one that turned out best on
average, its level by the first five folds, which lasso and elastic net (scikit-learn's, of six
ratios) see too. About five seconds a draw and setting.
"""

from __future__ import annotations

import argparse
import csv
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNetCV, LassoCV

from atomlearn import _kernels
from atomlearn.core.paths.cross_validation import CrossValidation
from atomlearn.estimators.lattice import search_lattice
from atomlearn.norms import KSupport

RESULTS = Path(__file__).resolve().parent / "results"
#: rows, correlation in a bunch (or of neighbours), active ones of ten, noise; a series or not.
SETTINGS = {
    "b3": (100, 0.3, 10, 1.0), "b5": (100, 0.5, 10, 1.0), "b7": (100, 0.7, 10, 1.0),
    "b9": (100, 0.9, 10, 1.0), "b95": (100, 0.95, 10, 1.0), "half": (100, 0.9, 5, 1.0),
    "single": (100, 0.9, 1, 1.0), "n50": (50, 0.7, 10, 1.0), "n500": (500, 0.7, 10, 1.0),
    "weak": (100, 0.7, 10, 3.0), "strong": (100, 0.7, 10, 0.3), "ar": (100, 0.9, 10, 1.0),
}  # fmt: skip
LEVELS, REPEATS = 20, 3
RATIOS, PEERS = [0.1, 0.5, 0.7, 0.9, 0.95, 1.0], ("lasso", "elastic net")
Array = Any
#: Errors of a draw, (repeats, n_k, n_levels, n); R^2, found and false at (n_k, n_levels).
Draw = dict[str, Array]
Place = tuple[int, int]


def made(name: str, seed: int) -> tuple[Array, ...]:
    """Return X, y, other rows of both, and the true coefficients."""
    n, rho, active, noise = SETTINGS[name]
    rng, p = np.random.default_rng([seed, zlib.crc32(name.encode())]), 200
    truth = np.zeros(p)
    if name == "ar":
        E = rng.standard_normal((n + 2000, p))
        X = E.copy()
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * E[:, j]
    else:
        Z = np.repeat(rng.standard_normal((n + 2000, p // 10)), 10, axis=1)
        X = np.sqrt(rho) * Z + np.sqrt(1 - rho) * rng.standard_normal((n + 2000, p))
    for bunch in range(3):
        first = bunch * (60 if name == "ar" else 10)
        truth[first : first + active] = 1.0
    signal = X @ truth
    y = signal + 0.5 * noise * signal.std() * rng.standard_normal(n + 2000)
    X = X / X[:n].std(axis=0)
    return X[:n], y[:n], X[n:], y[n:], truth


def candidates(most: int) -> list[int]:
    """Return k in steps of 1.6."""
    found = [1]
    while found[-1] * 1.6 < most * 1.0001:
        found.append(max(found[-1] + 1, round(found[-1] * 1.6)))
    return found if found[-1] == most else [*found, most]


def surface(X: Array, y: Array, ks: list[int], grids: list[Array], form: str) -> tuple[Array, ...]:
    """Return the coefficients (n_k, n_levels, p) and intercepts of all k and levels."""
    means, middle = X.mean(axis=0), y.mean()
    H, c = (X - means).T @ (X - means), (X - means).T @ (y - middle)
    found = np.zeros((len(ks), LEVELS, c.size))
    for rows, k, levels in zip(found, ks, grids, strict=True):
        w = np.zeros(c.size)
        for row, level in zip(rows, levels, strict=True):
            given = {"k": k, "level": level, "squared": form == "squared", "gram": True}
            w, _ = _kernels.pattern_newton(H, c, w, most=300, **given)
            row[:] = w
    return found, middle - found @ means


def draw(name: str, seed: int, form: str) -> Draw:
    """Return what all k and levels give, held out and at other rows."""
    X, y, others, theirs, truth = made(name, seed)
    n, ks = y.size, candidates(min(X.shape))
    scores = np.sort(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())))[::-1]
    first = np.sqrt(np.cumsum(scores**2))[np.array(ks) - 1]
    last = 1e-2
    if form == "squared":
        first, last = first**2 / (0.01 * ((y - y.mean()) ** 2).sum()), 1e-4
    grids = [np.geomspace(one, one * last, LEVELS) for one in first]
    W, b = surface(X, y, ks, grids, form)
    off = W @ others.T + b[..., None] - theirs
    errors = np.zeros((REPEATS, len(ks), LEVELS, n))
    for repeat in range(REPEATS):
        order = np.random.default_rng([seed, repeat, 7]).permutation(n)
        for test in np.array_split(order, 5):
            train = np.setdiff1d(np.arange(n), test)
            smaller = [levels * train.size / n for levels in grids]
            V, a = surface(X[train], y[train], ks, smaller, form)
            errors[repeat][..., test] = (y[test] - V @ X[test].T - a[..., None]) ** 2
    used = np.abs(W) > 1e-9
    order = np.random.default_rng([seed, 0, 7]).permutation(n)
    folds = [(np.setdiff1d(np.arange(n), test), test) for test in np.array_split(order, 5)]
    settings = {"cv": folds, "alphas": 50, "max_iter": 5000}
    peers = {"lasso": LassoCV(**settings), "elastic net": ElasticNetCV(l1_ratio=RATIOS, **settings)}
    return {
        **{name: peer_of(model.fit(X, y), others, theirs, truth) for name, model in peers.items()},
        "k": np.array(ks),
        "errors": errors.astype(np.float32),
        "r2": 1.0 - (off**2).mean(axis=-1) / theirs.var(),
        "found": used[..., truth != 0].mean(axis=-1),
        "false": used[..., truth == 0].sum(axis=-1),
    }


def peer_of(model: Any, X: Array, y: Array, truth: Array) -> Array:
    """Return R^2, the share of the true features found and the number of false ones."""
    used, off = model.coef_ != 0, model.predict(X) - y
    return np.array(
        [1.0 - (off**2).mean() / y.var(), used[truth != 0].mean(), used[truth == 0].sum()]
    )


def lattice(repeats: int) -> Callable[[Draw], Place]:
    """Return the rule of the estimators, which score a part of the grid."""

    def rule(found: Draw) -> Place:
        mean = -found["errors"][:repeats].mean(axis=(0, 3))
        ks = found["k"].tolist()

        def scored(norms: Any, levels: Array, _: Array) -> CrossValidation:
            rows = np.array([ks.index(norm.k) for norm in norms])
            each = mean[rows[:, None], levels.astype(int)][..., None]
            paths: Any = tuple((((),),) for _ in norms)
            return CrossValidation(tuple(norms), levels, each, each, each, each, 0.0, 0.0, paths)

        grid = np.tile(np.arange(float(LEVELS)), (len(ks), 1))
        return search_lattice(scored, [KSupport(k) for k in ks], grid).choose()

    return rule


def smoothed(M: Array, weight: float, axis: int) -> Array:
    """Return each entry averaged with its neighbours along an axis, which have this weight."""
    M = np.moveaxis(M, axis, 0)
    before, after = np.concatenate([M[:1], M[:-1]]), np.concatenate([M[1:], M[-1:]])
    return np.moveaxis((weight * (before + after) + M) / (1.0 + 2.0 * weight), 0, axis)


def whole(
    repeats: int = 1, over_k: float = 0.0, over_levels: float = 0.0, near: bool = False,
    large: float = 0.0,
) -> Callable[[Draw], Place]:  # fmt: skip
    """Return a rule over the whole grid.

    near : only levels from 3 before to 2 after the best one of l1; large : take the largest k
    within so many standard errors of the best.
    """

    def rule(found: Draw) -> Place:
        each = found["errors"][:repeats].mean(axis=0)
        mean = smoothed(smoothed(each.mean(axis=-1), over_k, 0), over_levels, 1)
        if near:
            best = smoothed(each.mean(axis=-1), 0.5, 1)[0].argmin()
            far = np.abs(np.arange(LEVELS) - best + 0.5) > 3
            mean[1:, far] = np.inf
        i, j = np.unravel_index(mean.argmin(), mean.shape)
        if large:
            at = mean.argmin(axis=1)
            apart = each[np.arange(len(at)), at] - each[i, j]
            error = apart.std(axis=-1) / np.sqrt(apart.shape[-1])
            i = np.flatnonzero(mean.min(axis=1) - mean[i, j] <= large * error).max()
            j = mean[i].argmin()
        return int(i), int(j)

    return rule


RULES = {
    "l1 (k = 1)": lambda found: (0, int(found["errors"][0].mean(axis=-1)[0].argmin())),
    "as the estimators do": lattice(1),
    "as the estimators do, three times five folds": lattice(3),
    "best of the whole grid": whole(),
    "levels smoothed": whole(over_levels=0.5),
    "k smoothed": whole(over_k=0.25),
    "k and levels smoothed": whole(over_k=0.25, over_levels=0.5),
    "levels near the best of l1": whole(near=True),
    "largest k within a quarter of a standard error": whole(over_levels=0.5, large=0.25),
    "largest k within half a standard error": whole(over_levels=0.5, large=0.5),
    "three times five folds": whole(repeats=3),
    "three times five folds, levels smoothed": whole(repeats=3, over_levels=0.5),
}


def main() -> None:
    """Make the draws that are missing, and compare the rules on those that are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--form", default="penalized", choices=("penalized", "squared"))
    parser.add_argument("--work", type=Path, default=Path("build/ksupport_rules"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"ksupport_rules_{options.form}.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("setting", "draws", "rule", "score", "found", "false", "k"))
        for name in SETTINGS:
            draws = []
            for seed in range(options.draws):
                path = options.work / f"{options.form}_{name}_{seed}.npz"
                if not path.exists():
                    np.savez_compressed(path, **draw(name, seed, options.form))
                draws.append(dict(np.load(path)))
            levels = [d["errors"][0].mean(axis=-1).argmin(axis=1) for d in draws]
            fixed = [d["r2"][np.arange(at.size), at] for d, at in zip(draws, levels, strict=True)]
            best = int(np.mean(fixed, axis=0).argmax())
            places = {rule: [choose(found) for found in draws] for rule, choose in RULES.items()}
            places["best fixed k"] = [(best, at[best]) for at in levels]
            results = {peer: np.mean([found[peer] for found in draws], axis=0) for peer in PEERS}
            for rule, at in places.items():
                pairs = list(zip(draws, at, strict=True))
                what = ("r2", "found", "false")
                results[rule] = np.mean([[f[one][p] for one in what] for f, p in pairs], axis=0)
            for rule, means in results.items():
                row = (round(means[0], 5), round(means[1], 3), round(means[2], 1))
                k = draws[0]["k"][best] if rule == "best fixed k" else ""
                table.writerow((name, options.draws, rule, *row, k))


if __name__ == "__main__":
    main()
