"""Files of cells: AnnData (.h5ad, .zarr) of every version, and the matrices (.h5) of 10x Genomics.

AnnData has the matrix X of cells and genes, tables that describe the cells (obs) and the genes
(var), other matrices of the same shape (layers), and an earlier matrix with its own genes (raw). X
is read in pieces; the names of the cells and the columns of obs are read when they are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.flat import DenseLines, RowsOfFile, Stored, sparse_source
from atomlearn.storage.formats.hdf import open_hdf
from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.messages import listing, require_name
from atomlearn.storage.formats.numpy_files import target_from_file
from atomlearn.storage.formats.stored_frame import StoredFrame
from atomlearn.storage.formats.table import Observations, Request
from atomlearn.storage.formats.tree import Node, numeric_vector, text_of
from atomlearn.storage.formats.zarr_tree import is_zarr, open_zarr

#: Columns of var that have gene symbols, in lower case without separators; the first one is used.
_SYMBOLS = (
    "genesymbols", "genesymbol", "symbol", "symbols", "hgncsymbol", "genename", "genenames",
    "featurename", "featurenames", "geneshortname",
)  # fmt: skip


class CellFile(ABC):
    """A file with a matrix of cells (rows) and genes (columns).

    ``root`` is the group of the open file that has the matrix and its names.
    """

    def __init__(self, root: Node) -> None:
        """Store the open group ``root``, which has the matrix and its names."""
        self._root = root

    @property
    def path(self) -> Path:
        """The file."""
        return self._root.path

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the matrices that can be read in place of X."""
        return ()

    @abstractmethod
    def source(self, layer: str | None, y: NDArray[Any] | None) -> Stored:
        """Return the matrix ``layer`` (None: X) as a source to be read in pieces, with target y."""

    @abstractmethod
    def names(self, layer: str | None = None) -> list[str]:
        """Return the names of the columns of the matrix ``layer`` (None: X)."""

    @abstractmethod
    def observations(self) -> Observations:
        """Return names and annotations (AnnData's obs) of the cells, and the gene symbols."""


