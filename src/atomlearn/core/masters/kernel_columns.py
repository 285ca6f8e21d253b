"""The columns of a block in the form in which the kernel ``newton_qp`` reads them."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock, distinct_columns
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.lifted import RepeatedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.losses.free_columns import free_columns
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


def columns_and_offsets(problem: Problem, block: Block) -> tuple[Any, Array | None]:
    """Return columns C that the kernel reads, and offsets o (m,): ``block`` is C - 1 o'.

    C is None if the kernel cannot read the block. o is None if nothing is subtracted. Sparse
    columns that are centered stay sparse: an intercept of ``problem`` absorbs what is subtracted.
    """
    free = free_columns(problem.loss)
    has_intercept = problem.fit_intercept if free is None else free.intercept
    offsets = None
    if has_intercept:
        block, offsets = uncentered(block)
    return columns_for_kernel(block), offsets


@singledispatch
def uncentered(block: Block) -> tuple[Block, Array | None]:
    """Return a block A, and offsets o (m,) with ``block`` = A - 1 o'; None if there are none."""
    return block, None


@uncentered.register
def _uncentered(block: CenteredBlock) -> tuple[Block, Array | None]:
    """Return the sparse columns of ``block`` and what is subtracted from each."""
    return block.inner, block.offsets


@uncentered.register
def _uncentered_repeated(block: RepeatedBlock) -> tuple[Block, Array | None]:
    """Return the features of ``block`` without their offsets, repeated in the same way."""
    base, offsets = uncentered(block.base)
    if offsets is None:
        return block, None
    return RepeatedBlock(base, block.features, block.positions), offsets[block.positions]


@uncentered.register
def _uncentered_cached(block: CachedBlock) -> tuple[Block, Array | None]:
    """Return the block inside the cache without its offsets."""
    return uncentered(block.inner)


@singledispatch
def columns_for_kernel(block: Block) -> Any:
    """Return the columns of ``block`` in the form that the kernel ``newton_qp`` reads.

    It is one dense or sparse array (n_samples, m). None if the block does not store such an array
    and is too large to make one.
    """
    stored = block.stored()
    if stored is None and math.prod(block.shape) <= TUNING.column_entries:
        return block.dense()
    return stored


@columns_for_kernel.register
def _of_repeated(block: RepeatedBlock) -> Any:
    """Return the columns of a block of repeated features; see ``columns_for_kernel``.

    ``block.base`` has each feature once, and ``block.positions`` the feature of each column in it.
    """
    stored = columns_for_kernel(block.base)
    if stored is None or np.array_equal(block.positions, np.arange(block.features.size)):
        return stored
    return columns_for_kernel(block.base.gather(block.positions))


@columns_for_kernel.register
def _of_cached(block: CachedBlock) -> Any:
    """Return the columns of the block inside the cache; see ``columns_for_kernel``."""
    return columns_for_kernel(block.inner)


def reads(problem: Problem, block: Block) -> bool:
    """Return whether the kernel can read the columns of ``block`` and the unpenalized columns.

    A basis of the unpenalized columns of ``problem`` must fit into memory.
    """
    free = free_columns(problem.loss)
    if free is not None and math.prod(free.columns.shape) > TUNING.gram_entries:
        return False
    base, _ = distinct_columns(block)
    return block.shape[1] > 0 and columns_and_offsets(problem, base)[0] is not None
