"""Files that somebody made to crash, run, read or fill what they should not: one line each."""

import gzip
import io
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

from atomlearn import norms, solvers
from atomlearn.cli import main
from atomlearn.datasets import convert, read
from atomlearn.storage.formats import held
from atomlearn.storage.formats.libsvm import read_libsvm
from atomlearn.storage.formats.numpy_files import Archive
from atomlearn.storage.formats.table import Request, Schema
from tests.oracles.sums import solve_sum

ONE_LINE = r"^[^\n]{1,600}$"
h5py = pytest.importorskip("h5py")


def refused(path, says, target="y", **options):
    with pytest.raises(ValueError, match=ONE_LINE) as caught:
        read(path, target, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_no_object_is_made_of_a_file(ending, tmp_path):
    # The pickle of a list of text, which the reader of text that was here would have taken.
    names = np.array(["a", "b"], dtype=object)
    np.save(tmp_path / "t.npy", names) if ending == ".npy" else np.savez(
        tmp_path / "t.npz", X=np.eye(2), y=np.arange(2), feature_names=names
    )
    refused(tmp_path / f"t{ending}", "dtype U or S", None if ending == ".npy" else "y")


def test_reading_imports_no_pickle_of_a_file(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.array([Bomb(), 1], dtype=object))
    refused(tmp_path / "t.npz", "allow_pickle=False")
    assert not (tmp_path / "ran").exists()


def test_an_array_that_nobody_asks_for_is_not_read(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=np.arange(3), other=np.array([{}], dtype=object))
    assert read(tmp_path / "t.npz", "y").X.shape == (3, 3)
    archive = Archive(tmp_path / "t.npz")
    assert archive["X"] is archive["X"]
    assert (archive.get("none"), len(archive)) == (None, 3)


def frames(file):
    for name in ("obs", "var"):
        frame = file.create_group(name)
        frame.attrs["_index"] = "_index"
        frame["_index"] = [f"{name}{j}" for j in range(4)]
    file["X"] = np.arange(16.0).reshape(4, 4)


def of_outside(group, name, way, folder):
    (folder / "secret").write_bytes(b"\1\2\3\4")
    with h5py.File(folder / "other.h5", "w") as other:
        other["data"] = np.arange(4)
    if way == "external storage":
        group.create_dataset(name, (4,), "u1", external=[(str(folder / "secret"), 0, 4)])
    elif way == "external link":
        group[name] = h5py.ExternalLink(str(folder / "other.h5"), "/data")
    elif way == "soft link":
        group["beyond"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
        group[name] = h5py.SoftLink(f"{group.name}/beyond/data")
    else:
        layout = h5py.VirtualLayout(shape=(4,), dtype="i8")
        layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "data", shape=(4,))
        group.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("way", ["external storage", "external link", "soft link", "virtual"])
def test_no_other_file_is_read_through_hdf5(way, tmp_path):
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        frames(file)
        of_outside(file["obs"], "label", way, tmp_path)
    refused(tmp_path / "t.h5ad", "none is followed", "label")
    with h5py.File(tmp_path / "t.mat", "w", userblock_size=512) as file:
        file["X"] = np.eye(4)
        of_outside(file, "y", way, tmp_path)
    with (tmp_path / "t.mat").open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM")
    refused(tmp_path / "t.mat", "none is followed")


@pytest.mark.parametrize("part", ["label", "values", "mask", "codes", "categories", "index"])
def test_a_size_that_hdf5_declares_is_held_against_what_is_stored(part, tmp_path):
    whole = {"shape": (3_000_000_000,), "dtype": "i1", "chunks": (1024,), "compression": "gzip"}
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        frames(file)
        obs = file["obs"]
        if part == "index":
            del file["var"]["_index"]
            file["var"].create_dataset("_index", **whole)
        elif part == "label":
            obs.create_dataset("label", **whole)
        else:
            pair = ("mask", "values") if part in ("mask", "values") else ("codes", "categories")
            for name in pair:
                made = obs.require_group("label")
                kind = {"data": np.zeros(4, np.int8)} if name != part else whole
                made.create_dataset(name, **kind)
    assert (tmp_path / "t.h5ad").stat().st_size < 50_000
    refused(tmp_path / "t.h5ad", "should take 3,000,000,000 bytes", "label")


def test_a_size_in_a_new_mat_file_is_held_against_what_is_stored(tmp_path):
    with h5py.File(tmp_path / "t.mat", "w", userblock_size=512) as file:
        file.create_dataset("X", (10**5, 10**5), "f4", chunks=(100, 100), compression="gzip")
    with (tmp_path / "t.mat").open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM")
    refused(tmp_path / "t.mat", "should take 40,000,000,000 bytes", None)


def peak_of(code, tmp_path):
    """Return the megabytes that reading takes, in a process of its own, and what it said."""
    script = (
        "import resource\nfrom atomlearn.datasets import read, convert\n"
        "import sys\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"try:\n    {code}\n    print('read')\n"
        "except ValueError as error:\n    print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said, taken = done.stdout.strip().splitlines()
    return int(taken), said


def feather(path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    columns = {name: np.arange(4 * 10**6) % 2.0 for name in "ay"}
    feather.write_feather(pa.table(columns), path, compression="zstd")


def parquet(path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: np.arange(4 * 10**6) % 2.0 for name in "ay"}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def one_line(path):
    path.write_bytes(gzip.compress(b"a,y\n1,0\n" + b"1" * 150_000_000, 1))


def open_quote(path):
    path.write_bytes(gzip.compress(b'a,y\n1,0\n"' + b"1,0\n" * 15_000_000, 1))


def hdf_chunk(path):
    with h5py.File(path, "w") as file:
        frames(file)
        label = file["obs"].create_dataset("y", (1024,), "u1", chunks=(1024,), compression="gzip")
        label.id.write_direct_chunk((0,), zlib.compress(bytes(150_000_000), 1))


@pytest.mark.parametrize(
    ("name", "write"),
    [("t.feather", feather), ("t.parquet", parquet), ("t.csv.gz", one_line),
     ("t.csv.gz", open_quote), ("t.h5ad", hdf_chunk)],
)  # fmt: skip
def test_no_more_memory_is_taken_than_allowed(name, write, tmp_path):
    write(tmp_path / name)
    form = name.partition(".")[2]
    code = f"read('{name}', 'y', memory_limit=30_000_000)"
    taken, said = peak_of(code, tmp_path)
    assert taken < 150, (form, said)  # of a feather file read as a whole it is 190
    assert said == "read" or any(why in said for why in ("memory", "filter returned failure"))


@pytest.mark.parametrize("write", [one_line, open_quote])
def test_a_conversion_takes_no_more_for_a_line(write, tmp_path, capsys):
    write(tmp_path / "t.csv.gz")
    code = "convert('t.csv.gz', 't.store', target='y', memory=20_000_000)"
    taken, said = peak_of(code, tmp_path)
    assert taken < 250
    assert "memory" in said or "does not end" in said


def test_what_a_parser_asks_for_beyond_the_limit_fails():
    with held.within(2**20), pytest.raises(MemoryError), held.memory_capped():
        np.ones(2**27)
    with held.within(2**20), pytest.raises(ValueError, match="may be taken"):
        held.fits("f", "it", 2**30)
    assert np.ones(2**23).size == 2**23


def test_a_checkpoint_with_a_part_that_inflates_is_not_read(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(10, 4)), np.arange(10.0)
    asked = {"norm": norms.L1(), "form": "squared", "level": 1.0}
    solve_sum(X, y, observers=[solvers.Checkpoint(tmp_path, every_s=0)], **asked)
    with zipfile.ZipFile(tmp_path / "checkpoint.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        stream = io.BytesIO()
        np.save(stream, np.zeros(10**6))
        archive.writestr("state_extra.npy", stream.getvalue())
    with pytest.raises(ValueError, match=r"compressed.*remove it to begin afresh"):
        solve_sum(X, y, observers=[solvers.Checkpoint(tmp_path, every_s=0)], **asked)


def test_an_index_far_away_makes_no_columns_but_where_the_model_has_them(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1 60000000:2\n0 2:1\n")
    refused(path, "index wrong", None)
    known = read_libsvm(path, Request(schema=Schema(60_000_000, first_index=1)))
    assert known.X.shape == (2, 60_000_000)
    with pytest.raises(ValueError, match="index wrong"):
        convert(path, tmp_path / "t.store")


@pytest.mark.parametrize("outside", [False, True])
def test_entities_of_a_workbook_are_not_read(outside, tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "y"], [1.0, 0], [2.0, 1]):
        book.active.append(row)
    book.save(tmp_path / "whole.xlsx")
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    entity = f'<!ENTITY e0 "ha">{levels}' if not outside else '<!ENTITY e9 SYSTEM "secret">'
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name == "xl/worksheets/sheet1.xml":
                at = text.find("<worksheet")
                text = (
                    text[:at] + f"<!DOCTYPE x [{entity}]>" + text[at:].replace("2</v>", "&e9;</v>")
                )
            new.writestr(name, text)
    assert read(tmp_path / "whole.xlsx", "y").X.shape == (2, 1)
    refused(path, "not a readable Excel file")
    assert main(["inspect", str(path)]) == 2
    assert "internal" not in capsys.readouterr().err


def test_the_rows_of_a_sheet_end_where_those_of_excel_do(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["a", "y"])
    book.active.append([1.0, 0])
    book.save(tmp_path / "whole.xlsx")
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name).replace(b'<row r="2"', b'<row r="999999999999"')
            text = text.replace(b'<dimension ref="A1:B2" />', b"")
            new.writestr(name, text)
    refused(path, "more than the 1,048,576 rows")
