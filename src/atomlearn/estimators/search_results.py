"""Search: the held-out scores at one l1_ratio, and the table of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn.core import Array, CrossValidation, Problem


@dataclass(frozen=True, slots=True)
class Search:
    """The held-out scores of all norms and alphas at one l1_ratio, and the problems of all rows."""

    l1_ratio: float
    problems: Sequence[Problem]
    scores: CrossValidation

    @property
    def alphas(self) -> Array:
        """Alphas, or radii, (n_norms, n_alphas)."""
        return self.scores.levels / (self.l1_ratio or 1.0)

    def best_mean(self) -> float:
        """Return the highest mean score, minus infinity if none is known."""
        means = self.scores.mean
        return float(np.where(np.isfinite(means), means, -np.inf).max())

    def table(self) -> dict[str, Any]:
        """Return ``cv_results_`` of this l1_ratio."""
        table = replace(self.scores, levels=self.alphas).table()
        for params in table["params"]:
            params["l1_ratio"] = self.l1_ratio
        table["param_l1_ratio"] = np.full(len(table["params"]), self.l1_ratio)
        return table


def joined_tables(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one table of several, with the ranks of all scores together.

    A fold that the time limit left out of one of them is left out of all.
    """
    if len(tables) == 1:
        return tables[0]
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    joined = {key: np.concatenate([table[key] for table in tables]) for key in keys}
    joined["params"] = joined["params"].tolist()
    means = np.where(np.isfinite(joined["mean_test_score"]), joined["mean_test_score"], -np.inf)
    joined["rank_test_score"] = 1 + np.array([(means > mean).sum() for mean in means])
    return joined
