"""hold_out: norm and level chosen on rows set aside, and the very fit that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.norms.registry import as_norm
from atomlearn.core.paths.path import path
from atomlearn.core.problem.result import Result
from atomlearn.losses import as_loss


@dataclass(frozen=True, slots=True)
class HoldOut:
    """What was chosen, and all that it was chosen from.

    result : the fit on the training rows that scored best, as it was: no re-fit on all rows;
    norm, level : its own; scores : (n_norms, n_levels) on the rows set aside; levels : (n_norms,
    n_levels), the most regularized first; norms : the candidates.

    References
    ----------
    [A] section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.paths import hold_out
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> hold_out(X, y, X, y, levels=[1.0, 0.1]).level
    0.1
    """

    result: Result
    norm: Norm
    level: float
    scores: Array
    levels: Array
    norms: tuple[Norm, ...]


def hold_out(
    X: object,
    y: object,
    X_validation: object,
    y_validation: object,
    *,
    norms: str | Norm | Sequence[str | Norm] = "l1",
    loss: str | Loss = "squared",
    **settings: Any,
) -> HoldOut:
    """Fit a path for each norm, score every level on the rows set aside, keep the best fit.

    The protocol of [A] section 5: parameters are chosen on a validation set, and the fit on the
    training set is the one that is tested, while cross-validated estimators fit all rows again.

    Parameters
    ----------
    X, y : the training rows
    X_validation, y_validation : the rows set aside
    norms : norm, or sequence of norms
    loss : name or Loss
        Its score is what counts: R^2, or accuracy and, of equal ones, the smaller loss.
    **settings
        As ``paths.path`` takes them: form, levels, tau, intercept, gap, ...

    References
    ----------
    [A] section 5.

    Examples
    --------
    >>> from atomlearn import norms
    >>> from atomlearn.datasets import make_zou_hastie
    >>> from atomlearn.paths import hold_out
    >>> data = make_zou_hastie(seed=0)
    >>> rest = data.X_validation, data.y_validation
    >>> both = ["l1", norms.KSupport(15)]
    >>> hold_out(data.X, data.y, *rest, norms=both, form="squared", n_levels=10).norm
    KSupport(k=15, groups=None)
    """
    candidates = [norms] if isinstance(norms, str | Norm) else list(norms)
    known = tuple(as_norm(norm) for norm in candidates)
    design, the_loss = as_design(X_validation), as_loss(loss)
    target = the_loss.check_target(y_validation)
    if target.shape[0] != design.shape[0]:
        raise ValueError(
            f"hold_out: X_validation has {design.shape[0]} rows and y_validation has "
            f"{target.shape[0]} targets; they must describe the same samples"
        )
    ones = np.ones(target.shape[0])
    found, keys = [], []
    for norm in known:
        fits = path(X, y, loss=the_loss, norm=norm, **settings)
        found.append(fits)
        decisions = [fit.predict(design) for fit in fits.results]
        keys.append(
            [(the_loss.score(target, z, ones), -the_loss.value(target, z, ones)) for z in decisions]
        )
    best = max(
        ((key, -i, -j) for i, row in enumerate(keys) for j, key in enumerate(row)),
    )
    i, j = -best[1], -best[2]
    scores = np.array([[key[0] for key in row] for row in keys])
    levels = np.array([fits.levels for fits in found])
    return HoldOut(found[i].results[j], known[i], float(levels[i, j]), scores, levels, known)
