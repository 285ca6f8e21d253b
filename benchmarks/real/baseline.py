"""l1 models on a data file, as a user of scikit-learn would write it; prints one line of JSON.

The same rows, the same scaling and the same work as ``atomlearn select``: fit on the training
rows, score the held-out ones, fit on all rows. C is searched first, so that about as many features
are selected; the seconds of that search are given apart.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from atomlearn.cli.scoring import split_rows
from atomlearn.cli.source import DataRoles
from atomlearn.cli.targets import prepare_target
from atomlearn.datasets import read

#: The search for C ends this close to the number of features, or after so many fits.
NEAR, MOST_FITS = 0.02, 20


def model(name: str, C: float) -> Any:
    """Return the l1 model at this C."""
    if name == "svc":
        return LinearSVC(penalty="l1", dual=False, C=C, max_iter=5000, random_state=0)
    return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C, max_iter=5000, random_state=0)


def search(name: str, X: Any, y: Any, wanted: int) -> tuple[float, int]:
    """Return C at which about ``wanted`` features are selected, and the number of fits."""
    low, high, C = 1e-7, 1e3, 1e-2
    best, nearest, fits = C, np.inf, 0
    while fits < MOST_FITS and nearest > NEAR * wanted:
        fits += 1
        found = np.count_nonzero(model(name, C).fit(X, y).coef_)
        if abs(found - wanted) < nearest:
            best, nearest = C, abs(found - wanted)
        low, high = (low, C) if found > wanted else (C, high)
        C = float(np.sqrt(low * high))
    return best, fits


def main() -> None:
    """Read, search, fit, score, fit on all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--model", choices=("svc", "logistic"), required=True)
    parser.add_argument("--n-features", type=int, required=True)
    parser.add_argument("--positive")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table = read(given.data, "y")
    assert table.y is not None
    target = prepare_target(table.y, "y", "classification", given.positive)
    train, test = split_rows(target, 0.25, given.seed, DataRoles())
    y = target.values
    scaler = StandardScaler(with_mean=not sparse.issparse(table.X))
    X = scaler.fit_transform(table.X[train])
    began = time.perf_counter()
    C, fits = search(given.model, X, y[train], given.n_features)
    searched = time.perf_counter() - began
    began = time.perf_counter()
    fitted = model(given.model, C).fit(X, y[train])
    fit_seconds = time.perf_counter() - began
    accuracy = float(fitted.score(scaler.transform(table.X[test]), y[test]))
    everything = model(given.model, C).fit(scaler.fit_transform(table.X), y)
    answer = {
        "selected": int(np.count_nonzero(fitted.coef_)),
        "selected_on_all": int(np.count_nonzero(everything.coef_)),
        "accuracy": accuracy,
        "fit_s": fit_seconds,
        "search_s": searched,
        "search_fits": fits,
        "C": C,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
