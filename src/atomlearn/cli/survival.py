"""Survival times after a fit: no intercept, and the baseline hazard in its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from atomlearn.cli.fitting import Fitted
from atomlearn.cli.source import Given
from atomlearn.cli.targets import Target
from atomlearn.core.interfaces import Design, Rows
from atomlearn.estimators.survival import Baseline


def with_baseline(
    fitted: Fitted, design: Design, target: Target, rows: Rows, given: Given
) -> Fitted:
    """Return the model with Breslow's baseline hazard among its settings; others as they are.

    Scores are X w as from Python. The hazard is that of the mean score of the fitted rows, since
    exp(X w) may overflow where columns are far from zero: the cumulative hazard of a row is
    baseline_hazard * exp(score - baseline_score).
    """
    if not target.is_survival:
        return fitted
    fitted = replace(fitted, intercepts=np.zeros(1))
    risk = fitted.decisions(design, rows, given.offset)[:, 0]
    middle = float(risk.mean())
    weight = np.ones(rows.size) if given.weight is None else given.weight[rows]
    with np.errstate(over="ignore"):
        baseline = Baseline.of(target.values[rows], risk - middle, weight)
    if not np.isfinite(baseline.cumulative).all():
        return fitted
    found = {
        "baseline_times": baseline.times.tolist(),
        "baseline_hazard": baseline.cumulative.tolist(),
        "baseline_score": middle,
    }
    return replace(fitted, settings=fitted.settings | found)
