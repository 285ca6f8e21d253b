"""The files of a column store: their content, and checks when they are opened.

A store is a folder. ``manifest.json`` describes the other files. It is written last, so a folder
without it is not a complete store. Columns are divided into chunks, each with a checksum.

    manifest.json   layout, types, sizes, checksums of the small files; its own checksum
    values.bin      entries column after column: n_samples each (dense), the stored ones (csc), or
                    ceil(n_samples / 4) bytes in PLINK's two-bit code (genotypes)
    rows.bin        row numbers of the stored entries (csc)
    starts.bin      first entry of each column and the end, int64 (csc)
    counts.bin      copies counted and entries missing of each column, int64 (genotypes)
    chunks.bin      first column of each chunk and the end, int64; then checksums, uint32, of the
                    chunks of values.bin, and of those of rows.bin (csc)
    names.json      names of the columns, if they have any
    target.npy      the target, if the source has one; classes.json: its labels
    schema.json     plans of the columns of the source, if it was a table
    symbols.json    gene symbols of the columns, "" without one, if the source has any
"""

from __future__ import annotations

import json
import os
import sys
import weakref
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import all_text
from atomlearn.storage.formats.numpy_files import read_array
from atomlearn.storage.formats.records import record

FORMAT = "atomlearn column store"
VERSION = 1
MANIFEST = "manifest.json"
VALUES = "values.bin"
ROWS = "rows.bin"
STARTS = "starts.bin"
COUNTS = "counts.bin"
CHUNKS = "chunks.bin"
NAMES = "names.json"
TARGET = "target.npy"
CLASSES = "classes.json"
SCHEMA = "schema.json"
SYMBOLS = "symbols.json"
#: Names of all files of a store.
FILES = (MANIFEST, VALUES, ROWS, STARTS, COUNTS, CHUNKS, NAMES, TARGET, CLASSES, SCHEMA, SYMBOLS)
#: Types of values; "genotype" is two bits.
VALUE_TYPES = ("float64", "float32", "float16", "int8", "genotype")


@dataclass(frozen=True, slots=True)
class ReadingSizes:
    """Sizes of read requests, tuned on NVMe and on network disks.

    No answer depends on them; ``benchmarks/on_disk.py`` measures passes with them.
    """

    #: Smallest size of a chunk in bytes, unless it has all columns; a chunk is read at once. A
    #: manifest, of a few hundred bytes, is never longer.
    chunk_bytes: int = 2**22
    #: Entries that a kernel multiplies on one thread; different tiles are on different threads.
    one_thread: int = 2**20 - 1
    #: Cost of reading and multiplying a byte, in operations; it decides the number of threads.
    operations_per_byte: float = 5.0
    #: Smallest number of samples for which columns of genotypes stay packed in memory. With 5,000
    #: people, packed columns took a third of the processor time and a fifth of the memory.
    packed_from: int = 2**12


READING = ReadingSizes()


