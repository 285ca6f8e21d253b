"""What libraries of tensors differ in: where tensors are, how they come back, how products round.

The one place that asks which library a tensor is of. The array API knows nothing of devices'
reduced precision, of automatic casts, or of selecting the k largest.
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

    No answer depends on them but by the bounds that are proved.
    ``benchmarks/device.py`` times passes in them.
    """

    #: Entries of X made float64 at a time (128 MB): fewer would be all starting of work.
    tile_entries: int = 2**24
    #: Terms over which float32 sums run before they are added in float64: the error of a score is
    #: that of so many.
    single_terms: int = 4096
    #: Entries of columns that are not simply there and are made, and held, for a pass (256 MB), or
    #: read at a time where all of them are more.
    held_entries: int = 2**26


BUDGET = Budget()

#: What both factors of a product lose together to tf32 (10 bits kept) and to bfloat16 (7 bits).
TF32 = 2.0**-9
BFLOAT16 = 2.0**-6
#: What the names of PyTorch's settings mean; any other is taken for the coarsest.
_CUTS = {"highest": 0.0, "ieee": 0.0, "none": 0.0, "high": TF32, "tf32": TF32}


@dataclass(frozen=True, slots=True)
class SingleRounding:
    """How far products and sums in float32 may be off on a device.

    For m terms |fl(sum a_k b_k) - sum a_k b_k| <= ``relative(m)`` sum |a_k b_k|, in any order of
    summation (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1).

    cut : by how much products may be changed by cutting off their factors, relatively;
    unit : of each addition. 2^-24, and 2^-22 on units for matrices, which cut off what they align
    and add (Fasi, Higham, Mikaitis, Pranesh 2021, Numerical behavior of NVIDIA tensor cores);
    safety : on error bounds, for their terms of second order and for sums in float64; tiny : the
    least normal number.
    """

    cut: float
    unit: float
    safety: ClassVar[float] = 1.0 + 1e-2
    tiny: ClassVar[float] = float(np.finfo(np.float32).tiny)

    @classmethod
    def of(cls, tensor: Any) -> SingleRounding:
        """Return what the library of this tensor is allowed to do at present."""
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
        """Return the relative bound for sums of so many terms, a number or an array."""
        return self.safety * ((terms + 2) * self.unit + self.cut)


class HeldTensor(ABC):
    """The sums and columns that ``OnDevice`` asks of a tensor, dense or sparse, where it is.

    shape : (n_samples, n_features); dtype : float32 or float64;
    sample : a tensor that is where X is; nonzeros : number of stored entries;
    is_full : whether columns are worked on as dense ones.
    """

    #: Whether it is kept by its non-zero entries.
    is_sparse: ClassVar[bool]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sample: Any
    nonzeros: int
    is_full: bool = True

    @abstractmethod
    def exact(self, v: Array, columns: Columns | None, squared: bool = False) -> Array:
        """Return sum_i v_i x_ij (x_ij^2 if ``squared``), summed in float64, of these columns.

        v : (n_samples,), or (n_samples, m) for m vectors in one reading.
        """

    @abstractmethod
    def single(self, v: NDArray[np.float32]) -> Any:
        """Return X'v on the device, from sums in float32 over a bounded number of terms."""

    @abstractmethod
    def terms(self) -> tuple[Any, Any]:
        """Return how many terms a sum of ``single`` has in float32, and in all."""

    @abstractmethod
    def predict(self, weights: Array) -> Array:
        """Return X w, summed in float64: one pass."""

    @abstractmethod
    def gather(self, columns: Columns) -> Block:
        """Return these columns, which exist, as a block of the processor."""

    @abstractmethod
    def columns(self, lo: int, hi: int) -> Any:
        """Return columns lo..hi as a dense tensor (n_samples, hi - lo)."""


def _torch_cut() -> float:
    """Return what PyTorch may cut off: by its old setting, and by those of each backend."""
    import torch

    try:
        names = [str(torch.get_float32_matmul_precision())]
    except RuntimeError:
        names = []  # Said of the backends one by one, which PyTorch does not put into one word.
    for backend in (torch.backends, torch.backends.cuda, torch.backends.mkldnn):
        for part in (backend, getattr(backend, "matmul", None)):
            names.append(str(getattr(part, "fp32_precision", "none")))
    return max(_CUTS.get(name, BFLOAT16) for name in names)


def as_written(tensor: Any) -> AbstractContextManager[Any]:
    """Return a context in which products have the precision of their factors.

    PyTorch would form them in bfloat16 or float16 where the caller works under ``autocast``.
    """
    if "torch" not in namespace(tensor).__name__:
        return nullcontext()
    import torch

    context: AbstractContextManager[Any] = torch.autocast(tensor.device.type, enabled=False)
    return context


def kth_largest(values: Any, k: int) -> float:
    """Return the k-th largest of a one-dimensional tensor of at least k entries."""
    xp = namespace(values)
    place = values.shape[0] - k
    if xp is np:
        return float(np.partition(values, place)[place])
    if "torch" in xp.__name__:
        return float(values.topk(k, sorted=False).values.min())
    return float(to_host(xp.sort(values))[place])


def is_sparse_tensor(X: Any) -> bool:
    """Return whether a tensor is one of PyTorch's sparse ones, of whatever layout."""
    return "sparse" in str(getattr(X, "layout", ""))


def host_view(tensor: Any) -> NDArray[Any] | None:
    """Return a tensor as an array that shares its memory; None where NumPy cannot read that."""
    try:
        return np.from_dlpack(tensor.detach() if hasattr(tensor, "detach") else tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def to_host(tensor: Any) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which shares its memory where it can."""
    if isinstance(tensor, np.ndarray | np.generic):
        return np.asarray(tensor)
    view = host_view(tensor)
    if view is not None:
        return view
    compat = compatible()
    xp = compat.array_namespace(tensor)
    # The reference implementation of the standard names its devices by objects.
    device = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
    return np.from_dlpack(compat.to_device(tensor, device))


def to_device_of(tensor: Any, array: NDArray[Any]) -> Any:
    """Return an array next to a tensor: a copy, but for arrays of the processor."""
    if isinstance(tensor, np.ndarray):
        return array
    return namespace(tensor).asarray(np.array(array, order="C"), device=device_of(tensor))


def in_double(tensor: Any) -> Any:
    """Return a tensor in float64, without a copy where it is."""
    if isinstance(tensor, np.ndarray):
        return tensor.astype(np.float64, copy=False)
    xp = namespace(tensor)
    return xp.astype(tensor, xp.float64, copy=False)


def device_of(tensor: Any) -> Any:
    """Return where a tensor is, as its library says it."""
    return compatible().device(tensor)


def namespace(tensor: Any) -> Any:
    """Return the functions of the array API for this tensor; NumPy's for arrays."""
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
    """Return array_api_compat, or say how to get it."""
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "tensors on a device need array-api-compat: pip install 'atomlearn[gpu]'"
        ) from error
    return array_api_compat


def dtype_of(X: Any) -> np.dtype[Any]:
    """Return float32 or float64, or refuse the type of a tensor."""
    name = str(X.dtype).rpartition(".")[2]
    if name not in ("float32", "float64"):
        raise TypeError(
            f"X must be a float32 or float64 tensor, got {X.dtype}; convert it on its device, for "
            "example with X.float()"
        )
    return np.dtype(name)
