"""AtomSet: the atoms U found so far, their images X U in memory, and re-fits of their weights.

A point is w = U c, with weights c >= 0. The weights are re-fitted by a master: a solver of the
problem over c only, which is the conical problem of [V] (6).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Atom, Block, Columns, Design
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.norms.combine import Nonnegative
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer


@dataclass(frozen=True, slots=True)
class AtomSet:
    """A set of atoms U = [u_1, ..., u_t] with their images X u. It is immutable.

    Attributes
    ----------
    images : Block (n_samples, t)
        X U in float64.
    columns : (m,) int64
        The columns of X in which some atom is nonzero, in the order in which they came.
    entries : (m, t)
        The rows of U at ``columns``, as a sparse matrix.
    gram : (t, t), optional
        U'U; None if there is no ridge term (tau = 0).
    keys : tuple of int
        A hash of each atom; equal atoms have equal hashes.
    """

    images: Block
    columns: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    entries: csc_array = field(default_factory=lambda: csc_array((0, 0)))
    gram: Array | None = None
    keys: tuple[int, ...] = ()

    @classmethod
    def empty(cls, n_samples: int, *, gram: bool = False, cached: bool = False) -> AtomSet:
        """Return the set without atoms, for data of ``n_samples`` rows.

        ``gram`` : whether the set keeps U'U. ``cached`` : whether the images X U keep their Gram
        matrix, which some masters (solvers that re-fit the weights) use.
        """
        images: Block = DenseBlock(np.zeros((n_samples, 0), order="F"))
        if cached:
            images = CachedBlock(images)
        return cls(images, gram=np.zeros((0, 0)) if gram else None)

    @property
    def size(self) -> int:
        """Number of atoms t."""
        return self.images.shape[1]

    def append(self, design: Design, atom: Atom) -> AtomSet:
        """Return the set with ``atom`` added; ``design`` is the data for its image X u."""
        image = design.gather(atom.columns).predict(atom.values)
        return self._append(atom, image)

    def _append(self, atom: Atom, image: Array) -> AtomSet:
        """Return U with ``atom`` as its last column; ``image`` (n_samples,) is X times the atom."""
        # Add the columns that no other atom uses. ``positions`` are the rows of ``entries`` in
        # which the atom is nonzero.
        new_columns = np.sort(atom.columns[~np.isin(atom.columns, self.columns)])
        columns = np.concatenate([self.columns, new_columns])
        order = np.argsort(columns, kind="stable")
        positions = order[np.searchsorted(columns, atom.columns, sorter=order)]
        matrix = self.entries
        # Append one column to the sparse matrix: values, row numbers, and the end of the column.
        csc_arrays: Any = (
            np.append(matrix.data, atom.values),
            np.append(matrix.indices, positions),
            np.append(matrix.indptr, matrix.indptr[-1] + positions.size),
        )
        entries = csc_array(csc_arrays, shape=(columns.size, self.size + 1))
        return AtomSet(
            self.images.append(DenseBlock(image[:, None])),
            columns,
            entries,
            None if self.gram is None else (entries.T @ entries).toarray(),
            (*self.keys, atom_key(atom)),
        )

    def take(self, numbers: Columns) -> AtomSet:
        """Return the set of some atoms, without columns that none of them uses.

        ``numbers`` are the indices of these atoms, in increasing order.
        """
        if numbers.size == self.size:
            return self
        # ``rows`` are the columns of X that the remaining atoms use.
        entries = self.entries[:, numbers]
        rows = np.unique(entries.indices)
        return AtomSet(
            self.images.gather(numbers),
            self.columns[rows],
            entries[rows],
            None if self.gram is None else self.gram[np.ix_(numbers, numbers)],
            tuple(self.keys[number] for number in numbers),
        )

    def merged(self, shares: Array) -> tuple[AtomSet, Array]:
        """Return a set of one vector, w / sum(c) for w = U c, and its weight sum(c) as array (1,).

        ``shares`` are the weights c. The set and the array are empty if all weights are 0. The
        vector is a convex combination of atoms, so that its gauge is at most 1.
        """
        total = float(shares.sum())
        empty = self.take(np.zeros(0, dtype=np.int64))
        if not total:
            return empty, np.zeros(0)
        atom = Atom(self.columns, self.combine(shares) / total)
        return empty._append(atom, self.images.predict(shares) / total), np.array([total])

    def find(self, atom: Atom) -> int:
        """Return the index of this atom, or -1 if the set does not contain it."""
        key = atom_key(atom)
        return self.keys.index(key) if key in self.keys else -1

    def parts(self, shares: Array) -> tuple[tuple[Atom, float], ...]:
        """Return the pairs (atom, weight) of the set; ``shares`` are the weights (t,)."""
        ends = self.entries.indptr[1:-1]
        columns = np.split(self.columns[self.entries.indices], ends)
        values = np.split(self.entries.data, ends)
        return tuple(
            (Atom(columns[number], values[number]), float(share))
            for number, share in enumerate(shares)
        )

    def combine(self, shares: Array) -> Array:
        """Return the entries of w = U c at ``columns``; ``shares`` are the weights c (t,)."""
        return np.asarray(self.entries @ shares)

    def products(self, weights: Array) -> Array:
        """Return U'w, (t,), for a vector w that is zero outside ``columns``.

        ``weights`` (m,) are the entries of w at ``columns``.
        """
        return np.asarray(self.entries.T @ weights)


def atom_key(atom: Atom) -> int:
    """Return a hash of ``atom`` that is equal for atoms whose entries agree to 40 binary digits."""
    # Sort by column; round the values relative to the largest one; leave out values that become 0.
    order = np.argsort(atom.columns, kind="stable")
    values = atom.values[order]
    largest = float(np.abs(values).max(initial=0.0))
    digits = np.round(values / largest * 2.0**40) if largest else values
    rounded = digits.astype(np.int64)
    is_nonzero = rounded != 0
    columns = atom.columns[order][is_nonzero]
    return hash((f"{largest:.9e}", columns.tobytes(), rounded[is_nonzero].tobytes()))


def refit_on_rays(
    problem: Problem,
    master: Master,
    atoms: AtomSet,
    weights: Array,
    intercept: float,
    gap_target: float,
) -> Refit:
    """Return the optimal weights of some atoms: a Refit, with weights c and intercept b.

    c and b are argmin over c >= 0 and b of f(X U c + b) + tau/2 ||U c||^2 + R(sum c), which are
    problems (5) and (6) of [V].

    Parameters
    ----------
    problem : Problem
        Loss f, ridge weight tau and penalty R.
    master : Master
        The solver. Its data are X U, and its norm is sum c on c >= 0. A solver that cannot handle
        a ridge term with U'U is replaced by ``SequentialQP`` if tau > 0.
    atoms : AtomSet
        U.
    weights, intercept : array (t,), float
        Initial values of c and b.
    gap_target : float
        Absolute duality gap at which the master may stop.
    """
    if problem.tau and not master.takes_metric:
        master = SequentialQP()
    form = problem.regularizer.form
    amount = problem.regularizer.amount
    # Over nonnegative weights the l1 norm is sum(c).
    rays = replace(
        problem,
        design=atoms.images,
        regularizer=Regularizer(Nonnegative(L1()), form, amount),
        metric=atoms.gram,
    )
    # ModelNewton calls ``master`` on quadratic models of a loss that couples samples; other losses
    # are passed on to it.
    return ModelNewton(master).solve(rays, weights, intercept, gap_target)
