"""convert: every format to the same store, in little memory, killed or not."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from atomlearn.datasets import convert, read, write_plink
from atomlearn.designs import OnDisk, PlinkBed
from atomlearn.storage.conversion import journal
from atomlearn.storage.formats import held
from atomlearn.storage.formats.held import FileLimits
from atomlearn.storage.intake import text, typed
from atomlearn.storage.store.encoding import pack
from atomlearn.storage.store.store_file import ReadingSizes
from tests.oracles.genotypes import filled, genotypes, naive_write_plink

Array = NDArray[np.float64]
#: A block of rows, and a bucket of columns, then hold some rows or columns of the tests' arrays.
TIGHT = 4000


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(
        "atomlearn.storage.conversion.writer.READING", ReadingSizes(chunk_bytes=700)
    )
    return TIGHT


def _all(path: Path) -> Array:
    design = OnDisk(path)
    design.verify()
    return np.asarray(design.gather(np.arange(design.shape[1])).dense(), dtype=np.float64)


def _data(n: int = 29, p: int = 21) -> tuple[Array, Array, Array]:
    """Return a dense array, one that is mostly zero, and a target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X * (rng.random((n, p)) < 0.2), rng.standard_normal(n)


def _csv(path: Path, X: Array, y: Array, text: bool = False) -> None:
    names = [f"g{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "outcome", "id"])]
    for row, value in zip(X, y, strict=True):
        label = ("sick" if value > 0 else "well") if text else repr(float(value))
        lines.append(",".join([*(repr(float(x)) for x in row), label, "someone"]))
    path.write_text("\n".join(lines) + "\n")


def _libsvm(path: Path, X: Array, y: Array, first: int = 1) -> None:
    lines = []
    for row, value in zip(X, y, strict=True):
        entries = [f"{j + first}:{x!r}" for j, x in enumerate(row.tolist()) if x]
        lines.append(" ".join([repr(float(value)), *entries]))
    path.write_text("\n".join(lines) + "\n")


def _h5ad(path: Path, X: Any, y: Array) -> None:
    anndata = pytest.importorskip("anndata")
    held = anndata.AnnData(X)
    held.obs["value"] = y
    held.obs["label"] = np.where(y > 0, "sick", "well")
    held.write_h5ad(path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_and_npz(order: Any, memory: int, tmp_path: Path) -> None:
    X, _, y = _data()
    X = np.asarray(X, order=order)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "x.npy", X)
    names = np.array([f"n{j}" for j in range(21)])
    np.savez_compressed(tmp_path / "x.npz", X=X, y=y, feature_names=names)
    for name, target in (("x.npy", "y.npy"), ("x.npz", None)):
        out = tmp_path / f"{name}.store"
        convert(tmp_path / name, out, target=target, memory=memory)
        assert_array_equal(_all(out), X)
        assert_array_equal(OnDisk(out).target, y)
    assert OnDisk(tmp_path / "x.npz.store").feature_names == names.tolist()


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_npz(form: str, memory: int, tmp_path: Path) -> None:
    _, X, y = _data()
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(X).asformat(form))
    made = convert(tmp_path / "x.npz", tmp_path / "x.store", memory=memory)
    assert made.layout == "csc"
    assert_array_equal(_all(made.path), X)
    ones = sp.csr_array(X).asformat(form)
    np.savez(
        tmp_path / "ones.npz", data=np.ones(1), indices=ones.indices, indptr=ones.indptr,
        shape=ones.shape, format=form, y=y,
    )  # fmt: skip
    made = convert(tmp_path / "ones.npz", tmp_path / "ones.store", memory=memory)
    assert_array_equal(_all(made.path), X != 0)
    assert_array_equal(OnDisk(made.path).target, y)


@pytest.mark.parametrize(("first", "ending"), [(0, "libsvm"), (1, "svm.gz"), (1, "svm.bz2")])
def test_libsvm(first: int, ending: str, memory: int, tmp_path: Path) -> None:
    _, X, y = _data()
    X[0, 0] = 5.0
    _libsvm(tmp_path / "x.libsvm", X, y, first)
    content = (tmp_path / "x.libsvm").read_bytes()
    packers = {"svm.gz": gzip.compress, "svm.bz2": bz2.compress}
    if ending in packers:
        (tmp_path / f"x.{ending}").write_bytes(packers[ending](content))
    made = convert(tmp_path / f"x.{ending}", tmp_path / "x.store", memory=memory)
    assert_array_equal(_all(made.path), X)
    assert_array_equal(OnDisk(made.path).target, y)
    assert OnDisk(made.path).manifest.first_index == first
    table = read(tmp_path / "x.libsvm")
    assert_array_equal(table.X.toarray(), X)