class StoreError(ValueError):
    """A store or genotype file that is broken, cut off or of another kind, with a remedy."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Content of a store.

    Attributes
    ----------
    layout : {"dense", "csc", "genotypes"}
        How the values are stored.
    dtype : str
        Type of the values.
    n_samples, n_features, n_chunks : int
        Number of rows, columns and chunks of columns.
    row_dtype : str
        Type of the row numbers ("" unless csc).
    nonzeros : int
        Number of stored entries (csc), else 0.
    first_index : int
        Number of column 0 in the source (libsvm counts from 1).
    checksums : dict
        CRC-32 of each small file.
    source : str
        Name of the file that was converted.
    """

    layout: str
    dtype: str
    n_samples: int
    n_features: int
    n_chunks: int
    row_dtype: str = ""
    nonzeros: int = 0
    first_index: int = 0
    checksums: dict[str, int] = field(default_factory=dict)
    source: str = ""

    @property
    def column_bytes(self) -> int:
        """Bytes of one column in values.bin, or of one entry if the layout is csc."""
        if self.layout == "genotypes":
            return (self.n_samples + 3) // 4
        return np.dtype(self.dtype).itemsize * (self.n_samples if self.layout == "dense" else 1)

    def sizes(self) -> dict[str, int]:
        """Return, by name, the size in bytes of every file whose size the manifest implies."""
        # ``column_bytes`` is of an entry for csc, and of a column otherwise.
        entries = self.nonzeros if self.layout == "csc" else self.n_features
        arrays = 2 if self.layout == "csc" else 1
        sizes = {VALUES: entries * self.column_bytes}
        sizes[CHUNKS] = 8 * (self.n_chunks + 1) + 4 * arrays * self.n_chunks
        if self.layout == "csc":
            sizes[ROWS] = self.nonzeros * np.dtype(self.row_dtype).itemsize
            sizes[STARTS] = 8 * (self.n_features + 1)
        if self.layout == "genotypes":
            sizes[COUNTS] = 16 * self.n_features
        return sizes

    def to_json(self) -> str:
        """Return the text of manifest.json, including its checksum."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        content["crc32"] = digest(content)
        return json.dumps(content, indent=1)


def digest(content: dict[str, Any]) -> int:
    """Return the CRC-32 checksum of the dictionary ``content``, whatever the order of its keys."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of the store ``folder``, after checks; StoreError if it is not valid.

    The checks compare its checksum, its values and the sizes of all files.
    """
    file = folder / MANIFEST
    if not file.is_file():
        raise StoreError(
            f"{folder} is not a column store: it has no {MANIFEST}; a conversion that was cut "
            "short leaves none, run `atomlearn convert` again"
        )
    if file.stat().st_size > READING.chunk_bytes:
        raise _damage(folder, f"{MANIFEST} is too long")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _damage(folder, f"{MANIFEST} is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StoreError(f"{folder} is not a column store: {MANIFEST} is of something else")
    if content.get("version") != VERSION:
        raise StoreError(
            f"{folder} is a store of version {content.get('version')!r} and this is a reader of "
            f"version {VERSION}; convert its source again, or update atomlearn"
        )
    # The checksum is of everything else in the file.
    checksum = content.pop("crc32", None)
    if checksum != digest(content):
        raise _damage(folder, f"{MANIFEST} does not match its checksum")
    del content["format"], content["version"]
    try:
        manifest: Manifest = record(Manifest, content)
    except ValueError as error:
        raise _damage(folder, str(error)) from error
    _check_values(manifest, folder)
    _check_sizes(manifest, folder)
    return manifest


def _check_values(manifest: Manifest, folder: Path) -> None:
    """Check every value of a manifest, because a file with a valid checksum may be malicious.

    ``folder`` is the store, for messages. StoreError if a value is impossible.
    """
    sizes = manifest.n_samples, manifest.n_features, manifest.n_chunks, manifest.nonzeros
    # Rows, columns and chunks are at least one; all numbers fit into 64 bits.
    if min(sizes[:3]) < 1 or max(sizes) >= sys.maxsize:
        raise _damage(folder, f"it is of {sizes} rows, columns, chunks and entries")
    csc = manifest.layout == "csc"
    types = {"genotypes": ("genotype",), "dense": VALUE_TYPES[:4], "csc": VALUE_TYPES[:4]}
    if manifest.dtype not in types.get(str(manifest.layout), ()):
        raise _damage(folder, f"it is {manifest.layout!r} of {manifest.dtype!r}")
    if manifest.row_dtype not in (("int32", "int64") if csc else ("",)):
        raise _damage(folder, f"row_dtype is {manifest.row_dtype!r}")
    if not csc and manifest.nonzeros:
        raise _damage(folder, f"it is {manifest.layout} with {manifest.nonzeros} entries")
    if manifest.n_chunks > manifest.n_features:
        raise _damage(folder, "it has more chunks than columns")
    # Small files have a checksum in the manifest, the large ones have theirs in chunks.bin.
    small = set(manifest.sizes()) - {VALUES, ROWS}
    optional = {NAMES, TARGET, CLASSES, SCHEMA, SYMBOLS}
    if not small <= set(manifest.checksums) <= small | optional:
        raise _damage(folder, "the checksums of its files are incomplete")


def _check_sizes(manifest: Manifest, folder: Path) -> None:
    """Raise StoreError unless every file in ``folder`` has the size that the manifest implies."""
    for name, expected in manifest.sizes().items():
        file = folder / name
        size = file.stat().st_size if file.is_file() else None
        if size != expected:
            finding = "is missing" if size is None else f"has {size:,} bytes"
            raise _damage(folder, f"{name} {finding}, expected {expected:,}")


def _damage(folder: Path, fault: str) -> StoreError:
    """Return the error that the store ``folder`` is damaged; ``fault`` describes the damage."""
    return StoreError(
        f"the column store {folder} is broken: {fault}; copy it afresh, or convert its source again"
    )


def read_small(folder: Path, manifest: Manifest, name: str) -> bytes:
    """Return the content of the small file ``name`` of a store, after a check of its checksum.

    ``folder`` is the store, and ``manifest`` has the checksum. This is also the meaning of these
    arguments in the functions below.
    """
    if not (folder / name).is_file():  # a device or a pipe in place of the file would block forever
        raise _damage(folder, f"{name} is missing, or no file")
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise _damage(folder, f"{name} cannot be read ({error.strerror})") from error
    if zlib.crc32(content) != manifest.checksums[name]:
        raise _damage(folder, f"{name} does not match its checksum")
    return content


def read_starts(folder: Path, manifest: Manifest) -> NDArray[np.int64]:
    """Return the CSC column pointers of a sparse store, checked.

    They are the first entry of each column and the end, (n_features + 1,).
    """
    starts = np.frombuffer(read_small(folder, manifest, STARTS), dtype="<i8").astype(np.int64)
    if starts[0] != 0 or starts[-1] != manifest.nonzeros or (starts[1:] < starts[:-1]).any():
        raise _damage(folder, f"{STARTS} does not increase from 0 to {manifest.nonzeros}")
    return starts


def read_chunks(folder: Path, manifest: Manifest) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return where the chunks of columns begin, and their checksums.

    The first result is the first column of each chunk and the end, (n_chunks + 1,). The second one
    is (1, n_chunks), or (2, n_chunks) for a sparse store, whose row numbers have checksums too.
    """
    content = read_small(folder, manifest, CHUNKS)
    # The file has 8 bytes for each column number, then 4 bytes for each checksum.
    cut = 8 * (manifest.n_chunks + 1)
    chunks = np.frombuffer(content[:cut], dtype="<i8").astype(np.int64)
    if chunks[0] != 0 or chunks[-1] != manifest.n_features or (chunks[1:] <= chunks[:-1]).any():
        raise _damage(folder, f"{CHUNKS} does not cut {manifest.n_features} columns")
    sums = np.frombuffer(content[cut:], dtype="<u4").astype(np.uint32)
    return chunks, sums.reshape(-1, manifest.n_chunks)


