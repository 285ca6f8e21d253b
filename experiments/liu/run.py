"""[L]: results behind Figures 1 to 3 and the rate of Theorem 1; processor seconds, one thread.

python -m experiments.liu.run [--smoke] [--resume] [part ...], those of config.json

The time of a method is the one at which its objective first came within 1e-4 (relative) of the best
that any of them reached: [L] stops each where its own objective changes by less, which is no
measure of how near it is; what that stop gives is kept beside it. FISTA backtracks, lets its step
grow again by a ninth at each iteration, and restarts; its iterations are counted in tens, after
which it is certified (one more pass over the data in 21).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from atomlearn._kernels import ksupport_prox
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Tasks, as_design
from atomlearn.losses import Logistic, Squared
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, KFCFW, ColumnGeneration, run
from atomlearn.testing.synthetic import make_k_support_logistic
from experiments.common.run import main
from experiments.common.runs import Runs
from experiments.liu.theorems import theorems
from experiments.rivals import ADMM
from tests.oracles.sums import solve_sum

Array = Any
Config = Mapping[str, Any]
NEAR, TAU = 1e-4, 1e-3
METHODS = {
    "our default": ColumnGeneration,
    "k-FCFW": KFCFW,
    "FISTA, AS": lambda: FISTA("two_step"),
    "FISTA, BS": lambda: FISTA("binary_search"),
    "FISTA, BN": lambda: FISTA("box_norm"),
    "plain FISTA, AS": lambda: FISTA("two_step", restart=False, step_size="backtracking"),
    "ADMM, AS": lambda: ADMM("two_step"),
}
#: Iterations that a step of each makes.
EACH = {"FISTA, AS": 10, "FISTA, BS": 10, "FISTA, BN": 10, "plain FISTA, AS": 10}


def raced(problem: Problem, solver: Any, limit: float, best: float) -> dict[str, list[float]]:
    """Return processor seconds and objectives after each step, cut at ``limit`` of them.

    A method ends when its last change was below NEAR, its own stop, and it is far within NEAR of
    the ``best`` objective of the methods before it.
    """
    seconds: list[float] = []
    values: list[float] = []
    began = time.process_time()

    def watch(progress: Any) -> None:
        seconds.append(time.process_time() - began)
        values.append(progress.state.certificate.objective)
        still = len(values) > 1 and abs(values[-1] - values[-2]) <= NEAR * abs(values[-2])
        if seconds[-1] > limit or (still and values[-1] <= best * (1 + 0.1 * NEAR)):
            raise KeyboardInterrupt  # the run ends here, with what it has

    run(problem, solver, RelativeGap(1e-6) | Iterations(10**6), [watch])
    return {"seconds": seconds, "objectives": values}


def contest(problem: Problem, names: list[str], limit: float) -> dict[str, Any]:
    """Return for each method the seconds and iterations to NEAR, its own stop, and its curve."""
    curves: dict[str, Any] = {}
    best = -np.inf  # the first ends at its proof
    for name in names:
        curves[name] = raced(problem, METHODS[name](), limit, best)
        best = min(min(one["objectives"]) for one in curves.values())
    return {name: _told(name, one, best) for name, one in curves.items()}


def _told(name: str, one: Mapping[str, list[float]], best: float) -> dict[str, Any]:
    seconds, values = one["seconds"], one["objectives"]
    each = EACH.get(name, 1)
    near = next((i for i, v in enumerate(values) if v <= best * (1 + NEAR)), None)
    changes = enumerate(zip(values[1:], values, strict=False), 1)
    still = next((i for i, (b, a) in changes if abs(a - b) <= NEAR * abs(a)), None)
    kept = np.unique(np.geomspace(1, len(values), min(40, len(values))).astype(int)) - 1
    return {
        "seconds": None if near is None else seconds[near],
        "iterations": None if near is None else near * each,
        "own stop": None if still is None else [seconds[still], values[still] / best - 1.0],
        "curve": [
            [int(i) * each for i in kept],
            [float(f"{seconds[i]:.4g}") for i in kept],
            [float(f"{values[i] / best - 1.0:.4g}") for i in kept],
        ],
    }


def validated(design: Any, y: Array, X_val: Array, y_val: Array, k: int) -> dict[str, Any]:
    """Return levels and their validation losses: down from the largest until the loss has risen.

    The first level is that below which something is selected, and each is a third of the one
    before. So the level chosen is never at the edge of a grid, unless 12 of them do not reach it.
    """
    top = KSupport(k).polar(design.scores(0.5 * y)) ** 2 / y.size
    shares, losses = [], []
    while len(losses) < 12 and (len(losses) < 3 or losses[-1] <= min(losses[:-1])):
        share = 3.0 ** -(len(losses) + 1)
        problem = {"loss": "logistic", "norm": KSupport(k), "form": "squared", "tau": TAU}
        fit = solve_sum(design, y, level=share * top, tol=1e-3, **problem)
        shares.append(share)
        losses.append(float(np.mean(np.logaddexp(0, -y_val * fit.predict(X_val)))))
    return {"top": top, "shares": shares, "losses": losses}


def logistic(runs: Runs, config: Config) -> None:
    """Figure 1 at a tenth of the paper's columns: five ks, every level, five draws."""
    _logistic(runs, "logistic", config)


