"""Differences between libraries of tensors: devices, copies to the host, rounding of products.

Only this module asks for the library of a tensor. The array API does not cover reduced precision of
devices, automatic casts, and selection of the k largest.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Block, Columns


@dataclass(frozen=True, slots=True)
class Budget:
    """Sizes of pieces of tensors, on the processor too.

    No answer depends on them, except through the proved bounds. ``benchmarks/device.py`` measures
    passes with them.
    """

    #: Number of entries of X that are converted to float64 at a time (128 MB); with fewer, the
    #: overhead of starting each piece would dominate.
    tile_entries: int = 2**24
    #: Number of terms of a float32 sum before sums are added in float64; it determines the error of
    #: a score.
    single_terms: int = 4096
    #: Largest number of entries of derived columns that are computed and kept for a pass (256 MB);
    #: larger sets are computed in pieces.
    held_entries: int = 2**26


BUDGET = Budget()

#: Relative error of a product whose factors are cut off to tf32 (10 bits) or bfloat16 (7 bits).
TF32 = 2.0**-9
BFLOAT16 = 2.0**-6
#: Errors by PyTorch's names of precision; any other name counts as the coarsest.
_CUTS = {"highest": 0.0, "ieee": 0.0, "none": 0.0, "high": TF32, "tf32": TF32}


@dataclass(frozen=True, slots=True)
class SingleRounding:
    """Bounds on the errors of products and sums in float32 on a device.

    For m terms abs(fl(sum a_k b_k) - sum a_k b_k) <= ``relative(m)`` sum abs(a_k b_k), in any order
    of summation (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1). fl(x)
    is x as the device computes it.

    Attributes
    ----------
    cut : float
        Relative error of products whose factors are cut off.
    unit : float
        Relative error of each addition: 2^-24, and 2^-22 on matrix units, which cut off while they
        align and add (Fasi, Higham, Mikaitis, Pranesh 2021, Numerical behavior of NVIDIA tensor
        cores).
    safety : float
        Factor on error bounds, for terms of second order and for sums in float64.
    tiny : float
        The smallest normal number.
    """

    cut: float
    unit: float
    safety: ClassVar[float] = 1.0 + 1e-2
    tiny: ClassVar[float] = float(np.finfo(np.float32).tiny)

    @classmethod
    def of(cls, tensor: Any) -> SingleRounding:
        """Return the rounding bounds for the library of this tensor, in its present settings."""
        name = namespace(tensor).__name__
        if "torch" in name:
            cut = _torch_cut()
        elif name.rpartition(".")[2] == "array_api_strict" or name.startswith("numpy"):
            cut = 0.0
        else:
            # CuPy may use tf32, JAX bfloat16; neither says so reliably.
            cut = TF32 if "cupy" in name else BFLOAT16
        if os.environ.get("NVIDIA_TF32_OVERRIDE") == "1":
            cut = max(cut, TF32)
        return cls(cut, 2.0**-22 if cut else 2.0**-24)

    def relative(self, terms: Any) -> Any:
        """Return the relative error bound safety ((m + 2) unit + cut) of sums of m terms.

        ``terms`` is m, a number or an array; an array gives a bound for each entry.
        """
        return self.safety * ((terms + 2) * self.unit + self.cut)


class HeldTensor(ABC):
    """Interface of a dense or sparse tensor for ``OnDevice``: products, scores and columns.

    Attributes
    ----------
    is_sparse : bool
        Whether only nonzero entries are stored.
    shape : (int, int)
        (n_samples, n_features).
    dtype : dtype
        float32 or float64.
    sample : tensor
        A tensor on the same device.
    nonzeros : int
        Number of stored entries.
    is_full : bool
        Whether columns are used as dense ones.
    """

    is_sparse: ClassVar[bool]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sample: Any
    nonzeros: int
    is_full: bool = True

    @abstractmethod
    def exact(self, v: Array, columns: Columns | None, squared: bool = False) -> Array:
        """Return sum_i v_i x_ij (x_ij^2 if ``squared``), summed in float64, for each column j.

        ``v`` is (n_samples,), or (n_samples, m) for m vectors in one pass. ``columns`` None means
        all columns. The result is on the processor.
        """

    @abstractmethod
    def single(self, v: NDArray[np.float32]) -> Any:
        """Return X'v on the device, from sums in float32 over a bounded number of terms."""

    @abstractmethod
    def terms(self) -> tuple[Any, Any]:
        """Return the numbers of terms that bound the rounding error of ``single``.

        They are the number of terms summed in float32 before a sum in float64, and the total number
        of terms of a score; for sparse tensors one number per column.
        """

    @abstractmethod
    def predict(self, weights: Array) -> Array:
        """Return X w for w = ``weights`` (n_features,), summed in float64: one pass."""

    @abstractmethod
    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in the processor's memory).

        The caller has checked that the columns exist.
        """

    @abstractmethod
    def columns(self, lo: int, hi: int) -> Any:
        """Return columns lo, ..., hi - 1 as a dense tensor (n_samples, hi - lo)."""


def _torch_cut() -> float:
    """Return the relative error of float32 products that PyTorch's precision settings allow.

    Each backend has a setting of its own, besides the global one. The result is the largest error
    that any of them allows.
    """
    import torch

    try:
        names = [str(torch.get_float32_matmul_precision())]
    except RuntimeError:
        # PyTorch has no common name if the settings of its backends differ.
        names = []
    for backend in (torch.backends, torch.backends.cuda, torch.backends.mkldnn):
        for section in (backend, getattr(backend, "matmul", None)):
            names.append(str(getattr(section, "fp32_precision", "none")))
    return max(_CUTS.get(name, BFLOAT16) for name in names)


def as_written(tensor: Any) -> AbstractContextManager[Any]:
    """Return a context that disables PyTorch's ``autocast``, so that float32 stays float32.

    Under ``autocast`` PyTorch would compute products in bfloat16 or float16. The context does
    nothing if ``tensor`` is of another library.
    """
    if "torch" not in namespace(tensor).__name__:
        return nullcontext()
    import torch

    context: AbstractContextManager[Any] = torch.autocast(tensor.device.type, enabled=False)
    return context


def kth_largest(values: Any, k: int) -> float:
    """Return the k-th largest entry of ``values``, a tensor (m,) with m >= k.

    The array API has no selection: NumPy and PyTorch use their own, other libraries sort.
    """
    xp = namespace(values)
    position = values.shape[0] - k
    if xp is np:
        return float(np.partition(values, position)[position])
    if "torch" in xp.__name__:
        return float(values.topk(k, sorted=False).values.min())
    return float(to_host(xp.sort(values))[position])


def is_sparse_tensor(X: Any) -> bool:
    """Return whether the tensor X is a sparse one of PyTorch, in any layout."""
    return "sparse" in str(getattr(X, "layout", ""))


def host_view(tensor: Any) -> NDArray[Any] | None:
    """Return a tensor as an array that shares its memory; None if NumPy cannot read it."""
    try:
        return np.from_dlpack(tensor.detach() if hasattr(tensor, "detach") else tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def to_host(tensor: Any) -> NDArray[Any]:
    """Return a tensor as a NumPy array; it shares memory if possible, else it is copied."""
    if isinstance(tensor, np.ndarray | np.generic):
        return np.asarray(tensor)
    view = host_view(tensor)
    if view is not None:
        return view
    compat = compatible()
    xp = compat.array_namespace(tensor)
    # In the reference implementation of the standard, devices are objects.
    device = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
    return np.from_dlpack(compat.to_device(tensor, device))


def to_device_of(tensor: Any, array: NDArray[Any]) -> Any:
    """Return ``array`` as a tensor of the library and on the device of ``tensor``.

    It is a copy, unless ``tensor`` is a NumPy array.
    """
    if isinstance(tensor, np.ndarray):
        return array
    return namespace(tensor).asarray(np.array(array, order="C"), device=device_of(tensor))


def in_double(tensor: Any) -> Any:
    """Return a tensor in float64, without a copy if it is float64 already."""
    if isinstance(tensor, np.ndarray):
        return tensor.astype(np.float64, copy=False)
    xp = namespace(tensor)
    return xp.astype(tensor, xp.float64, copy=False)


def device_of(tensor: Any) -> Any:
    """Return the device of a tensor, as named by its library."""
    return compatible().device(tensor)


def namespace(tensor: Any) -> Any:
    """Return the module with the array functions of a tensor's library; NumPy for arrays.

    The module follows the array API standard. TypeError for objects that are no tensors.
    """
    if isinstance(tensor, np.ndarray):
        return np
    try:
        return compatible().array_namespace(tensor)
    except TypeError as error:
        raise TypeError(
            f"OnDevice needs a tensor of an array library such as PyTorch, got "
            f"{type(tensor).__name__}: {error}"
        ) from error


def compatible() -> Any:
    """Return the module array_api_compat, which wraps the libraries of tensors.

    It is imported at the first call, because only tensors need it. The error says how to install
    it.
    """
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "tensors on a device need array-api-compat: pip install array-api-compat"
        ) from error
    return array_api_compat


def dtype_of(X: Any) -> np.dtype[Any]:
    """Return the type of the tensor X, float32 or float64, as a dtype of NumPy; refuse others."""
    name = str(X.dtype).rpartition(".")[2]
    if name not in ("float32", "float64"):
        raise TypeError(
            f"X must be a float32 or float64 tensor, got {X.dtype}; convert it on its device, for "
            "example with X.float()"
        )
    return np.dtype(name)
