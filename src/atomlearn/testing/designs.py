"""DesignChecks: what every design must do. Inherit, build one, and pytest runs the rest.

>>> class TestMyDesign(DesignChecks):  # doctest: +SKIP
...     def build(self):
...         X = np.random.default_rng(0).standard_normal((30, 50))
...         return MyDesign(X), X
"""

from __future__ import annotations

import pickle
import warnings
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from atomlearn._support import EPS, TINY
from atomlearn.core import Array, Block, Columns, Counted, Design, RowSubset, part_of


def roundings(shape: tuple[int, ...]) -> float:
    """Return (n + p + 20) eps, a relative rounding bound for sums over the n rows or p columns.

    ``shape`` is (n, p).
    """
    return float((sum(shape) + 20) * EPS)


def in_float64(entries: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ``entries`` of a block as float64; float32 data may be float32 in a block."""
    assert entries.dtype in (np.float32, np.float64)
    return entries.astype(np.float64)


def assert_within(actual: NDArray[np.float64], expected: Array, bound: Array | float) -> None:
    """Assert |actual - expected| <= bound for each entry; the message has the largest excess."""
    actual = np.asarray(actual)
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    excess = np.abs(actual - expected) - bound
    assert not (excess > 0).any(), f"worst excess over the rounding bound: {excess.max()}"


def brute_force_top(z: Array, count: int) -> tuple[Columns, Array]:
    """Return the ``count`` entries of z of largest magnitude, by sorting all, and their positions.

    Ties go to the smaller position.
    """
    order = np.lexsort((np.arange(z.size), -np.abs(z)))[:count]
    return order.astype(np.int64), z[order]


class DesignChecks:
    """Tests that every design must pass. Override ``build``: it returns the design and its array.

    Override ``magnitude``, too, if entries are differences of larger numbers. Bounds on rounding
    errors are proportional to ``_sizes``, its result: the magnitudes of the entries. A design is
    ``listable`` unless it has too many columns to list.
    """

    #: False for designs whose scores cannot all be listed.
    scores_are_storable: bool = True
    #: False for designs that compute the entries of their columns with rounding.
    gathers_exactly: bool = True

    def build(self) -> tuple[Design, Array]:
        """Return a design with at least 2 rows and 8 columns, and the equivalent float64 array.

        Deterministic: two calls give equal results.
        """
        raise NotImplementedError

    def magnitude(self) -> Array:
        """Return, for each entry of the array, the magnitude of the numbers that were added for it.

        The rounding error of an entry is proportional to it.
        """
        return np.abs(self._array)

    @cached_property
    def _array(self) -> Array:
        """The array of ``build``, computed once per test."""
        return self.build()[1]

    @cached_property
    def _sizes(self) -> Array:
        """The result of ``magnitude``, computed once per test."""
        return self.magnitude()

    def bound(
        self, columns: Columns | None = None, left: Array | None = None, right: Array | None = None
    ) -> Array:
        """Return (n + p + 20) eps |left|' M |right|, a bound on the rounding error of a product.

        M are the magnitudes of the entries of these ``columns``; None: all columns. ``left`` or
        ``right`` None: without that factor.
        """
        sizes = self._sizes
        unit = roundings(sizes.shape)
        sizes = sizes if columns is None else sizes[:, columns]
        sizes = sizes if right is None else sizes @ np.abs(right)
        sizes = sizes if left is None else np.abs(left) @ sizes
        bound: Array = unit * sizes + TINY
        return bound

    def vectors(self, n_samples: int) -> list[Array]:
        """Return read-only test vectors v (n_samples,): dense, sparse, mixed scales, and zero."""
        rng = np.random.default_rng(7)
        dense = rng.standard_normal((n_samples,))
        sparse = np.where(rng.random((n_samples,)) < 0.2, dense, 0.0)
        mixed_scales = dense * 10.0 ** rng.integers(-12, 12, size=n_samples)
        vectors = [dense, sparse, mixed_scales, np.zeros(n_samples)]
        for v in vectors:
            v.flags.writeable = False
        return vectors

    def some_columns(self, n_features: int) -> list[Columns]:
        """Return lists of columns in [0, n_features): single, none, unordered, repeated, all."""
        rng = np.random.default_rng(8)
        lists = [
            np.array([n_features - 1]),
            np.zeros(0),
            rng.permutation(n_features)[:7],
            np.array([3, 0, 3, 5]),
            np.arange(n_features),
        ]
        return [columns.astype(np.int64) for columns in lists]

    # --- the design ---------------------------------------------------------------------------

    def test_shape_and_dtype(self) -> None:
        """Check shape and dtype against the array."""
        design, array = self.build()
        assert design.shape == array.shape
        assert all(type(size) is int for size in design.shape)
        assert design.dtype in (np.float32, np.float64)
        assert design.names is None or len(design.names) == array.shape[1]

    def test_scores(self) -> None:
        """Scores z = X'v agree at some columns and at all, and so do the largest of them.

        Ties go to the smaller column.
        """
        design, array = self.build()
        all_columns = np.arange(array.shape[1])
        # At some columns; at all, if these can be listed; and the largest ones.
        for v in self.vectors(array.shape[0]):
            scores = design.scores(v)
            assert scores.n_columns == all_columns.size
            for columns in self.some_columns(all_columns.size):
                selected = array[:, columns]
                assert_within(scores.at(columns), selected.T @ v, self.bound(columns, left=v))
            z = scores.at(all_columns)
            if self.scores_are_storable:
                assert_array_equal(scores.full(), z)
            else:
                with pytest.raises(TypeError, match="best columns"):
                    scores.full()
            for count in (0, 1, 2, 7, z.size - 1, z.size, z.size + 9):
                columns, values = scores.top(count)
                assert columns.dtype == np.int64
                expected_columns, expected_values = brute_force_top(z, count)
                assert_array_equal(columns, expected_columns)
                assert_array_equal(values, expected_values)

    def test_group_norms(self) -> None:
        """Norms of the scores over groups agree with those of the array."""
        if not self.scores_are_storable:
            return
        design, array = self.build()
        rng = np.random.default_rng(10)
        labels = rng.integers(0, 4, size=(array.shape[1],))
        v = self.vectors(array.shape[0])[0]
        # Group 4 is empty.
        norms = design.scores(v).group_norms(labels, 5)
        expected = [np.linalg.norm((array.T @ v)[labels == group]) for group in range(5)]
        bound = self.bound(left=v).sum()
        assert_within(norms, np.array(expected), bound + 1e-14 * np.array(expected))

    def test_predict(self) -> None:
        """X w agrees, by the method of the design and by the default of ``Design``."""
        design, array = self.build()
        for seed in range(3):
            w = np.random.default_rng(seed).standard_normal((array.shape[1],))
            w[:: seed + 1] = 0.0
            for predict in (design.predict, partial(Design.predict, design)):
                assert_within(predict(w), array @ w, self.bound(right=w))

    def test_squared_norms(self) -> None:
        """Sums over rows of c x^2 agree, by the design's method and by the default."""
        design, array = self.build()
        if not design.listable:
            with pytest.raises(TypeError, match="best columns"):
                design.squared_norms()
            return
        all_columns = np.arange(array.shape[1])
        ones = np.ones(array.shape[0])
        curvature = np.random.default_rng(3).random((array.shape[0],))
        curvature[0] = 0.0
        for argument, weights in ((None, ones), (curvature, curvature)):
            bound = self.square_bound(all_columns, weights)
            for norms in (design.squared_norms(argument), Design._squares(design, weights)):
                assert_within(norms, weights @ array**2, bound)
        # A design that subtracts offsets after summation loses digits, and must report the offsets.
        # So the magnitude of each column is at most 64 times the reported scale.
        offset_sizes = np.sqrt(array.shape[0]) * design.subtracted_offsets(all_columns)
        magnitudes = np.linalg.norm(self._sizes, axis=0)
        scale = np.linalg.norm(array, axis=0) + offset_sizes
        assert np.all((magnitudes <= 64.0 * scale) | ~array.any(axis=0))

    def test_parts(self) -> None:
        """Some columns, some rows (repeated or not), and some rows of some columns agree."""
        design, array = self.build()
        rng = np.random.default_rng(12)
        n_samples, n_features = array.shape
        all_rows = np.arange(n_samples)
        all_columns = np.arange(n_features)
        some = np.flatnonzero(rng.random(n_features) < 0.4)
        last_column = all_columns[-1:]
        distinct_rows, repeated_rows = (
            rng.choice(n_samples, n_samples // 2 + 1, replace=r) for r in (False, True)
        )
        more_rows = rng.integers(0, n_samples, n_samples + 3)
        # Pairs (rows, columns); None: all of them.
        parts = [
            (None, some),
            (None, last_column),
            (repeated_rows, None),
            (repeated_rows, some),
            (distinct_rows, last_column),
            (more_rows, None),
        ]
        for rows, columns in parts:
            part = part_of(design, rows, columns)
            rows = all_rows if rows is None else rows
            self.check_part(part, rows, all_columns if columns is None else columns, rng)

    def test_pickles(self) -> None:
        """A pickled design has the same scores."""
        design, array = self.build()
        rows, columns = map(np.arange, array.shape)
        copy = pickle.loads(pickle.dumps(design))
        self.check_part(copy, rows, columns, np.random.default_rng(12))

    def check_part(
        self, part: Design, rows: Columns, columns: Columns, rng: np.random.Generator
    ) -> None:
        """Compare the design ``part`` with these ``rows`` and ``columns`` of the array.

        ``rng`` draws the vectors. Scores, entries, predictions and squared norms are compared.
        """
        array = self._array[rows][:, columns]
        n_samples = len(self._array)
        assert part.shape == array.shape
        # Some designs sum over all rows for some of them, so their rounding errors are larger.
        v = rng.standard_normal(rows.size)
        padded = np.zeros(n_samples)
        n_columns = columns.size
        np.add.at(padded, rows, np.abs(v))
        bound = 2 * self.bound(left=padded)[columns]
        assert_within(part.scores(v).at(np.arange(n_columns)), array.T @ v, bound)
        entries = in_float64(part.gather(np.arange(n_columns)[::-1]).dense())[:, ::-1]
        self.check_entries(entries, array, self.bound()[rows][:, columns])
        w = np.zeros(self._array.shape[1])
        w[columns] = rng.standard_normal(n_columns)
        assert_within(part.predict(w[columns]), array @ w[columns], self.bound(right=w)[rows])
        if part.listable:
            counts = np.bincount(rows, minlength=n_samples).astype(np.float64)
            squares = self.square_bound(columns, counts)
            assert_within(part.squared_norms(), (array**2).sum(axis=0), squares)

    def test_many_scores_are_those_of_each(self) -> None:
        """Scores of many vectors equal the scores of each vector, and large scores are found.

        A design that reads the data at once for all vectors makes one pass.
        """
        design, array = self.build()
        V = np.column_stack(self.vectors(array.shape[0]))
        all_columns = np.arange(array.shape[1])
        # Bounds of 0.6 times the largest score leave several large scores to find.
        exact = array.T @ V
        counted = Counted(design)
        bounds = np.maximum(0.6 * np.abs(exact).max(axis=0), 1e-30)
        all_scores = counted.scores_many(V)
        large = counted.scores_above(V, bounds)
        assert counted.passes == 2 * (1 if design.traits.reads_at_once else V.shape[1])
        for scores, found, v, z, bound in zip(all_scores, large, V.T, exact.T, bounds, strict=True):
            error = self.bound(left=v)
            assert_within(scores.at(all_columns), z, error)
            columns, values = found.above(bound)
            assert_within(values, z[columns], error[columns])
            assert set(columns) >= set(np.flatnonzero(np.abs(z) >= bound + 2 * error))

    def test_a_vector_that_is_not_finite_is_refused_or_shows(self) -> None:
        """A vector with NaN or infinity is refused, or its scores are not finite.

        Otherwise a duality gap would be computed from wrong scores.
        """
        original, array = self.build()
        # Put the bad number in the row of the largest entry, so that it matters.
        row = int(np.argmax(np.abs(array).max(axis=1)))
        for bad in (np.nan, np.inf, -np.inf):
            v = np.array(self.vectors(array.shape[0])[0])
            v[row] = bad
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                try:
                    values = original.scores(v).top(1)[1]
                except ValueError:
                    continue
            assert not np.isfinite(values).all()

    def test_answers_stay_when_the_arrays_that_were_passed_change(self) -> None:
        """Scores keep their values when the caller writes to v after the pass.

        The same holds for squared norms and their curvature.
        """
        original, array = self.build()
        all_columns = np.arange(array.shape[1])
        for design in (original, Counted(original)):
            v = np.array(self.vectors(array.shape[0])[0])
            scores = design.scores(v)
            expected = array.T @ v
            bound = self.bound(left=v)
            # The caller overwrites v; the scores must be those of the old values.
            v[:] = 1e6
            assert_within(scores.at(all_columns), expected, bound)
            assert_array_equal(scores.top(1)[1], scores.at(scores.top(1)[0]))
            if not design.listable:
                continue
            curvature = np.random.default_rng(3).random((array.shape[0],))
            design.squared_norms(curvature)
            curvature *= 0.5
            bound = self.square_bound(all_columns, curvature)
            assert_within(design.squared_norms(curvature), curvature @ array**2, bound)

    # --- its blocks ---------------------------------------------------------------------------

    def test_gather(self) -> None:
        """Gathered columns equal those of the array."""
        design, array = self.build()
        for columns in self.some_columns(array.shape[1]):
            block = design.gather(columns)
            selected = array[:, columns]
            assert block.shape == selected.shape
            assert block.dtype in (np.float32, np.float64)
            self.check_entries(in_float64(block.dense()), selected, self.bound(columns))
            assert_array_equal(np.asarray(block), block.dense())

    def test_block_products(self) -> None:
        """Check the products of a block against the array."""
        design, array = self.build()
        for columns in self.some_columns(array.shape[1]):
            self.check_block(design.gather(columns), columns)

    def test_block_of_blocks(self) -> None:
        """A block gathered from a block equals the columns of the array."""
        design, array = self.build()
        columns = np.random.default_rng(5).permutation(array.shape[1])
        block = design.gather(columns)
        positions = np.array([4, 1, 7, 1], dtype=np.int64)
        self.check_block(block.gather(positions), columns[positions])
        self.check_block(block.gather(positions), columns[positions])

    def test_append_leaves_predecessors_alone(self) -> None:
        """Appending columns changes no earlier block, even if it shares its memory."""
        design, array = self.build()
        order = np.random.default_rng(6).permutation(array.shape[1])
        blocks = [design.gather(order[:1])]
        columns_of = [order[:1]]
        for start in range(1, order.size, 3):
            new_columns = order[start : start + 3]
            blocks.append(blocks[-1].append(design.gather(new_columns)))
            columns_of.append(np.concatenate([columns_of[-1], new_columns]))
        # Append once more to blocks that have a successor, which uses the spare memory behind them.
        for index in range(0, len(blocks), 2):
            blocks.append(blocks[index].append(design.gather(order[:2])))
            columns_of.append(np.concatenate([columns_of[index], order[:2]]))
        for block, columns in zip(blocks, columns_of, strict=True):
            self.check_entries(in_float64(block.dense()), array[:, columns], self.bound(columns))
        self.check_block(blocks[-1], columns_of[-1])

    def test_append_refuses_other_rows(self) -> None:
        """Appending a block with other rows raises ValueError."""
        design, array = self.build()
        block = design.gather(np.array([0, 1]))
        other = RowSubset(design, np.arange(array.shape[0] - 1)).gather(np.array([0]))
        with pytest.raises(ValueError, match="rows"):
            block.append(other)

    def square_bound(self, columns: Columns, weights: Array) -> Array:
        """Return a bound on the rounding error of weighted squared norms of ``columns``.

        ``weights`` (n_samples,) multiply the rows.
        """
        sizes = self._sizes[:, columns]
        bound: Array = 4 * roundings(sizes.shape) * (weights @ sizes**2)
        return bound

    def check_entries(self, actual: Array, expected: Array, bound: Array) -> None:
        """Compare ``actual`` entries with ``expected`` ones.

        They must be equal if ``gathers_exactly``, else equal within the rounding ``bound``.
        """
        assert_within(actual, expected, 0.0 if self.gathers_exactly else bound)

    def check_block(self, block: Block, columns: Columns) -> None:
        """Compare every product of a block with those of ``columns`` of the array."""
        array = self._array[:, columns]
        n_samples, n_columns = array.shape
        rng = np.random.default_rng(11)
        w = rng.standard_normal((n_columns,))
        v = rng.standard_normal((n_samples,))
        assert_within(block.predict(w), array @ w, self.bound(columns, right=w))
        assert_within(block.scores(v).full(), array.T @ v, self.bound(columns, left=v))
        # Weights of rows, many of them 0.
        row_weights = rng.random((n_samples,)) * (rng.random((n_samples,)) < 0.6)
        assert_within(
            block.squared_norms(row_weights),
            row_weights @ array**2,
            self.square_bound(columns, row_weights),
        )
        ones = np.ones(n_samples)
        assert_within(block.squared_norms(), ones @ array**2, self.square_bound(columns, ones))
        for positions in (None, rng.permutation(n_columns)[: n_columns // 2 + 1]):
            selected = array if positions is None else array[:, positions]
            sizes = self._sizes[:, columns]
            sizes = sizes if positions is None else sizes[:, positions]
            eps = 4 * roundings(array.shape)
            gram = block.gram(row_weights, positions)
            assert_within(
                gram,
                selected.T @ (row_weights[:, None] * selected),
                eps * (sizes.T * row_weights) @ sizes,
            )
