"""Every loss of single predictions and of survival against CVXPY: are the gaps true?

    python benchmarks/loss_oracles.py [--problems 1000] [--seconds 1200] [--out benchmarks/results]

Rows are kept as they come, in loss_oracles.csv: what is there is not done again (delete the file to
begin anew), and the summary, loss_oracles.json, is of all of them. Each problem has its own sizes,
norm, form, intercept, weights, ridge term and level. It counts as wrong where the fit does not
converge to 1e-8, where the objective at the point that is given back, computed anew, is not the one
reported, or where CVXPY's optimum lies outside of [objective - gap, objective], by more than
CVXPY's own accuracy (2e-6 relative). Times play no part.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from atomlearn import norms, solvers
from atomlearn.designs import as_design
from atomlearn.losses import Cox, survival_target
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.gauges import gauge_model
from atomlearn.testing.problems import Case, cvxpy_optimum

LOSSES = (
    *("poisson", "gamma", "tweedie", "negative_binomial", "huber", "quantile", "cox"),
    *("squared", "logistic", "squared_hinge"),
)
ACCURACY = 2e-6


def random_norm(rng: np.random.Generator, p: int) -> Any:
    groups = [list(range(i, min(i + 3, p))) for i in range(0, p, 3)]
    choices = [norms.L1(), norms.Groups(groups), norms.KSupport(min(3, p)), norms.L2()]
    return choices[int(rng.integers(len(choices)))]


def cox_terms(y: Any, s: Any, ties: str) -> list[tuple[float, Any, float]]:
    """Return of each sum its weight, its factors c, and its least value, by the textbook."""
    found = []
    for stratum in np.unique(y["stratum"]):
        mine = (y["stratum"] == stratum) & (s > 0)
        for t in np.unique(y["time"][mine & y["event"]]):
            at_risk = mine & (y["entry"] < t) & (y["time"] >= t)
            tied = at_risk & y["event"] & (y["time"] == t)
            k, d = int(tied.sum()), float(s[tied].sum())
            for j in range(k if ties == "efron" else 1):
                omega = d / k if ties == "efron" else d
                least = omega * np.log(d * (1.0 - j / k))
                found.append((omega, s * at_risk * (1.0 - j / k * tied), least))
    return found


def cox_problem(rng: np.random.Generator, form: str, norm: Any, shape: tuple[int, int]) -> Any:
    n, p = shape
    X = rng.standard_normal((n, p))
    time = np.ceil(rng.exponential(np.exp(-X[:, 0])) * 4)
    entry = time - rng.integers(1, 5, n) if rng.random() < 0.5 else None
    y = survival_target(rng.random(n) < 0.7, time, entry, rng.integers(0, 2, n))
    y["event"][int(np.argmax(time))] = True
    s = rng.integers(1, 3, n).astype(float)
    loss = Cox(("efron", "breslow")[int(rng.integers(2))])
    amount = {"penalized": 1.0, "squared": 1.0, "constrained": 0.5}[form]
    regularizer = Regularizer(norm, form, amount)  # type: ignore[arg-type]
    problem = Problem.build(as_design(X), y, loss, regularizer, sample_weight=s)
    w = cp.Variable(p)
    value = -(s * y["event"]) @ (X @ w)
    for omega, c, least in cox_terms(y, s, loss.ties):
        kept = c > 0
        value += omega * cp.log_sum_exp(X[kept] @ w + np.log(c[kept])) - least
    gauge, constraints = gauge_model(cp, problem.regularizer.norm, w)
    if form == "constrained":
        constraints.append(gauge <= amount)
    else:
        value += amount * gauge if form == "penalized" else 0.5 * amount * cp.square(gauge)
    return problem, cp.Problem(cp.Minimize(value), constraints)


def value_at(problem: Any, result: Any) -> float:
    prediction = problem.design.predict(result.coef) + result.intercept
    gauge = problem.regularizer.norm.value(result.coef)
    ridge = 0.5 * problem.tau * float(result.coef @ result.coef)
    smooth = problem.loss.value(problem.y, prediction, problem.weight)
    return float(smooth + ridge + problem.regularizer.value(gauge))


def one(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(8, 40)), int(rng.integers(2, 25))
    loss, norm = LOSSES[seed % len(LOSSES)], random_norm(rng, shape[1])
    form = ("penalized", "squared", "constrained")[int(rng.integers(3))]
    row: dict[str, Any] = {"seed": seed, "loss": loss, "form": form, "norm": type(norm).__name__}
    if loss == "cox":
        problem, program = cox_problem(rng, form, norm, shape)
    else:
        case = Case(
            loss,
            form,  # type: ignore[arg-type]
            bool(rng.integers(2)),
            bool(rng.integers(2)),
            (0.0, 0.4)[int(rng.integers(2))],
            strength=float(rng.choice([0.02, 0.1, 0.5])),
            n_samples=shape[0],
            n_features=shape[1],
            correlation=float(rng.choice([0, 0.9])),
            seed=seed,
        )
        problem, program = case.problem(norm), None
    stop = solvers.stopping.RelativeGap(1e-8) | solvers.stopping.Iterations(300)
    result = solvers.run(problem, solvers.ColumnGeneration(tol=1e-8), stop)
    again = value_at(problem, result)
    try:
        if program is None:
            best = cvxpy_optimum(problem, case.data()[0])
        else:
            best = float(program.solve(solver="CLARABEL"))
    except (cp.error.SolverError, AssertionError):
        return {**row, "outcome": "no oracle"}
    # Where all counts are 0 the infimum 0 is not attained, and the oracle ends at 4e-9.
    slack = ACCURACY * max(abs(best), 1e-2)
    right = result.objective - result.gap - slack <= best <= result.objective + slack
    # Terms of a sum that is 0 round by 1e-15 and more, depending on their order.
    same = abs(again - result.objective) <= 1e-9 * max(1e-4, abs(again))
    outcome = "right" if right and same and result.converged else "wrong"
    return {**row, "outcome": outcome, "relative_gap": result.relative_gap, "passes": result.passes}


FIELDS = ("seed", "loss", "form", "norm", "outcome", "relative_gap", "passes")


def kept(path: Path) -> list[dict[str, str]]:
    """Return the rows of former runs."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary_of(rows: list[dict[str, str]], wanted: int) -> dict[str, Any]:
    """Return the outcomes of each loss, and what was wrong."""
    summary: dict[str, Any] = {"problems": len(rows), "wanted": wanted, "tolerance": 1e-8}
    for loss in LOSSES:
        mine = [row for row in rows if row["loss"] == loss]
        passes = [float(row["passes"]) for row in mine if row["passes"]]
        outcomes = [row["outcome"] for row in mine]
        counts = {name: outcomes.count(name) for name in ("right", "wrong", "no oracle")}
        summary[loss] = {**counts, "median_passes": float(np.median(passes)) if passes else None}
    summary["wrong"] = [row for row in rows if row["outcome"] == "wrong"]
    return summary


def run(problems: int, out: Path, seconds: float = 1e9) -> dict[str, Any]:
    """Solve those problems that are not kept yet, the last seeds first; return the summary."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "loss_oracles.csv"
    done = {int(row["seed"]) for row in kept(path)}
    began = time.monotonic()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in reversed(range(problems)):
            if time.monotonic() - began > seconds:
                break
            if seed not in done:
                writer.writerow(one(seed))
                file.flush()
    summary = summary_of(kept(path), problems)
    (out / "loss_oracles.json").write_text(json.dumps(summary, indent=1) + "\n")
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem after")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    print(json.dumps(run(options.problems, options.out, options.seconds), indent=1))


if __name__ == "__main__":
    main()
