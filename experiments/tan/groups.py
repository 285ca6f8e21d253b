"""[T] 8.6 and 4.3: results on groups, additive kernels, overlapping groups and trees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Additive, as_design
from atomlearn.losses import as_loss
from atomlearn.norms import Groups, LatentKSupport, Trees
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, ColumnGeneration, FeatureGeneration, run
from atomlearn.testing.problems import cvxpy_optimum
from atomlearn.testing.synthetic import make_feature_generation
from benchmarks.harness.real_data import load
from experiments.common.runs import Runs
from experiments.rivals import UFOMKL, BlockCoordinateDescent, active_groups
from experiments.tan.methods import Fit, generated

Array = Any
Config = Mapping[str, Any]
#: The solvers of the group lasso.
RIVALS: dict[str, Any] = {"FISTA": FISTA, "BCD": BlockCoordinateDescent, "ACTIVE": active_groups}


def lasso_of_groups(
    data: Any, solver: Any, share: float, limit: float, tau: float = 0.0, steps: int = 10**5
) -> Fit:
    """Return the group lasso with logistic loss at a share of the largest level."""
    norm = Groups(data.groups)
    design, loss = as_design(data.X), as_loss("logistic")
    top = norm.polar(design.scores(-loss.gradient(data.y, 0 * data.y, np.ones(data.y.size))))
    regularizer = Regularizer(norm, "penalized", share * top)
    problem = Problem.build(design, data.y, loss, regularizer, tau=tau)
    began = time.process_time()

    def cut(progress: Any) -> None:
        if time.process_time() - began > limit:
            raise KeyboardInterrupt  # the run ends here, with what it has

    found = run(problem, solver, RelativeGap(1e-3) | Iterations(steps), [cut])
    used = np.flatnonzero(found.weights)
    seconds = time.process_time() - began
    return Fit(found.columns[used], found.weights[used], 0.0, seconds)


def of_groups(fit: Fit, data: Any, size: int = 10) -> dict[str, float]:
    """Return what Figure 15 shows of a fit; ``features`` are groups."""
    truth = np.unique(np.flatnonzero(data.coef) // size)
    used = np.unique(fit.columns // size)
    row = fit.row(data.X_test, data.y_test)
    return row | {"features": int(used.size), "hits": int(np.isin(used, truth).sum())}


def groups(runs: Runs, config: Config) -> None:
    """Figure 15a and b at the paper's size: the group lasso by its proved optimum."""

    def draw(seed: int) -> dict[str, Any]:
        data = make_feature_generation(
            config["n"], config["p"], config["true"], 2000, group_size=10, rng=seed
        )
        rows = {
            f"FGM, B={batch}": [of_groups(_generated(data, batch, C), data) for C in config["Cs"]]
            for batch in config["batches"]
        }
        lasso = [lasso_of_groups(data, ColumnGeneration(), s, 120.0) for s in config["shares"]]
        rows["group lasso, optimum"] = [of_groups(fit, data) for fit in lasso]
        return {"rows": rows}

    for seed in range(config["draws"]):
        runs.piece("groups", f"draw {seed}", lambda seed=seed: draw(seed))


def _generated(data: Any, batch: int, C: float) -> Fit:
    """FGM until F falls by less than 0.001 of F_0, as in 8.6."""
    how: dict[str, Any] = {"C": C, "rounds": None, "outer_tol": 0.001}
    return generated(data.X, data.y, batch, loss="logistic", groups=data.groups, **how)[0]


def group_times(runs: Runs, config: Config) -> None:
    """Figure 15: all rivals of the paper, at a size at which they end."""
    _raced(runs, "group_times", config)


def group_race(runs: Runs, config: Config) -> None:
    """Figure 15c at the paper's size, each rival cut at the limit of config.json."""
    _raced(runs, "group_race", config)


def _raced(runs: Runs, part: str, config: Config) -> None:
    def draw(seed: int) -> dict[str, Any]:
        data = make_feature_generation(
            config["n"], config["p"], config["true"], config["test"], group_size=10, rng=seed
        )
        rows = {
            f"FGM, B={batch}": [of_groups(_generated(data, batch, C), data) for C in config["Cs"]]
            for batch in config["batches"]
        }
        for name, make in RIVALS.items():
            fits = [lasso_of_groups(data, make(), s, config["limit"]) for s in config["shares"]]
            rows[name] = [of_groups(fit, data) for fit in fits]
        if config["n"] * config["p"] <= 2**27:
            # 20 epochs, whatever has been reached by then.
            online = lasso_of_groups(data, UFOMKL(), config["shares"][-1], np.inf, 1.0, 20)
            rows["UFO-MKL"] = [of_groups(online, data)]
        return {"rows": rows, "limit": config["limit"]}

    for seed in range(config["draws"]):
        runs.piece(part, f"draw {seed}", lambda seed=seed: draw(seed))


