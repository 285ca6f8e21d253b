"""Whether exact p-values of the true effects are uniform, with rows few and the spread known.

    python benchmarks/findings/exact_law.py lasso --draws 600
    python benchmarks/findings/exact_law.py subset --draws 40

40 rows, 8 fixed columns of which two have an effect; targets are drawn again and again. Prints the
number of effects that were selected, the p-value of Kolmogorov and Smirnov's test against the
uniform law, how many of the 95% intervals hold the effect among the selected columns, and how many
of the usual ones would.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from scipy.stats import kstest

from atomlearn import AtomicRegressor, SubsetRegressor
from atomlearn.findings import estimates
from atomlearn.findings.carving import truncated
from atomlearn.findings.effects import exact_line
from atomlearn.findings.one_step import FitData


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["lasso", "subset"])
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    X[:, 1] += 0.6 * X[:, 0]
    mean = 0.3 * X[:, 0] + 0.2 * X[:, 3]
    p_values: list[float] = []
    held: list[bool] = []
    usual: list[bool] = []
    for _ in range(options.draws):
        y = mean + rng.standard_normal(40)
        model: Any = AtomicRegressor(alpha=0.15, tol=1e-8)
        if options.kind == "subset":
            model = SubsetRegressor(n_features=2, standardize=True)
        model.fit(X, y)
        if not np.any(model.coef_):
            continue
        found = estimates(model, X, y, how="exact", sigma=1.0)
        Z = X[:, found.columns] - X[:, found.columns].mean(axis=0)
        inverse = np.linalg.inv(Z.T @ Z)
        truth, off = inverse @ Z.T @ mean, inverse @ Z.T @ (y - mean)
        low, high = found.intervals.T
        held += ((low <= truth) & (truth <= high)).tolist()
        line = exact_line(model, X, y, FitData.of(model, X, y, None, None), 1.0)
        for own, column, far in zip(np.diag(inverse), inverse.T, off, strict=True):
            error = float(np.sqrt(own))
            kept = line.same_selection(Z @ column / own, 12 * error)
            p_values.append(truncated(float(far), error, *kept, 0.95)[3])
            usual.append(abs(far) < 1.96 * error)
    print(len(p_values), kstest(p_values, "uniform").pvalue, np.mean(held), np.mean(usual))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
