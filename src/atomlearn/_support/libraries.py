"""The library that an object comes from, found without importing any library."""

from __future__ import annotations

import os

import numpy as np

#: Libraries whose data frames narwhals reads in place.
TABLES = ("pandas", "polars", "pyarrow", "modin", "cudf")


def library_of(X: object) -> str:
    """Return the library of X, such as "pandas", "polars" or "anndata"; "" for others."""
    root = type(X).__module__.partition(".")[0]
    return root if root in (*TABLES, "anndata") else ""


def is_table(X: object) -> bool:
    """Return whether X is a data frame in memory, of a library in TABLES."""
    return library_of(X) in TABLES


def is_arrow(X: object) -> bool:
    """Return whether X is a table of another kind, which offers its columns as Arrow does."""
    is_other = not is_table(X) or type(X).__name__ == "RecordBatch"
    return is_other and hasattr(X, "__arrow_c_stream__")


def is_path(X: object) -> bool:
    """Return whether X names a file or a folder."""
    return isinstance(X, (str, os.PathLike))


def is_dask(X: object) -> bool:
    """Return whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "__dask_keys__")


def is_tensor(X: object) -> bool:
    """Return whether X is a tensor of an array library other than NumPy."""
    return (
        hasattr(type(X), "__dlpack__")
        and hasattr(type(X), "__dlpack_device__")
        and not isinstance(X, np.ndarray)
        and not library_of(X)
    )


def is_foreign_sparse(X: object) -> bool:
    """Return whether X is a sparse array of CuPy or JAX, which atomlearn cannot read."""
    module = type(X).__module__
    return module.startswith(("cupyx.scipy.sparse", "jax.experimental.sparse"))


def is_anndata(X: object) -> bool:
    """Return whether X is an AnnData object."""
    return library_of(X) == "anndata" and hasattr(X, "var_names")
