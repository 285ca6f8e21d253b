"""Kernels: the design of multiple kernel learning, one group of columns per kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._support import EPS, normalized, whole_number
from atomlearn.core import Array, Columns, DenseDesign, Design, Forwarding, RowSubset
from atomlearn.maps.feature_map import MappedDesign, TermMap
from atomlearn.maps.kernel_map import KernelFunction, KernelMap, checked_kernels, factored


@dataclass(frozen=True, slots=True)
class KernelOn:
    """A kernel of scikit-learn by name, on some columns of X, with its parameters.

    Parameters
    ----------
    name : str
        "linear", "rbf", "polynomial", "laplacian", ...
    columns : tuple of int, optional
        Columns of X; None: all.
    parameters : tuple of pairs
        Such as (("gamma", 0.5),).

    References
    ----------
    Rakotomamonjy, Bach, Canu, Grandvalet 2008, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import KernelOn
    >>> KernelOn("linear")(np.eye(2), np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    name: str
    columns: tuple[int, ...] | None = None
    parameters: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if scikit-learn has no kernel of this name."""
        from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

        if self.name not in PAIRWISE_KERNEL_FUNCTIONS:
            raise ValueError(
                f"KernelOn: name must be one of {sorted(PAIRWISE_KERNEL_FUNCTIONS)}, got "
                f"{self.name!r}; pass a function K(A, B) for another kernel"
            )

    def __call__(self, A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel matrix K(A, B) of the rows of A and B, (len(A), len(B))."""
        if self.columns is not None:
            columns = list(self.columns)
            A = A[:, columns]
            B = B[:, columns]
        # Imported here because importing it takes long.
        from sklearn.metrics.pairwise import pairwise_kernels

        kernel_matrix = pairwise_kernels(A, B, metric=self.name, **dict(self.parameters))
        return np.asarray(kernel_matrix, dtype=np.float64)

    def __str__(self) -> str:
        """Return a text such as ``rbf(gamma=0.5) on columns [3]``."""
        arguments = ", ".join(f"{key}={value:g}" for key, value in self.parameters)
        columns_text = "all columns" if self.columns is None else f"columns {list(self.columns)}"
        return f"{self.name}({arguments}) on {columns_text}"


def kernel_grid(
    n_features: int,
    widths: Sequence[float] = (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0),
    degrees: Sequence[int] = (1, 2, 3),
) -> list[KernelOn]:
    """Return Gaussian and polynomial kernels on all columns and on each single column.

    These are the candidates in SimpleMKL's experiments: exp(-||x - y||^2 / (2 width^2)) for each of
    ``widths``, and (x'y + 1)^degree for each of ``degrees``. Scale the columns first. There are
    (len(widths) + len(degrees)) (n_features + 1) kernels.
    """
    kernels = []
    for columns in (None, *((j,) for j in range(n_features))):
        for width in widths:
            kernels.append(KernelOn("rbf", columns, (("gamma", 0.5 / width**2),)))
        for degree in degrees:
            parameters = (("degree", degree), ("gamma", 1.0), ("coef0", 1.0))
            kernels.append(KernelOn("polynomial", columns, parameters))
    return kernels


@dataclass(frozen=True)
class KernelMaps(TermMap):
    """Feature map of a ``Kernels`` design: the low-rank features of all kernels for new rows.

    Attributes
    ----------
    kernels : tuple of functions
        Empty if matrices were given.
    maps : tuple of KernelMap
        The map of each kernel.
    rows : (n_rows, d) array
        Rows of X in the fit that are pivots (landmarks) of any kernel.
    places : tuple of arrays
        Positions of the pivots of each map among ``rows``.
    n_samples : int
        Number of rows in the fit.
    """

    unit = "kernels"

    kernels: tuple[KernelFunction, ...]
    maps: tuple[KernelMap, ...]
    rows: NDArray[Any]
    places: tuple[NDArray[np.int64], ...]
    n_samples: int

    @classmethod
    def of(
        cls,
        kernels: list[KernelFunction],
        maps: list[KernelMap],
        data: NDArray[Any],
        precomputed: bool,
    ) -> KernelMaps:
        """Return the map of all kernels, with the rows of the data that are pivots of one of them.

        ``maps`` has the map of each of ``kernels``, and ``data`` the rows of the fit. If
        the kernels are ``precomputed`` matrices, no functions are kept.
        """
        pivot_rows = np.unique(np.concatenate([map.pivots for map in maps]))
        positions = tuple(np.searchsorted(pivot_rows, map.pivots) for map in maps)
        functions = () if precomputed else tuple(kernels)
        return cls(functions, tuple(maps), data[pivot_rows], positions, len(data))

    @property
    def n_inputs(self) -> int:
        """Number of columns of X, or of samples if the kernels are precomputed."""
        return self.rows.shape[1] if self.kernels else self.n_samples

    @cached_property
    def sizes(self) -> Columns:
        """Number of columns of each term."""
        return np.array([map.pivots.size for map in self.maps], dtype=np.int64)

    def apply(self, X: Any) -> Kernels:
        """Return the columns of new rows X as a design."""
        return Kernels.from_map(X, self)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Raise TypeError: a kernel has no inputs of its own."""
        raise TypeError("kernels are of whole rows, not of one input or two")

    def term_names(self, terms: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``kernel0``, ``kernel1``, ... for these terms."""
        return [f"kernel{term}" for term in np.asarray(terms).tolist()]

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``kernel2[5]`` for column 5 of kernel 2; ``names`` of inputs are not used."""
        numbers = np.asarray(columns, dtype=np.int64)
        terms = self.term_of(columns)
        numbered = zip(self.term_names(terms), (numbers - self.starts[terms]).tolist(), strict=True)
        return [f"{name}[{number}]" for name, number in numbered]


class Kernels(Forwarding, MappedDesign):
    """Design of multiple kernel learning: f(x) = sum_m f_m(x), f_m in the RKHS of kernel m.

    Kernel m is a group of columns Z_m, a low-rank factor of its kernel matrix: Z_m Z_m' = K_m up to
    a residual. The score of group m is ||Z_m'v|| = sqrt(v'K_m v), and group norms select kernels.
    With ``norms.Groups(design.groups)`` and form="squared" the problem is the primal of SimpleMKL,
    1/2 (sum_m ||f_m||)^2 plus the loss [1]_, for any loss.

    Parameters
    ----------
    kernels : list of matrices, functions or KernelOn
        A matrix K (n, n) is a precomputed kernel; a function K(A, B) receives rows of X.
    X : array of shape (n, d), optional
        Rows for the functions.
    rank : int, default=100
        Maximum number of columns (rank) per kernel.
    tol : float, default=1e-6
        Relative error of the low-rank approximation, as a fraction of the trace of the kernel.
    sample_weight : (n,) array, optional
        Weight of each sample for traces and variances.
    normalize : bool, default=True
        Whether each kernel is scaled so that the variances of its columns add up to 1, so that
        kernels of different scales have the same chance.

    Attributes
    ----------
    groups : (n_columns,) ndarray of int64
        The kernel of each column.
    maps : KernelMaps
        For new data: ``Kernels.from_map(X_new, maps)``; if kernels are precomputed,
        ``Kernels.from_map(matrices_new, maps)`` with the (n_new, n) kernels against the rows of the
        fit.

    Notes
    -----
    Columns come from a pivoted Cholesky factorization, a Nystroem approximation whose landmarks are
    the samples with the largest residual so far: O(n rank^2) operations for each kernel, of which
    only ``rank`` columns and the diagonal are read. At rank n it is exact.

    References
    ----------
    .. [1] A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet, "SimpleMKL", JMLR 9 (2008). Columns:
       S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
       JMLR 2 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import KernelOn, Kernels
    >>> X = np.random.default_rng(0).standard_normal((80, 3))
    >>> design = Kernels([KernelOn("rbf", (j,)) for j in range(3)], X)
    >>> y = np.where(np.abs(X[:, 1]) < 0.7, 1.0, -1.0)
    >>> r = solve(design, y, loss="squared_hinge", norm=norms.Groups(design.groups), form="squared",
    ...           alpha=1e-3)
    >>> int(np.argmax(design.sizes_of(r.columns, r.weights)))
    1
    """

    map: KernelMaps

    def __init__(
        self,
        kernels: Sequence[Any],
        X: object = None,
        *,
        rank: int = 100,
        tol: float = 1e-6,
        normalize: bool = True,
        sample_weight: object = None,
    ) -> None:
        """Check the kernels, and compute the low-rank factor Z_m of each."""
        functions, data, precomputed = checked_kernels(kernels, X)
        rank = whole_number("Kernels", "rank", rank)
        if not 0 <= tol < 1:
            raise ValueError(f"Kernels: tol must be a share from 0 to 1, got {tol!r}")
        weight = normalized(sample_weight, len(data))
        maps = []
        columns = []
        for number, kernel in enumerate(functions):
            map, z = factored(kernel, data, weight, rank, float(tol), number)
            if normalize:
                variance = float((weight @ (z - weight @ z) ** 2).sum())
                # The columns of a constant kernel differ only by rounding errors, which must not be
                # scaled up.
                varies = variance > EPS * float((weight @ z**2).sum())
                scale = 1.0 / math.sqrt(variance) if varies else 1.0
                map = replace(map, scale=scale)
                z *= scale
            maps.append(map)
            columns.append(z)
        self._set(columns, KernelMaps.of(functions, maps, data, precomputed))

    @classmethod
    def from_map(cls, X: Any, maps: KernelMaps) -> Kernels:
        """Return the design of new rows with the columns of ``maps``.

        X are the rows (n_new, d) if the kernels are functions. If they were precomputed, X
        are matrices (n_new, n), one for each kernel, of the new rows with the n rows of the
        fit.
        """
        # The kernel values of the new rows with the pivots of each kernel, (n_new, rank).
        to_pivots: list[NDArray[Any]]
        if maps.kernels:
            X = np.asarray(X, dtype=np.float64)
            pairs = zip(maps.kernels, maps.places, strict=True)
            # A kernel of rank 0 has no pivots.
            to_pivots = [
                kernel(X, maps.rows[pivots]) if pivots.size else np.empty((len(X), 0))
                for kernel, pivots in pairs
            ]
        else:
            matrices = [np.asarray(matrix, dtype=np.float64) for matrix in X]
            for matrix in matrices:
                if len(matrices) != len(maps.maps) or matrix.shape[1:] != (maps.n_samples,):
                    raise ValueError(
                        f"new rows need {len(maps.maps)} matrices of their kernels with the "
                        f"{maps.n_samples} rows of the fit, got {len(matrices)} of shape "
                        f"{matrix.shape}"
                    )
            to_pivots = [
                matrix[:, map.pivots] for matrix, map in zip(matrices, maps.maps, strict=True)
            ]
        columns = [map.columns(values) for map, values in zip(maps.maps, to_pivots, strict=True)]
        design = cls.__new__(cls)
        design._set(columns, maps)
        return design

    def _set(self, columns: list[Array], maps: KernelMaps) -> None:
        """Set the attributes from the columns of each kernel, (n_samples, rank), and ``maps``."""
        self._forward_to(DenseDesign(np.asfortranarray(np.hstack(columns))), maps)

    def _forward_to(self, design: Design, maps: KernelMaps) -> None:
        """Set the attributes: ``design``, which has all columns, and the map ``maps``."""
        Forwarding.__init__(self, design)
        self.map = maps
        self._names = None

    @property
    def maps(self) -> KernelMaps:
        """The map of the design, see ``KernelMaps``."""
        return self.map

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The kernel of each column; kernels of rank 0 have a number, too."""
        return self.map.term_of(np.arange(self.shape[1]))

    def with_rows(self, rows: NDArray[np.int64]) -> Kernels:
        """Return the design of these rows, with the same columns, which are not copied."""
        design = type(self).__new__(type(self))
        design._forward_to(RowSubset(self.inner, rows), self.maps)
        return design

    def sizes_of(self, columns: Columns, weights: Array) -> Array:
        """Return the RKHS norm ||f_m|| of the function of each kernel, (n_kernels,).

        It is the Euclidean norm of its weights; ``weights`` (m,) are those of ``columns`` (m,), all
        others are 0.
        """
        squares = np.bincount(self.groups[columns], weights**2, minlength=self.map.n_terms)
        return np.sqrt(squares)
