"""Columns far from zero: what do offsets cost, for all losses, norms and forms?

python -m benchmarks.certificate.uncentered benchmarks/results/uncentered.csv
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from atomlearn import losses, norms
from atomlearn.core.interfaces.scores import ArrayScores
from tests.oracles.sums import solve_sum

OFFSETS = (0.0, 1e3, 1e4, 1e6, 1e8)
ROWS, COLUMNS = 60, 20
HEADER = ("loss", "norm", "form", "offset", "status", "relative_gap", "seconds", "passes")


def main() -> None:
    """Write one row a solve: its status, gap, seconds of the processor and passes."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    base = rng.standard_normal((ROWS, COLUMNS))
    z, noise = base[:, 0] - base[:, 1], rng.standard_normal(ROWS)
    plain, counts = z + 0.5 * noise, rng.poisson(np.exp(0.5 * z)).astype(float)
    signs = np.where(plain > 0, 1.0, -1.0)
    targets = {
        "squared": plain, "huber": plain, "quantile": plain, "logistic": signs,
        "squared_hinge": signs, "poisson": counts, "gamma": np.exp(0.5 * z + 0.3 * noise),
        "tweedie": counts, "negative_binomial": counts,
    }  # fmt: skip
    others = {
        "tweedie": losses.Tweedie(1.5), "huber": losses.Huber(1.0),
        "negative_binomial": losses.NegativeBinomial(1.0),
    }  # fmt: skip
    overlapping = [list(range(j, min(j + 4, COLUMNS))) for j in range(0, COLUMNS, 2)]
    gauges = {
        "l1": norms.L1(), "l2": norms.L2(), "ksupport": norms.KSupport(5),
        "groups": norms.Groups(np.arange(COLUMNS) // 4),
        "owl": norms.OWL(np.linspace(2, 1, COLUMNS)),
        "latent": norms.LatentGroups(overlapping), "linf": norms.LInf(),
    }  # fmt: skip
    with Path(sys.argv[1]).open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(HEADER)
        for loss, y in targets.items():
            for name, norm in gauges.items():
                v = y - y.mean()
                polar, value = norm.on(COLUMNS).polar(ArrayScores(base.T @ v)), v @ v / 2
                for form, amount in {
                    "penalized": {"level": 0.1 * polar},
                    "squared": {"level": 0.1 * polar**2 / value},
                    "constrained": {"radius": 0.5 * value / polar},
                }.items():
                    for offset in OFFSETS:
                        began = time.process_time()
                        r = solve_sum(base + offset, y, loss=others.get(loss, loss), norm=norm,
                                  form=form, fit_intercept=True, tol=1e-6, time_limit=1.0,
                                  **amount)  # fmt: skip
                        spent = time.process_time() - began
                        out.writerow(
                            [
                                loss,
                                name,
                                form,
                                f"{offset:.0e}",
                                r.status.name,
                                f"{r.relative_gap:.1e}",
                                f"{spent:.4f}",
                                r.passes,
                            ]
                        )


if __name__ == "__main__":
    main()