class AnnDataFile(CellFile):
    """X, layers, raw, obs and var of AnnData; ``root`` is the group that has them.

    Before version 0.7, raw was stored as ``raw.X`` and ``raw.var`` next to X.
    """

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers, and "raw" if the file has it."""
        root = self._root
        layer_names = root.member("layers").names() if root.has("layers") else []
        # An empty raw is written as an array that holds nothing.
        has_raw = (root.has("raw") and root.member("raw").is_group) or root.has("raw.X")
        return tuple(layer_names + (["raw"] if has_raw and "raw" not in layer_names else []))

    def source(self, layer: str | None, y: NDArray[Any] | None) -> Stored:
        """Return the matrix ``layer`` (None: X) as a source to be read in pieces, with target y."""
        X = self._matrix(layer)
        names = self.names(layer)
        if X.is_group:
            return _sparse(X, names, y)
        if len(X.shape) != 2 or 0 in X.shape or X.dtype.kind not in "biuf":
            raise ValueError(
                f"X of {self.path} is {X.dtype} of shape {X.shape}; expected numbers, "
                "(n_samples, n_features)"
            )
        return RowsOfFile(DenseLines((X.shape[0], X.shape[1]), X.dtype, X.content), names, y)

    def names(self, layer: str | None = None) -> list[str]:
        """Return the names of the columns of the matrix ``layer`` (None: X)."""
        return self._var(self._is_raw(layer)).index()

    def observations(self) -> Observations:
        """Return the names of the cells, their annotations, and symbols of genes."""
        obs = self._frame(self._root.member("obs"))
        symbols = dict[str, str]()
        # Raw may have genes that X lacks; for the others, the symbols of X win.
        for is_raw in (True, False):
            if not is_raw or self._is_raw("raw"):
                var = self._var(is_raw)
                symbols |= symbols_of(var.header, var.cells, var.index())
        return Observations(tuple(obs.index()), obs.header, obs.cells, self.layers, symbols)

    def _is_raw(self, layer: str | None) -> bool:
        """Return whether ``layer`` is the matrix raw, which has other columns than X.

        A file may also have an ordinary layer with the name "raw".
        """
        root = self._root
        in_layers = root.has("layers") and root.member("layers").has("raw")
        return layer == "raw" and "raw" in self.layers and not in_layers

    def _matrix(self, layer: str | None) -> Node:
        """Return the node of the matrix ``layer`` (None: X); raise ValueError if it is missing."""
        root = self._root
        if layer in (None, "X"):
            if not root.has("X"):
                remedy = (
                    f"type --layer NAME, of {listing(self.layers)}"
                    if self.layers
                    else ("write a file of an AnnData object whose X is not None")
                )
                raise ValueError(f"{self.path} has no X; {remedy}")
            return root.member("X")
        assert layer is not None
        require_name(layer, self.layers, f"{self.path} has no layer")
        if not self._is_raw(layer):
            return root.member("layers").member(layer)
        return root.member("raw").member("X") if root.has("raw") else root.member("raw.X")

    def _var(self, is_raw: bool) -> StoredFrame:
        """Return the annotations of the genes of X, or those of raw if ``is_raw``."""
        root = self._root
        if not is_raw:
            return self._frame(root.member("var"))
        return self._frame(
            root.member("raw").member("var") if root.has("raw") else root.member("raw.var")
        )

    def _frame(self, node: Node) -> StoredFrame:
        """Return the stored table of annotations in ``node``, with the file's lists of categories.

        Before version 0.7, the categories were in the group uns.
        """
        root = self._root
        return StoredFrame(node, root.member("uns") if root.has("uns") else None)


class TenxFile(CellFile):
    """The matrix of counts that Cell Ranger writes: genes in rows, cells in columns.

    Parameters
    ----------
    root : Node
        The group of the matrix: ``matrix`` since version 3, else named by the genome.
    """

    def source(self, layer: str | None, y: NDArray[Any] | None) -> Stored:
        """Return the counts (n_cells, n_genes) as a source to be read in pieces, with target y.

        ``layer`` must be None or "X".
        """
        if layer not in (None, "X"):
            raise ValueError(f"{self.path} has no layers, only counts; leave layer {layer!r} out")
        root = self._root
        with understood(self.path, "10x file"):
            n_genes, n_cells = (int(size) for size in root.member("shape").content())
        # The stored matrix has cells as columns: its CSC arrays are the CSR arrays of X.
        arrays = (
            numeric_vector(root.member("data")),
            numeric_vector(root.member("indices")),
            root.member("indptr").content(),
        )
        return sparse_source(self.path, arrays, (n_cells, n_genes), "csr", self.names(), y)

    def names(self, layer: str | None = None) -> list[str]:
        """Return the names (identifiers) of the genes; ``layer`` is ignored."""
        return self._features("id", "genes").texts()

    def observations(self) -> Observations:
        """Return the barcodes of the cells, and the symbols of genes."""
        symbols = self._features("name", "gene_names").texts()
        pairs = zip(self.names(), symbols, strict=False)
        cells = self._root.member("barcodes").texts()

        def column(name: str) -> NDArray[Any]:
            """Raise ValueError: the file has no columns that describe cells, so none ``name``."""
            raise ValueError(
                f"{self.path} has no column {name!r}: a matrix of 10x Genomics has only barcodes; "
                "give a table of barcodes and labels by --pheno FILE"
            )

        symbol_of = {gene: symbol for gene, symbol in pairs if symbol and symbol != gene}
        return Observations(tuple(cells), (), column, (), symbol_of)

    def _features(self, name: str, old_name: str) -> Node:
        """Return a field of the genes, called ``name`` in version 3 and ``old_name`` before."""
        root = self._root
        return (
            root.member("features").member(name) if root.has("features") else root.member(old_name)
        )


def _sparse(X: Node, names: list[str], y: NDArray[Any] | None) -> Stored:
    """Return the sparse matrix in the group X as a source to be read in pieces.

    CSR is read by rows, CSC by columns. ``names`` are the names of the columns, y is the target.
    """
    # The attributes were called h5sparse_... before version 0.7.
    kind = text_of(X.attribute("encoding-type", X.attribute("h5sparse_format", "")))
    kind = f"{kind}_matrix" if kind in ("csr", "csc") else kind
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(f"X of {X.path} is {kind!r}; expected a dense array, csr or csc")
    with understood(X.path, "sparse matrix"):
        shape = X.attribute("shape", X.attribute("h5sparse_shape"))
        n_rows, n_columns = (int(size) for size in shape)
    data, indices = (numeric_vector(X.member(key)) for key in ("data", "indices"))
    arrays = data, indices, X.member("indptr").content()
    return sparse_source(X.path, arrays, (n_rows, n_columns), kind[:3], names, y)


def symbols_of(
    header: Sequence[str], cells: Callable[[str], NDArray[Any]], names: Sequence[str]
) -> Mapping[str, str]:
    """Return the symbols of genes by their names; {} if the table of genes has no symbols.

    ``header`` has the columns of the table, ``cells`` returns a column by its name, and ``names``
    are the names of the genes (rows). Genes without a symbol, or with their symbol as name, are
    left out.
    """
    # Columns by their names in lower case, without separators.
    by_key = {name.casefold().replace("_", "").replace(" ", ""): name for name in header}
    column = next((by_key[name] for name in _SYMBOLS if name in by_key), None)
    if column is None:
        return {}
    pairs = zip(names, cells(column).astype(str).tolist(), strict=True)
    return {gene: symbol for gene, symbol in pairs if symbol and symbol != gene}


def cell_file(path: Path) -> CellFile:
    """Open and return the file or Zarr folder ``path``: AnnData or 10x Genomics, by its content."""
    root: Node = open_zarr(path) if is_zarr(path) else open_hdf(path)
    if root.has("obs") and root.has("var"):
        return AnnDataFile(root)
    # The matrix of 10x Genomics is the group with barcodes; old files have one for each genome.
    groups = [name for name in root.names() if root.member(name).is_group]
    matrices = [name for name in groups if root.member(name).has("barcodes")]
    if len(matrices) == 1:
        return TenxFile(root.member(matrices[0]))
    if matrices:
        raise ValueError(
            f"{path} has the matrices of {len(matrices)} genomes, {', '.join(matrices)}; write one "
            "of them with scanpy.read_10x_h5(..., genome=...).write_h5ad(...)"
        )
    raise ValueError(
        f"{path} is neither AnnData (it has no obs and var) nor a matrix of 10x Genomics; its "
        f"parts are {', '.join(root.names()[:6]) or 'none'}"
    )


def open_cells(path: Path, request: Request) -> Stored:
    """Return a matrix of the file of cells ``path`` as a source that is read in pieces.

    The ``request`` names the layer (None: X) and the target: a column of obs, or an .npy file. The
    matrix is dense, CSR or CSC.
    """
    file = cell_file(path)
    target = request.target
    y = None
    if target is not None and target.endswith(".npy"):
        y = target_from_file(target, path)
    elif target is not None:
        y = file.observations().cells(target)
        # Missing entries are "" in text, and NaN in numbers.
        if (y == "" if y.dtype == object else np.isnan(y)).any():
            raise ValueError(f"{target!r} of obs of {path} has missing entries; drop those samples")
    return file.source(request.layer, y)


def read_cells(path: Path) -> Any:
    """Return X of the file of cells ``path`` in memory, dense or sparse, in its stored type."""
    return open_cells(path, Request()).whole()[0]


def names_of_cells(path: Path) -> list[str]:
    """Return the names of the columns of X in the file of cells ``path``; X is not read."""
    return cell_file(path).names()


def observations(path: Path) -> Observations:
    """Return the names of the cells, the columns of obs and the gene symbols of a file of cells."""
    return cell_file(path).observations()
