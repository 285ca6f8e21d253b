"""Columns with large means taken off, where an intercept takes them up, or nothing has to.

With an intercept, f(X w + b) is f((X - 1 m')w + b') with b = b' - m'w, for any m: the same problem.
But a year, or an altitude, is hundreds of times its spread; taken off, steps over such columns are
as short, and lose as few digits, as over any others. Where adding a number to all predictions
changes nothing (Cox), nothing has to be given back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.interfaces import Block
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Lengths

Columns = NDArray[np.int64]


def centered_columns(problem: Problem, columns: Columns) -> tuple[Block, Lengths]:
    """Return these columns, with large means taken off where f allows that, and lengths.

    Only dense columns whose mean is beyond their spread: others would gain nothing.
    """
    block = problem.design.gather(columns)
    squares = block.squared_norms()
    lengths, nothing = np.sqrt(squares), np.zeros(columns.size)
    # Scores of columns that the design centers itself are sums over the columns before.
    scored = lengths + np.sqrt(block.shape[0]) * problem.design.taken_off(columns)
    if block.stored() is None:
        return block, Lengths(scored, scored, nothing)
    allowed = problem.fit_intercept or problem.loss.shift_invariant
    if not (allowed and columns.size):
        return block, Lengths(scored, lengths, nothing)
    means = block.transpose_dot(problem.weight) / float(problem.weight.sum())
    # Of weighted samples the mean may not be the nearest constant: then this is a bit too often.
    large = 2.0 * block.shape[0] * means * means > squares
    if not large.any():
        return block, Lengths(scored, lengths, nothing)
    offsets = np.where(large, means, 0.0)
    block = DenseBlock(np.asfortranarray(block.dense() - offsets))
    taken_up = offsets if problem.fit_intercept else nothing
    return block, Lengths(scored, np.sqrt(block.squared_norms()), taken_up)