def million(runs: Runs, config: Config) -> None:
    """Figure 1 at the paper's million columns, at the level that validation chooses."""
    _logistic(runs, "million", config)


def published(runs: Runs, config: Config) -> None:
    """Figure 1 at a fiftieth of the columns, beside FISTA as published: no restart."""
    _logistic(runs, "published", config)


def _logistic(runs: Runs, part: str, config: Config) -> None:
    n = config["n"]
    for seed in range(config["draws"]):
        made: dict[str, Any] = {}  # the data of one draw, made where a piece asks for it

        def data(seed: int = seed, made: dict[str, Any] = made) -> dict[str, Any]:
            if not made:
                found = make_k_support_logistic(n + 100, config["p"], config["true"], rng=seed)
                X, y = found.X, found.y
                made["design"], made["y"] = as_design(np.asfortranarray(X[:n])), y[:n]
                rest = X[n:], y[n:]
                k = config["ks"][len(config["ks"]) // 2]
                made["validated"] = validated(made["design"], made["y"], *rest, k)
            return made

        for k in config["ks"]:

            def draw(k: int = k, seed: int = seed) -> dict[str, Any]:
                found = data()
                told = found["validated"]
                best = told["shares"][int(np.argmin(told["losses"]))]
                rows = {}
                for share in told["shares"] if config["every level"] else [best]:
                    regularizer = Regularizer(KSupport(k), "squared", share * told["top"])
                    problem = Problem.build(
                        found["design"], found["y"], Logistic(), regularizer, tau=TAU
                    )
                    rows[f"{share:.4g}"] = contest(problem, config["methods"], config["limit"])
                return {"k": k, "draw": seed, "chosen": f"{best:.4g}", "levels": rows} | told

            runs.piece(part, f"draw {seed}, k {k}", draw)


def proxes(runs: Runs, config: Config) -> None:
    """Seconds of the three proximal maps on vectors of the paper's size, and how far they agree."""

    def draw(seed: int, k: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        v, found, seconds = rng.standard_normal(config["p"]), {}, {}
        for name, method in (("AS", "two_step"), ("BS", "binary_search"), ("BN", "box_norm")):
            tries = []
            for _ in range(config["repeats"]):
                began = time.process_time()
                found[name] = ksupport_prox(v, k, config["step"], method)[0]
                tries.append(time.process_time() - began)
            seconds[name] = min(tries)
        off = max(float(np.abs(w - found["AS"]).max()) for w in found.values())
        return {"k": k, "seconds": seconds, "apart": off}

    for seed in range(config["draws"]):
        for k in config["ks"]:
            runs.piece("proxes", f"draw {seed}, k {k}", lambda seed=seed, k=k: draw(seed, k))


def pursuit(runs: Runs, config: Config) -> None:
    """Figures 2 and 3: matrix pursuit, lambda = 20."""
    from benchmarks.matrices.digits import Digits

    for name, how in config.items():
        digits = Digits(name)

        def draw(
            seed: int, k: int, name: str = name, how: Config = how, digits: Any = digits
        ) -> dict[str, Any]:
            X, _ = digits.draw(seed, how["each"])
            level = Regularizer(KSupport(k), "squared", 40.0)
            problem = Problem.build(Tasks(X, X.shape[1]), X.reshape(-1), Squared(), level)
            told = contest(problem, how["methods"], how["limit"])
            return {"data": name, "k": k, "draw": seed, "methods": told, "images": X.shape[1]}

        for seed in range(how["draws"]):
            for k in how["ks"]:
                key = f"{name}, draw {seed}, k {k}"
                runs.piece("pursuit", key, lambda seed=seed, k=k, draw=draw: draw(seed, k))


def rate(runs: Runs, config: Config) -> None:
    """Theorem 1: a linear rate where f is strongly convex on the supports met."""

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((config["n"], config["p"]))
        y = X[:, :10].sum(axis=1) + rng.standard_normal(config["n"])
        regularizer = Regularizer(KSupport(config["k"]), "squared", 20.0)
        problem = Problem.build(as_design(X), y, Squared(), regularizer)
        stop = RelativeGap(1e-13) | Iterations(100)
        best = run(problem, ColumnGeneration(tol=1e-13), stop).objective
        values: list[float] = []
        run(
            problem,
            KFCFW(inner_ratio=1e-6),
            RelativeGap(1e-10) | Iterations(400),
            [lambda progress: values.append(progress.state.model_objective)],
        )
        errors = np.array(values) - best
        errors = errors[errors > 1e-9 * best]
        steps = np.arange(errors.size)
        slope, constant = np.polyfit(steps, np.log(errors), 1)
        off = np.log(errors) - (slope * steps + constant)
        fit = 1.0 - float(np.var(off) / np.var(np.log(errors)))
        return {"rate": float(np.exp(slope)), "R2": fit, "errors": (errors / best).tolist()}

    for seed in range(config["draws"]):
        runs.piece("rate", f"draw {seed}", lambda seed=seed: draw(seed))


PARTS = {
    "theorems": theorems,
    "rate": rate,
    "proxes": proxes,
    "pursuit": pursuit,
    "logistic": logistic,
    "million": million,
    "published": published,
}

if __name__ == "__main__":
    main(__file__, PARTS, __doc__)
