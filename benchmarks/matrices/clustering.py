"""Spectral clustering of digits: the affinity of matrix pursuit against nearest neighbours.

MNIST at 14 x 14 (100 a digit) and USPS (200 a digit), draws of unit-norm images. Ours is
|W| + |W|' of min 1/2 ||X - X W||^2 + lambda ||vec W||_k^2, lambda = 20 as in [L] and 2: the larger
one leaves digits without neighbours where k is small beside their number. The other affinity is the
symmetric graph of ten nearest neighbours, scikit-learn's own. Accuracy under the best matching of
clusters to digits (Hungarian), and normalised mutual information; components of the graph, median.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import SpectralClustering
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import kneighbors_graph

from atomlearn.norms import KSupport
from benchmarks.harness import Options, Table
from benchmarks.matrices.digits import Digits
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
#: 2 lambda: the squared form has level / 2.
LEVELS = (40.0, 4.0)
KS = (4000, 8000, 12_000)


def accuracy(truth: Labels, found: Labels) -> float:
    """Return the share that the best matching of clusters to classes gets right."""
    counts = np.zeros((10, 10))
    np.add.at(counts, (truth, found), 1.0)
    return float(counts[linear_sum_assignment(-counts)].sum() / truth.size)


def clusters(affinity: str, X: Array, seed: int) -> Labels:
    """Return ten clusters of the rows of X, or of the affinity X itself."""
    method = SpectralClustering(10, affinity=affinity, n_neighbors=10, random_state=seed)
    return np.asarray(method.fit_predict(X), dtype=np.int64)


def pursued(X: Array, k: int, level: float) -> Array:
    """Return |W| + |W|' for the columns of X."""
    fit = solve_sum(X, X, norm=KSupport(k), form="squared", level=level, tol=1e-4)
    W = np.abs(fit.coef.reshape(X.shape[1], X.shape[1]))
    np.fill_diagonal(W, 0.0)
    return np.asarray(W + W.T)


def main() -> None:
    """One row for each data set and affinity."""
    options = Options.parse(__doc__)
    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    each, ks = (10, (300,)) if options.smoke else (None, KS)
    with Table("clustering", options) as table:
        for name in ("mnist",) if options.smoke else ("mnist", "usps"):
            digits = Digits(name)
            scores: dict[str, list[tuple[float, float, int]]] = {}
            for seed in range(options.times(10, 2)):
                X, truth = digits.draw(seed, each)
                found = {"10 nearest neighbours": clusters("nearest_neighbors", X.T, seed)}
                near = kneighbors_graph(X.T, 10, include_self=True)
                parts = {"10 nearest neighbours": int(connected_components(near)[0])}
                for level, k in itertools.product(LEVELS, ks):
                    W, name_ = pursued(X, k, level), f"pursuit, lambda {level / 2:g}, k = {k}"
                    found[name_] = clusters("precomputed", W, seed)
                    parts[name_] = int(connected_components(W)[0])
                for affinity, labels in found.items():
                    nmi = float(normalized_mutual_info_score(truth, labels))
                    score = accuracy(truth, labels), nmi, parts[affinity]
                    scores.setdefault(affinity, []).append(score)
            for affinity, values in scores.items():
                table.add(data=name, affinity=affinity, **summary(np.array(values)))


def summary(values: Array) -> dict[str, Any]:
    """Return means and standard deviations over the draws."""
    (mean, nmi, _), (spread, nmi_spread, _) = values.mean(axis=0), values.std(axis=0)
    return {
        "draws": values.shape[0],
        "accuracy": float(mean),
        "accuracy_spread": float(spread),
        "nmi": float(nmi),
        "nmi_spread": float(nmi_spread),
        "components": float(np.median(values[:, 2])),
    }


if __name__ == "__main__":
    main()