@pytest.mark.parametrize(("ending", "text"), [("csv", True), ("csv.gz", False)])
def test_csv(ending: str, text: bool, memory: int, tmp_path: Path) -> None:
    X, _, y = _data()
    _csv(tmp_path / "x.csv", X, y, text)
    if ending == "csv.gz":
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    made = convert(
        tmp_path / f"x.{ending}", tmp_path / "x.store", target="outcome", drop=["id"],
        memory=memory,
    )  # fmt: skip
    assert_array_equal(_all(made.path), X)
    target = OnDisk(made.path).target
    assert_array_equal(target, np.where(y > 0, "sick", "well") if text else y)
    assert OnDisk(made.path).feature_names == [f"g{j}" for j in range(21)]


def test_parquet(memory: int, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, _, y = _data()
    frame = pandas.DataFrame(X, columns=[f"g.{j}" for j in range(21)])
    frame["g.3"] = X[:, 3] = np.arange(29) // 2
    frame["outcome"], frame["id"] = y, "someone"
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=10)
    for drop in ([], ["id"]):  # with text in it, as `select` understands it
        out = tmp_path / f"{len(drop)}.store"
        source = tmp_path / "x.parquet"
        convert(source, out, target="outcome", drop=drop, memory=memory)
        assert_array_equal(_all(out), X)
        assert_array_equal(OnDisk(out).target, y)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.filterwarnings("ignore")
def test_h5ad(form: str, memory: int, tmp_path: Path) -> None:
    from atomlearn.core import feature_names
    from atomlearn.designs import as_design

    dense, X, y = _data()
    X = dense if form == "dense" else X
    held = X if form == "dense" else sp.csr_array(X).asformat(form)
    _h5ad(tmp_path / "x.h5ad", sp.csr_matrix(held) if form == "csr" else held, y)
    for target, expected in (("value", y), ("label", np.where(y > 0, "sick", "well"))):
        out = tmp_path / f"{target}.store"
        convert(tmp_path / "x.h5ad", out, target=target, memory=memory)
        assert_array_equal(_all(out), X)
        assert_array_equal(OnDisk(out).target, expected)
    opened = as_design(tmp_path / "x.h5ad")
    assert_array_equal(opened.gather(np.arange(21)).dense(), X)
    assert feature_names(tmp_path / "x.h5ad") == [str(j) for j in range(21)]


