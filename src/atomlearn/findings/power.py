"""power: statistical power of a feature selector on a given X, by simulated targets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from atomlearn._support import whole_number
from atomlearn.core import Array, as_design, dense_part
from atomlearn.estimators.tables import table_as_numbers
from atomlearn.findings.precision import standardized
from atomlearn.findings.stability import selected_by


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """The share of features with an effect that is found, and the false share of those found.

    Attributes
    ----------
    sizes : (m,) float64
        Effect per standard deviation of the feature, in standard deviations of the noise (log odds
        for classes).
    found : (m,) float64
        True positive rate.
    found_error : (m,) float64
        Standard error of ``found``, over the draws.
    false : (m,) float64
        False discovery proportion, averaged over the draws.
    n_true : int
        Number of features with an effect.
    n_draws : int
        Simulated targets per size.
    """

    sizes: Array
    found: Array
    found_error: Array
    false: Array
    n_true: int
    n_draws: int

    def __str__(self) -> str:
        """Return a heading and one line per effect size: the shares found and false."""
        head = f"of {self.n_true} features with an effect, in targets made up on this X:"
        lines = [
            f"effect {size:.3g}: {found:.0%} found (+-{error:.0%}), {false:.0%} of those told false"
            for size, found, error, false in zip(
                self.sizes, self.found, self.found_error, self.false, strict=True
            )
        ]
        return "\n".join([head, *lines])


def power(
    selector: Any,
    X: Any,
    sizes: Sequence[float] = (0.1, 0.2, 0.3, 0.5, 0.8),
    *,
    n_true: int = 10,
    n_draws: int = 20,
    classes: bool = False,
    rng: Any = 0,
) -> PowerCurve:
    """Return the power of a selector at each effect size, simulated with targets made from X.

    Parameters
    ----------
    selector : estimator that selects, such as ``KnockoffSelector(fdr=0.1)`` or an l1 fit
        It is fitted anew to each target.
    X : (n_samples, n_features)
        The data to select from, whose rows and correlations the simulation keeps. Words, dates and
        gaps of a data frame become numbers as in the estimators; effects are of these columns.
    sizes : sequence of float
        The effects to simulate, per standard deviation of the feature, see ``PowerCurve``.
    n_true : int
        Number of features with an effect. They and the signs of the effects are drawn anew for each
        target; on average half of the effects are negative.
    n_draws : int
        Targets of each size.
    classes : bool
        Whether targets are of two classes; else numbers with normal noise.
    rng : int or Generator
        Seed of the simulations.

    Notes
    -----
    An empty selection is informative only if an effect would have been found: read the curve at the
    size of effect that matters to you. The simulation assumes linear effects, the distribution of
    the noise, and the number of true features. For real targets these are unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import KnockoffSelector
    >>> from atomlearn.findings import power
    >>> X = np.random.default_rng(0).standard_normal((200, 60))
    >>> curve = power(KnockoffSelector(fdr=0.2, random_state=0), X, [0.05, 0.8], n_draws=3)
    >>> bool(curve.found[1] > 0.9 > 0.3 > curve.found[0])
    True
    """
    table = table_as_numbers(X)
    X = X if table is None else dense_part(table, np.arange(table.shape[1]))
    design = as_design(X)
    effect_sizes = np.sort(np.asarray(sizes, dtype=np.float64))
    n_rows, n_columns = design.shape
    n_true, n_draws = (
        whole_number("power", name, count)
        for name, count in (("n_true", n_true), ("n_draws", n_draws))
    )
    if n_true > n_columns or not effect_sizes.size or not (effect_sizes > 0).all():
        raise ValueError(
            f"power needs sizes > 0 and n_true of at most the number of columns; got sizes "
            f"{sizes!r}, n_true={n_true} and {n_columns} columns"
        )
    random = np.random.default_rng(rng)
    shares = np.zeros((effect_sizes.size, n_draws, 2))
    # Each draw has its true features, signs and noise; only the size of the effect varies within
    # it.
    for draw in range(n_draws):
        true = np.sort(random.choice(n_columns, n_true, replace=False))
        columns = standardized(dense_part(design, true))[0]
        effect = columns @ random.choice([-1.0, 1.0], n_true)
        noise = random.standard_normal(n_rows)
        uniforms = random.random(n_rows)
        for index, size in enumerate(effect_sizes):
            score = size * effect
            y = (uniforms < expit(score)).astype(np.int64) if classes else score + noise
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                selected = selected_by(clone(selector).fit(X, y))[0]
            hits = int(selected[true].sum())
            n_selected = int(selected.sum())
            shares[index, draw] = hits / n_true, (n_selected - hits) / max(n_selected, 1)
    found, false = shares.mean(axis=1).T
    error = shares[:, :, 0].std(axis=1, ddof=min(1, n_draws - 1)) / np.sqrt(n_draws)
    return PowerCurve(effect_sizes, found, error, false, n_true, n_draws)
