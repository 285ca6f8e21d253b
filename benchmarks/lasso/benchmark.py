"""Lasso and l1-logistic regression: ours against celer, skglm, adelie and scikit-learn.

Dense: n = 1000, p = 100,000, AR(0.5) columns, 100 true features; sparse: n = 20,000, p = 500,000,
like text. How they are compared: harness/contest.py.
"""

from __future__ import annotations

from benchmarks.harness import Options, Table
from benchmarks.harness.contest import contest
from benchmarks.lasso.problems import FULL, SMOKE
from benchmarks.lasso.solvers import SOLVERS


def main() -> None:
    """All problems, one after the other."""
    options = Options.parse(__doc__)
    problems = SMOKE if options.smoke else FULL
    missing = sorted({s.package for s in SOLVERS if not s.is_installed()})
    with Table("lasso", options) as table:
        table.note(not_installed=missing or "none")
        for problem in problems:
            for row in contest(problem, SOLVERS, options.times(5)):
                table.add(problem=str(problem), **row)


if __name__ == "__main__":
    main()