def read_counts(folder: Path, manifest: Manifest) -> NDArray[np.int64]:
    """Return the counts of a store of genotypes, (n_features, 2), checked.

    A row has the number of copies of the counted allele in a column, and its number of missing
    genotypes.
    """
    content = read_small(folder, manifest, COUNTS)
    counts = np.frombuffer(content, dtype="<i8").astype(np.int64).reshape(-1, 2)
    copies, missing = counts.T
    present = manifest.n_samples - missing
    # Counts are not negative, and a known genotype has at most two copies.
    negative = min(int(part.min()) for part in (missing, present, copies)) < 0
    if negative or (copies > 2 * present).any():
        raise _damage(folder, f"{COUNTS} counts what cannot be")
    return counts


def read_names(folder: Path, manifest: Manifest) -> list[str] | None:
    """Return the names of the columns of a store, or None if it has none."""
    if NAMES not in manifest.checksums:
        return None
    names = _json_list(folder, manifest, NAMES)
    if len(names) != manifest.n_features or not all_text(names):
        raise _damage(folder, f"{NAMES} does not name {manifest.n_features} columns")
    return [str(name) for name in names]


def read_symbols(folder: Path, manifest: Manifest) -> list[str]:
    """Return the gene symbols of the columns, "" without one; empty if no column has one."""
    if SYMBOLS not in manifest.checksums:
        return []
    symbols = _json_list(folder, manifest, SYMBOLS)
    if len(symbols) != manifest.n_features or not all_text(symbols):
        raise _damage(folder, f"{SYMBOLS} does not list {manifest.n_features} columns")
    return [str(symbol) for symbol in symbols]


