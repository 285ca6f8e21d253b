"""[V]: results behind Figures 2 to 7 and Table 1; processor seconds of one thread.

python -m experiments.vinyes.run [--smoke] [--resume] [part ...], the parts of config.json

Every method runs on the same design, loss and norm, and its gap is certified by the same code after
each step. Methods are cut at the limit of config.json.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import nnls

from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Identity, as_design, from_moments
from atomlearn.losses import Squared
from atomlearn.masters import ActiveSetQP
from atomlearn.norms import Hierarchy, LatentGroups, SparsePSD
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import AtomGeneration, ColumnGeneration, FrankWolfe, run
from experiments.common.run import main
from experiments.common.runs import Runs
from experiments.rivals import BlockCoordinateDescent, CoGEnT
from experiments.rivals.supports import support_descent
from experiments.vinyes import problems
from experiments.vinyes.quadratic_ip import QuadraticIP
from experiments.vinyes.theorems import theorems
from tests.oracles.sums import solve_sum

Array = Any
Config = Mapping[str, Any]
OURS = "Algorithms 1 and 2"


def rays(**settings: Any) -> AtomGeneration:
    """Return [V]'s own method: one atom a step, the active set of Algorithm 2."""
    return AtomGeneration(master=ActiveSetQP(), **settings)


class Clock:
    """Processor seconds, gaps, and what the solver said at each step."""

    def __init__(self, size: float = 0.0) -> None:
        self.began = time.process_time()
        self.size = size
        self.seconds: list[float] = []
        self.gaps: list[float] = []
        self.pivots: list[int] = []
        self.atoms: list[int] = []

    def __call__(self, progress: Any) -> None:
        state = progress.state
        self.seconds.append(time.process_time() - self.began)
        certificate = state.certificate
        scale = self.size or abs(certificate.objective)
        self.gaps.append(max(certificate.gap / max(scale, 1e-300), 1e-16))
        self.pivots.append(int(getattr(state, "master_steps", 0)))
        atoms = getattr(state, "atoms", None)
        self.atoms.append(0 if atoms is None else int(atoms.size))

    def reached(self, goal: float) -> float | None:
        """Return when the gap was first proved, None where it never was."""
        times = zip(self.seconds, self.gaps, strict=True)
        return next((s for s, gap in times if gap <= goal), None)

    def curve(self, points: int = 60) -> list[list[float]]:
        """Return seconds and gaps at so many steps, evenly in the logarithm of the step."""
        last = len(self.seconds)
        kept = np.unique(np.geomspace(1, last, min(points, last)).astype(int)) - 1
        return [[float(f"{of[i]:.4g}") for i in kept] for of in (self.seconds, self.gaps)]


def raced(problem: Problem, solver: Any, goal: float, limit: float, size: float = 0.0) -> Clock:
    """Run one method until the goal is proved, or for ``limit`` processor seconds."""
    clock = Clock(size)
    done = RelativeGap(goal if not size else 1e-9) | Iterations(10**6)

    def enough(progress: Any) -> None:
        reached = size and progress.state.certificate.gap <= goal * size
        if reached or time.process_time() - clock.began > limit:
            raise KeyboardInterrupt  # the run ends here, with what it has

    run(problem, solver, done, [clock, enough])
    return clock


def contest(
    problem: Problem, methods: Mapping[str, Any], config: Config, size: float = 0.0
) -> dict[str, Any]:
    """Race the methods: the seconds to the goal, the least gap, and the curve of each."""
    found: dict[str, Any] = {}
    for label, make in methods.items():
        limit = config["limit"] if label != OURS else config.get("ours", config["limit"])
        clock = raced(problem, make(), config["goal"], limit, size)
        reached = clock.reached(config["goal"])
        found[label] = {"seconds": reached, "limit": limit, "least gap": min(clock.gaps)}
        found[label]["curve"] = clock.curve()
        if label == OURS:
            calls = np.diff(clock.pivots)
            found[label]["pivots"], found[label]["atoms"] = clock.pivots, clock.atoms
            found[label]["pivots a call"] = float(calls.mean()) if calls.size else math.nan
    return found


