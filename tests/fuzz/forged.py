"""Forged files: valid to the reader of the format, and made to mislead whoever believes them.

Each draws a file that declares far more than it holds, holds far more than its size, names other
files, or asks for objects to be made. ``secret`` lies beside it, and is never to be read.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.datasets import read
from tests.fuzz.rule import Impolite, judge

SECRET = "the-secret-of-another-file"
#: Numbers of rows or bytes, none of which are there.
HUGE = (2**26, 2**28, 10**9, 3 * 10**9, 2**31, 2**33, 10**12, 2**40, 2**62, 2**63 - 1)
#: Megabytes of zeros that are really inside of bombs.
BOMBS = (8, 24, 160)


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npy(rng: random.Random) -> bytes:
    """Return an array of a false shape, or of objects with any pickle."""
    shape = rng.choice(((rng.choice(HUGE),), (rng.choice(HUGE), rng.choice((1, 5, 2**20))), (3, 2)))
    kind = rng.choice(("'<f8'", "'|O'", "'<U1000000'", "'<f4'", "[('a', '|O')]", "'|V999999999'"))
    body = rng.choice((bytes(48), b"cposix\nsystem\n(S'touch ran'\ntR.", b"\x80\x04N."))
    return _header(kind, shape) + body


def _zeros(n_bytes: int) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros((n_bytes // 80, 10)))
    return stream.getvalue()


def npz(rng: random.Random, names: tuple[str, ...] = ("X", "data", "y", "extra")) -> bytes:
    """Return an archive with a forged array, a bomb, or a false size in its table."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        held = io.BytesIO()
        np.save(held, np.arange(12.0).reshape(4, 3))
        archive.writestr("X.npy", held.getvalue())
        name = rng.choice(names)
        member = npy(rng) if rng.random() < 0.7 else _zeros(rng.choice(BOMBS) * 2**20)
        if name != "X":
            archive.writestr(f"{name}.npy", member, rng.choice((0, 8, 12)))
    content = stream.getvalue()
    place = content.rfind(b"PK\x01\x02")
    if rng.random() < 0.3:
        size = rng.choice((0, 2**31, 2**32 - 2))
        content = content[: place + 24] + struct.pack("<I", size) + content[place + 28 :]
    return content


def _frames(file: Any, rows: int = 4) -> None:
    for name in ("obs", "var"):
        frame = file.create_group(name)
        frame.attrs["_index"] = "_index"
        frame.create_dataset("_index", data=[f"{name}{j}" for j in range(rows)])
    file["obs"].create_dataset("label", data=np.arange(rows))


def _forged_dataset(group: Any, name: str, rng: random.Random, folder: Path) -> None:
    """Put a dataset there that is not what it seems."""
    import h5py

    if name in group:
        del group[name]
    secret, size = str(folder / "secret"), rng.choice(HUGE[:8])
    way = rng.randrange(9)
    if way == 0:
        group.create_dataset(name, shape=(size,), dtype="f8", chunks=(1024,), compression="gzip")
    elif way == 1:
        group.create_dataset(name, shape=(4,), dtype="u1", external=[(secret, 0, 4)])
    elif way == 2:
        group[name] = h5py.ExternalLink(str(folder / "other.h5"), "/label")
    elif way == 3:
        group[name] = h5py.SoftLink(rng.choice(("/obs/label", "/nowhere", f"/{name}")))
    elif way == 4:
        layout = h5py.VirtualLayout(shape=(4,), dtype="i8")
        layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "label", shape=(4,))
        group.create_virtual_dataset(name, layout)
    elif way == 5:
        made = group.create_dataset(name, (1024,), "u1", chunks=(1024,), compression="gzip")
        made.id.write_direct_chunk((0,), zlib.compress(bytes(rng.choice(BOMBS) * 2**20)))
    elif way == 6:
        kind = rng.choice((h5py.ref_dtype, h5py.vlen_dtype("f8"), np.dtype("V1000000")))
        group.create_dataset(name, shape=(4,), dtype=kind)
    elif way == 7:
        text = h5py.string_dtype()
        group.create_dataset(name, shape=(rng.choice((5, size)),), dtype=text, chunks=(5,))
    else:
        group.create_dataset(name, shape=(4,), maxshape=(None,), chunks=(2**28,), dtype="f8")


