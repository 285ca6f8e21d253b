"""Group lasso and latent group lasso: ours against celer, skglm and adelie.

[V]'s Figure 2 data at two levels, its k-chains (rivals on duplicated columns), and n = 2000 x
p = 200,000 in groups of 10 at two levels. How they are compared: harness/contest.py.
"""

from __future__ import annotations

from benchmarks.groups.problems import FULL, SMOKE
from benchmarks.groups.solvers import SOLVERS, Skglm
from benchmarks.harness import Options, Table
from benchmarks.harness.contest import contest


def main() -> None:
    """All problems, one after the other."""
    options = Options.parse(__doc__)
    problems = SMOKE if options.smoke else FULL
    missing = sorted({s.package for s in SOLVERS if not s.is_installed()})
    with Table("groups", options) as table:
        table.note(not_installed=missing or "none")
        for problem in problems:
            # skglm took 387 s for 20,000 groups: over the limit of a call.
            solvers = [s for s in SOLVERS if problem.kind != "large" or s is not Skglm]
            for row in contest(problem, solvers, options.times(5)):
                table.add(problem=str(problem), **row)


if __name__ == "__main__":
    main()
