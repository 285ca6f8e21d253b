"""DevicePairs: products of two columns on a device; the best come back, to be summed in float64."""

from __future__ import annotations

import math
from typing import Any

from atomlearn.core import Design, SparseDesign, scaled_columns
from atomlearn.maps.pairs.products import DensePairs
from atomlearn.maps.pairs.search import ErrorBound
from atomlearn.maps.pairs.sparse import SparsePairs
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.columns import DeviceColumns
from atomlearn.storage.device.sparse import SparseTensor
from atomlearn.storage.device.tensors import BUDGET, SingleRounding


class DevicePairs(DensePairs):
    """Pairs of the columns of a tensor, by tiles of matrix products where the tensor is.

    The search is that of ``DensePairs``: tiles X_A' diag(v) X_B of sums in float32 (tf32 where the
    library is allowed it, float64 where magnitudes of X ask for it) are compared with a running
    threshold, each sum widened by the bound on its error, and what may be among the best is
    computed again by the definition, from columns on the processor. So the answer is the one of
    the same array there. A tile is compared on the device; the pairs that pass are all that comes
    back.

    Notes
    -----
    |fl(sum_k v_k x_ki x_kj) - sum| <= ((m + 12) u + c) r_i r_j with r_i^2 = sum_k |v_k| x_ki^2 and
    m = min(n, 4096); u and c as in ``OnDevice``. Memory on the device: a tile, and up to 256 MB of
    columns that are not there as they are needed (sparse, standardized, some rows, or float64).
    """

    most_threads = 1

    def __init__(self, base: Design, columns: DeviceColumns) -> None:
        super().__init__(base)
        self._columns = columns

    def error(self) -> ErrorBound:
        double = super().error()
        # Numbers below the least normal one may be lost as a whole: factors, products and sums.
        absolute = 4.0 * double.absolute
        if not self.uses_single():
            return ErrorBound(double.relative, absolute)
        rounding = SingleRounding.of(self._columns.tensor.sample)
        # Ten more roundings: casts of x_i, x_j and v, the product, scales, and comparisons.
        single = rounding.relative(min(self.shape[0], BUDGET.single_terms) + 10)
        return ErrorBound(double.relative + single, absolute)

    # --- tiles --------------------------------------------------------------------------------

    def _reader(self, dtype: Any, power: int = 1) -> Any:
        read = self._columns.reader(dtype)
        return read if power == 1 else lambda lo, hi: read(lo, hi) ** power

    def _width(self, wanted: int, dtype: Any) -> int:
        # Twice as many each way as on the processor: a device is started for each tile.
        return self._columns.width(2 * wanted, dtype)


def device_pairs(base: Design) -> DevicePairs | SparsePairs | None:
    """Return what forms the products of the columns of a design on a device; None of others.

    Sums of what passes are defined as those of the same array on the processor are.
    """
    columns = DeviceColumns.of(base)
    if columns is None:
        return None
    tensor = columns.tensor
    most = SETTINGS.tiles_from * math.prod(tensor.shape)
    centered = columns.shift is not None and columns.shift.means is not None
    if not isinstance(tensor, SparseTensor) or centered or tensor.nonzeros >= most:
        return DevicePairs(base, columns)
    host = tensor.host() if columns.rows is None else tensor.host()[columns.rows]
    if columns.shift is not None:
        host = scaled_columns(host, columns.shift.factors)
    return SparsePairs(SparseDesign(host))