@pytest.mark.parametrize("n_samples", [1, 4, 33])
def test_plink_and_two_bits_of_other_formats(n_samples: int, memory: int, tmp_path: Path) -> None:
    X = genotypes(n_samples, 20, 0.1 if n_samples > 3 else 0.0, seed=n_samples)
    naive_write_plink(tmp_path / "x.bed", X)
    convert(tmp_path / "x.bed", tmp_path / "bed.store", memory=memory)
    assert_array_equal(_all(tmp_path / "bed.store"), filled(X))
    for order in ("C", "F"):
        np.save(tmp_path / "x.npy", np.asarray(X, order=order))
        out = tmp_path / f"{order}.store"
        made = convert(tmp_path / "x.npy", out, dtype="genotype", memory=memory)
        assert made.layout == "genotypes"
        assert_array_equal(_all(out), filled(X))
        mine, theirs = OnDisk(out), OnDisk(tmp_path / "bed.store")
        assert (out / "values.bin").read_bytes() == (theirs.path / "values.bin").read_bytes()
        assert mine.n_bytes == 20 * ((n_samples + 3) // 4)


def test_write_plink_is_what_the_naive_writer_writes(tmp_path: Path) -> None:
    X = genotypes(13, 9, 0.2)
    naive_write_plink(tmp_path / "a.bed", X)
    write_plink(tmp_path / "b.bed", X, positions=[1000 * j for j in range(9)])
    assert (tmp_path / "a.bed").read_bytes() == (tmp_path / "b.bed").read_bytes()
    design = PlinkBed(tmp_path / "b.bed")
    assert_array_equal(design.gather(np.arange(9)).dense(), filled(X))
    assert design.target is None


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    X=hnp.arrays(
        st.sampled_from(["float64", "float32", "float16", "int8", "int32", "bool", "uint8"]),
        st.tuples(st.integers(1, 23), st.integers(1, 17)),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    form=st.sampled_from(["npy", "npz", "csr", "csc"]),
    fortran=st.booleans(),
    budget=st.sampled_from([100, 900, 5000, 2**24]),
)
@example(X=np.zeros((1, 1)), form="csr", fortran=False, budget=100)
@example(X=np.zeros((3, 2)), form="csc", fortran=False, budget=100)
def test_round_trips(
    X: Any, form: str, fortran: bool, budget: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("atomlearn.storage.conversion.writer.READING", ReadingSizes(chunk_bytes=64))
        folder = tmp_path_factory.mktemp("round")
        source = folder / ("x.npy" if form == "npy" else "x.npz")
        held = np.asfortranarray(X) if fortran else np.ascontiguousarray(X)
        if form == "npy":
            np.save(source, held)
        elif form == "npz" or X.dtype == np.float16:
            np.savez(source, X=held)
        else:
            sp.save_npz(source, sp.csr_array(held).asformat(form))
        made = convert(source, folder / "x.store", memory=budget)
        assert_array_equal(_all(made.path), X.astype(np.float64))
        assert not list(folder.glob("*.partial"))


def _typed(path: Path, ending: str) -> Path:
    """Return the table with types, a stream of batches where it is .arrow."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table, made = pd.read_csv(path), path.with_suffix(ending)
    if ending == ".parquet":
        table.to_parquet(made)
    else:
        held = pa.Table.from_pandas(table)
        with pa.ipc.new_stream(str(made), held.schema) as stream:
            stream.write_table(held, max_chunksize=33)
    return made


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_a_table_is_read_the_same_in_pieces(ending: str, tmp_path: Path) -> None:
    """Categories whose labels show late, gaps, identifiers and weights."""
    rng, cities = np.random.default_rng(0), ["A", "B", "C", "D"]
    lines = ["id,a,city,flag,w,y"]
    for i in range(200):
        gap = "" if i % 50 == 7 else f"{rng.standard_normal():.6f}"
        city = cities[i % 4] if i > 150 else cities[i % 3]
        outcome = "" if i == 11 else ("ill" if i % 2 else "well")
        lines.append(f"P{i:03d},{gap},{city},{int(i > 100)},{1 + i % 3},{outcome}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    if ending != ".csv":
        path = _typed(path, ending)
    asked: dict[str, Any] = {"missing": "indicator", "id": "id", "roles": {"weights": "w"}}
    plain = read(path, "y", **asked)
    with pytest.MonkeyPatch.context() as patch:
        for module in (held, text, typed):
            patch.setattr(module, "LIMITS", FileLimits(piece_bytes=1500))
        pieces = read(path, "y", **asked)
    assert pieces.feature_names == plain.feature_names
    assert_array_equal(pieces.groups, plain.groups)
    assert_array_equal(pieces.X, plain.X)
    assert_array_equal(pieces.y, plain.y)
    assert pieces.ids == plain.ids
    assert_array_equal(pieces.extras["weights"], plain.extras["weights"])


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n" + "1,2\n" * 9 + "3,x\n", "'b': 'x' among numbers.*--na x"),
        ("a,b\n1,2\n3\n", "has 1 cells, and the others have 2"),
        ("a,b\n1,2\n3,inf\n4,5\n", "column 'b': 1 values .* not finite"),
        ("a,b\n", "a header but no data"),
        ("1,2\n3,4\n", "only numbers"),
        ('a,b\n1,"2\n', "not a readable table"),
        ("a,b\n1,2\n3,\n4,5\n", r"column 'b': 1 values are missing .* on line 3.*--missing median"),
    ],
)
def test_tables_that_cannot_be_converted(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        convert(tmp_path / "x.csv", tmp_path / "x.store")
    assert not (tmp_path / "x.store").exists()


def test_values_that_do_not_fit_say_where(tmp_path: Path) -> None:
    X = np.ones((6, 5))
    X[4, 3] = 70_000.5
    np.save(tmp_path / "x.npy", X)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(X))
    for name in ("x.npy", "x.npz"):
        for dtype in ("int8", "float16"):
            with pytest.raises(ValueError, match=r"got 70000\.5 at \(row, column\) = \(4, 3\)"):
                convert(tmp_path / name, tmp_path / "x.store", dtype=dtype)
    with pytest.raises(ValueError, match="0, 1, 2 or missing"):
        convert(tmp_path / "x.npy", tmp_path / "x.store", dtype="genotype")
    with pytest.raises(ValueError, match="two-bit genotypes are dense"):
        convert(tmp_path / "x.npz", tmp_path / "x.store", dtype="genotype")


def test_bad_requests(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 3)))
    source, out = tmp_path / "x.npy", tmp_path / "x.store"
    for options, words in (
        ({"memory": 0}, "number of bytes"),
        ({"dtype": "int4"}, "dtype must be"),
        ({"drop": ["a"]}, "columns of npy files cannot"),
        ({"target": "nothing.npy"}, "nothing.npy"),
    ):
        with pytest.raises(ValueError, match=words):
            convert(source, out, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no folder"):
        convert(source, tmp_path / "no" / "x.store")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        convert(tmp_path / "y.npy", out)
    convert(source, out)
    with pytest.raises(ValueError, match="exists; remove it"):
        convert(source, out)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet", "x.h5ad", "x.bed", "x.svm"])
def test_damaged_sources_are_refused_and_leave_no_store(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x93NUMPY\x01\x00 and then nothing\xff\xfe\n")
    with pytest.raises((ValueError, FileNotFoundError)):
        convert(tmp_path / name, tmp_path / "x.store")
    assert not (tmp_path / "x.store").exists()


def test_two_conversions_to_one_place_do_not_meet(tmp_path: Path) -> None:
    second = journal.Workplace(tmp_path / "x.store", {"a": 1})
    with (
        journal.Workplace(tmp_path / "x.store", {"a": 1}),
        pytest.raises(ValueError, match="another conversion"),
    ):
        second.__enter__()


def test_the_rest_of_another_source_is_cleared(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 4)))
    partial = tmp_path / "x.store.partial"
    (partial / "spill").mkdir(parents=True)
    (partial / "journal.json").write_text('{"fingerprint": {}, "state": {"all_rows": true}}')
    (partial / "values.bin").write_bytes(b"rubbish")
    made = convert(tmp_path / "x.npy", tmp_path / "x.store")
    assert not made.resumed
    assert_array_equal(_all(made.path), np.ones((5, 4)))


def _interrupted(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Convert until everything is written but the name of the store; return the partial folder."""

    def killed(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            convert(source, out)
    return out.with_name(out.name + ".partial")


def test_what_is_left_of_one_source_is_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        np.save(tmp_path / f"{name}.npy", np.full((5, 4), value))
    _interrupted(tmp_path / "a.npy", tmp_path / "x.store", monkeypatch)
    made = convert(tmp_path / "b.npy", tmp_path / "x.store")
    assert not made.resumed
    assert_array_equal(_all(made.path), np.full((5, 4), 2.0))


def test_a_journal_with_a_damaged_number_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.arange(20.0).reshape(5, 4)
    np.save(tmp_path / "x.npy", X)
    partial = _interrupted(tmp_path / "x.npy", tmp_path / "x.store", monkeypatch)
    content = json.loads((partial / "journal.json").read_text())
    content["state"]["complete"] = 1
    (partial / "journal.json").write_text(json.dumps(content))
    made = convert(tmp_path / "x.npy", tmp_path / "x.store")
    assert not made.resumed
    assert_array_equal(_all(made.path), X)


def test_packing_is_its_own_inverse() -> None:
    codes = np.random.default_rng(0).integers(-1, 3, size=(11, 7)).astype(np.int8)
    packed = pack(codes).reshape(7, 3)
    table = np.array([2, -1, 1, 0])
    unpacked = table[(packed[:, :, None] >> np.array([0, 2, 4, 6])) & 3].reshape(7, 12)[:, :11]
    assert_array_equal(unpacked.T, codes)


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["libsvm", "npy"])
@pytest.mark.parametrize("moment", ["before", "amid", "after", "named"])
def test_killed_while_it_is_finished(
    form: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the moment files of the way are deleted, a second run has only to finish."""
    X = np.random.default_rng(6).standard_normal((30, 7))
    source, out = tmp_path / f"x.{form}", tmp_path / "x.store"
    if form == "libsvm":
        _libsvm(source, X, X[:, 0])
    else:
        np.save(source, X)
    remove, rename = shutil.rmtree, os.rename

    def killed_removing(folder: Path) -> None:
        if moment == "amid":
            sorted(Path(folder).iterdir())[0].unlink()
        if moment == "after":
            remove(folder)
        raise KeyboardInterrupt

    def killed_naming(old: Path, new: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "named":
            patch.setattr(os, "rename", killed_naming)
        else:
            patch.setattr(shutil, "rmtree", killed_removing)
        with pytest.raises(KeyboardInterrupt):
            convert(source, out)
    assert not out.exists()
    assert os.rename is rename
    assert convert(source, out).resumed
    assert_array_equal(_all(out), X)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []
