"""All squares and all products of two columns, in memory, under readable names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.errors import CommandError
from atomlearn.designs.compressed import is_sparse

#: Expanding may take this share of the memory that is free.
_SHARE_OF_MEMORY = 0.5


@dataclass(frozen=True, slots=True)
class Features:
    """What is selected from.

    X : (n_samples, n_features) array or sparse matrix; names of the columns of the file;
    interactions : whether X goes on with all products of two columns, (0, 0), (0, 1), ... (p, p).
    """

    X: Any
    names: list[str]
    interactions: bool = False

    def factors(self, index: int) -> tuple[int, ...]:
        """Return the one or two columns of the file that feature ``index`` is the product of."""
        n_inputs = len(self.names)
        if index < n_inputs:
            return (index,)
        place = index - n_inputs
        # Row i of the upper triangle begins at i p - i (i - 1) / 2: solved for i, then mended.
        i = int(n_inputs + 0.5 - np.sqrt((n_inputs + 0.5) ** 2 - 2.0 * place))
        while place < _row_start(i, n_inputs):
            i -= 1
        while place >= _row_start(i + 1, n_inputs):
            i += 1
        return (i, i + place - _row_start(i, n_inputs))

    def name(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        factors = [self.names[factor] for factor in self.factors(index)]
        if len(factors) == 1:
            return factors[0]
        first, second = factors
        return (
            f"{first}^2"
            if self.factors(index)[0] == self.factors(index)[1]
            else (f"{first}:{second}")
        )


def _row_start(i: int, n_inputs: int) -> int:
    return i * n_inputs - i * (i - 1) // 2


def expand(X: Any, names: list[str]) -> Features:
    """Return all columns, their squares and all products of two: p + p (p + 1) / 2 features."""
    from sklearn.preprocessing import PolynomialFeatures

    n_samples, n_inputs = X.shape
    n_features = n_inputs + n_inputs * (n_inputs + 1) // 2
    _check_memory(_bytes_needed(X, n_features), n_inputs, n_features)
    if is_sparse(X):
        X = X.tocsr().astype(np.float64)
        return Features(PolynomialFeatures(2, include_bias=False).fit_transform(X), names, True)
    inputs = np.asarray(X, dtype=np.float64)
    result: NDArray[np.float64] = np.empty((n_samples, n_features), order="F")
    result[:, :n_inputs] = inputs
    start = n_inputs
    with np.errstate(over="ignore"):
        for column in range(n_inputs):
            stop = start + n_inputs - column
            np.multiply(inputs[:, column:], inputs[:, [column]], out=result[:, start:stop])
            start = stop
    return Features(result, names, True)


def _bytes_needed(X: Any, n_features: int) -> int:
    if not is_sparse(X):
        return int(X.shape[0]) * n_features * 8
    in_row = np.diff(X.tocsr().indptr).astype(np.float64)
    entries = float((in_row + in_row * (in_row + 1) / 2).sum())
    # A value and a 64-bit index an entry, once by rows and once by columns.
    return int(2 * 16 * entries + 16 * n_features)


def _check_memory(needed: int, n_inputs: int, n_features: int) -> None:
    available = available_memory()
    if available is not None and needed > _SHARE_OF_MEMORY * available:
        raise CommandError(
            f"--interactions of {n_inputs:,} columns makes {n_features:,} features, which take "
            f"{_shown(needed)} where {_shown(available)} of memory are free (at most half is "
            "used); leave --interactions out, or first select some hundred columns and run again "
            "on a file of these"
        )


def _shown(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"


def available_memory() -> int | None:
    """Return the bytes of memory that can be had without swapping, None where unknown."""
    free = None
    try:
        for entry in Path("/proc/meminfo").read_text().splitlines():
            if entry.startswith("MemAvailable:"):
                free = int(entry.split()[1]) * 1024
    except OSError:
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            return None
    return free