def kernels(runs: Runs, config: Config) -> None:
    """Figures 16 and 17 on rcv1 in part and on a stand-in: maps of each input as a group."""
    parts = {}
    data = load("california")
    rng = np.random.default_rng(0)
    X = np.column_stack([data.X, rng.standard_normal((data.y.size, 12))])
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    parts["california"] = (X, data.y > np.median(data.y))
    rcv1 = load("rcv1_small")
    X = sp.csr_array(sp.vstack([rcv1.X, rcv1.X_test]))
    frequent = np.flatnonzero(np.diff(X.tocsc().indptr) >= config["documents"])
    dense = np.asarray(X[:, frequent].todense(), dtype=float)
    parts["rcv1_small"] = (dense, np.concatenate([rcv1.y, rcv1.y_test]) > 0)
    for name, (X, y) in parts.items():
        for seed in range(config["draws"]):
            runs.piece(
                "kernels",
                f"{name}, draw {seed}",
                lambda name=name, X=X, y=y, seed=seed: _kernels(name, X, y, seed, config),
            )


def _kernels(name: str, X: Array, y: Array, seed: int, config: Config) -> dict[str, Any]:
    """Return for each map the curves of FGM and of the rivals over numbers of inputs."""
    order = np.random.default_rng(seed).permutation(y.size)[: 2 * config["rows"]]
    train, test = np.split(order, [order.size * 2 // 3])
    labels = np.where(y, 1.0, -1.0)
    maps: dict[str, Any] = {}
    for kernel in ("gaussian", "intersection"):
        design = Additive(X[train], kernel)
        new = Additive.from_map(X[test], design.map)
        data = SimpleNamespace(X=design, y=labels[train], groups=design.groups)
        fits = {
            f"FGM, B={batch}": [_generated(data, batch, C) for C in config["Cs"]]
            for batch in config["batches"]
        }
        for rival, make in RIVALS.items():
            fits[rival] = [
                lasso_of_groups(data, make(), share, config["limit"]) for share in config["shares"]
            ]
        maps[kernel] = {
            method: [
                _of_inputs(fit, design, new, labels[test]) for fit in found if fit.columns.size
            ]
            for method, found in fits.items()
        }
    return {"data": name, "maps": maps}


def _of_inputs(fit: Fit, design: Additive, new: Additive, y: Array) -> dict[str, float]:
    """Return what Figures 16 and 17 show of a fit; ``features`` are inputs, each a group."""
    decisions = new.gather(fit.columns).predict(fit.weights) + fit.intercept
    return {
        "features": int(np.unique(design.map.term_of(fit.columns)).size),
        "accuracy": 100.0 * float(np.mean(np.sign(decisions) == y)),
        "seconds": fit.seconds,
    }


def searched(sets: list[np.ndarray], z: np.ndarray, count: int) -> int:
    """Return how many sets of a tree have to be looked at for the ``count`` best, from its root.

    The norm over a set is at least that over each set inside it, so that nothing inside a set has
    to be looked at where the set itself is not among the best found so far.
    """
    level, best, visited = [sets[0]], np.zeros(0), 0
    while level:
        visited += len(level)
        norms = np.array([np.linalg.norm(z[one]) for one in level])
        best = np.sort(np.append(best, norms))[::-1][:count]
        least = best[-1] if best.size == count else 0.0
        halves = [np.split(one, 2) for one, norm in zip(level, norms, strict=True) if norm >= least]
        level = [half for both in halves for half in both if half.size > 1]
    return visited


def trees(runs: Runs, config: Config) -> None:
    """Remark 2: subtrees are pruned; overlapping groups and trees against enumeration."""

    def pruned() -> dict[str, Any]:
        p = 2 ** config["depth"]
        depths = range(config["depth"], 0, -1)
        sets = [np.arange(s, s + 2**d) for d in depths for s in range(0, p, 2**d)]
        visited = []
        for seed in range(config["draws"]):
            z = 0.01 * np.random.default_rng(seed).standard_normal(p)
            z[:16] += 3.0
            visited.append(searched(sets, z, 8))
        return {"visited": visited, "sets": len(sets)}

    runs.piece("trees", "pruned", pruned)
    runs.piece("trees", "enumerated", lambda: _enumerated(config["cases"]))


def _enumerated(cases: int) -> dict[str, Any]:
    worst = {"groups": 0.0, "trees": 0.0}
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 4))
        lists = [rng.choice(8, int(rng.integers(1, 5)), replace=False).tolist() for _ in range(5)]
        a, b = sorted(rng.choice(np.arange(1, 8), 2, replace=False).tolist())
        nested = [list(range(8)), list(range(a)), list(range(a, 8)), list(range(a, b))]
        v = rng.standard_normal(8)
        for name, sets, groups in (("groups", lists, lists), ("trees", nested, Trees(nested))):
            whole = sets + [[j] for j in range(8) if not any(j in one for one in sets)]
            squares = [float((v[one] ** 2).sum()) for one in whole]
            best = max(sum(chosen) for chosen in combinations(squares, min(k, len(whole))))
            off = abs(LatentKSupport(k, groups).polar(v) - np.sqrt(best))
            worst[name] = max(worst[name], float(off))
    return {"worst": worst, "cases": cases}