def _other(folder: Path) -> None:
    import h5py

    (folder / "secret").write_text(SECRET)
    with h5py.File(folder / "other.h5", "w") as file:
        file["label"] = np.arange(4) + 123456789


def h5ad(path: Path, rng: random.Random) -> None:
    """Write an AnnData file, one part of which is forged."""
    import h5py

    _other(path.parent)
    with h5py.File(path, "w") as file:
        _frames(file)
        if rng.random() < 0.5:
            file["X"] = np.arange(16.0).reshape(4, 4)
        else:
            group = file.create_group("X")
            size = rng.choice((4, 4, rng.choice(HUGE[:8])))
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (4, size)
            group["data"], group["indices"] = np.ones(4), np.arange(4)
            group["indptr"] = np.arange(5)
        places = [file, file["obs"], file["obs"], file["var"]]
        group, name = rng.choice([*zip(places, ("X", "label", "_index", "_index"), strict=True)])
        if isinstance(file["X"], h5py.Group) and name == "X":
            group, name = file["X"], rng.choice(("data", "indices", "indptr"))
        kind = rng.random()
        if kind < 0.2 and name == "label":
            del group[name]
            column = group.create_group(name)
            column["categories"], column["codes"] = ["a", "b"], np.zeros(4, np.int8)
            column["mask"] = np.zeros(4, bool)
            column["values"] = np.arange(4)
            group, name = column, rng.choice(("categories", "codes", "mask", "values"))
        if kind > 0.9:
            name = rng.choice(("/obs/label", "a/b", "..", ""))
            file["var"].attrs["_index"] = name
            return
        _forged_dataset(group, name, rng, path.parent)


def mat73(path: Path, rng: random.Random) -> None:
    """Write a .mat of version 7.3, one array of which is forged."""
    import h5py

    _other(path.parent)
    with h5py.File(path, "w", userblock_size=512) as file:
        file["X"], file["y"] = np.arange(16.0).reshape(4, 4), np.arange(4.0)
        _forged_dataset(file, rng.choice(("X", "y", "other")), rng, path.parent)
    head = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM"
    with path.open("r+b") as stream:
        stream.write(head)


def mat(path: Path, rng: random.Random) -> None:
    """Write a .mat of version 4 or 5 with a false size, or with a bomb in it."""
    import scipy.io

    way = rng.randrange(4)
    if way == 0:
        zeros = np.zeros((rng.choice(BOMBS) * 2**17, 1), rng.choice(("f8", "u1")))
        scipy.io.savemat(path, {"X": zeros, "y": np.arange(4.0)}, do_compression=True)
        return
    if way == 1:
        head = struct.pack("<5i", 0, rng.choice((2**31 - 1, -1, 70000)), 2**15, 0, 2)
        path.write_bytes(head + b"X\0" + bytes(64))
        return
    cells = np.empty((2, 1), dtype=object)
    cells[:] = [["a"], ["b"]]
    content = {"X": np.arange(6.0).reshape(3, 2), "names": cells, "y": np.arange(3.0)}
    scipy.io.savemat(path, content, do_compression=way == 3)
    held = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 2, 6))):
        place = rng.randrange(128, len(held) - 4)
        if way == 2:
            place -= place % 4
        held[place : place + 4] = struct.pack("<I", rng.choice((2**31 - 1, 2**28, 2**32 - 1, 9)))
    path.write_bytes(bytes(held))


