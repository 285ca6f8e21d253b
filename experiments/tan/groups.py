"""[T] 8.6 and 4.3: groups, additive kernels, trees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from atomlearn import FeatureGenerator
from atomlearn.core.solvers.stopping import Iterations, RelativeGap, Seconds
from atomlearn.datasets import load
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import Groups, LatentKSupport, Trees
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, FeatureGeneration, run
from atomlearn.testing.problems import cvxpy_optimum
from atomlearn.testing.synthetic import make_feature_generation
from experiments.common import figures
from experiments.common.claims import Claim, Record, decided
from experiments.rivals import active_groups
from experiments.tan.methods import Fit, generated

Array = Any
Config = Mapping[str, Any]


def lasso_of_groups(data: Any, solver: Any, share: float, limit: float) -> Fit:
    """Return the group lasso with logistic loss at a share of the largest level."""
    norm = Groups(data.groups)
    design, loss = as_design(data.X), as_loss("logistic")
    top = norm.polar(design.scores(-loss.gradient(data.y, 0 * data.y, np.ones(data.y.size))))
    problem = Problem.build(design, data.y, loss, Regularizer(norm, "penalized", share * top))
    began = time.process_time()
    found = run(problem, solver, RelativeGap(1e-3) | Seconds(limit) | Iterations(10**5))
    return Fit(found.columns, found.weights, 0.0, time.process_time() - began)


def comparison(record: Record, config: Config) -> None:
    """Figure 15: groups of 10 on a random matrix."""
    data = make_feature_generation(config["n"], config["p"], config["true"], 2000, group_size=10)
    truth = np.unique(np.flatnonzero(data.coef) // 10)
    fits: dict[str, list[Fit]] = {"FISTA": [], "ACTIVE": []}
    for batch in config["batches"]:
        fits[f"FGM, B={batch}"] = [
            generated(data.X, data.y, batch, rounds=rounds, loss="logistic", groups=data.groups)[0]
            for rounds in (max(1, 20 // batch), max(2, 50 // batch))
        ]
    for share in np.geomspace(0.8, 0.4, config["levels"]):
        fits["FISTA"].append(lasso_of_groups(data, FISTA(), share, 20.0))
        fits["ACTIVE"].append(lasso_of_groups(data, active_groups(), share, 20.0))
    rows = {
        n: [
            {
                "groups": int(np.unique(f.columns // 10).size),
                "seconds": f.seconds,
                "accuracy": f.accuracy(data.X_test, data.y_test),
                "hits": int(np.isin(np.unique(f.columns // 10), truth).sum()),
            }
            for f in found
        ]
        for n, found in fits.items()
    }
    record.keep("figure 15", rows)
    for part, name in (("a", "accuracy"), ("b", "hits"), ("c", "seconds")):
        shown = {
            n: ([r["groups"] for r in found], [r[name] for r in found]) for n, found in rows.items()
        }
        path = record.out / "figures" / f"figure_15{part}.svg"
        figures.lines(path, shown, "groups", name)
    goal = rows[f"FGM, B={config['batches'][0]}"][-1]
    near = sorted(rows["FISTA"], key=lambda r: abs(r["groups"] - goal["groups"]))[0]
    slow = sorted(rows["ACTIVE"], key=lambda r: abs(r["groups"] - goal["groups"]))[0]
    cut = f"{config['n']} x {config['p']} (paper 4096 x 400,000)"
    record.add(
        decided(
            "Figure 15a",
            "FGM is more accurate than FISTA's group lasso",
            "a plot",
            f"{goal['accuracy']:.1f} with {goal['groups']} groups against "
            f"{near['accuracy']:.1f} with {near['groups']}",
            goal["accuracy"] > near["accuracy"],
            cut,
        )
    )
    record.add(
        decided(
            "Figure 15b",
            "FGM recovers at least as many true groups",
            "a plot",
            f"{goal['hits']} of {goal['groups']} against {near['hits']} of {near['groups']}",
            goal["hits"] / goal["groups"] >= near["hits"] / max(near["groups"], 1),
            cut,
        )
    )
    fast = rows[f"FGM, B={config['batches'][-1]}"][-1]
    record.add(
        decided(
            "Figure 15c",
            "FGM is much faster than FISTA and than ACTIVE",
            "a plot",
            f"FGM {fast['seconds']:.1f} s, FISTA {near['seconds']:.1f} s, ACTIVE "
            f"{slow['seconds']:.1f} s for {slow['groups']} groups",
            fast["seconds"] < min(near["seconds"], slow["seconds"]),
            cut,
        )
    )


def kernels(record: Record, config: Config) -> None:
    """Figures 16 and 17 on a stand-in: additive Gaussian and intersection maps of inputs."""
    try:
        data = load("california")
    except FileNotFoundError as error:
        record.add(Claim("Figure 16", "additive maps", "", "", "undecided", str(error)))
        return
    rng = np.random.default_rng(0)
    order = rng.permutation(data.y.size)[: 2 * config["rows"]]
    X = np.column_stack([data.X[order], rng.standard_normal((order.size, 12))])
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    y = data.y[order] > np.median(data.y)
    half = config["rows"]
    rows: dict[str, Any] = {}
    for features in ("linear", "intersection", "additive_gaussian"):
        began = time.process_time()
        model = FeatureGenerator(config["features"], 2, features=features, loss="logistic")
        model.fit(X[:half], y[:half])
        rows[features] = {
            "accuracy": 100.0 * model.score(X[half:], y[half:]),
            "seconds": time.process_time() - began,
        }
    record.keep("figure 16", rows)
    cut = "California housing with 12 noise inputs stands in for aut-avn and rcv1"
    words = ", ".join(f"{n} {one['accuracy']:.2f}" for n, one in rows.items())
    record.add(
        decided(
            "Figure 16",
            "groups of intersection and additive Gaussian maps select well",
            "four plots",
            words,
            min(rows["intersection"]["accuracy"], rows["additive_gaussian"]["accuracy"])
            > rows["linear"]["accuracy"],
            cut,
        )
    )
    record.add(
        decided(
            "Figure 17",
            "training over such groups takes seconds",
            "four plots",
            ", ".join(f"{n} {one['seconds']:.2f} s" for n, one in rows.items()),
            max(one["seconds"] for one in rows.values()) < 100.0,
            cut,
        )
    )
    for name in ("aut-avn", "rcv1"):
        record.add(
            Claim(
                f"Table 3, {name}",
                "sizes of explicit HIK and additive expansions",
                "0.32 to 9.7 GB",
                "",
                "undecided",
                "our maps are never stored: codes of one byte an entry",
            )
        )


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


def trees(record: Record, config: Config) -> None:
    """Remark 2: subtrees are pruned; overlapping groups and trees against enumeration."""
    p = 2 ** config["depth"]
    sets = [
        np.arange(s, s + 2**d) for d in range(config["depth"], 0, -1) for s in range(0, p, 2**d)
    ]
    z = 0.01 * np.random.default_rng(0).standard_normal(p)
    z[:16] += 3.0
    visited = searched(sets, z, 8)
    record.add(
        decided(
            "Remark 2",
            "subtrees of a tree of groups need not be searched",
            "O(n log m + B log p)",
            f"{visited} of {len(sets)} groups looked at",
            visited < 0.05 * len(sets),
            "B = 8",
        )
    )
    worst = {"groups": 0.0, "trees": 0.0}
    for seed in range(config["cases"]):
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
            worst[name] = max(worst[name], off)
    for name, key in (("groups", "Section 2.3"), ("trees", "Section 4.3")):
        record.add(
            decided(
                key,
                f"{'overlapping groups' if name == 'groups' else 'trees'}: the B best are found",
                "Algorithm 2 on copies of columns",
                f"largest difference from enumeration {worst[name]:.1e} in {config['cases']} cases",
                worst[name] < 1e-12,
            )
        )


def optima(record: Record, config: Config) -> None:
    """Sections 2.3 and 4.3: generation over groups that overlap and over trees against CVXPY."""
    for key, tree in (("Section 2.3, optima", False), ("Section 4.3, optima", True)):
        worst, converged, tried, seed = 0.0, 0, 0, -1
        while tried < config["cases"]:
            seed += 1
            problem, X = random_problem(seed, tree)
            try:
                best = cvxpy_optimum(problem, X)
            except AssertionError:  # the oracle itself is not sure of its accuracy
                continue
            tried += 1
            fit = run(problem, FeatureGeneration(), RelativeGap(1e-7) | Iterations(400))
            converged += fit.status.name == "CONVERGED"
            worst = max(worst, abs(fit.objective - best) / best)
            if tried % 100 == 0:
                print(key, tried, converged, worst, flush=True)
        record.add(
            decided(
                key,
                f"generation over {'trees' if tree else 'overlapping groups'} reaches the optimum",
                "Theorem 1",
                f"largest relative difference from CVXPY {worst:.1e} in {config['cases']} cases, "
                f"{converged} proved to 1e-7",
                worst <= 5e-6 and converged == config["cases"],
                f"8 features, 1 to 3 sets a block, three losses; {seed + 1 - tried} more left "
                "out, where the cone solver called its own optimum inaccurate",
            )
        )


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
