"""The corpus: a small file of every format, how it is read, and how it is broken from inside.

Most damage ends at a checksum or in a decompressor. So where a file has such a shell, a target
has ``inside`` as well, which breaks what is in it and puts a valid shell around.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn import designs, norms, reports, solvers
from atomlearn.datasets import convert, write_plink
from atomlearn.datasets import read as read_file
from atomlearn.reports.model import ModelCertificate, ModelFeature, ModelInput, SavedModel
from atomlearn.storage.store.store_file import MANIFEST, digest
from tests.fuzz.mutate import mutated
from tests.oracles.sums import solve_sum

Inside = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """make(folder): writes the files; read(path): reads all of them; inside: breaks one within."""

    name: str
    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    inside: Inside | None = None
    resign: Callable[[Path, random.Random], None] | None = None

    def __str__(self) -> str:
        return self.name


def _table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(12, 5)), 3)
    X[np.abs(X) < 0.4] = 0.0
    return X, (X[:, 0] > 0).astype(int)


def _csv(mark: str, text: bool = True) -> bytes:
    X, y = _table()
    lines = [mark.join(["age", "dose", "group", '"a b"', "e", "y"])]
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        cells = [f"{value}" for value in row]
        if text:
            cells[2] = "north" if row[2] > 0 else "south"
        lines.append(mark.join([*cells, str(label)]))
    return ("\n".join(lines) + "\n").encode()


def _libsvm() -> bytes:
    X, y = _table()
    lines = []
    for row, label in zip(X, y, strict=True):
        lines.append(" ".join([str(label), *(f"{j + 1}:{row[j]}" for j in np.flatnonzero(row))]))
    return ("\n".join(lines) + "\n").encode()


def _bytes(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content())
        return path

    return make


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _dense_npz() -> bytes:
    X, y = _table()
    return _npz(X=X, y=y, feature_names=np.array(list("abcde")), classes=np.array(["no", "yes"]))


def _sparse_npz() -> bytes:
    X, y = _table()
    S = sp.csr_array(X)
    return _npz(data=S.data, indices=S.indices, indptr=S.indptr, shape=np.array(S.shape), y=y)


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, _table()[0])
    return stream.getvalue()


def _parquet(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = _table()
    columns = {name: X[:, j] for j, name in enumerate("abcde")} | {"y": y}
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def _h5ad(folder: Path) -> Path:
    import h5py

    X, y = _table()
    S, path = sp.csr_array(X), folder / "t.h5ad"
    with h5py.File(path, "w", libver="earliest") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", S.shape
        for key in ("data", "indices", "indptr"):
            group.create_dataset(key, data=getattr(S, key), compression="gzip")
        for frame, count in (("obs", 12), ("var", 5)):
            made = file.create_group(frame)
            made.attrs["_index"] = "_index"
            made.create_dataset("_index", data=[f"{frame}{j}" for j in range(count)])
        file["obs"].create_dataset("label", data=y)
    return path


def _records(folder: Path) -> Path:
    """Write AnnData as before version 0.7: obs and var are arrays of records."""
    import h5py

    X, y = _table()
    path = folder / "t.h5ad"
    obs = np.zeros(12, [("index", "S4"), ("label", "f8"), ("kind", "i1")])
    obs["index"], obs["label"] = [b"c%d" % i for i in range(12)], y
    var = np.zeros(5, [("index", "S4"), ("gene_symbols", "S4")])
    var["index"], var["gene_symbols"] = [b"g%d" % j for j in range(5)], b"SYM"
    with h5py.File(path, "w", libver="earliest") as file:
        file["X"], file["obs"], file["var"] = X, obs, var
        file["uns/kind_categories"] = np.array([b"a", b"b"])
    return path


def _tenx(folder: Path) -> Path:
    import h5py

    S, path = sp.csc_array(_table()[0].T), folder / "t.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        for key in ("data", "indices", "indptr", "shape"):
            file[f"matrix/{key}"] = getattr(S, key)
        file["matrix/barcodes"] = [b"c%d" % i for i in range(12)]
        for key in ("id", "name"):
            file[f"matrix/features/{key}"] = [b"g%d" % j for j in range(5)]
    return path


def _bed(folder: Path) -> Path:
    X = np.random.default_rng(0).integers(0, 3, size=(12, 6)).astype(float)
    write_plink(folder / "t.bed", X, phenotype=X[:, 0])
    return folder / "t.bed"


def _store_of(content: Callable[[], bytes], name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        source = folder.with_name(folder.name + "-" + name)
        source.write_bytes(content())
        convert(source, folder / "s.store")
        source.unlink()
        return folder / "s.store"

    return make


def _model(folder: Path) -> Path:
    inputs = (ModelInput(1, "area"), ModelInput(2, "=age"))
    features = (ModelFeature(1, "area", (0,)), ModelFeature(2, "a:b", (0, 1)))
    model = SavedModel(
        task="classification", loss="logistic", target="sold", classes=("no", "yes"),
        n_features=3, n_inputs=3, inputs=inputs, features=features, is_named=True,
        first_index=0, coefficients=np.array([[2.0, -1.0]]),
        intercepts=np.array([5.0]),
        certificates=(ModelCertificate("CONVERGED", 1.0, 1e-7, 1e-7, 3.0),),
        settings={"norm": "l1", "alpha": 0.5},
    )  # fmt: skip
    reports.write_model(folder / "model.json", model)
    return folder / "model.json"


_X, _Y = np.random.default_rng(3).normal(size=(15, 8)), np.arange(15.0)


def _solve(folder: Path) -> Any:
    # Every step is saved, so that the state has atoms and a history.
    keeper = solvers.Checkpoint(folder, every_s=0)
    return solve_sum(
        _X,
        _Y,
        norm=norms.KSupport(k=2),
        form="squared",
        level=20.0,
        observers=[keeper],
        solver=solvers.AtomGeneration(),
        max_iter=60,
    )


def _checkpoint(folder: Path) -> Path:
    _solve(folder)
    return folder / "checkpoint.npz"


def _go_on(path: Path) -> object:
    """Resume; an answer that differs from an untouched solve's is a wrong answer."""
    result = _solve(path.parent)
    if not result.objective <= _OBJECTIVE + 1e-6 * abs(_OBJECTIVE) + result.gap:
        raise AssertionError(f"objective {result.objective}, expected {_OBJECTIVE}")
    return result