def read_plans(folder: Path, manifest: Manifest) -> list[Any]:
    """Return the plans of the source's columns, as JSON objects; empty if it was not a table.

    A plan says how a column of a table was encoded as numbers.
    """
    if SCHEMA not in manifest.checksums:
        return []
    return _json_list(folder, manifest, SCHEMA)


def read_target(folder: Path, manifest: Manifest) -> NDArray[Any] | None:
    """Return the target (n_samples,) of a store as numbers or labels; None if there is none.

    Labels are stored as integer codes, and the list of labels in a second file.
    """
    import io

    if TARGET not in manifest.checksums:
        return None
    content = read_small(folder, manifest, TARGET)
    try:
        target = read_array(io.BytesIO(content), f"{TARGET} of {folder}")
    except ValueError as error:
        raise _damage(folder, f"{TARGET} is no array ({error})") from error
    if target.shape != (manifest.n_samples,) or target.dtype.kind not in "iuf":
        raise _damage(folder, f"{TARGET} holds {target.dtype} of shape {target.shape}")
    if CLASSES not in manifest.checksums:
        return np.asarray(target)
    # The target has labels: its numbers are indices into their list.
    listed = _json_list(folder, manifest, CLASSES)
    if not all_text(listed):
        raise _damage(folder, f"{CLASSES} holds labels that are no texts")
    labels = np.array(listed, dtype=np.str_)
    if target.dtype.kind not in "iu" or target.min() < 0 or target.max() >= labels.size:
        raise _damage(folder, f"{TARGET} does not index {labels.size} labels")
    return np.asarray(labels[target])


def _json_list(folder: Path, manifest: Manifest, name: str) -> list[Any]:
    """Return the JSON list in the small file ``name`` of the store; StoreError if it is none."""
    content = read_small(folder, manifest, name)
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damage(folder, f"{name} is not JSON ({error})") from error
    if not isinstance(entries, list):
        raise _damage(folder, f"{name} is no list")
    return entries


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C- or Fortran-contiguous array in memory order, without a copy."""
    flat: Any = array.reshape(-1, order="A").view(np.uint8)
    return memoryview(flat)


class ByteFile:
    """A file that several threads read at given offsets; reading beyond its end is an error.

    Parameters
    ----------
    path : Path
        The file, which stays open as long as the object exists.

    Attributes
    ----------
    size : int
        Its number of bytes when it was opened.
    """

    def __init__(self, path: Path) -> None:
        """Open the file ``path``; it is closed when the object is deleted."""
        self.path = path
        self._handle = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._handle)
        self.size = os.fstat(self._handle).st_size

    def read_into(self, offset: int, out: NDArray[Any]) -> None:
        """Fill the contiguous array ``out`` with the bytes of the file from ``offset`` on."""
        view = as_bytes(out)
        # The system may return fewer bytes than requested, so reading is repeated.
        done = 0
        while done < len(view):
            count = os.preadv(self._handle, [view[done:]], offset + done)
            if count == 0:
                raise StoreError(
                    f"{self.path} ends before byte {offset + len(view):,}: it was cut off while in "
                    "use; copy it afresh, or convert its source again"
                )
            done += count
