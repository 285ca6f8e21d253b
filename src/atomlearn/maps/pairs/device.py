"""DevicePairs: products of two columns on a device; the best are summed again in float64."""

from __future__ import annotations

import math
from typing import Any

from atomlearn.core import Design, SparseDesign, scaled_design
from atomlearn.maps.pairs.products import DensePairs
from atomlearn.maps.pairs.search import ErrorBound
from atomlearn.maps.pairs.sparse import SparsePairs
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.columns import DeviceColumns
from atomlearn.storage.device.sparse import SparseTensor
from atomlearn.storage.device.tensors import BUDGET, SingleRounding


class DevicePairs(DensePairs):
    """Pairs of the columns of a tensor, by tiles of matrix products on its device.

    The search is that of ``DensePairs``: tiles X_A' diag(v) X_B of sums are compared with a running
    threshold, each sum widened by its error bound. Sums are in float32, or in tf32 if the library
    is allowed to use it, or in float64 if magnitudes of X require it. Pairs that may be among the
    best are computed again by the definition, from columns on the processor, so that the answer is
    that of the same array there. A tile is compared on the device; only the pairs that pass are
    copied back.

    Notes
    -----
    The error of a computed sum is at most ((m + 12) u + c) r_i r_j. Here r_i^2 = sum_k |v_k|
    x_ki^2, m = min(n_samples, 4096), and u and c are described in ``OnDevice``. Memory on the
    device: a tile, and up to 256 MB for columns that have to be computed (sparse, standardized,
    some rows, or float64).
    """

    most_threads = 1

    def __init__(self, base: Design, columns: DeviceColumns) -> None:
        """Store the design, and its columns as they are on the device."""
        super().__init__(base)
        self._columns = columns

    def error(self) -> ErrorBound:
        """Return the error bound of sums on the device, in float32 or float64."""
        double = super().error()
        # Factors, products and sums below the smallest normal number may become zero.
        absolute = 4.0 * double.absolute
        if not self.uses_single():
            return ErrorBound(double.relative, absolute)
        # The rounding of products in single precision by this library, on this device.
        rounding = SingleRounding.of(self._columns.tensor.sample)
        # Ten more roundings: casts of x_i, x_j and v, the product, scales, and comparisons.
        product_error = rounding.relative(min(self.shape[0], BUDGET.single_terms) + 10)
        return ErrorBound(double.relative + product_error, absolute)

    # --- tiles --------------------------------------------------------------------------------

    def _reader(self, dtype: Any, power: int = 1) -> Any:
        """Return a function (lo, hi) -> columns lo, ..., hi - 1 to ``power``, on the device.

        The columns have the type ``dtype``.
        """
        read = self._columns.reader(dtype)
        return read if power == 1 else lambda lo, hi: read(lo, hi) ** power

    def _width(self, wanted: int, dtype: Any) -> int:
        """Return the number of inputs to read at a time: about 2 ``wanted``, of type ``dtype``."""
        # Tiles are twice as wide as on the processor, because each tile starts a kernel there.
        return self._columns.width(2 * wanted, dtype)


def device_pairs(base: Design) -> DevicePairs | SparsePairs | None:
    """Return the products of the columns of ``base`` if it is on a device; else None.

    A sparse tensor with few nonzero entries is copied to the processor, because nearly all
    products in tiles would be zero.
    """
    columns = DeviceColumns.of(base)
    if columns is None:
        return None
    # Centered columns of a sparse tensor are dense; ``shift`` has the means and the factors of
    # standardized columns.
    tensor = columns.tensor
    limit = SETTINGS.tiles_from * math.prod(tensor.shape)
    centered = columns.shift is not None and columns.shift.means is not None
    if not isinstance(tensor, SparseTensor) or centered or tensor.nonzeros >= limit:
        return DevicePairs(base, columns)
    host = tensor.host() if columns.rows is None else tensor.host()[columns.rows]
    design: Any = SparseDesign(host)
    if columns.shift is not None:
        design = scaled_design(design, columns.shift.factors)
    return SparsePairs(design)
