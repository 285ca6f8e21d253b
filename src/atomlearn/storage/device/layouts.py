"""Sparse tensors as others lay them out (CSC, CSR, COO), checked and turned to columns."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

_REMEDY = "rebuild it with torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape)"


def host_sparse(X: Any) -> Any | None:
    """Return a sparse tensor as a SciPy array that shares its memory; None where that cannot be.

    The ranges of its indices are not checked; ``as_design`` does that with all sparse arrays.
    """
    check_layout(X)
    if X.device.type != "cpu" or len(X.shape) != 2:
        return None
    kind, shape = _layout(X), (int(X.shape[0]), int(X.shape[1]))
    try:
        if kind == "coo":
            values, rows, columns = _triplets(X, *shape)
            parts = values.detach().numpy(), (rows.numpy(), columns.numpy())
            return sp.coo_array(parts, shape=shape)
        _check_starts(f"{kind.upper()} tensor", *_parts(X), shape[0 if kind == "csr" else 1])
        starts, indices, values = (part.detach().numpy() for part in _parts(X))
    except TypeError:
        return None  # Of a type that NumPy does not have.
    array = sp.csr_array(shape) if kind == "csr" else sp.csc_array(shape)
    array.data, array.indices, array.indptr = values, indices, starts
    return array


def check_layout(X: Any) -> None:
    """Refuse sparse layouts other than COO, CSR and CSC, and entries that are vectors."""
    kind = _layout(X)
    if kind not in ("coo", "csr", "csc") or X.dense_dim():
        what = "entries that are not numbers" if kind in ("coo", "csr", "csc") else f"layout {kind}"
        raise TypeError(
            f"X is a sparse tensor with {what}; pass a COO, CSR or CSC tensor of numbers, for "
            "example X.to_dense().to_sparse_csc()"
        )


def _layout(X: Any) -> str:
    name = str(X.layout).rpartition(".")[2]
    return name.removeprefix("sparse_")


def _parts(X: Any) -> tuple[Any, Any, Any]:
    """Return starts, indices and values of a CSR or CSC tensor."""
    if _layout(X) == "csr":
        return X.crow_indices(), X.col_indices(), X.values()
    return X.ccol_indices(), X.row_indices(), X.values()


def by_columns(X: Any, n_samples: int, n_features: int) -> tuple[Any, Any, Any]:
    """Return values, rows and starts of compressed columns, rows increasing, none twice."""
    torch, kind = torch_module(), _layout(X)
    if kind == "coo":
        return _from_triplets(*_triplets(X, n_samples, n_features), n_samples, n_features)
    starts, minor, values = _parts(X)
    n_major, n_minor = (n_samples, n_features) if kind == "csr" else (n_features, n_samples)
    _check_starts(f"{kind.upper()} tensor", starts, minor, values, n_major)
    _check_range(f"{kind.upper()} tensor: {'column' if kind == 'csr' else 'row'}", minor, n_minor)
    if kind == "csc" and _increasing(minor, starts):
        return values, minor, starts
    major = torch.repeat_interleave(
        torch.arange(n_major, device=minor.device), starts.diff(), output_size=minor.numel()
    )
    rows, columns = (major, minor) if kind == "csr" else (minor, major)
    return _from_triplets(values, rows, columns, n_samples, n_features)


def _triplets(X: Any, n_samples: int, n_features: int) -> tuple[Any, Any, Any]:
    """Return values, rows and columns of a COO tensor, coalesced or not, checked."""
    indices, values = X._indices(), X._values()
    if indices.ndim != 2 or tuple(indices.shape) != (2, values.shape[0]):
        raise ValueError(
            f"COO tensor has indices of shape {tuple(indices.shape)} for {tuple(values.shape)} "
            f"values; {_REMEDY}"
        )
    rows, columns = indices[0], indices[1]
    _check_range("COO tensor: row", rows, n_samples)
    _check_range("COO tensor: column", columns, n_features)
    return values, rows, columns


def _check_starts(what: str, starts: Any, indices: Any, values: Any, n_major: int) -> None:
    if starts.ndim != 1 or indices.ndim != 1 or values.ndim != 1:
        raise ValueError(f"{what}: starts, indices and values must be 1-d; {_REMEDY}")
    count = int(values.numel())
    if int(indices.numel()) != count:
        raise ValueError(f"{what} has {indices.numel()} indices and {count} values; {_REMEDY}")
    if int(starts.numel()) != n_major + 1:
        raise ValueError(f"{what} has {starts.numel()} starts, expected {n_major + 1}; {_REMEDY}")
    if int(starts[0]) != 0 or int(starts[-1]) != count or bool((starts.diff() < 0).any()):
        raise ValueError(
            f"{what}: starts must rise from 0 to {count}, the number of values; {_REMEDY}"
        )


def _check_range(what: str, indices: Any, limit: int) -> None:
    if indices.numel():
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= limit:
            raise ValueError(
                f"{what} indices must lie in [0, {limit}), got values from {low} to {high}; "
                f"{_REMEDY}"
            )


def _increasing(rows: Any, starts: Any) -> bool:
    """Return whether rows increase within each column."""
    if rows.numel() < 2:
        return True
    rises = rows[1:] > rows[:-1]
    # Not rising is allowed where a column starts, and only there.
    begins = starts[(starts > 0) & (starts < rows.numel())].long()
    rises[begins - 1] = True
    return bool(rises.all())


def _from_triplets(
    values: Any, rows: Any, columns: Any, n_samples: int, n_features: int
) -> tuple[Any, Any, Any]:
    """Return compressed columns of triplets in any order; those of one place are added up."""
    torch = torch_module()
    # By rows, then by columns: what is at one place keeps its order, so sums do not vary.
    if bool((rows.diff() < 0).any()):
        order = torch.argsort(rows, stable=True)
        values, rows, columns = values[order], rows[order], columns[order]
    columns, order = torch.sort(columns, stable=True)
    values, rows = values[order], rows[order]
    if rows.numel():
        first = torch.ones(rows.numel(), dtype=torch.bool, device=rows.device)
        first[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
        if not bool(first.all()):
            ends = torch.cat(
                [first.nonzero()[:, 0], first.new_tensor([rows.numel()], dtype=torch.int64)]
            )
            values, rows, columns = add_up(values, ends), rows[first], columns[first]
    numbers = torch.arange(n_features + 1, device=rows.device, dtype=columns.dtype)
    starts = torch.searchsorted(columns.contiguous(), numbers)
    narrow = max(n_samples, n_features, int(rows.numel())) < 2**31
    kind = torch.int32 if narrow else torch.int64
    return values, rows.to(kind), starts.to(kind)


def add_up(values: Any, starts: Any) -> Any:
    """Return the sum of each run of values."""
    return torch_module().segment_reduce(values, "sum", offsets=starts.long())


def torch_module() -> Any:
    import torch

    return torch
