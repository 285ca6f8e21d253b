"""Spans: a segment tree for sums over the rows at risk at each time, and over times per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atomlearn.core import Array, Rows


@dataclass(frozen=True, slots=True)
class Spans:
    """Segment tree over m event times; each of n rows is at risk in an interval of times.

    Node 1 contains all times, nodes 2 k and 2 k + 1 are the halves of node k, and the leaves are
    single times. The interval (span) of a row is the union of at most 2 log2(m) disjoint nodes.
    Sums over the times of a row, and over the rows at risk at a time, therefore cost O(n log m)
    additions of positive terms. Differences of cumulative sums would be cheaper but lose all digits
    to cancellation if few rows are at risk after many.

    Attributes
    ----------
    rows, nodes : (n_pairs,) int64
        All pairs (row, node) of a row and one of the disjoint nodes whose union is its interval.
    n_rows, n_times : int
        Number of rows and of times.
    """

    rows: Rows
    nodes: Rows
    n_rows: int
    n_times: int

    @classmethod
    def between(cls, first: Rows, last: Rows, n_times: int) -> Self:
        """Return the tree in which row i is at risk at the times first[i], ..., last[i] - 1.

        ``first`` and ``last`` are (n_rows,), with times numbered 0, ..., ``n_times`` - 1.
        """
        width = _width(n_times)
        left = first + width
        right = np.maximum(first, last) + width
        rows = []
        nodes = []
        # From the leaves up, [left, right) is the interval of each row in the nodes of one level.
        # If its first node is a right half, or its last node a left half, the parent is not inside
        # the interval. So this node is added, and the interval becomes shorter by it.
        while np.any(left < right):
            adds_node = (left < right) & (left % 2 == 1)
            rows.append(np.flatnonzero(adds_node))
            nodes.append(left[adds_node])
            left = left + adds_node
            adds_node = (left < right) & (right % 2 == 1)
            right = right - adds_node
            rows.append(np.flatnonzero(adds_node))
            nodes.append(right[adds_node])
            left = left // 2
            right = right // 2
        empty = np.zeros(0, dtype=np.int64)
        return cls(
            np.concatenate([empty, *rows]), np.concatenate([empty, *nodes]), first.size, n_times
        )

    def at_times(self, x: Array) -> Array:
        """Return log sum exp(x_i) over the rows at risk at each time, (n_times,).

        ``x`` has one entry for each row.
        """
        return sums_of_exponentials(self._at_times, x)

    def over_rows(self, x: Array) -> Array:
        """Return log sum exp(x_m) over the times of each row, (n_rows,).

        ``x`` has one entry for each time.
        """
        return sums_of_exponentials(self._over_rows, x)

    def _at_times(self, terms: Array, add: Any) -> Array:
        """Return the sum of ``terms`` (n_rows,) over the rows at risk at each time, (n_times,).

        ``add`` is the ufunc that adds two terms.
        """
        width = _width(self.n_times)
        total = _grouped(terms[self.rows], self.nodes, 2 * width, add)
        start = 1
        while start < width:
            # Rows at risk at all times of a node are at risk at all times of its two halves.
            halves = slice(2 * start, 4 * start)
            total[halves] = add(total[halves], np.repeat(total[start : 2 * start], 2))
            start *= 2
        return total[width : width + self.n_times]

    def _over_rows(self, terms: Array, add: Any) -> Array:
        """Return the sum of ``terms`` (n_times,) over the times of each row, (n_rows,).

        ``add`` is the ufunc that adds two terms.
        """
        width = _width(self.n_times)
        total = np.full(2 * width, _neutral(add))
        total[width : width + self.n_times] = terms
        # The sum of a node is the sum of its two halves.
        start = width // 2
        while start:
            total[start : 2 * start] = add(
                total[2 * start : 4 * start : 2], total[2 * start + 1 : 4 * start : 2]
            )
            start //= 2
        return _grouped(total[self.nodes], self.rows, self.n_rows, add)


def sums_of_exponentials(sums: Callable[[Array, Any], Array], x: Array) -> Array:
    """Return the logarithms of sums of exp(x), for ``x`` (n,), without overflow or underflow.

    ``sums(terms, add)`` computes the sums with the ufunc ``add``: ``np.add`` on exponentials if the
    range of x allows it, else the slower ``np.logaddexp`` on x.
    """
    top = float(x.max())
    # Within this range no exponential underflows.
    if top - float(x.min()) < 600.0:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(sums(np.exp(x - top), np.add)) + top)
    return sums(x, np.logaddexp)


def _width(n_times: int) -> int:
    """Return the number of leaves of the tree: the smallest power of 2 that is at least n_times."""
    return 1 << max(n_times - 1, 0).bit_length()


def _neutral(add: Any) -> float:
    """Return the neutral element of the ufunc ``add``: 0 for np.add, -inf for np.logaddexp."""
    return 0.0 if add is np.add else -np.inf


def _grouped(terms: Array, groups: Rows, n_groups: int, add: Any) -> Array:
    """Return the sum of the terms of each group, (n_groups,), by the ufunc ``add``.

    ``groups`` has the group of each of ``terms``.
    """
    total = np.full(n_groups, _neutral(add))
    add.at(total, groups, terms)
    return total
