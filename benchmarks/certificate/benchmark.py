"""2,000 random problems: is every CONVERGED true, and is the objective that of CVXPY?

Losses x forms x intercept x weights x storage x correlation x norms; a quarter with a ridge term,
a quarter in float32. Asked for: a relative gap of 1e-6.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.certificate.convex import optimum
from benchmarks.certificate.problems import FORMS, LOSSES, NORMS, Drawn, draw
from benchmarks.harness import Options, Table
from tests.oracles.sums import solve_sum

GAP = 1e-6
#: Rounding of the check itself, relative to the gap asked for.
SLACK = 1e-3


def main() -> None:
    """Solve and check them all; print what was confirmed."""
    options = Options.parse(__doc__)
    count = 72 if options.smoke else 2000
    with Table("certificate", options, quiet=True) as table:
        began = time.monotonic()
        for drawn in draw(count):
            table.add(**_checked(drawn))
            if len(table.rows) % 200 == 0:
                print(f"{len(table.rows)} problems, {time.monotonic() - began:.0f} s", flush=True)
        table.note(**_summary(table.rows))
    with Table("certificate_summary", options) as summary:
        for name, values in (("loss", LOSSES), ("form", FORMS), ("norm", NORMS)):
            for value in values:
                part = [row for row in table.rows if row[name] == value]
                summary.add(of=value, **_summary(part))


def _checked(drawn: Drawn) -> dict[str, Any]:
    """Solve one problem, and check what is claimed of it; its seed gives back all else of it."""
    plain = drawn.plain
    result = solve_sum(drawn.X, plain.y, tol=GAP, max_iter=300, **drawn.arguments)
    w = np.zeros(plain.X.shape[1])
    w[result.columns] = result.weights
    objective, gap = plain.objective_and_gap(w, result.intercept)
    exact = optimum(plain) if plain.X.shape[1] <= 40 else float("nan")
    return {
        "seed": drawn.seed,
        "loss": plain.loss,
        "form": plain.form,
        "norm": plain.ball.kind,
        "k": plain.ball.k,
        "status": result.status.name,
        "seconds": result.seconds,
        "passes": result.passes,
        "claimed_gap": result.relative_gap,
        "true_gap": gap / objective,
        "objective_error": abs(objective - result.objective) / objective,
        "cvxpy_error": (objective - exact) / exact,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts and the worst of each error."""
    claimed = [row for row in rows if row["status"] == "CONVERGED"]
    confirmed = [row for row in claimed if row["true_gap"] <= GAP * (1 + SLACK)]
    compared = [row["cvxpy_error"] for row in rows if not np.isnan(row["cvxpy_error"])]
    others = sorted({row["status"] for row in rows} - {"CONVERGED"})
    return {
        "problems": len(rows),
        "converged": len(claimed),
        "confirmed": len(confirmed),
        "refuted_seeds": [row["seed"] for row in claimed if row not in confirmed],
        "others": {name: sum(row["status"] == name for row in rows) for name in others},
        "worst_true_gap": max((row["true_gap"] for row in claimed), default=float("nan")),
        "worst_objective_error": max(row["objective_error"] for row in rows),
        "with_cvxpy": len(compared),
        "worst_above_cvxpy": max(compared, default=float("nan")),
        "worst_below_cvxpy": min(compared, default=float("nan")),
        "seconds": sum(row["seconds"] for row in rows),
    }


if __name__ == "__main__":
    main()
