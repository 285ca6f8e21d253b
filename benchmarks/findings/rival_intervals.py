"""Intervals of hidimstat and of MAPIE beside ours, on the same draws.

    pip install hidimstat mapie
    python benchmarks/findings/rival_intervals.py --draws 10 --seconds 280

hidimstat's desparsified lasso estimates all columns, ours those six that were named; MAPIE's cross
conformal intervals fit a lasso of ours, at the alpha that our search chose, once more a fold.
Results: rival_intervals.csv, a row a draw: who, covered, median width, processor seconds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from coverage import draw, model_of
from hidimstat import DesparsifiedLasso
from mapie.regression import CrossConformalRegressor
from prediction_coverage import made

from atomlearn import AtomicRegressor
from atomlearn.findings import estimates

NAMED = ("AR .5, n > p", "AR .9, n > p", "AR .5, n < p")
MADE = ("normal noise", "spread grows")


def of_columns(name: str, seed: int) -> list[list[Any]]:
    X, y, truth = draw(name, 5000 + seed)
    without = np.random.default_rng([seed, 77]).choice(np.flatnonzero(truth == 0), 3, replace=False)
    columns = np.concatenate([np.argsort(-np.abs(truth))[[0, 2, 4]], without])
    rows = []
    for who in ("atomlearn", "hidimstat"):
        began = time.process_time()
        if who == "atomlearn":
            low, high = estimates(model_of(name).fit(X, y), X, y, columns).intervals.T
        else:
            other = DesparsifiedLasso(random_state=0)
            other.fit_importance(X, y)
            low, high = (
                np.ravel(side)[columns]
                for side in (other.confidence_bound_min_, other.confidence_bound_max_)
            )
        held = (low <= truth[columns]) & (truth[columns] <= high)
        rows.append([who, held.mean(), np.median(high - low), time.process_time() - began])
    return rows


def of_predictions(name: str, seed: int) -> list[list[Any]]:
    X, y, n, model, _ = made(name, np.random.default_rng([seed, 5]))
    model.fit(X[:n], y[:n])
    fitted = time.process_time()
    low, high = model.predict(X[n:], interval=0.9)[1:]
    rows = [["atomlearn", *_held(y[n:], low, high), time.process_time() - fitted]]
    began = time.process_time()
    alone = AtomicRegressor(alpha=model.alpha_, tol=1e-4)
    rival = CrossConformalRegressor(alone, confidence_level=0.9, cv=5)
    rival.fit_conformalize(X[:n], y[:n])
    ends = rival.predict_interval(X[n:])[1]
    rows.append(["MAPIE", *_held(y[n:], ends[:, 0, 0], ends[:, 1, 0]), time.process_time() - began])
    return rows


def _held(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    return float(np.mean((low <= y) & (y <= high))), float(np.median(high - low))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=280.0)
    options = parser.parse_args()
    ended = time.monotonic() + options.seconds
    path = Path(__file__).parents[1] / "results" / "rival_intervals.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["setting", "seed", "who", "covered", "width", "seconds"])
        for seed in range(options.draws):
            for name in (*NAMED, *MADE):
                if time.monotonic() > ended:
                    return
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows = (of_columns if name in NAMED else of_predictions)(name, seed)
                for who, *numbers in rows:
                    writer.writerow([name, seed, who, *(f"{value:.4g}" for value in numbers)])
                stream.flush()


if __name__ == "__main__":
    main()
