"""AtomSet: the atoms U found so far, their images X U in memory, and what re-fits need of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Atom, Block, Columns, Design

#: Atoms whose entries agree to this many binary digits are one atom.
SAME_BITS = 40


@dataclass(frozen=True, slots=True)
class AtomSet:
    """U = [u_1, ..., u_t] as sparse columns with their images, t = ``size``. Never changes.

    images : Block (n_samples, t), X U in float64; gram : (t, t) U'U, None where nobody needs it
    (tau = 0); columns : (m,) int64, the union of the supports in the order they came;
    order : (m,) the positions in ``columns`` that sort them; positions, values, owners : (nnz,)
    the entries of U, as a place in ``columns``, a number and the number of its atom;
    keys : (t,) int64 fingerprints, equal where two atoms are.

    ``append`` is amortised O(n_samples + m) beside the gathering of the new atom's columns (and
    O(t^2 + nnz) where a gram is kept); ``take`` copies what is kept.
    """

    images: Block
    gram: Array | None = None
    columns: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    order: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    positions: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    values: Array = field(default_factory=lambda: np.zeros(0))
    owners: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    keys: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def empty(cls, n_samples: int, *, gram: bool = False, cached: bool = False) -> AtomSet:
        """Return the set of no atoms, with U'U where ``gram``.

        ``cached``: the images remember their Gram matrices, for masters that want them.
        """
        images: Block = DenseBlock(np.zeros((n_samples, 0), order="F"))
        if cached:
            images = CachedBlock(images)
        return cls(images, np.zeros((0, 0)) if gram else None)

    @property
    def size(self) -> int:
        """Number of atoms t."""
        return self.images.shape[1]

    def append(self, design: Design, atom: Atom) -> AtomSet:
        """Return U with one more atom; gathers its columns."""
        image = design.gather(atom.columns).dot(atom.values)
        columns, order, places = self._with_columns(atom.columns)
        positions = np.append(self.positions, places)
        values = np.append(self.values, atom.values)
        owners = np.append(self.owners, np.full(places.size, self.size))
        gram = self.gram
        if gram is not None:
            spread = np.zeros(columns.size)
            spread[places] = atom.values
            products = values * spread[positions]
            row = np.bincount(owners, weights=products, minlength=self.size + 1)
            gram = np.block([[gram, row[:-1, None]], [row[None, :]]])
        return AtomSet(
            self.images.append(DenseBlock(image[:, None])),
            gram,
            columns,
            order,
            positions,
            values,
            owners,
            np.append(self.keys, fingerprint(atom)),
        )

    def _with_columns(self, new: Columns) -> tuple[Columns, Columns, Columns]:
        """Return the union with ``new``, what sorts it, and the places of ``new`` in it."""
        known = self.columns[self.order]
        at = np.searchsorted(known, new)
        found = np.zeros(new.size, dtype=bool)
        inside = at < known.size
        found[inside] = known[at[inside]] == new[inside]
        fresh = np.flatnonzero(~found)
        places = np.empty(new.size, dtype=np.int64)
        places[found] = self.order[at[found]]
        places[fresh] = self.columns.size + np.arange(fresh.size)
        if not fresh.size:
            return self.columns, self.order, places
        # Equal places of insertion keep the order given: hand the new columns over sorted.
        fresh = fresh[np.argsort(new[fresh], kind="stable")]
        order = np.insert(self.order, at[fresh], places[fresh])
        return np.concatenate([self.columns, new[~found]]), order, places

    def take(self, which: Columns) -> AtomSet:
        """Return the atoms of these numbers, in increasing order; columns nobody uses go."""
        if which.size == self.size:
            return self
        number = np.full(self.size, -1, dtype=np.int64)
        number[which] = np.arange(which.size)
        owners = number[self.owners]
        kept = owners >= 0
        used, positions = np.unique(self.positions[kept], return_inverse=True)
        columns = self.columns[used]
        return AtomSet(
            self.images.take(which),
            None if self.gram is None else self.gram[np.ix_(which, which)],
            columns,
            np.argsort(columns, kind="stable"),
            positions.ravel(),
            self.values[kept],
            owners[kept],
            self.keys[which],
        )

    def find(self, atom: Atom) -> int:
        """Return the number of this atom, or -1 where it is none of them."""
        same = np.flatnonzero(self.keys == fingerprint(atom))
        return int(same[0]) if same.size else -1

    def parts(self, shares: Array) -> tuple[tuple[Atom, float], ...]:
        """Return the atoms with their shares, one by one."""
        order = np.argsort(self.owners, kind="stable")
        starts = np.searchsorted(self.owners[order], np.arange(self.size + 1))
        columns, values = self.columns[self.positions[order]], self.values[order]
        pieces = [slice(starts[h], starts[h + 1]) for h in range(self.size)]
        return tuple(
            (Atom(columns[piece], values[piece]), float(share))
            for piece, share in zip(pieces, shares, strict=True)
        )

    def combine(self, shares: Array) -> Array:
        """Return w = U shares over ``columns``."""
        terms = self.values * shares[self.owners]
        sums = np.bincount(self.positions, weights=terms, minlength=self.columns.size)
        return sums.astype(np.float64, copy=False)  # of nothing, NumPy counts in integers

    def products(self, weights: Array) -> Array:
        """Return U'w for w over ``columns``."""
        terms = self.values * weights[self.positions]
        sums = np.bincount(self.owners, weights=terms, minlength=self.size)
        return sums.astype(np.float64, copy=False)


def fingerprint(atom: Atom) -> int:
    """Return a number that two atoms share where they are equal to SAME_BITS binary digits."""
    order = np.argsort(atom.columns, kind="stable")
    values = atom.values[order]
    largest = float(np.abs(values).max(initial=0.0))
    digits = np.round(values / largest * 2.0**SAME_BITS) if largest else values
    whole = digits.astype(np.int64)
    kept = whole != 0
    columns = atom.columns[order][kept]
    return hash((f"{largest:.9e}", columns.tobytes(), whole[kept].tobytes()))
