"""X as a tensor on a device: the device multiplies, and what decides is summed in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.designs.blocks import DenseBlock
from atomlearn.designs.entries import refuse_entry
from atomlearn.designs.frames import library_of
from atomlearn.designs.scores import ArrayScores, largest
from atomlearn.interfaces.design import Array, Block, Columns, Design, Scores

#: Entries made float64 on the device at a time (16 MB, which caches of devices hold).
TILE_ENTRIES = 2**21
#: Rows over which float32 sums run before they are added in float64: their error is that of these.
SINGLE_ROWS = 4096
#: Relative error of rounding to float32, and its least normal number.
ROUNDING, TINY = 2.0**-24, 2.0**-126
#: Safety on the error bound, for its terms of second order and for sums in float64.
SAFETY = 1.0 + 1e-2


class OnDevice(Design):
    """z = X'v for a tensor of any library of the array API: PyTorch, CuPy, JAX, ...

    Parameters
    ----------
    X : tensor (n_samples, n_features), float32 or float64
        Read where it is, never copied as a whole, never written to.
    precision : {"auto", "float32", "float64"}, default="auto"
        In which precision the device looks for the best columns. "float64": all sums are float64,
        made from tiles of X. "float32": X'v in float32 first, with a proved bound on the error of
        each score; the columns that may be among the best by that bound are scored again in
        float64, so the answer is the same. "auto" is "float32" for float32 data.

    Raises
    ------
    ValueError, TypeError
        For other shapes and types, and for entries that are not finite, with row and column.

    Notes
    -----
    Scores given to a solver are sums in float64 in either case, and so is the certificate.
    In float32 a pass reads 4 n p bytes once; the bound is
    ``|fl(x_j'v) - x_j'v| <= ((m + 2) 2^-24 + c) ||x_j|| ||v||``, where m = min(n, 4096) rows are
    summed in float32 and c is what the library may cut off the inputs: 2^-9 where PyTorch is
    allowed tf32, 2^-7 for bfloat16 and for JAX, else 0 (Higham 2002, Accuracy and Stability of
    Numerical Algorithms, eq. 3.5). Norms that need all scores (groups, for one) ask for float64
    ones at once. Column norms are computed once, in float64. v goes to the device (8 n bytes) and
    scores come back (8 p bytes); columns of the active set come back once and are worked on by the
    processor.
    """

    def __init__(self, X: Any, *, precision: str = "auto") -> None:
        self._X = X
        self._namespace()
        if len(X.shape) != 2:
            raise ValueError(
                f"X must be 2-d (rows are samples), got a tensor of shape {tuple(X.shape)}"
            )
        self._shape = int(X.shape[0]), int(X.shape[1])
        for size, what in zip(self._shape, ("sample", "feature"), strict=True):
            if not size:
                raise ValueError(f"X has 0 {what}(s) while a minimum of 1 is required")
        if "sparse" in str(getattr(X, "layout", "")):
            raise TypeError("X is a sparse tensor; pass X.to_dense(), or a SciPy sparse array")
        self._dtype = _dtype_of(X)
        if precision not in ("auto", "float32", "float64"):
            raise ValueError(f"precision must be 'auto', 'float32' or 'float64', got {precision!r}")
        if precision == "float32" and self._dtype != np.float32:
            raise ValueError("precision='float32' is for float32 tensors, and X is float64")
        self.precision = str(self._dtype) if precision == "auto" else precision
        self._lengths: Array | None = None
        self._check_double()
        self._check_finite()

    def __repr__(self) -> str:
        return f"OnDevice({self._shape}, {self._dtype}, {self.device})"

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def device(self) -> Any:
        """Where X is, as its library says it."""
        return _compat().device(self._X)

    def scores(self, v: Array) -> Scores:
        v = np.asarray(v, dtype=np.float64)
        if self.precision == "float64":
            return ArrayScores(self.exact_scores(v))
        return RecheckedScores(self, v)

    def exact_scores(self, v: Array, columns: Columns | None = None) -> Array:
        """Return X'v at some columns (None: all), summed in float64 on the device."""
        return self._in_float64(v, columns, squared=False)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column, summed in float64: one pass."""
        weights = np.ones(self._shape[0]) if curvature is None else curvature
        return self._in_float64(weights, None, squared=True)

    def single_scores(self, v: Array) -> tuple[Array, Array]:
        """Return X'v from sums in float32, and a bound on the error of each."""
        xp = self._namespace()
        largest_entry = float(np.abs(v).max(initial=0.0))
        if not largest_entry:
            return np.zeros(self._shape[1]), np.zeros(self._shape[1])
        # Scaled, so that no entry of v leaves the range of float32 by its size alone.
        single = self._to_device((v / largest_entry).astype(np.float32))
        total = xp.zeros(self._shape[1], dtype=xp.float64, device=self.device)
        for start in range(0, self._shape[0], SINGLE_ROWS):
            rows = slice(start, min(start + SINGLE_ROWS, self._shape[0]))
            part = xp.matmul(xp.matrix_transpose(self._X[rows, :]), single[rows])
            total = total + xp.astype(part, xp.float64)
        z = np.array(self._to_host(total))
        length = float(np.linalg.norm(v / largest_entry))
        terms, lengths = min(self._shape[0], SINGLE_ROWS) + 2, self._column_lengths()
        error = SAFETY * (terms * ROUNDING + _cut(xp)) * length * lengths
        # Entries and products below the least normal float32 may be lost as a whole.
        error += TINY * (np.sqrt(self._shape[0]) * lengths + 2.0 * self._shape[0])
        # Sums that overflowed tell nothing: such columns are always looked at.
        lost = ~np.isfinite(z)
        z[lost], error[lost] = 0.0, np.inf
        return z * largest_entry, error * largest_entry

    def predict(self, weights: Array) -> Array:
        """Return X w, summed in float64 on the device: one pass."""
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (self._shape[1],):
            raise ValueError(f"weights must have shape ({self._shape[1]},), got {weights.shape}")
        xp = self._namespace()
        used = np.flatnonzero(weights)
        if not used.size:
            return np.zeros(self._shape[0])
        few = 4 * used.size < self._shape[1]
        w = self._to_device(weights[used] if few else weights)
        places = self._to_device(used) if few else None
        width = used.size if few else self._shape[1]
        parts = []
        for rows in self._tiles(self._shape[0], width):
            tile = self._X[rows, :]
            tile = tile if places is None else xp.take(tile, places, axis=1)
            parts.append(self._to_host(xp.matmul(xp.astype(tile, xp.float64), w)))
        return np.concatenate(parts)

    def gather(self, columns: Columns) -> Block:
        columns = np.asarray(columns, dtype=np.int64)
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < self._shape[1]:
            raise IndexError(
                f"columns must lie in [0, {self._shape[1]}), got values from {columns.min()} to "
                f"{columns.max()}"
            )
        if not columns.size:
            return DenseBlock(np.zeros((self._shape[0], 0), dtype=self._dtype))
        return DenseBlock(self._to_host(self._columns(columns)))

    def _in_float64(self, v: Array, columns: Columns | None, squared: bool) -> Array:
        xp = self._namespace()
        weights = self._to_device(np.asarray(v, dtype=np.float64))
        width = self._shape[1] if columns is None else columns.size
        total = xp.zeros(width, dtype=xp.float64, device=self.device)
        X = self._X if columns is None else self._columns(columns)
        for rows in self._tiles(self._shape[0], width):
            tile = xp.astype(X[rows, :], xp.float64)
            tile = tile * tile if squared else tile
            total = total + xp.matmul(xp.matrix_transpose(tile), weights[rows])
        return self._to_host(total)

    def _column_lengths(self) -> Array:
        if self._lengths is None:
            self._lengths = np.sqrt(self.squared_norms())
        return self._lengths

    def _columns(self, columns: Columns) -> Any:
        return self._namespace().take(self._X, self._to_device(columns), axis=1)

    @staticmethod
    def _tiles(length: int, width: int) -> list[slice]:
        step = max(1, TILE_ENTRIES // max(width, 1))
        return [slice(start, min(start + step, length)) for start in range(0, length, step)]

    def _namespace(self) -> Any:
        try:
            return _compat().array_namespace(self._X)
        except TypeError as error:
            raise TypeError(
                f"OnDevice needs a tensor of an array library such as PyTorch, got "
                f"{type(self._X).__name__}: {error}"
            ) from error

    def _to_device(self, array: NDArray[Any]) -> Any:
        return self._namespace().asarray(np.array(array, order="C"), device=self.device)

    def _to_host(self, tensor: Any) -> NDArray[Any]:
        return to_host(tensor)

    def _check_double(self) -> None:
        """Refuse devices without float64 sums, which every certificate needs."""
        xp = self._namespace()
        try:
            made = str(xp.zeros(1, dtype=xp.float64, device=self.device).dtype)
        except (TypeError, RuntimeError, ValueError) as error:
            made = f"none ({error})"
        if not made.endswith("float64"):
            raise TypeError(
                f"OnDevice needs float64 on {self.device}, and the library makes {made} of it; "
                "with JAX set jax_enable_x64, on a device without float64 pass X as a NumPy array"
            )

    def _check_finite(self) -> None:
        sums = self.exact_scores(np.ones(self._shape[0]))
        for column in np.flatnonzero(~np.isfinite(sums)).tolist():
            entries = self.gather(np.array([column])).dense()[:, 0]
            bad = np.flatnonzero(~np.isfinite(entries))
            if bad.size:
                refuse_entry(entries[bad[0]], int(bad[0]), column, None)


class RecheckedScores(Scores):
    """z whose best entries are found in float32 and computed again in float64.

    An entry once computed in float64 is kept, so all answers agree with each other.
    """

    def __init__(self, design: OnDevice, v: Array) -> None:
        self._design, self._v = design, v.copy()
        self._exact: Array = np.full(design.shape[1], np.nan)
        self._single: tuple[Array, Array] | None = None
        self._n_known = 0

    @property
    def n_columns(self) -> int:
        return self._design.shape[1]

    def top(self, count: int) -> tuple[Columns, Array]:
        count = max(0, min(int(count), self.n_columns))
        if self._n_known == self.n_columns:
            return ArrayScores(self._exact).top(count)
        if not count:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self._single is None:
            self._single = self._design.single_scores(self._v)
        z, error = self._single
        magnitude = np.abs(z)
        least = magnitude - error
        # At least ``count`` columns reach this; one that cannot reach it is not among the best.
        bar = np.partition(least, self.n_columns - count)[self.n_columns - count]
        columns = np.flatnonzero(magnitude + error >= bar)
        return largest(columns, self.at(columns), count)

    def at(self, columns: Columns) -> Array:
        columns = np.asarray(columns, dtype=np.int64)
        unknown = np.unique(columns[np.isnan(self._exact[columns])])
        if unknown.size:
            # Nearly all of them are cheaper as all of them, which needs no copy of columns.
            everything = 2 * unknown.size > self.n_columns
            found = self._design.exact_scores(self._v, None if everything else unknown)
            unknown = np.flatnonzero(np.isnan(self._exact)) if everything else unknown
            self._exact[unknown] = found[unknown] if everything else found
            self._n_known += unknown.size
        return self._exact[columns]

    def full(self) -> Array:
        """Return all of z, in float64; read-only use."""
        return self.at(np.arange(self.n_columns)) if self._n_known < self.n_columns else self._exact

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        return ArrayScores(self.full()).group_norms(labels, n_groups)


def is_tensor(X: object) -> bool:
    """Return whether X is a tensor of an array library other than NumPy; none is imported."""
    return (
        hasattr(type(X), "__dlpack__")
        and hasattr(type(X), "__dlpack_device__")
        and not isinstance(X, np.ndarray)
        and not library_of(X)
    )


def host_view(tensor: Any) -> NDArray[Any] | None:
    """Return a tensor as an array that shares its memory; None where NumPy cannot read that."""
    try:
        return np.from_dlpack(tensor.detach() if hasattr(tensor, "detach") else tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def to_host(tensor: Any) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which shares its memory where it can."""
    view = host_view(tensor)
    if view is not None:
        return view
    compat = _compat()
    xp = compat.array_namespace(tensor)
    # The reference implementation of the standard names its devices by objects.
    device = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
    moved = compat.to_device(tensor, device)
    return moved if isinstance(moved, np.ndarray) else np.from_dlpack(moved)


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "tensors on a device need array-api-compat: pip install 'atomlearn[gpu]'"
        ) from error
    return array_api_compat


def _cut(xp: Any) -> float:
    """Return by how much a library may change the inputs of float32 products: tf32, bfloat16."""
    name = xp.__name__
    if "torch" in name:
        return {"highest": 0.0, "high": 2.0**-9}.get(xp.get_float32_matmul_precision(), 2.0**-7)
    return 2.0**-7 if "jax" in name else 0.0


def _dtype_of(X: Any) -> np.dtype[Any]:
    name = str(X.dtype).rpartition(".")[2]
    if name not in ("float32", "float64"):
        raise TypeError(
            f"X must be a float32 or float64 tensor, got {X.dtype}; convert it on its device, for "
            "example with X.float()"
        )
    return np.dtype(name)
