"""read on files made here: what it reads, and what it refuses with which words."""

from __future__ import annotations

import bz2
import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file

from atomlearn.datasets import read
from atomlearn.storage.formats import held
from atomlearn.storage.formats.held import FileLimits, understood
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.storage.formats.table import DataTable, Request, Schema
from atomlearn.storage.intake import cells
from atomlearn.storage.intake import frame as frame_module
from atomlearn.storage.intake import text as text_module
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.intake.text import TextFile


@pytest.fixture(params=["polars", "csv"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read all text by one of the two parsers; whatever is not plain goes to the second one."""
    monkeypatch.setattr(text_module, "LIMITS", FileLimits(fast_bytes=0))
    if request.param == "csv":
        monkeypatch.setattr(text_module, "by_polars", lambda *arguments: None)
    return str(request.param)


HEART = """age,famhist,"blood, pressure",chd
52,Present,160,1
63,Absent,144.5,1
46,Present,118,0
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# CSV and TSV: what tests/storage/test_awkward_files.py does not have.


def test_polars_reads_words_as_the_standard_library_does() -> None:
    form = TextForm(delimiter=",")
    rng = np.random.default_rng(0)
    words = ['5" pipe', '"a""b"', '"a,b"', 'a"b"c', " x", "x ", "NA", '"1"', "", "é", "1_0", "2"]
    n_read = 0
    for _ in range(200):
        others = ["3"] * 50 + words
        rows = [[rng.choice(words), "1.5", rng.choice(others)] for _ in range(3)]
        content = "".join(
            ",".join(["a", *row[1:]] if row is rows[0] else row) + "\n" for row in rows
        )
        columns = cells.by_polars(content, form, 3, set())
        if columns is not None:
            expected = cells.in_rows(Path("a.csv"), content, form, 3, set(), 0)
            for column, other in zip(columns, expected, strict=True):
                np.testing.assert_array_equal(column, other, strict=True)
            n_read += 1
    assert n_read > 100


def test_csv_with_quotes_and_a_text_column(tmp_path: Path) -> None:
    table = read(write(tmp_path / "heart.csv", HEART), "chd")
    assert table.feature_names == ("age", "famhist=Present", "blood, pressure")
    assert table.X.tolist() == [[52, 1, 160], [63, 0, 144.5], [46, 1, 118]]
    assert table.X.dtype == np.float64
    assert table.y is not None
    assert table.y.dtype == np.int64
    assert table.y.tolist() == [1, 1, 0]
    assert table.target_name == "chd"
    assert table.source.endswith("heart.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "a\tb,c\ty\n1\t2\t3\n4\t5\t6\n"),
        ("b.csv", '"a";"b,c";"y"\n1;2;3\n4;5;6\n'),
        ("c.csv", 'a,"b,c",y\r\n1,2,3\r\n4,5,6\r\n'),
        ("d.csv", '\ufeffa,"b,c",y\n 1, 2 ,3\n\n4,5,6'),
        ("e.csv", '\n\na,"b,c",y\n1e0,"2",3.0\n4,5,6\n   \n'),
        ("f.txt", 'a,"b,c",y\n1,2,3\n4,5,6\n'),
        ("g.csv", 'a,"b,c",y\r1,2,3\r4,5,6\r'),
    ],
)
def test_delimiters_line_ends_and_blank_lines(
    tmp_path: Path, name: str, text: str, parser: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    table = read(path, "y")
    assert table.feature_names == ("a", "b,c")
    assert table.X.tolist() == [[1, 2], [4, 5]]
    assert table.y is not None
    assert table.y.tolist() == [3, 6]


def test_targets_of_all_kinds(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,whole,real,label,both\n1,2,0.5,yes,1\n2,3,1,no,x\n")
    kinds = {}
    for name in ("whole", "real", "label", "both"):
        others = tuple(column for column in ("label", "both") if column != name)
        y = read(path, name, drop=others).y
        assert y is not None
        kinds[name] = y.tolist()
    assert kinds == {
        "whole": [2, 3],
        "real": [0.5, 1.0],
        "label": ["yes", "no"],
        "both": ["1", "x"],
    }
    assert read(path, drop=("label", "both")).y is None


@given(
    rows=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    letters=st.text("ab ,;\"'=é\t", max_size=6),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    fast=st.sampled_from([0, 2**22]),
)
def test_any_numbers_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory,
    rows: NDArray[np.float64],
    letters: str,
    quoting: int,
    fast: int,
) -> None:
    names = [f"n{letters}{place}" for place in range(len(rows[0]))]
    path = tmp_path_factory.mktemp("csv") / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, quoting=quoting).writerows([names, *rows.tolist()])  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "LIMITS", FileLimits(fast_bytes=fast))
        frame = TextFile(path, TextForm(delimiter=",")).frame()
    assert frame.header == names
    np.testing.assert_array_equal(np.stack([*frame.columns.values()], axis=1), rows)


