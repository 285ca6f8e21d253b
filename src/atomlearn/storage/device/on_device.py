"""X as a tensor on a device such as a GPU; float32 scores that matter are recomputed in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    ArrayScores,
    Block,
    Columns,
    Design,
    Scores,
    Traits,
    check_shape,
    refuse_not_finite,
)
from atomlearn.storage.checks import existing_columns, one_weight_each
from atomlearn.storage.device.dense import DenseTensor
from atomlearn.storage.device.layouts import check_layout, host_sparse
from atomlearn.storage.device.sparse import SparseTensor
from atomlearn.storage.device.tensors import (
    HeldTensor,
    SingleRounding,
    device_of,
    dtype_of,
    host_view,
    is_sparse_tensor,
    kth_largest,
    namespace,
    to_device_of,
    to_host,
)


class OnDevice(Design):
    """A design whose X is a tensor on a device (PyTorch, CuPy, JAX), which computes scores z = X'v.

    Parameters
    ----------
    X : tensor (n_samples, n_features), float32 or float64
        Read in place, never written to. Dense tensors are never copied as a whole. Sparse ones are
        PyTorch's: CSC is read in place; CSR and COO are converted to CSC on their device, by one
        copy, which adds up repeated entries of a COO tensor.
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision in which the device searches the columns with the largest absolute scores.
        "float64": all sums are float64, computed from tiles of X. "float32": X'v is computed in
        float32 first, with a rigorous bound on the rounding error of each score. Columns that may
        be among the largest within that bound are scored again in float64, so that the result is
        the same. "auto" is "float32" for float32 data.

    Attributes
    ----------
    tensor : HeldTensor
        X, with its products on the device.
    precision : {"float32", "float64"}
        Precision of the search of scores.
    nonzeros : int
        Number of stored entries.

    Raises
    ------
    ValueError, TypeError
        For other shapes and types, for sparse tensors whose indices are out of range or order
        (every index is checked before it is used), and for entries that are not finite, with row
        and column.

    Notes
    -----
    Scores returned to a solver are sums in float64 in either case, and so is the certificate. In
    float32 a pass reads 4 n p bytes once (8 or 12 bytes for each stored entry of sparse X); the
    bound is

    ``|fl(x_j'v) - x_j'v| <= ((m_j + 2) u + c) ||x_j|| ||v||``

    - m_j is the number of terms that are summed in float32 before sums are added in float64. It is
      min(n, 4096), or the number of stored entries of the column if X is sparse.
    - u = 2^-24, in any order of summation (Higham 2002, Accuracy and Stability of Numerical
      Algorithms, section 3.1, and Cauchy and Schwarz).
    - c is the relative error of cutting off the factors of a product. It is 2^-9 for CuPy, and for
      PyTorch if tf32 is allowed. It is 2^-6 for JAX, and for PyTorch if bfloat16 is allowed. Else
      it is 0.
    - If c > 0, u = 2^-22, because some units cut off while they add (Fasi, Higham, Mikaitis,
      Pranesh 2021, Numerical behavior of NVIDIA tensor cores).

    A bound on underflow is added. A sum that overflows is no information, and its column is scored
    again. Norms that need all scores (groups, for example) request float64 scores at once. Column
    norms are computed once, in float64. A pass sends v to the device (8 n bytes) and scores back
    (8 p bytes). Columns of the active set are copied once and used on the processor.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from atomlearn.designs import OnDevice
    >>> design = OnDevice(torch.eye(3, device="cuda"))  # doctest: +SKIP
    >>> design.scores(np.array([0.0, 5.0, 1.0])).top(1)  # doctest: +SKIP
    (array([1]), array([5.]))
    """

    def __init__(self, X: Any, *, precision: str = "auto") -> None:
        """Check the tensor X and its device; ``precision`` is that of the search of scores."""
        # A tensor that a design has checked already is not checked again.
        tensor = X if isinstance(X, HeldTensor) else _checked_tensor(X)
        if precision not in ("auto", "float32", "float64"):
            raise ValueError(f"precision must be 'auto', 'float32' or 'float64', got {precision!r}")
        if precision == "float32" and tensor.dtype != np.float32:
            raise ValueError("precision='float32' is for float32 tensors, and X is float64")
        self.tensor: HeldTensor = tensor
        self.traits = Traits(reads_at_once=True, is_sparse=tensor.is_sparse)
        self.precision = str(tensor.dtype) if precision == "auto" else precision
        self._lengths: Any = None  # ||x_j||, on the device
        self.shape = tensor.shape
        self.dtype = tensor.dtype
        if tensor is not X:
            _check_double(X)
            refuse_not_finite(self)

    def __repr__(self) -> str:
        """Return a text with shape, type and device."""
        kind = "sparse " if self.traits.is_sparse else ""
        return f"OnDevice({self.shape}, {kind}{self.dtype}, {self.device})"

    @property
    def nonzeros(self) -> int:
        """Number of stored entries."""
        return self.tensor.nonzeros

    @property
    def device(self) -> Any:
        """The device of X, as named by its library."""
        return device_of(self.tensor.sample)

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v for v (n_samples,).

        In precision "float64" they are computed at once. In "float32" the largest ones are found in
        float32 when they are requested, and recomputed in float64.
        """
        v = np.asarray(v, dtype=np.float64)
        if self.precision == "float64":
            return ArrayScores(self.exact_scores(v))
        return RecheckedScores(self, v)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v in float64 for each column v of V, (n_samples, m), in one pass."""
        return [ArrayScores(z) for z in np.ascontiguousarray(self.exact_scores(V).T)]

    def exact_scores(self, v: Array, columns: Columns | None = None) -> Array:
        """Return X'v in float64 at some columns (None: all), v (n_samples,) or (n_samples, m)."""
        return self.tensor.exact(v, columns)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights``."""
        return self.tensor.exact(weights, None, squared=True)

    def candidates(self, single: tuple[Any, Any], count: int) -> Columns:
        """Return the columns that may have one of the ``count`` largest absolute scores.

        ``single`` has the float32 scores z and their error bounds e, from ``single_scores``. Column
        j is a candidate if abs(z_j) + e_j is at least the ``count``-th largest abs(z_i) - e_i.
        """
        xp = namespace(single[0])
        magnitude = xp.abs(single[0])
        error = single[1]
        # At least ``count`` columns have scores of this size or more, whatever their errors. A
        # column whose upper bound is smaller is not among the largest.
        threshold = kth_largest(magnitude - error, count)
        return np.array(to_host(xp.nonzero(magnitude + error >= threshold)[0]), dtype=np.int64)

    def single_scores(self, v: Array) -> tuple[Any, Any]:
        """Return X'v summed in float32, and a bound on the error of each score, on the device."""
        xp = namespace(self.tensor.sample)
        # v is scaled, so that its entries are in the range of float32.
        unit = float(np.abs(v).max(initial=0.0)) or 1.0
        if not math.isfinite(unit):
            raise ValueError("v holds NaN or infinity: check the data and the predictions")
        scaled = v / unit
        z = self.tensor.single(scaled.astype(np.float32))
        relative, underflow = self._errors(SingleRounding.of(z))
        error = relative * float(np.linalg.norm(scaled)) + underflow
        # An overflowed sum contains no information, so its column is always a candidate.
        is_finite = xp.isfinite(z)
        z = xp.where(is_finite, z, xp.zeros_like(z))
        error = xp.where(is_finite, error, xp.full_like(error, math.inf))
        return z * unit, error * unit

    def predict(self, weights: Array) -> Array:
        """Return X w (n_samples,) for w = ``weights``, in float64 on the device, in one pass."""
        weights = one_weight_each(weights, self.shape[1])
        if not weights.any():
            return np.zeros(self.shape[0])
        return self.tensor.predict(weights)

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in the processor's memory)."""
        columns = existing_columns(columns, self.shape[1])
        return self.tensor.gather(columns)

    def _errors(self, rounding: SingleRounding) -> tuple[Any, Any]:
        """Return tensors s and t (n_features,) that bound rounding errors of float32 scores.

        The error of x_j'v from ``HeldTensor.single`` is at most s_j ||v|| + t_j, for entries of v
        up to 1. Let m_j be the number of terms of each float32 sum, and n_j that of all terms. Then

        ``s_j = relative(m_j) ||x_j||`` and ``t_j = (sqrt(n_j) ||x_j|| + 4 n_j) safety tiny``.

        ``rounding`` has relative, safety and tiny for the device; t_j bounds underflow.
        """
        if self._lengths is None:
            self._lengths = to_device_of(self.tensor.sample, np.sqrt(self.squared_norms()))
        terms, all_terms = self.tensor.terms()
        # Entries, products and sums below the smallest normal float32 may become zero.
        absolute = rounding.safety * rounding.tiny
        underflow = (all_terms**0.5 * self._lengths + 4.0 * all_terms) * absolute
        return rounding.relative(terms) * self._lengths, underflow


class RecheckedScores(Scores):
    """Scores z = X'v whose largest entries are found in float32 and recomputed in float64.

    Entries computed in float64 are cached, so that later calls return the same values: ``_known``
    marks those in ``_exact``. ``_single`` has the float32 scores and their errors, once computed.

    Parameters
    ----------
    design : OnDevice
        The design that computes scores of X.
    v : (n_samples,) array
        The vector, which is copied.
    """

    def __init__(self, design: OnDevice, v: Array) -> None:
        """Prepare the scores X'v of ``design`` for v (n_samples,); nothing is computed yet."""
        self._design, self._v = design, v.copy()
        # Zeros take no memory before they are written to, and few columns are used.
        self._exact: Array = np.zeros(design.shape[1])
        self._known: NDArray[np.bool_] = np.zeros(design.shape[1], dtype=bool)
        self._single: tuple[Any, Any] | None = None
        self.n_columns = design.shape[1]

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the numbers and scores of the ``count`` columns of largest absolute score.

        Float32 sums give the candidates; their scores are recomputed in float64.
        """
        count = max(0, min(int(count), self.n_columns))
        if self._known.all():
            return ArrayScores(self._exact).top(count)
        if not count:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self._single is None:
            self._single = self._design.single_scores(self._v)
        columns = self._design.candidates(self._single, count)
        positions, values = ArrayScores(self.at(columns)).top(count)
        return columns[positions], values

    def at(self, columns: Columns) -> Array:
        """Return the scores of these columns in float64, each computed at its first use."""
        columns = np.asarray(columns, dtype=np.int64)
        unknown = np.unique(columns[~self._known[columns]])
        if unknown.size:
            # If most columns are requested, it is cheaper to compute all of them, without a copy of
            # columns.
            most_unknown = 2 * unknown.size > self.n_columns
            exact = self._design.exact_scores(self._v, None if most_unknown else unknown)
            unknown = np.flatnonzero(~self._known) if most_unknown else unknown
            self._exact[unknown] = exact[unknown] if most_unknown else exact
            self._known[unknown] = True
        return self._exact[columns]

    def full(self) -> Array:
        """Return all of z in float64, for reading only."""
        return self._exact if self._known.all() else self.at(np.arange(self.n_columns))


def _checked_tensor(X: Any) -> HeldTensor:
    """Return the tensor X, wrapped, after checks of its library, shape, type and layout."""
    namespace(X)  # raises TypeError for objects that are no tensors
    check_shape(tuple(X.shape), X)
    sparse = is_sparse_tensor(X)
    if sparse:
        check_layout(X)
    dtype_of(X)  # raises TypeError for types other than float32 and float64
    return SparseTensor.of(X) if sparse else DenseTensor(X)


def in_place_or_on_device(X: Any) -> Any:
    """Return the tensor X as a NumPy or SciPy view if possible, else as ``OnDevice``.

    A view is possible if the tensor is in the memory of the processor.
    """
    view = host_sparse(X) if is_sparse_tensor(X) else host_view(X)
    return OnDevice(X) if view is None else view


def refuse_foreign(X: Any) -> Any:
    """Raise TypeError with a remedy for X, a sparse array of CuPy or JAX."""
    raise TypeError(
        f"X is a sparse array of {type(X).__module__.partition('.')[0]}, which is not read; "
        "pass a sparse tensor of PyTorch, which shares the device's memory, or a SciPy array"
    )


def _check_double(X: Any) -> None:
    """Refuse the tensor X if its device lacks float64.

    Every certificate (the numbers that prove how good a fit is) needs float64.
    """
    xp = namespace(X)
    device = device_of(X)
    # Some libraries make another type than float64 without an error, so the result is compared.
    try:
        dtype = str(xp.zeros(1, dtype=xp.float64, device=device).dtype)
    except (TypeError, RuntimeError, ValueError) as error:
        dtype = f"none ({error})"
    if not dtype.endswith("float64"):
        raise TypeError(
            f"OnDevice needs float64 on {device}, and the library makes {dtype} of it; "
            "with JAX set jax_enable_x64, on a device without float64 pass X as a NumPy array"
        )
