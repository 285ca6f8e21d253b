"""Products with genotypes of two bits, as files hold them.

They are in PLINK's code: four samples a byte, and each column begins a new byte. 00 means two
copies of the counted allele, 10 one copy, 11 none, and 01 a missing entry, which is replaced by the
mean of the column. Each function runs on one thread; several threads call it for different tiles
of a file. In all functions ``data`` are the bytes of some columns, ``n_samples`` is the number of
rows, and ``means`` (n_columns,) are the values of missing entries.
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
    """Return ``v`` followed by the zeros that ``scores_genotypes`` needs."""
    return np.concatenate([np.asarray(v, dtype=np.float64), np.zeros(_PADDING)])


def scores_genotypes(
    data: Bytes, n_samples: int, means: Array, v: Array, squared: bool = False
) -> Array:
    """Return X'v, or sum_i v_i x_ij^2 if ``squared``, of the columns in ``data``; v is ``padded``.

    ``means`` (n_columns,) replace the missing entries of the ``n_samples`` rows. It takes
    O(n_samples n_columns) time: a thread with AVX-512 reads about eight genotypes a nanosecond.
    """
    _check_genotypes(data, n_samples, means)
    values = _checks.weights(v, "v", n_samples + _PADDING)
    out = np.empty(means.size)
    _native.genotype_dots(data, n_samples, means, squared, values, out)
    return out


def add_genotypes(data: Bytes, n_samples: int, means: Array, w: Array, out: Array) -> None:
    """Add X w to ``out`` in place, for the columns in ``data`` and w (n_columns,).

    ``means`` (n_columns,) replace the missing entries of the ``n_samples`` rows. ``out`` is
    ``padded``; its last entries become garbage.
    """
    _check_genotypes(data, n_samples, means)
    if out.dtype != np.float64 or out.shape != (n_samples + _PADDING,):
        raise ValueError(f"out must be float64 with {n_samples} + {_PADDING} entries")
    weights = _checks.weights(w, "w", means.size)
    _native.genotype_sums(data, n_samples, means, weights, out)


def count_genotypes(data: Bytes, n_samples: int, n_columns: int) -> NDArray[np.int64]:
    """Return the copies of the allele and the missing entries of each column, (n_columns, 2).

    ``data`` are the bytes of ``n_columns`` columns of ``n_samples`` rows; the result is int64.
    """
    means = np.zeros(n_columns)
    _check_genotypes(data, n_samples, means)
    out = np.empty(2 * n_columns, dtype=np.int64)
    _native.genotype_counts(data, n_samples, means, out)
    return out.reshape(n_columns, 2)


def gather_genotypes(
    data: Bytes, n_samples: int, means: Array, dtype: type[np.float32] | type[np.float64]
) -> NDArray[Any]:
    """Return the columns in ``data`` as floats of ``dtype``, (n_samples, n_columns), Fortran order.

    ``means`` (n_columns,) replace the missing entries.
    """
    _check_genotypes(data, n_samples, means)
    out = np.empty((n_samples, means.size), dtype=dtype, order="F")
    if out.size:
        _native.genotype_gather(data, n_samples, means, out)
    return out


def multiply_genotypes(
    data: Bytes, means: Array, others: Bytes, other_means: Array, v: Array
) -> Array:
    """Return sum_i (y_ij - 1)(x_ik - 1) over the rows i with v_i != 0, for columns y_j and x_k.

    ``data`` and ``means`` are those of the columns y, ``others`` and ``other_means`` those of x.
    v is (n_samples,), and the result (columns of y, columns of x). The factors are -1, 0 or 1, so
    the sums are counts of bits, exact unless entries are missing. Products with missing entries are
    looked up. A thread with AVX-512 VPOPCNTDQ computes about 250 products a nanosecond, one with
    AVX2 43, and 21 if a hundredth of the entries is missing.
    """
    rows = _checks.weights(v, "v", v.size)
    _check_genotypes(data, rows.size, means)
    _check_genotypes(others, rows.size, other_means)
    out = np.zeros((means.size, other_means.size))
    _native.genotype_products(data, means, others, other_means, rows, out)
    return out


def genotype_search(V: Array, bounds: Array) -> Callable[..., tuple[Positions, Array]]:
    """Return a function that finds the columns of genotypes with a large standardized score.

    The score of column j for column v_k of ``V`` (n_samples, m) is (x_j'v_k - c_j sum(v_k)) f_j,
    with center c_j and factor f_j. The columns whose score for some k is at least ``bounds``_k in
    magnitude are returned. Approximate products with V rounded to two bytes exclude most columns
    first: about 60 products a nanosecond on a thread with AVX-512 VNNI.
    """
    # These do not depend on the columns: V rounded to two bytes an entry, and its sums.
    rows = in_lanes(V)[0]
    vector_arguments = (rows, bounds.size, *_native.genotype_digits(rows))
    bound_arguments = V.sum(axis=0), np.ascontiguousarray(bounds)

    def found(
        data: Bytes, means: Array, copies: Array, centers: Array, factors: Array
    ) -> tuple[Positions, Array]:
        """Return the columns in ``data`` that are found, and their scores (n_found, m), float64.

        ``means``, ``centers`` c and ``factors`` f have an entry for each column, and so have
        ``copies``, the copies of the allele among all samples.
        """
        _check_genotypes(data, V.shape[0], means)
        column_arguments = centers, factors, copies.astype(np.float64)
        columns, values = _native.genotype_found(
            data, means, *vector_arguments, *column_arguments, *bound_arguments
        )
        return columns, values[:, : bounds.size]

    return found


def _check_genotypes(data: Bytes, n_samples: int, means: Array) -> None:
    """Raise unless ``data`` are the bytes of len(means) columns of ``n_samples`` genotypes."""
    n_bytes = (n_samples + 3) // 4 * means.size
    if data.dtype != np.uint8 or data.shape != (n_bytes,):
        raise ValueError(
            f"{means.size} columns of {n_samples} genotypes take {n_bytes} bytes, got "
            f"{data.dtype} of shape {data.shape}"
        )
    if means.dtype != np.float64 or not means.flags.c_contiguous:
        raise TypeError(f"means must be contiguous float64, got {means.dtype}")