@pytest.mark.parametrize("size", [40, 200, 2**24])
@pytest.mark.parametrize("fast", [0, 2**22])
def test_a_file_in_pieces_is_the_same(
    tmp_path: Path, size: int, fast: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes with line ends in them are not cut, and text that shows late is text from the first
    row on."""
    lines = ['a,note,"late, or not",y']
    lines += [f'{i},"says ""{i}""\nand é","{i / 2 if i < 40 else "x"}",{i % 2}' for i in range(50)]
    for encoding in ("utf-8", "utf-16", "utf-8-sig", "latin-1"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes("\n".join(lines).encode(encoding))
        limits = FileLimits(fast_bytes=fast, piece_bytes=size)
        monkeypatch.setattr(text_module, "LIMITS", limits)
        # Numbers of pieces, and all of them, in files: as where they are larger than memory.
        monkeypatch.setattr(frame_module, "is_large", lambda n_bytes: size == 200)
        monkeypatch.setattr(held, "is_large", lambda n_bytes: size == 200)
        form = TextForm(delimiter=",", encoding=encoding)
        frame = TextFile(path, form).frame()
        assert frame.n_rows == 50
        assert frame.columns["a"].tolist() == list(range(50))
        assert frame.columns["note"][7] == 'says "7"\nand é'
        assert frame.columns["late, or not"][[1, 45]].tolist() == ["0.5", "x"]
        assert frame.line(3) == "line 9"


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (HEART, "cdh", r"no column 'cdh'; did you mean 'chd'\?"),
        (HEART, "CHD", r"no column 'CHD'; did you mean 'chd'\?"),
        (HEART, "outcome", "there are 'age', 'famhist', 'blood, pressure', 'chd'"),
        ("a,b\n1,2\n3\n", "b", r"line 3 of .* has 1 cells, and the others have 2"),
        ("a,b\n1,2\n3,4,5\n", "b", r"line 3 of .* has 3 cells"),
        ("a,b\n1,2\n\n,4\n5,6\n", "b", r"column 'a': 1 values are missing .* on line 4"),
        ("a,b\n1,2\nNA,4\nnan,1\n3,1\n", "b", r"column 'a': 2 values .* on line 3"),
        ("a,b\n1,2\ninf,4\n2,3\n", "b", r"column 'a': .* not finite, the first on line 3"),
        ("a,b\nu,1\n,2\nv,3\n", "b", r"column 'a': .* missing .* on line 3"),
        ("a,b\n" + "1.5,1\n" * 9 + "1.2x,2\n", "b", r"'a': '1.2x' among numbers.* Type na=.*1.2x"),
        ("a,b\n" + "1,1\n" * 9 + "1_000,2\n", "b", "'1_000' among numbers"),
        ("a,b\n", "b", "a header but no data"),
        ("\n  \n", "b", "is empty; expected a header"),
        ("1.5,2\n3,4\n", "2", "holds only numbers .* header=False"),
        ("b\n1\n", "b", "no column is left for X"),
        ('a,b\n"1,2\n', "b", "not a readable table"),
        ("a,a=v,b\nu,1,1\nv,2,2\nw,3,1\n", "b", "would both be called 'a=v'"),
    ],
)
def test_bad_csv_is_refused_by_name(
    tmp_path: Path, text: str, target: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_module, "LIMITS", FileLimits(fast_bytes=0))
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "bad.csv", text), target)


def test_a_numbered_header_is_a_header(tmp_path: Path) -> None:
    table = read(write(tmp_path / "n.csv", "0,1,2\n5,6,7\n7,5,1\n"), "2")
    assert table.feature_names == ("0", "1")
    wild = read(write(tmp_path / "w.csv", "nan,inf\n1,2\n4,3\n"))
    assert wild.feature_names == ("nan", "inf")


def test_an_encoding_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"is not utf-88 text.*encoding="):
        read(path, "y", form=TextForm(encoding="utf-88"))


def test_restricted_schema_has_only_its_columns(tmp_path: Path) -> None:
    lines = "size,a=b,hue,y,form\n1,2,red,1,o\n2,3,blue,0,x\n3,4,green,1,o\n"
    first = read(write(tmp_path / "a.csv", lines), "y")
    schema = first.schema.restricted_to(np.array([4, 1]))
    assert schema.names == ("hue=red", "a=b")
    read_of = {plan.name: plan.values for plan in schema.columns}
    assert read_of == {"a=b": (), "hue": ("blue", "green", "red")}
    assert [schema.name(j) for j in (0, 1)] == ["hue=red", "a=b"]


# libsvm.


@pytest.mark.parametrize(
    ("suffix", "from_zero"), [(".libsvm", False), (".svm.gz", True), (".bz2", False), ("", True)]
)
def test_libsvm(tmp_path: Path, suffix: str, from_zero: bool) -> None:
    X = sp.random(20, 9, density=0.4, random_state=1, format="lil")
    X[0, 0], X[0, 8] = 1.5, 2.5
    X = sp.csr_matrix(X)
    y = np.tile([-1, 1], 10)
    path = tmp_path / f"data{suffix}"
    plain = tmp_path / "plain"
    dump_svmlight_file(X, y, str(plain), zero_based=from_zero)
    text = b"".join(
        line for line in plain.read_bytes().splitlines(keepends=True) if line[:1] != b"#"
    )
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(text))
    table = read(path)
    assert sp.issparse(table.X)
    np.testing.assert_allclose(table.X.toarray(), X.toarray())
    assert table.y is not None
    assert table.y.tolist() == y.tolist()
    assert table.feature_names is None
    assert table.schema.name(0) == ("x0" if from_zero else "x1")


def again(path: Path, schema: Schema) -> DataTable:
    """Read other rows of the columns that a model knows."""
    return format_of(path).table(path, Request(schema=schema))


def test_libsvm_predictions_keep_the_columns_of_the_fit(tmp_path: Path) -> None:
    from_zero = read(write(tmp_path / "a.svm", "1 0:1 2:3\n-1 1:2 4:1\n"))
    later = write(tmp_path / "b.svm", "1 1:7\n")
    assert again(later, from_zero.schema).X.toarray().tolist() == [[0, 7, 0, 0, 0]]
    assert read(later).X.toarray().tolist() == [[7]]
    from_one = read(write(tmp_path / "c.svm", "1 1:1 3:3\n"))
    with pytest.raises(ValueError, match="indices 0 to 2; the model was fitted to 1 to 3"):
        again(write(tmp_path / "d.svm", "1 0:1 2:1\n"), from_one.schema)
    with pytest.raises(ValueError, match="indices 4 to 4; the model was fitted to 1 to 3"):
        again(write(tmp_path / "e.svm", "1 4:1\n"), from_one.schema)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 3:1 2:1\n", "not a readable libsvm file.*ascending"),
        ("1 1:one\n", "not a readable libsvm file"),
        ("1 1:1\n1,2 1:1\n", r"not a readable libsvm file.*line 2 has several labels \(1,2\)"),
        ("1\n-1\n", "holds no data"),
        ("1 1:1\n0 1:2 2:nan\n", "sparse and has missing entries"),
        ("nan 1:1\n", "has no value in any row"),
    ],
)
def test_bad_libsvm(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "bad.svm", text))


def test_libsvm_implies_its_target(tmp_path: Path) -> None:
    path = write(tmp_path / "a.svm", "2.5 1:1\n")
    y = read(path, "y").y
    assert y is not None
    assert y.tolist() == [2.5]
    with pytest.raises(ValueError, match="only target is the first number"):
        read(path, "chd")


# NumPy files.


def test_npz_dense_with_names_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "genes.npz"
    np.savez(
        path, X=np.array([[1.2, 3.4], [5.6, 7.8], [9.0, 0.0]]), y=np.array([0, 1, 1]),
        age=np.array([1.5, 2, 3]), classes=np.array(["ALL", "AML"]), genes=np.array(["g", "h"]),
    )  # fmt: skip
    table = read(path)
    assert table.X.tolist() == [[1.2, 3.4], [5.6, 7.8], [9.0, 0.0]]
    assert table.y is not None
    assert table.y.tolist() == ["ALL", "AML", "AML"]
    assert (table.feature_names, table.target_name) == (("g", "h"), "y")
    other = read(path, "age").y
    assert other is not None
    assert other.tolist() == [1.5, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"no key for the target 'ages'; did you mean 'age'"):
        read(path, "ages")


@pytest.mark.parametrize(
    ("form", "dtype"), [("csr", np.float32), ("csc", np.float64), ("csr", np.uint8)]
)
def test_npz_of_scipy(tmp_path: Path, form: str, dtype: type) -> None:
    X = (10 * sp.random(12, 7, density=0.5, random_state=0)).astype(dtype).asformat(form)
    np.save(tmp_path / "labels.npy", np.arange(12) % 3)
    sp.save_npz(tmp_path / "x.npz", X)
    table = read(tmp_path / "x.npz", "labels.npy")
    assert table.X.format == form
    assert table.X.dtype == (np.float32 if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    assert table.y is not None
    assert table.y.tolist() == [0, 1, 2] * 4
    assert read(tmp_path / "x.npz").y is None


def test_npz_of_bare_csr_arrays_with_one_value(tmp_path: Path) -> None:
    path = tmp_path / "ones.npz"
    parts = {"indices": np.array([0, 2, 1]), "indptr": np.array([0, 2, 3]), "shape": (2, 3)}
    np.savez(path, data=np.ones(1, np.uint8), y=[True, False], words=["a", "b", "c"], **parts)
    table = read(path)
    assert table.X.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert table.feature_names == ("a", "b", "c")
    assert table.y is not None
    assert table.y.tolist() == [1, 0]


def test_repeated_entries_are_summed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", data=[1, 2, 4], indices=[1, 0, 1], indptr=[0, 3], shape=(1, 2))
    X = read(tmp_path / "a.npz").X
    assert X.toarray().tolist() == [[2, 5]]
    assert X.nnz == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.array([0, 3, 1])}, "(broken|not a readable) sparse matrix"),
        ({"indices": np.array([0, -1, 1])}, "(broken|not a readable) sparse matrix"),
        ({"indptr": np.array([0, 3, 2])}, "(broken|not a readable) sparse matrix"),
        ({"indptr": np.array([0, 2])}, "(broken|not a readable) sparse matrix"),
        ({"indptr": np.array([1, 2, 3])}, "(broken|not a readable) sparse matrix"),
        ({"indices": np.array([0.5, 2, 1])}, "(broken|not a readable) sparse matrix"),
        ({"shape": np.array([2, 3, 4])}, "(broken|not a readable) sparse matrix"),
        ({"shape": np.array([-2, 3])}, "(broken|not a readable) sparse matrix"),
        ({"shape": np.array(2)}, "(broken|not a readable) sparse matrix"),
        ({"data": np.array([1.0, np.nan, 2.0])}, "sparse and has missing entries"),
        ({"data": np.array(["a", "b", "c"])}, "expected real numbers"),
        ({"data": np.array([1.0, 2.0])}, "(broken|not a readable) sparse matrix"),
        ({"format": np.array("bsr")}, "'bsr' format; save it as csr or csc"),
        ({"y": np.array([1, 2, 3])}, "2 samples but 3 targets"),
        ({"y": np.array([[1, 2], [3, 4]])}, "one target per sample"),
        ({"y": np.array([0, 7]), "classes": np.array(["a", "b"])}, "must index its 2 classes"),
    ],
)
def test_broken_npz(tmp_path: Path, change: dict[str, np.ndarray], message: str) -> None:
    parts = {
        "data": np.ones(3), "indices": np.array([0, 2, 1]), "indptr": np.array([0, 2, 3]),
        "shape": np.array([2, 3]), "y": np.array([0, 1]),
    }  # fmt: skip
    np.savez(tmp_path / "bad.npz", **{**parts, **change})
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, 2.0], [np.inf, np.nan]]), "1 values .* row 1, column 0"),
        (np.ones(3), r"shape \(3,\); expected \(n_samples, n_features\)"),
        (np.ones((0, 3)), r"shape \(0, 3\)"),
        (np.array([["a"]]), "expected real numbers"),
        (np.array([[1j]]), "expected real numbers"),
        (np.array([[{}]], dtype=object), "allow_pickle=False; save numbers"),
    ],
)
def test_bad_dense_npz(tmp_path: Path, X: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "bad.npz", X=X, y=np.arange(len(X)))
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "bad.npz")


def test_npz_without_x(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", G=np.eye(2), y=[0, 1])
    with pytest.raises(ValueError, match=r"holds G, y; expected X \(dense\) or data, indices"):
        read(tmp_path / "a.npz")
    write(tmp_path / "b.npz", "not a zip file")
    with pytest.raises(ValueError, match=r"not a readable \.npz file"):
        read(tmp_path / "b.npz")


def test_overflow_of_a_sum_is_not_infinity(tmp_path: Path) -> None:
    np.savez(tmp_path / "big.npz", X=np.full((2, 2), 1e308))
    assert read(tmp_path / "big.npz").X.tolist() == [[1e308, 1e308]] * 2


def test_npy(tmp_path: Path) -> None:
    path = tmp_path / "m.npy"
    np.save(path, np.array([[1, 2, 0], [3, 4, 1]]))
    everything = read(path)
    assert everything.X.shape == (2, 3)
    assert everything.y is None
    last, first = read(path, "last"), read(path, "0")
    assert last.X.tolist() == [[1, 2], [3, 4]]
    assert first.X.tolist() == [[2, 0], [4, 1]]
    assert last.y is not None
    assert last.y.tolist() == [0, 1]
    assert first.y is not None
    assert first.y.tolist() == [1, 3]
    np.save(tmp_path / "labels.npy", np.array(["a", "b"]))
    apart = read(path, str(tmp_path / "labels.npy"))
    assert apart.y is not None
    assert apart.y.tolist() == ["a", "b"]
    assert apart.X.shape == (2, 3)
    with pytest.raises(ValueError, match="expected 'last', the number of a column"):
        read(path, "chd")
    with pytest.raises(ValueError, match="target 3 is not a column: there are 3, from 0"):
        read(path, "3")
    np.save(path, np.ones(4))
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        read(path)


# All formats.


def test_files_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path / "heart.csv", HEART)
    with pytest.raises(FileNotFoundError, match=r"hearts\.csv; did you mean 'heart\.csv'\?"):
        read(tmp_path / "hearts.csv", "chd")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*x\.csv$"):
        read(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(ValueError, match="is empty"):
        read(write(tmp_path / "empty.npz", ""))


@pytest.mark.parametrize("name", ["a.bin", "a", "a.txt"])
def test_unknown_formats_say_what_is_known(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"PAR1\xff\xfe\x00 nothing we know\n")
    with pytest.raises(ValueError, match=r"format of .* is not known; .* \.npz, .*\.csv, .*\.bed"):
        read(path)


@pytest.mark.parametrize("letter", [0xDC80, 0x110000])
def test_half_a_letter_is_no_text(letter, tmp_path):
    np.save(tmp_path / "names.npy", np.array([65, letter], dtype=np.uint32).view("U1"))
    with pytest.raises(ValueError, match=r"names\.npy is not a readable NumPy array"):
        load_npy(tmp_path / "names.npy")


def test_files_that_are_not_there_are_told_as_the_system_does(tmp_path):
    with pytest.raises(FileNotFoundError), understood("x", "table"):
        (tmp_path / "none").read_bytes()
    said = pytest.raises(ValueError, match=r"^x is not a readable table: gone; try$")
    with said, understood("x", "table", "; try"):
        raise OSError("gone")


def test_npy_files_of_the_second_version_are_read(tmp_path: Path) -> None:
    X, file = np.arange(6.0).reshape(3, 2), tmp_path / "X.npy"
    with file.open("wb") as stream:
        np.lib.format.write_array(stream, X, version=(2, 0))
    np.testing.assert_array_equal(load_npy(file), X)


def test_blanks_around_categories_make_no_other_category(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("where,x,y\nnorth,1.5,2\n north ,0.5,3\nsouth,3.5,4\nsouth  ,4.5,5\n")
    table = read(file, "y")
    assert table.feature_names == ("where=south", "x")
    assert table.X[:, 0].tolist() == [0, 0, 1, 1]
    # As Python reads it, where polars is not at hand.
    assert cells.column_of([" a ", "b", "a"], TextForm(), True).tolist() == ["a", "b", "a"]


def test_rows_of_a_matrix_have_the_names_of_the_column_asked_for(tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.array([0.5, 3.5, 1.5, 2.5]))
    np.save(tmp_path / "who.npy", np.array([7, 8, 9, 10]))
    given = {"target": "y.npy"}
    apart = read(tmp_path / "X.npy", **given, id=str(tmp_path / "who.npy"))
    assert apart.ids == ("7", "8", "9", "10")
    assert apart.X.shape == (4, 3)
    within = read(tmp_path / "X.npy", **given, id="x1")
    assert within.ids == ("1", "4", "7", "10")
    assert within.feature_names == ("x0", "x2")
    assert read(tmp_path / "X.npy", **given).ids is None
    with pytest.raises(ValueError, match="has no column 'barcode'; there are 'x0'"):
        read(tmp_path / "X.npy", **given, id="barcode")