_OBJECTIVE = solve_sum(
    _X, _Y, norm=norms.KSupport(k=2), form="squared", level=20.0, tol=1e-9
).objective


def _read(target: str | None) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        table = read_file(path, target)
        assert np.isfinite(table.X.data if sp.issparse(table.X) else table.X).all()
        assert table.y is None or len(table.y) == table.X.shape[0]
        return table

    return read


def _convert(target: str | None) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        out = path.with_name("out.store")
        try:
            convert(path, out, target=target)
        except ValueError:
            left = out.with_name("out.store.partial")
            assert not left.exists(), "a fault that stays leaves .partial behind"
            raise
        return _design(out)

    return read


def _design(path: Path) -> object:
    design = designs.OnDisk(path) if path.is_dir() else designs.PlinkBed(path)
    if max(design.shape) > 2**20:
        return design  # few entries may lie far apart: who makes such vectors has the memory
    z = design.scores(np.ones(design.shape[0])).full()
    block = design.gather(np.arange(min(design.shape[1], 3)))
    _ = design.predict(np.ones(design.shape[1])), block.dense(), design.target, design.names
    return z


def _shell(pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]) -> Inside:
    return lambda content, rng: pack(mutated(unpack(content), rng))


def inside_zip(content: bytes, rng: random.Random) -> bytes:
    """Break a member, or its name, and zip all again."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            held = old.read(name)
            if name == chosen:
                held = mutated(held, rng)
                if rng.random() < 0.1:
                    name = rng.choice(("x.npy", "y.npy", "X", "../X.npy", "X.npy", "scale.npy"))
            if name in new.namelist():
                continue
            new.writestr(name, held, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return stream.getvalue()


def _resign_store(folder: Path, rng: random.Random) -> None:
    """Make the checksums right again, as somebody would who means harm."""
    file = folder / MANIFEST
    try:
        content = json.loads(file.read_bytes())
        content.pop("crc32", None)
        for name in content["checksums"]:
            content["checksums"][name] = zlib.crc32((folder / name).read_bytes())
        if rng.random() < 0.5:
            key = rng.choice([key for key in content if key != "checksums"])
            old = content[key]
            content[key] = rng.choice((0, -1, 2**63, 10**30, None, "x", [], 1.5, old, 3, 2**62))
        content["crc32"] = digest(content)
        file.write_text(json.dumps(content))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        pass


def _text_targets() -> list[Target]:
    shells = {
        "": (bytes, bytes), ".gz": (gzip.compress, gzip.decompress),
        ".bz2": (bz2.compress, bz2.decompress), ".xz": (lzma.compress, lzma.decompress),
    }  # fmt: skip
    texts = {
        "csv": (lambda: _csv(","), "y"),
        "numbers.csv": (lambda: _csv(",", text=False), "y"), "tsv": (lambda: _csv("\t"), "y"),
        "libsvm": (_libsvm, None),
    }  # fmt: skip
    made = []
    for ending, (content, target) in texts.items():
        for shell, (pack, unpack) in shells.items():
            if shell and ending in ("tsv", "csv"):
                continue
            packed = lambda content=content, pack=pack: pack(content())  # noqa: E731
            inside = _shell(pack, unpack) if shell else None
            name = f"{ending}{shell}"
            make = _bytes(f"t.{name}", packed)
            made.append(Target(name, make, _read(target), inside))
            if ending not in ("csv", "tsv"):  # conversion takes no text but the target
                made.append(Target(f"convert-{name}", make, _convert(target), inside))
    return made


def targets() -> dict[str, Target]:
    """Return every target by name."""
    npz, sparse = _bytes("t.npz", _dense_npz), _bytes("t.npz", _sparse_npz)
    npy = _bytes("t.npy", _npy)
    made = [
        *_text_targets(),
        Target("npy", npy, _read("last")),
        Target("convert-npy", npy, _convert(None)),
        Target("npz", npz, _read(None), inside_zip),
        Target("convert-npz", npz, _convert(None), inside_zip),
        Target("npz-sparse", sparse, _read(None), inside_zip),
        Target("convert-npz-sparse", sparse, _convert(None), inside_zip),
        Target("parquet", _parquet, _read("y")),
        Target("convert-parquet", _parquet, _convert("y")),
        Target("h5ad", _h5ad, _read("label")),
        Target("convert-h5ad", _h5ad, _convert("label")),
        Target("h5ad-records", _records, _read("kind")),
        Target("10x", _tenx, _read(None)),
        Target("bed", _bed, _design),
        Target("convert-bed", _bed, _convert(None)),
        Target("store-sparse", _store_of(_libsvm, "t.libsvm"), _design, resign=_resign_store),
        Target("store-dense", _store_of(_dense_npz, "t.npz"), _design, resign=_resign_store),
        Target("model", _model, reports.read_model),
        Target("checkpoint", _checkpoint, _go_on, inside_zip),
    ]
    return {target.name: target for target in made}