def algorithm(runs: Runs, config: Config) -> None:
    """Proposition 1 and Algorithm 2: the steps of the paper, one by one, against NNLS."""

    def tried() -> dict[str, Any]:
        worst = max(_own_loop(seed) for seed in range(config["problems"]))
        return {"worst": worst, "problems": config["problems"]}

    runs.piece("algorithm", "against an own loop", tried)


def _own_loop(seed: int) -> float:
    rng, worst = np.random.default_rng(seed), 0.0
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    norm = LatentGroups([[0, 1, 2], [2, 3, 4, 5], [5, 6, 7], [7, 8], [9, 10, 11]])
    level = 0.2 * norm.polar(X.T @ y)
    problem = Problem.build(as_design(X), y, Squared(), Regularizer(norm, "penalized", level))
    solver = AtomGeneration(master=ActiveSetQP(), inner_ratio=1e-12)
    state, atoms, w = solver.start(problem), np.zeros((12, 0)), np.zeros(12)
    for _ in range(8):
        atom = norm.best_atom(X.T @ (y - X @ w))
        new = np.zeros(12)
        new[atom.columns] = atom.values
        if new @ X.T @ (y - X @ w) <= level * (1 + 1e-9):
            break
        atoms = np.column_stack([atoms, new])
        # min 1/2||y - XAc||^2 + level sum c over c >= 0, as NNLS.
        A = X @ atoms
        root = np.linalg.cholesky(A.T @ A + 1e-13 * np.eye(A.shape[1])).T
        c = nnls(root, np.linalg.solve(root.T, A.T @ y - level))[0]
        atoms, c = atoms[:, c > 0], c[c > 0]
        w = atoms @ c
        state = solver.step(problem, state)
        own = np.zeros(12)
        own[state.columns] = state.weights
        worst = max(worst, float(np.abs(own - w).max()))
    return worst


def figure_2(runs: Runs, config: Config) -> None:
    """Group lasso on ill-conditioned columns, against block coordinate descent."""
    methods = {
        OURS: rays,
        "BCD": lambda: BlockCoordinateDescent(newton=False),
        "hyb-BCD": lambda: BlockCoordinateDescent(newton=True),
        "our default": ColumnGeneration,
    }
    for share in config["shares"]:
        for seed in range(config["draws"]):

            def draw(share: float = share, seed: int = seed) -> dict[str, Any]:
                problem = problems.correlated(config["n"], config["p"], share, seed)
                return {"share": share, "methods": contest(problem, methods, config)}

            runs.piece("figure_2", f"lambda {share:g}, draw {seed}", draw)


def figures_3_4(runs: Runs, config: Config) -> None:
    """k-chains, penalized and constrained; pivots and atoms."""
    methods = {
        OURS: rays,
        "FW": lambda: FrankWolfe(step_size="classic"),
        "FW-ls": FrankWolfe,
        "FW-pw": lambda: FrankWolfe(direction="pairwise"),
        "CoGEnT": lambda: CoGEnT(eta=0.5),
    }

    def draw(seed: int, which: int) -> dict[str, Any]:
        both = problems.chains(config["n"], config["p"], config["share"], seed)
        form = ("penalized", "constrained")[which]
        return {"form": form, "methods": contest(both[which], methods, config)}

    for seed in range(config["draws"]):
        for which, form in enumerate(("penalized", "constrained")):
            runs.piece(
                "figures_3_4",
                f"{form}, draw {seed}",
                lambda seed=seed, which=which: draw(seed, which),
            )


def figure_5(runs: Runs, config: Config) -> None:
    """Weak hierarchy: against an interior point on A'QA and against no warm start."""
    methods = {
        OURS: rays,
        "FCFW-ip": lambda: AtomGeneration(master=QuadraticIP()),
        "without warm start": lambda: rays(warm_start=False),
    }

    def draw(seed: int) -> dict[str, Any]:
        problem = problems.hierarchy(config["n"], config["p"], config["share"], seed)
        return {"methods": contest(problem, methods, config)}

    for seed in range(config["draws"]):
        runs.piece("figure_5", f"draw {seed}", lambda seed=seed: draw(seed))


def table_1(runs: Runs, config: Config) -> None:
    """California housing: seconds to a gap of 1e-3 of 1/(2n) ||y - Xw||^2 + ...; Figure 6."""
    methods = {
        OURS: lambda: rays(tol=1e-4),
        "CoGEnT": lambda: CoGEnT(eta=0.5),
        "BCD": lambda: BlockCoordinateDescent(newton=False),
    }

    def draw(seed: int, value: float) -> dict[str, Any]:
        X, y = problems.housing(config["rows"], seed)
        R, t = from_moments(X.T @ X / y.size, X.T @ y / y.size)
        regularizer = Regularizer(Hierarchy("weak"), "penalized", t.size * value)
        small = Problem.build(R, t, Squared(), regularizer)
        # The mean loss of R and t is that of X and y: the gap of the sum over its rows is divided.
        return {"lambda": value, "methods": contest(small, methods, config, float(t.size))}

    for value in config["lambdas"]:
        for seed in range(config["draws"]):
            runs.piece(
                "table_1",
                f"lambda {value:g}, draw {seed}",
                lambda seed=seed, value=value: draw(seed, value),
            )


def figure_7(runs: Runs, config: Config) -> None:
    """Sparse PCA against block proximal descent over supports, with the same search for atoms."""
    p, k = config["p"], config["k"]

    def draw(seed: int, overlap: int, share: float) -> dict[str, Any]:
        C = problems.covariance(p, k, 0.3, seed, overlap)
        norm, level = SparsePSD(k, (p, p)), share * k
        problem = {"X": Identity((p, p)), "y": C.reshape(-1), "norm": norm, "level": level}
        curves: dict[str, Any] = {}
        fits: dict[str, Any] = {}
        for name, solver in (("our default", None), (OURS, rays())):
            seconds, values, began = [], [], time.process_time()

            def watch(
                progress: Any,
                seconds: list[float] = seconds,
                values: list[float] = values,
                began: float = began,
            ) -> None:
                seconds.append(time.process_time() - began)
                # The sum of the losses is solved as their mean.
                values.append(C.size * progress.state.certificate.objective)
                if seconds[-1] > config["limit"]:
                    raise KeyboardInterrupt  # the run ends here, with what it has

            fits[name] = solve_sum(**problem, solver=solver, tol=1e-5, observers=[watch])
            curves[name] = seconds, values
        enough = min(fit.objective for fit in fits.values()) * (1 - 1e-9)
        curves["BCD"] = support_descent(C, norm, level, enough, config["limit"])[:2]
        best = min(min(values) for _, values in curves.values())
        found = {}
        for name, (seconds, values) in curves.items():
            pairs = zip(seconds, values, strict=True)
            reached = next((s for s, v in pairs if v <= best * (1 + 1e-3)), None)
            above = [max(v / best - 1, 1e-12) for v in values]
            found[name] = {"seconds": reached, "curve": [seconds, above]}
        fit = fits["our default"]
        search = fit.gap if fit.search_gap is None else fit.search_gap
        gaps = {"proved gap": fit.gap / best, "search gap": search / best}
        return {"overlap": overlap, "share": share, "methods": found, **gaps}

    for overlap, share in product(config["overlaps"], config["shares"]):
        for seed in range(config["draws"]):
            runs.piece(
                "figure_7",
                f"overlap {overlap}, lambda {share:g} k, draw {seed}",
                partial(draw, seed, overlap, share),
            )


PARTS = {
    "theorems": theorems,
    "algorithm": algorithm,
    "figure_2": figure_2,
    "figures_3_4": figures_3_4,
    "figure_5": figure_5,
    "table_1": table_1,
    "figure_7": figure_7,
}

if __name__ == "__main__":
    main(__file__, PARTS, __doc__)