def optima(runs: Runs, config: Config) -> None:
    """Sections 2.3 and 4.3: generation over groups that overlap and over trees against CVXPY."""
    for name, tree in (("groups", False), ("trees", True)):
        runs.piece("optima", name, lambda tree=tree: _optima(tree, config["cases"]))


def _optima(tree: bool, cases: int) -> dict[str, Any]:
    worst, converged, tried, seed = 0.0, 0, 0, -1
    bounds: list[tuple[float, float]] = []
    while tried < cases:
        seed += 1
        problem, X = random_problem(seed, tree)
        try:
            best = cvxpy_optimum(problem, X)
        except AssertionError:  # the oracle itself is not sure of its accuracy
            continue
        tried += 1
        rounds: list[tuple[float, float]] = []

        def watch(progress: Any, rounds: list[tuple[float, float]] = rounds) -> None:
            state = progress.state
            if state.n_blocks:
                known = state.certificate
                rounds.append((state.restricted_objective, known.objective - known.gap))

        solver = FeatureGeneration(inner_tol=1e-9)
        fit = run(problem, solver, RelativeGap(1e-7) | Iterations(400), [watch])
        bounds += enclosed(rounds, best)
        converged += fit.status.name == "CONVERGED"
        worst = max(worst, abs(fit.objective - best) / best)
    found = {"worst": worst, "converged": converged, "cases": tried, "left out": seed + 1 - tried}
    outside, rises = (max(of) for of in zip(*bounds, strict=True))
    broken = sum(out > 1e-5 or rise > 1e-7 for out, rise in bounds)
    lemma = {"rounds": len(bounds), "outside": outside, "rises": rises, "broken": broken}
    return found | lemma


def enclosed(rounds: list[tuple[float, float]], best: float) -> list[tuple[float, float]]:
    """Return for each round how far the optimum is outside of its bounds, and how far F_t rose.

    ``rounds`` are F_t of the subproblem, -theta_t of Lemma 1, and the lower bound of its point.
    """
    upper = np.array([value for value, _ in rounds])
    lower = np.maximum.accumulate([bound for _, bound in rounds])
    outside = np.maximum(np.maximum(lower - best, best - upper), 0.0) / best
    rises = np.maximum(np.diff(upper, prepend=upper[0]), 0.0) / best
    return list(zip(outside.tolist(), rises.tolist(), strict=True))


def random_problem(seed: int, tree: bool) -> tuple[Problem, Any]:
    """Return a small problem over random sets, nested ones for a tree."""
    rng = np.random.default_rng(seed)
    k, loss = int(rng.integers(1, 4)), ("squared_hinge", "logistic", "squared")[seed % 3]
    a, b = sorted(rng.choice(np.arange(1, 8), 2, replace=False).tolist())
    nested = [list(range(8)), list(range(a)), list(range(a, 8)), list(range(a, b))]
    lists = [rng.choice(8, int(rng.integers(1, 5)), replace=False).tolist() for _ in range(4)]
    norm = LatentKSupport(k, Trees(nested) if tree else lists)
    X = rng.standard_normal((40, 8)) + rng.uniform(0, 1) * rng.standard_normal((40, 1))
    y = X[:, :3] @ rng.standard_normal(3) + 0.5 * rng.standard_normal(40)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    level = Regularizer(norm, "squared", 1.0)
    return Problem.build(as_design(X), y, as_loss(loss), level, sample_weight=0.5), X
