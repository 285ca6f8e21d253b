"""LeadingInputs: the few sparse inputs that can reach a level, by rows, for many searches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.interfaces import Array, Columns
from atomlearn.maps.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Strongest:
    """As many inputs of the largest F as may be kept apart; the others have F_i <= level."""

    columns: Columns
    level: float

    @classmethod
    def of(cls, F: Array, lengths: NDArray[np.int64]) -> Strongest:
        """Choose by F and the numbers of entries: perhaps none, then the level is max F."""
        order = np.argsort(-F, kind="stable")[: SETTINGS.leading_inputs + 1]
        entries = np.cumsum(lengths[order])
        most = SETTINGS.leading_share * float(lengths.sum())
        number = min(int(np.searchsorted(entries, most, side="right")), SETTINGS.leading_inputs)
        return cls(order[:number], float(F[order[number]]) if number < F.size else 0.0)


@dataclass(frozen=True, slots=True)
class LeadingInputs:
    """The strongest inputs by F_i = sum_k |x_ki| max_j |x_kj|; the others have F_i <= level.

    So while |v| <= 1 no sum of a pair with one of the others is larger than the level. columns :
    their numbers, those with most entries first; X : (n_samples, m), by rows, and ``sizes`` the
    magnitudes of its entries.
    """

    level: float
    columns: Columns
    X: sp.csr_array = field(repr=False)
    sizes: Array = field(repr=False)

    @classmethod
    def of(cls, X: sp.csc_array, strongest: Strongest) -> LeadingInputs:
        """Return these inputs of X, whose rows are sorted."""
        columns = strongest.columns
        columns = columns[np.argsort(-np.diff(X.indptr)[columns], kind="stable")]
        # Turned from columns to rows, each row has its entries in the order of the columns.
        by_rows: sp.csr_array = X[:, columns].tocsr()
        data = by_rows.data
        return cls(strongest.level, columns, by_rows, np.abs(data) if (data < 0).any() else data)

    def bounds(self, v: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Return B_i, sqrt(sum_k (v_k)_+ x_ki^2) and sqrt(sum_k (v_k)_- x_ki^2), or little more.

        B_i = max(sum_k (v_k)_+ |x_ki| m_k, sum_k (v_k)_- |x_ki| m_k), m_k = max_j |x_kj|, where X
        has no entry of another sign; else the sum of both. No |sum_k v_k x_ki x_kj| is larger.
        """
        parts, size = (self.X.data, self.X.indices, self.X.indptr), self.columns.size
        sizes = self.sizes, *parts[1:]
        peaks = np.maximum(-low, high)
        up, down = np.maximum(v, 0.0), np.maximum(-v, 0.0)
        if low.any() and high.any():
            reach = _kernels.scores_csr(*sizes, np.abs(v) * peaks, size)
        else:
            reach = _kernels.scores_csr(*sizes, up * peaks, size)
            reach = np.maximum(reach, _kernels.scores_csr(*sizes, down * peaks, size))
        # Plus more than what underflow may have taken: entries are in ``safe_range``.
        rising = np.sqrt(_kernels.squared_norms_csr(*parts, size, up)) + 1e-140
        falling = np.sqrt(_kernels.squared_norms_csr(*parts, size, down)) + 1e-140
        return reach + 1e-190, rising, falling

    def few(self, number: int) -> bool:
        """Return whether ``sums`` of this many inputs take little time and memory."""
        return number <= SETTINGS.most_summed and number**2 <= SETTINGS.sums_per_entry * self.X.nnz

    def sums(self, v: Array, chosen: Columns) -> tuple[Array, int]:
        """Return sum_k v_k x_ki x_kj of the inputs at ``chosen`` (increasing), for i <= j.

        With how many multiplications that took: rows where v is zero take none.
        """
        parts = self.X.data, self.X.indices, self.X.indptr
        return _kernels.pair_sums_csr(*parts, v, self.columns.size, chosen)
