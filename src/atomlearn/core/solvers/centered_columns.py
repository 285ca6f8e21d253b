"""Columns with large means taken off, where an intercept takes them up, or nothing has to.

With an intercept, f(X w + b) is f((X - 1 m')w + b') with b = b' - m'w, for any m: the same problem.
But a year, or an altitude, is hundreds of times its spread; taken off, steps over such columns are
as short, and lose as few digits, as over any others. Where adding a number to all predictions
changes nothing (Cox), nothing has to be given back.
"""

from __future__ import annotations

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.interfaces import Block, Columns
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Lengths


def centered_columns(problem: Problem, columns: Columns) -> tuple[Block, Lengths]:
    """Return these columns, with large means taken off where f allows that, and lengths.

    Only dense columns whose mean is beyond their spread: others would gain nothing.
    """
    gathered = problem.design.gather(columns)
    block, places = gathered.distinct()
    counted = problem.counted
    squares = block.squared_norms(counted)
    lengths, nothing = np.sqrt(squares)[places], np.zeros(columns.size)
    # Scores of columns that the design centers itself are sums over the columns before.
    scored = lengths + np.sqrt(block.shape[0]) * problem.design.taken_off(columns)
    if block.is_sparse or block.stored() is None:
        return gathered, Lengths(scored, scored, nothing)
    allowed = problem.fit_intercept or problem.loss.task == "survival"
    if not (allowed and columns.size):
        return gathered, Lengths(scored, lengths, nothing)
    means = block.transpose_dot(problem.weight) / float(problem.weight.sum())
    # Of weighted samples the mean may not be the nearest constant: then this is a bit too often.
    large = 2.0 * block.shape[0] * means * means > squares
    if not large.any():
        return gathered, Lengths(scored, lengths, nothing)
    offsets = np.where(large, means, 0.0)
    block = DenseBlock(np.asfortranarray(block.dense() - offsets))
    taken_up = offsets[places] if problem.fit_intercept else nothing
    summed = np.sqrt(block.squared_norms(counted))[places]
    return gathered.with_distinct(block), Lengths(scored, summed, taken_up)


def appended(
    block: Block, lengths: Lengths, more: Block, further: Lengths
) -> tuple[Block, Lengths]:
    """Return the columns followed by others, and the lengths of both.

    What is a feature of the block already stays that column, with the offset taken off there,
    which may differ in its last bit from the one taken off when it was gathered again.
    """
    block, lengths = block.append(more), lengths.append(further)
    places = block.distinct()[1]
    first = np.zeros(block.n_distinct, dtype=np.int64)
    first[places[::-1]] = np.arange(places.size)[::-1]
    return block, lengths.take(first[places])
