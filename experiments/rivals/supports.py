"""Block proximal descent over supports, the rival of [V] section 4.4 for sparse low rank.

Richard, Obozinski, Vert 2014: W = sum Z_IJ over the supports (I, J) that the search of the norm has
found, min 1/2 ||C - W||^2 + level sum ||Z_IJ||_*, each block minimised over exactly, in turn.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.scores import dense_matrix

Blocks = list[tuple[Columns, Columns, Array]]
#: Sweeps over the blocks before the next support enters, and the share of what is left to gain
#: below which a sweep is the last.
SWEEPS, STANDS = 200, 1e-5


def support_descent(
    C: Array, norm: MatrixNorm, level: float, enough: float, limit_s: float, symmetric: bool = True
) -> tuple[list[float], list[float], Blocks]:
    """Return processor seconds and objectives each time a support enters, and the blocks.

    Parameters
    ----------
    C : array (p, q)
        The matrix to come near to.
    norm : SparsePSD or SparseRankOne
        Whose atoms the supports are of; its ``search`` finds the next one.
    level : float > 0
        Of the gauge.
    enough, limit_s : float
        The run ends at an objective as low as this, or after so many processor seconds.
    symmetric : bool
        I = J, and the blocks are positive semidefinite ([V] Figure 7); False for the (k,q)-trace
        norm.

    References
    ----------
    E. Richard, G. Obozinski, J.-P. Vert 2014, Tight convex relaxations for sparse matrix
    factorization; [V] section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> from experiments.rivals.supports import support_descent
    >>> C = np.zeros((4, 4))
    >>> C[:2, :2] = 1.0
    >>> _, values, blocks = support_descent(C, norms.SparsePSD(2, (4, 4)), 0.5, 0.0, 1.0)
    >>> round(values[-1], 6), len(blocks)
    (0.875, 1)
    """
    began, seconds, values = time.process_time(), [], []
    blocks: Blocks = []
    residual, traces = C.copy(), np.zeros(0)
    objective = 0.5 * float((residual * residual).sum())
    while True:
        seconds.append(time.process_time() - began)
        values.append(objective)
        if objective <= enough or seconds[-1] > limit_s:
            break
        found: Any = norm.search(dense_matrix(residual))
        if found.lower <= level * (1 + 1e-9):
            break
        rows, cols = np.flatnonzero(found.left[:, 0]), np.flatnonzero(found.right[:, 0])
        blocks.append((rows, cols, np.zeros((rows.size, cols.size))))
        traces = np.append(traces, 0.0)
        objective = _swept(residual, blocks, traces, level, objective, enough, symmetric)
    return seconds, values, blocks


def _swept(
    residual: Array,
    blocks: Blocks,
    traces: Array,
    level: float,
    objective: float,
    enough: float,
    symmetric: bool,
) -> float:
    """Minimise over each block in turn until the objective stands; return it."""
    for _ in range(SWEEPS):
        before = objective
        for number, (rows, cols, Z) in enumerate(blocks):
            at = np.ix_(rows, cols)
            new, traces[number] = shrunk(residual[at] + Z, level, symmetric)
            residual[at] += Z - new
            blocks[number] = (rows, cols, new)
        objective = 0.5 * float((residual * residual).sum()) + level * float(traces.sum())
        if before - objective <= STANDS * (objective - enough) or objective <= enough:
            break
    return objective


def shrunk(M: Array, amount: float, symmetric: bool) -> tuple[Array, float]:
    """Return the prox of the trace norm at M, or of the trace over Z >= 0, and its value."""
    if symmetric:
        values, vectors = np.linalg.eigh(0.5 * (M + M.T))
        values = np.maximum(values - amount, 0.0)
        return (vectors * values) @ vectors.T, float(values.sum())
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    s = np.maximum(s - amount, 0.0)
    return (U * s) @ Vt, float(s.sum())
