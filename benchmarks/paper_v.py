"""[V]: group lasso, k-chains, weak hierarchy, California housing, with the rivals of the paper.

Vinyes, Obozinski 2017, Figures 2 to 5 and Table 1, on our parts: every method runs on the same
design, loss and norm, and its gap is certified by the same code after each step. Seconds are those
until the relative gap was first proved to be 1e-3, and 1e-8. Rivals are cut once they have taken
twenty times as long as ours, but after 5 s at least and 20 s at most. Rows of
solvers over atoms also say how many pivots (master steps) a call took, and how many atoms were in
use at the end. Data: figure 2: n = 200, p = 1000, groups of 10, singular values 0.9^(2i), 1%
noise; figure 3: n = 300, p = 1000, chains of 8, support 1..10, sigma 0.1; figure 5: 50 main
effects, 1225 interactions, n = 1000, 10% of the interactions 1, a least set of main effects 0.5,
sigma 1; table 1: California housing, 8 + 20 nuisance main effects, all interactions, columns and
target standardized, 1/(2n) ||y - Xw||^2 + lambda gauge(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.interfaces.norm import Form
from atomlearn.core.solvers.stopping import Iterations, RelativeGap, Seconds
from atomlearn.designs import Polynomial, as_design
from atomlearn.interfaces import Norm, Solver
from atomlearn.losses import Squared
from atomlearn.norms import Chains, Groups, Hierarchy
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result
from atomlearn.solvers import (
    FISTA,
    AtomGeneration,
    ColumnGeneration,
    FrankWolfe,
    run,
)
from benchmarks.groups.problems import GroupProblem
from benchmarks.harness import Options, Table
from benchmarks.harness.real_data import load
from benchmarks.ours import at_level
from experiments.rivals import BlockCoordinateDescent, CoGEnT, InteriorPoint, active_groups

Array = np.ndarray[Any, np.dtype[np.float64]]
#: Rivals are cut after this many times as long as ours took, within these bounds in seconds.
TIMES_OURS, LEAST_LIMIT_S, MOST_LIMIT_S = 20.0, 5.0, 20.0
GOALS = (1e-3, 1e-8)
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True, slots=True)
class Method:
    """A solver by name; ``forms``: those it has, ``norms``: kinds it works on (all where empty)."""

    name: str
    make: Callable[[], Solver]
    forms: tuple[Form, ...] = ("penalized", "constrained")


METHODS = (
    Method("ours, groups", lambda: ColumnGeneration(tol=1e-8)),
    Method("ours, rays (active set)", lambda: AtomGeneration(tol=1e-8)),
    Method("FCFW, interior point", lambda: AtomGeneration(master=InteriorPoint(), tol=1e-8)),
    Method("CoGEnT, eta 0.5", lambda: CoGEnT(eta=0.5)),
    Method("BCD", lambda: BlockCoordinateDescent(newton=False), ("penalized",)),
    Method("BCD, Newton hybrid", lambda: BlockCoordinateDescent(newton=True), ("penalized",)),
    Method("ACTIVE, one group a pass", active_groups),
    Method("FISTA", FISTA),
    Method("FW", lambda: FrankWolfe(step_size="classic")),
    Method("FW, line search", FrankWolfe),
    Method("FW, pairwise", lambda: FrankWolfe(direction="pairwise")),
    Method("FW, blended pairwise", lambda: FrankWolfe(direction="blended")),
)


def problem_of(X: Any, y: Array, norm: Norm, form: Form, amount: float) -> Problem:
    """Return the problem of one experiment."""
    return Problem.build(as_design(X), y, Squared(), Regularizer(norm, form, amount))


def figure_2(smoke: bool) -> list[tuple[str, Problem]]:
    """Group lasso on ill-conditioned data, at 0.1 and 0.01 of the largest level."""
    made = GroupProblem("figure2", *((40, 100) if smoke else (200, 1000)), 1.0)
    X, y, largest = made.data()
    norm = Groups(np.arange(made.p) // 10)
    return [
        (f"figure 2, {share:g}", problem_of(X, y, norm, "penalized", share * largest))
        for share in (0.1, 0.01)
    ]


def figure_3(smoke: bool) -> list[tuple[str, Problem]]:
    """k-chains, penalized at 0.05 of the largest level, and constrained at the same solution."""
    made = GroupProblem("chains", *((60, 100) if smoke else (300, 1000)), 0.05)
    X, y, level = made.data()
    penalized = problem_of(X, y, Chains(8), "penalized", level)
    found = run(penalized, ColumnGeneration(tol=1e-8), RelativeGap(1e-8) | Iterations(200))
    radius = sum(float(np.linalg.norm(part.weights)) for part in found.parts or [])
    constrained = problem_of(X, y, Chains(8), "constrained", radius)
    return [("figure 3, penalized", penalized), ("figure 3, constrained", constrained)]


def figure_5(smoke: bool) -> list[tuple[str, Problem]]:
    """Weak hierarchy on simulated interactions."""
    n, p = (100, 10) if smoke else (1000, 50)
    rng = np.random.default_rng(0)
    design = Polynomial.interactions(rng.standard_normal((n, p)))
    n_pairs = design.shape[1] - p
    chosen = rng.choice(n_pairs, n_pairs // 10, replace=False)
    w = np.zeros(design.shape[1])
    w[p + chosen] = 1.0
    pairs = [design.pair(int(p + column)) for column in chosen]
    uncovered = list(pairs)
    while uncovered:  # greedily a small set of main effects that covers all pairs
        counts = np.bincount(np.array(uncovered).ravel(), minlength=p)
        best = int(counts.argmax())
        w[best] = 0.5
        uncovered = [pair for pair in uncovered if best not in pair]
    X = np.asfortranarray(np.asarray(design.gather(np.arange(design.shape[1]))))
    y = X @ w + rng.standard_normal(n)
    problem = problem_of(X, y, Hierarchy("weak"), "penalized", 1.0)
    return [(f"figure 5, {share:g}", at_level(problem, share)) for share in (0.1, 0.01)]


def table_1(smoke: bool) -> list[tuple[str, Problem]]:
    """California housing with nuisance variables and all interactions."""
    try:
        data = load("california")
    except FileNotFoundError as error:
        print(f"table 1 left out: {error}")
        return []
    rng = np.random.default_rng(0)
    rows = slice(0, 500 if smoke else None)
    main = np.column_stack([data.X[rows], rng.standard_normal((data.X[rows].shape[0], 20))])
    main = standardized(main)
    design = Polynomial.interactions(main)
    X = standardized(np.asarray(design.gather(np.arange(design.shape[1]))))
    y = standardized(np.asarray(data.y[rows], dtype=np.float64)[:, None])[:, 0]
    n = y.size
    norm = Hierarchy("weak")
    return [
        (f"table 1, lambda {value:g}", problem_of(X, y, norm, "penalized", n * value))
        for value in (LAMBDAS[:2] if smoke else LAMBDAS)
    ]


def standardized(X: Array) -> Array:
    """Return columns of mean 0 and variance 1, in Fortran order."""
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


def seconds_to(result: Result, goal: float) -> float:
    """Return when the gap was first proved, NaN where it never was."""
    return next((r.seconds for r in result.history if r.relative_gap <= goal), math.nan)


def raced(problem: Problem, method: Method, goal: float, limit: float, repeats: int) -> Any:
    """Return the row of one method: medians over runs, one run only where it was cut."""
    results = []
    for turn in range(repeats):
        if turn and results[0].status.name == "TIME_LIMIT":
            break
        stop = RelativeGap(goal) | Seconds(limit) | Iterations(10**7)
        results.append(run(problem, method.make(), stop))
    last = results[-1]
    state = last.state
    steps = getattr(state, "master_steps", 0)
    atoms = getattr(state, "atoms", None)
    times = {
        f"s_to_{value:g}": float(np.median([seconds_to(r, value) for r in results]))
        for value in GOALS
    }
    return {
        "method": method.name,
        **times,
        "passes": last.passes,
        "relative_gap": last.relative_gap,
        "objective": last.objective,
        "selected": last.columns.size,
        "steps_a_call": steps / max(last.iterations, 1) if steps else math.nan,
        "atoms": -1 if atoms is None else atoms.size,
        "runs": len(results),
        "ended": last.status.name,
    }


def race(name: str, experiments: list[Callable[[bool], list[tuple[str, Problem]]]]) -> None:
    """Race all methods on each problem, one after the other."""
    options = Options.parse(__doc__)
    with Table(name, options) as table:
        for experiment in experiments:
            goal = GOALS[0] if experiment is table_1 else GOALS[1]
            for label, problem in experiment(options.smoke):
                limit = 0.5 if options.smoke else 60.0  # ours, which comes first
                for method in METHODS:
                    if problem.regularizer.form not in method.forms:
                        continue
                    row = raced(problem, method, goal, limit, options.times(3))
                    table.add(problem=label, limit_s=limit, **row)
                    if method is METHODS[0] and not options.smoke:
                        limit = max(LEAST_LIMIT_S, TIMES_OURS * row[f"s_to_{goal:g}"])
                        limit = min(limit, MOST_LIMIT_S)


if __name__ == "__main__":
    race("paper_v", [figure_2, figure_3, figure_5])