def text(rng: random.Random) -> bytes:
    """Return a table with an endless line, quote, row or column, or far more rows than bytes."""
    size, head = rng.choice((2, 8, 20)) * 2**20, b"a,b,y\n1,2,0\n3,4,1\n"
    return rng.choice((
        lambda: head + b"x" * size, lambda: head + b'"' + b"1,2,0\n" * (size // 6),
        lambda: head + b"1,2,0\n" * (size // 6), lambda: head + b"," * size,
        lambda: b"a" * size, lambda: head + b"\n" * size, lambda: b"a,b,y\r" + b"1,2,0\r" * 10**6,
        lambda: b"\xff\xfe" + b"a\0" * (size // 2), lambda: bytes(size),
    ))()  # fmt: skip


def libsvm(rng: random.Random) -> bytes:
    """Return lines with indices far apart, out of order, or too large for any number."""
    largest = rng.choice((*HUGE, 2**22 - 1, 2**22 + 1, 10**30, -1))
    return f"1 1:1 {largest}:2\n0 2:1 {rng.choice((3, largest))}:1\n".encode()


def arrow(path: Path, rng: random.Random) -> None:
    """Write a feather or Parquet file of a few kB with any number of rows or long labels."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    rows = rng.choice((10**5, 10**6, 5 * 10**6))
    columns = rng.choice((1, 2, 6))
    table = {f"x{j}": pa.array(np.arange(rows) % (j + 2.0)) for j in range(columns)}
    way = rng.randrange(5)
    if way == 1:
        places = pa.array(np.zeros(10**5, np.int32))
        table = {"a": pa.DictionaryArray.from_arrays(places, ["x" * rng.choice((10, 10**5))])}
    elif way == 2:
        table = {"a": pa.array(["x" * 10**5] * rng.choice((10, 1000)))}
    elif way == 3:
        table = {"a": pa.nulls(rows)}
    elif way == 4:
        runs = pa.array([rows], pa.int32())
        table = {"a": pa.RunEndEncodedArray.from_arrays(runs, pa.array([1.0]))}
    made = pa.table(table)
    made = made.append_column("y", pa.array(np.arange(made.num_rows) % 2))
    if path.suffix == ".parquet":
        try:
            parquet.write_table(made, path, compression=rng.choice(("zstd", "snappy", "gzip")))
        except pa.ArrowNotImplementedError:
            parquet.write_table(pa.table({"y": np.zeros(rows)}), path)
    else:
        feather.write_feather(made, path, compression=rng.choice(("zstd", "lz4")))
    if rng.random() < 0.5:  # a size in what describes it
        held = bytearray(path.read_bytes())
        place = rng.randrange(len(held) - min(len(held) - 9, 700), len(held) - 8)
        held[place : place + 4] = struct.pack("<I", rng.choice((2**31 - 1, 2**30, 2**32 - 1)))
        path.write_bytes(bytes(held))


_XML = '<?xml version="1.0"?>'


def xlsx(path: Path, rng: random.Random) -> None:
    """Write a workbook with entities, far cells, a bomb, or more rows than there are."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a", "y"])
    for row in range(6):
        book.active.append([row * 1.5, row % 2])
    book.save(path)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name).decode() for name in old.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    chosen = rng.choice([sheet, sheet, *parts])
    first = parts[chosen].find("<", 2)
    way = rng.randrange(7)
    if way == 0:
        levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
        doctype = f'<!DOCTYPE x [<!ENTITY e0 "ha">{levels}]>'
        parts[chosen] = _XML + doctype + parts[chosen][first:].replace(">", ">&e11;", 1)
    elif way == 1:
        outside = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{path.parent / "secret"}">]>'
        parts[chosen] = _XML + outside + parts[chosen][first:].replace(">", ">&e;", 1)
    elif way == 2:
        far = rng.choice(("XFD1048576", "ZZZ9", "XFD99999999999", "A0", "XFD3", "AAAAAAAA1"))
        parts[sheet] = parts[sheet].replace('r="A2"', f'r="{far}"')
    elif way == 3:
        row = rng.choice((10**6, 10**7, 10**12, -1, 0, "x"))
        parts[sheet] = parts[sheet].replace('<row r="3"', f'<row r="{row}"')
    elif way == 4:
        rows = '<row><c r="XFD1"/></row>' * rng.choice((100, 3000))
        parts[sheet] = parts[sheet].replace("</sheetData>", f"{rows}</sheetData>")
    elif way == 5:
        parts[chosen] += " " * (rng.choice(BOMBS) * 2**20)
    else:
        place = rng.randrange(len(parts[chosen]))
        parts[chosen] = parts[chosen][:place] + parts[chosen][place + rng.choice((1, 9)) :]
    (path.parent / "secret").write_text(SECRET)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, content)


