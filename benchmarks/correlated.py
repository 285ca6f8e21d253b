"""Squared k-support regression on correlated columns: ours against FISTA with the same prox.

The regression of [A] on n = 1000 samples of p = 100,000 AR(0.9) columns; k = 10, 100, 500; levels
0.3, 0.03 and 0.003 of the largest useful one. Both to a proved relative gap of 1e-6; FISTA gets
at most 12 times our time (and at least a few seconds), and its row says what gap it reached then.
"""

from __future__ import annotations

from atomlearn.datasets import make_correlated
from atomlearn.designs import as_design
from atomlearn.losses import Squared
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, ColumnGeneration
from benchmarks.harness import Options, Table, race
from benchmarks.ours import Ours, at_level

LEVELS = (0.3, 0.03, 0.003)
#: FISTA's time over ours, and the least it gets in seconds.
PATIENCE, LEAST_S = 12.0, 5.0


def main() -> None:
    """Race on nine problems."""
    options = Options.parse(__doc__)
    n, p, sizes = (100, 2000, (10, 50)) if options.smoke else (1000, 100_000, (10, 100, 500))
    data = make_correlated(n, p, rho=0.9, n_true=min(100, p // 20), rng=0)
    design = as_design(data.X)
    with Table("correlated", options) as table:
        for k in sizes:
            for fraction in LEVELS:
                regularizer = Regularizer(KSupport(k), "squared", 1.0)
                problem = at_level(Problem.build(design, data.y, Squared(), regularizer), fraction)
                ours = Ours("column generation", problem, ColumnGeneration())
                first = ours.run()
                limit = max(PATIENCE * first.seconds, 0.5 if options.smoke else LEAST_S)
                rival = Ours("FISTA, our prox", problem, FISTA(), limit_s=limit)
                for row in race([ours, rival], options.times(3), first.objective):
                    table.add(k=k, level=fraction, **row)
        rivals = [row for row in table.rows if row["solver"].startswith("FISTA")]
        table.note(
            least_ratio=min(row["ratio"] for row in rivals),
            rivals_cut_short=sum(row["ended"] == "TIME_LIMIT" for row in rivals),
        )


if __name__ == "__main__":
    main()
