"""Products with genotypes of two bits, as files hold them.

They are in PLINK's code, four samples a byte, each column begins a new byte: 00 is
two copies of the counted allele, 10 one, 11 none, 01 missing, which counts as the column's mean.
The calls on genotypes run on one thread each: tiles of a file are what threads share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.dense import in_lanes

Bytes = NDArray[np.uint8]

#: Number of zeros with which vectors over samples are padded, because the kernel reads the
#: genotypes of several samples at a time.
_PADDING = 32


def padded(v: Array) -> Array:
    """Return v followed by the zeros that ``scores_genotypes`` needs."""
    return np.concatenate([np.asarray(v, dtype=np.float64), np.zeros(_PADDING)])


def scores_genotypes(
    data: Bytes, n_samples: int, means: Array, v: Array, squared: bool = False
) -> Array:
    """z_j = sum_i v_i x_ij (or x_ij^2) for the len(means) columns in ``data``; v is ``padded``.

    O(n_samples n_columns) at about eight genotypes a nanosecond and thread with AVX-512.
    """
    _check_genotypes(data, n_samples, means)
    values = _checks.weights(v, "v", n_samples + _PADDING)
    out = np.empty(means.size)
    _native.genotype_dots(data, n_samples, means, squared, values, out)
    return out


def add_genotypes(data: Bytes, n_samples: int, means: Array, w: Array, out: Array) -> None:
    """out_i += sum_j x_ij w_j; ``out`` is ``padded``, and its last entries become garbage."""
    _check_genotypes(data, n_samples, means)
    if out.dtype != np.float64 or out.shape != (n_samples + _PADDING,):
        raise ValueError(f"out must be float64 with {n_samples} + {_PADDING} entries")
    weights = _checks.weights(w, "w", means.size)
    _native.genotype_sums(data, n_samples, means, weights, out)


def count_genotypes(data: Bytes, n_samples: int, n_columns: int) -> NDArray[np.int64]:
    """Return for each column the copies counted and the entries missing, int64 (n_columns, 2)."""
    means = np.zeros(n_columns)
    _check_genotypes(data, n_samples, means)
    out = np.empty(2 * n_columns, dtype=np.int64)
    _native.genotype_counts(data, n_samples, means, out)
    return out.reshape(n_columns, 2)


def gather_genotypes(
    data: Bytes, n_samples: int, means: Array, dtype: type[np.float32] | type[np.float64]
) -> NDArray[Any]:
    """Return the columns in ``data`` unpacked, missing entries as means, in Fortran order."""
    _check_genotypes(data, n_samples, means)
    out = np.empty((n_samples, means.size), dtype=dtype, order="F")
    if out.size:
        _native.genotype_gather(data, n_samples, means, out)
    return out


def genotype_search(V: Array, bounds: Array) -> Callable[..., tuple[Positions, Array]]:
    r"""Return ``found(data, means, copies, centers, factors)``, for genotypes in ``data``.

    It finds the columns where \|(x_j'v_k - centers_j 1'v_k) factors_j\| >= bounds_k for some
    column v_k of V, and returns them with those numbers, (found, m), in float64; ``copies`` are
    counted among all samples. Columns that cannot reach a bound are left out by products of bytes,
    at some sixty products a nanosecond and thread with AVX-512 VNNI.
    """
    rows = in_lanes(V)[0]
    of_rows = (rows, bounds.size, *_native.genotype_digits(rows))
    of_bounds = V.sum(axis=0), np.ascontiguousarray(bounds)

    def found(
        data: Bytes, means: Array, copies: Array, centers: Array, factors: Array
    ) -> tuple[Positions, Array]:
        _check_genotypes(data, V.shape[0], means)
        of_columns = centers, factors, copies.astype(np.float64)
        columns, values = _native.genotype_found(data, means, *of_rows, *of_columns, *of_bounds)
        return columns, values[:, : bounds.size]

    return found


def _check_genotypes(data: Bytes, n_samples: int, means: Array) -> None:
    expected = (n_samples + 3) // 4 * means.size
    if data.dtype != np.uint8 or data.shape != (expected,):
        raise ValueError(
            f"{means.size} columns of {n_samples} genotypes take {expected} bytes, got "
            f"{data.dtype} of shape {data.shape}"
        )
    if means.dtype != np.float64 or not means.flags.c_contiguous:
        raise TypeError(f"means must be contiguous float64, got {means.dtype}")
