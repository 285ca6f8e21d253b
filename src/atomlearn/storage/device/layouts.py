"""Layouts of sparse tensors (CSC, CSR, COO): checks, and conversion to columns."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp


def host_sparse(X: Any) -> Any | None:
    """Return the sparse tensor X as a SciPy array that shares its memory; None if impossible.

    It is impossible for tensors on other devices than the processor, for tensors without two axes,
    and for types that NumPy lacks. The indices of CSR and CSC are not checked here; ``as_design``
    checks all sparse arrays.
    """
    check_layout(X)
    if X.device.type != "cpu" or len(X.shape) != 2:
        return None
    kind = _layout(X)
    shape = (int(X.shape[0]), int(X.shape[1]))
    try:
        if kind == "coo":
            X = _checked(X.detach())
            return sp.coo_array((X._values().numpy(), tuple(X._indices().numpy())), shape=shape)
        starts, indices, values = (part.detach().numpy() for part in _parts(X))
    except TypeError:
        return None  # NumPy does not have this type
    # The parts are set one by one: the constructor of SciPy might copy the indices.
    array = sp.csr_array(shape) if kind == "csr" else sp.csc_array(shape)
    array.data = values
    array.indices = indices
    array.indptr = starts
    return array


def check_layout(X: Any) -> None:
    """Refuse a sparse tensor X in a layout other than COO, CSR and CSC, or with vector entries."""
    kind = _layout(X)
    if kind not in ("coo", "csr", "csc") or X.dense_dim():
        obstacle = (
            "entries that are not numbers" if kind in ("coo", "csr", "csc") else f"layout {kind}"
        )
        raise TypeError(
            f"X is a sparse tensor with {obstacle}; pass a COO, CSR or CSC tensor of numbers, for "
            "example X.to_dense().to_sparse_csc()"
        )


def _layout(X: Any) -> str:
    """Return the layout of the sparse tensor X: "csr", "csc", "coo" or another PyTorch name."""
    name = str(X.layout).rpartition(".")[2]
    return name.removeprefix("sparse_")


def _parts(X: Any) -> tuple[Any, Any, Any]:
    """Return the three arrays of a CSR or CSC tensor X: starts (pointers), indices and values."""
    if _layout(X) == "csr":
        return X.crow_indices(), X.col_indices(), X.values()
    return X.ccol_indices(), X.row_indices(), X.values()


def by_columns(X: Any) -> tuple[Any, Any, Any]:
    """Return the CSC arrays (values, row indices, column pointers) of any sparse tensor X.

    The rows of each column increase and are distinct: repeated entries of COO are added up. A CSC
    tensor is not copied. PyTorch checks all indices first.
    """
    torch = torch_module()
    kind = _layout(X)
    X = _checked(X)
    starts, rows, values = _parts((X.coalesce() if kind == "coo" else X).to_sparse_csc())
    if kind == "csc":
        return values, rows, starts
    fits_in_32_bits = max(*X.shape, rows.numel()) < 2**31
    index_type = torch.int32 if fits_in_32_bits else torch.int64
    return values, rows.to(index_type), starts.to(index_type)


def _checked(X: Any) -> Any:
    """Return the sparse tensor X, with the same memory, after PyTorch checked all its indices.

    ValueError if an index is out of range or out of order.
    """
    torch = torch_module()
    try:
        if _layout(X) == "coo":
            arrays = X._indices(), X._values()
            return torch.sparse_coo_tensor(*arrays, X.shape, check_invariants=True)
        return torch.sparse_compressed_tensor(
            *_parts(X), X.shape, layout=X.layout, check_invariants=True
        )
    except RuntimeError as error:
        raise ValueError(
            f"X is a broken {_layout(X).upper()} tensor ({error}); rebuild it with "
            "torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape)"
        ) from error


def torch_module() -> Any:
    """Return PyTorch, imported at the first call, because it is optional and slow to import."""
    import torch

    return torch