def _to(content: Callable[[random.Random], bytes]) -> Callable[[Path, random.Random], None]:
    return lambda path, rng: path.write_bytes(content(rng)) and None


#: Endings of files by what forges them.
FORGERS: dict[str, Callable[[Path, random.Random], None]] = {
    ".npy": _to(npy), ".npz": _to(npz), ".h5ad": h5ad, "73.mat": mat73, ".mat": mat,
    ".csv.gz": _to(lambda rng: gzip.compress(text(rng), 1)), ".csv": _to(text),
    ".svm": _to(libsvm), ".feather": arrow, ".parquet": arrow, ".xlsx": xlsx,
}  # fmt: skip

READERS = (
    "h5py", "openpyxl", "pyarrow.feather", "pyarrow.parquet", "scipy.io", "sklearn.datasets",
)  # fmt: skip

#: Bytes of address space for the process that reads a forged file; and what the reader is allowed,
#: half of the times: beyond as much again, it took what it was not to take.
SPACE, ALLOWED = 3 * 2**30, 2**27


def try_forged(ending: str, seed: int, folder: Path) -> tuple[str, float]:
    """Return what became of a file in a process of its own, and the bytes that it took.

    "read", "refused", or what was wrong: nothing else than these two is right.
    """
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(sink, _in_child(ending, seed, folder).encode()[:4000])
        finally:
            os._exit(0)
    os.close(sink)
    first = most = _own(child)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        most = max(most, _own(child))
        time.sleep(0.002)
    status, n_bytes = ended[1], most - first
    with os.fdopen(source) as stream:
        said = stream.read()
    if status:
        return f"crashed with status {status}", n_bytes
    limited = seed % 2 == 1
    if said in ("read", "refused") and limited and n_bytes > 2 * ALLOWED:
        said = f"took {n_bytes / 1e6:.0f} MB of {ALLOWED / 1e6:.0f}"
    return said, n_bytes


def _in_child(ending: str, seed: int, folder: Path) -> str:
    warnings.simplefilter("ignore")
    path = folder / f"t{ending}"
    FORGERS[ending](path, random.Random(f"{ending} {seed}"))
    asked: dict[str, Any] = {"memory_limit": ALLOWED} if seed % 2 else {}
    target = {".h5ad": "label", ".npy": None, ".npz": None, ".svm": None}.get(ending, "y")
    signal.alarm(60)  # of a busy machine; ``judge`` counts the time of the processor

    def reading(file: Path) -> None:
        table = read(file, target, missing="median", **asked)
        held = [] if table.y is None else np.asarray(table.y).ravel()[:4].tolist()
        lost = held[:4] in ([116, 104, 101, 45], [123456789 + n for n in range(4)])
        assert not lost, "what it read lies in another file"
        assert table.X.shape[0] > 0

    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    try:
        said = judge(reading, path)
    except Impolite as error:
        last = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
        said = f"{Path(last.filename).name}:{last.lineno} {error}"
    return said


def _own(process: int) -> float:
    """Return the memory of a process; pages of files are the system's, which takes them back."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])
    return 0.0


def main() -> int:
    """Try so many files of every format; print what became of them."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    only = sys.argv[3:] or list(FORGERS)
    wrong = 0
    # Once, and not in every process that reads one file.
    for module in READERS:
        importlib.import_module(module)
    for ending in only:
        total, most = Counter[str](), 0.0
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as folder:
                said, taken = try_forged(ending, seed, Path(folder))
            total[said if said in ("read", "refused") else "wrong"] += 1
            most = max(most, taken if seed % 2 else 0.0)
            if said not in ("read", "refused"):
                print(f"  {ending} {seed}: {said[:300]}", flush=True)
        wrong += total["wrong"]
        print(f"{ending}: {dict(total)}, {most / 1e6:.0f} MB at most where limited", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
