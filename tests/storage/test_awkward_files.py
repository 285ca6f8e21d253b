# ruff: noqa: E501  (a file a line)
"""Sixty files as they come: each is read rightly, or refused in one short message with a remedy."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn.datasets import read, write_plink
from atomlearn.storage.formats.held import FileLimits
from atomlearn.storage.formats.table import DataTable
from atomlearn.storage.intake import text
from atomlearn.storage.intake.cells import TextForm

#: Letters of a message at most; the path of the file, which tests make long, apart.
MOST = 500
ROWS = 12


def lines(header: str, row: Callable[[int], str], n: int = ROWS, end: str = "\n") -> str:
    return end.join([header, *(row(i) for i in range(n))]) + end


PLAIN = lines("a,b,y", lambda i: f"{i * i % 7},{0.5 * i},{i % 2}")
GENES = "gene," + ",".join(f"s{i}" for i in range(ROWS)) + "\n"
GENES += "".join(
    f"g{j}," + ",".join(str((i * j) % 5 + j) for i in range(ROWS)) + "\n" for j in range(30)
)
WORDS = ["good movie", "bad plot here", "good plot", "bad acting overall", "a good story told well"]


def named(table: DataTable, *names: str) -> bool:
    return table.feature_names == names


def has_note(table: DataTable, word: str) -> bool:
    return any(word in note for note in table.notes)


# name -> (ending, content, what read is given, what must hold of the table, or of the message)
Case = tuple[str, str | bytes, dict[str, Any], Callable[[DataTable], bool] | str]
TEXT: dict[str, Case] = {
    "plain": (".csv", PLAIN, {}, lambda t: named(t, "a", "b") and t.X.shape == (12, 2)),
    "tabs": (".tsv", PLAIN.replace(",", "\t"), {}, lambda t: named(t, "a", "b")),
    "semicolons": (".csv", PLAIN.replace(",", ";"), {}, lambda t: named(t, "a", "b")),
    "bars": (".csv", PLAIN.replace(",", "|"), {}, lambda t: named(t, "a", "b")),
    "spaces": (".txt", PLAIN.replace(",", "  "), {}, lambda t: named(t, "a", "b")),
    "decimal comma": (".csv", lines("a;b;y", lambda i: f"{i},5;{i % 3};{i % 2}"), {},
                      lambda t: t.X[1, 0] == 1.5 and has_note(t, "decimal comma")),
    "decimal comma, thousands": (".csv", lines("a;y", lambda i: f"{i + 1}.000,25;{i % 2}"), {},
                                 lambda t: t.X[0, 0] == 1000.25),
    "thousands in quotes": (".csv", lines("a,b,y", lambda i: f'"{i + 1},000.5",{i * i},{i % 2}'),
                            {}, lambda t: t.X[0, 0] == 1000.5),
    "latin-1": (".csv", lines("größe,b,y", lambda i: f"{i + .5},ü{i % 2},{i % 2}").encode("latin-1"),
                {}, lambda t: named(t, "größe", "b=ü1") and has_note(t, "not UTF-8")),
    "utf-16": (".csv", PLAIN.encode("utf-16"), {}, lambda t: named(t, "a", "b")),
    "byte order mark": (".csv", PLAIN.encode("utf-8-sig"), {}, lambda t: named(t, "a", "b")),
    "wrong encoding said": (".csv", "größe,y\n1,0\n".encode("latin-1"),
                            {"form": TextForm(encoding="utf-8")}, "encoding="),
    "gzip": (".csv.gz", gzip.compress(PLAIN.encode()), {}, lambda t: named(t, "a", "b")),
    "bzip2": (".csv.bz2", bz2.compress(PLAIN.encode()), {}, lambda t: named(t, "a", "b")),
    "xz": (".csv.xz", lzma.compress(PLAIN.encode()), {}, lambda t: named(t, "a", "b")),
    "windows line ends": (".csv", PLAIN.replace("\n", "\r\n"), {}, lambda t: t.X.shape == (12, 2)),
    "blank lines": (".csv", PLAIN.replace("\n", "\n\n"), {}, lambda t: t.X.shape == (12, 2)),
    "no last line end": (".csv", PLAIN.rstrip("\n"), {}, lambda t: t.X.shape == (12, 2)),
    "comments first": (".csv", "# made by us\n# in 2024\n" + PLAIN, {}, lambda t: named(t, "a", "b")),
    "names twice": (".csv", PLAIN.replace("a,b,y", "a,a,y"), {},
                    lambda t: named(t, "a", "a_2") and has_note(t, "came twice")),
    "pandas index": (".csv", lines(",a,y", lambda i: f"{i},{i * i % 7},{i % 2}"), {},
                     lambda t: named(t, "a") and has_note(t, "index")),
    "row names of R": (".csv", lines("a,y", lambda i: f"r{i},{i * i % 7},{i % 2}"), {},
                       lambda t: named(t, "a") and t.ids is not None and t.ids[1] == "r1"),
    "trailing delimiter": (".csv", lines("a,b,y", lambda i: f"{i % 5},{i * .5},{i % 2},"), {},
                           lambda t: named(t, "a", "b")),
    "an identifier": (".csv", lines("patient,a,y", lambda i: f"P{i:03d},{i % 5},{i % 2}"), {},
                      lambda t: named(t, "a") and t.ids is not None and t.ids[2] == "P002"),
    "a number that names rows": (".csv", lines("patient_id,a,y", lambda i: f"{9000 + 7 * i},{i % 5},{i % 2}"),
                                 {}, lambda t: named(t, "a") and has_note(t, "identifier")),
    "an empty column": (".csv", lines("a,none,y", lambda i: f"{i % 5},,{i % 2}"), {},
                        lambda t: named(t, "a") and has_note(t, "constant")),
    "a constant": (".csv", lines("a,same,y", lambda i: f"{i % 5},7,{i % 2}"), {},
                   lambda t: named(t, "a")),
    "a column twice": (".csv", lines("a,b,y", lambda i: f"{i % 5},{i % 5},{i % 2}"), {},
                       lambda t: named(t, "a") and has_note(t, "duplicate")),
    "yes and no": (".csv", lines("a,smoker,y", lambda i: f"{i % 5},{'yes' if i % 3 else 'no'},{i % 2}"),
                   {}, lambda t: named(t, "a", "smoker=yes") and t.groups is None),
    "a category": (".csv", lines("a,city,y", lambda i: f"{i % 5},{'ABC'[i % 3]},{i % 2}"), {},
                   lambda t: named(t, "a", "city=A", "city=B", "city=C")
                   and list(t.groups) == [0, 1, 1, 1]),
    "an order": (".csv", lines("a,dose,y", lambda i: f"{i % 5},{('low', 'medium', 'high')[i % 3]},{i % 2}"),
                 {}, lambda t: named(t, "a", "dose") and t.X[:3, 1].tolist() == [0.0, 1.0, 2.0]),
    "dates": (".csv", lines("a,day,y", lambda i: f"{i % 5},2024-01-{i + 1:02d},{i % 2}"), {},
              lambda t: named(t, "a") and has_note(t, "dates=")),
    "days since": (".csv", lines("a,day,y", lambda i: f"{i % 5},2024-01-{i + 1:02d},{i % 2}"),
                   {"dates": "elapsed"}, lambda t: t.X[3, 1] == 3.0),
    "parts of dates": (".csv", lines("a,day,y", lambda i: f"{i % 5},{i + 1}.2.2024,{i % 2}"),
                       {"dates": "parts"}, lambda t: t.X[0, 1:].tolist() == [2024.0, 2.0, 1.0, 3.0]),
    "free text": (".csv", lines("a,note,y", lambda i: f"{i % 5},{WORDS[i % 5]} no {i % 9} of them all,{i % 2}", 60),
                  {}, lambda t: named(t, "a") and has_note(t, "text=")),
    "words": (".csv", lines("a,note,y", lambda i: f"{i % 5},{WORDS[i % 5]},{i % 2}"), {"text": ("note",)},
              lambda t: sp.issparse(t.X) and "note~good" in (t.feature_names or ())),
    "NA, null and dots": (".csv", lines("a,b,y", lambda i: f"{('NA', 'null', '.', str(i))[i % 4]},{i % 5},{i % 2}"),
                          {"missing": "drop"}, lambda t: t.X.shape == (3, 2)),
    "own mark of missing": (".csv", lines("a,b,y", lambda i: f"{'x' if i == 4 else i},{i % 5},{i % 2}"),
                            {"form": TextForm(na=("x",)), "missing": "median"},
                            lambda t: np.isfinite(t.X).all()),
    "a stray word": (".csv", lines("a,b,y", lambda i: f"{'oops' if i == 4 else i},{i % 5},{i % 2}"), {},
                     "na=\\['oops'\\]"),
    "gaps in two columns": (".csv", lines("a,b,y", lambda i: f"{'' if i == 2 else i},{'' if i > 9 else i % 5},{i % 2}"),
                            {}, "2 columns 'a', 'b': 3 values .* first on line 4.*missing='median'"),
    "gaps filled": (".csv", lines("a,b,y", lambda i: f"{'' if i == 2 else i},{i % 5},{i % 2}"),
                    {"missing": "median"}, lambda t: t.X[2, 0] == 6.0),
    "gaps flagged": (".csv", lines("a,b,y", lambda i: f"{'' if i == 2 else i},{i % 5},{i % 2}"),
                     {"missing": "indicator"},
                     lambda t: named(t, "a", "a=missing", "b") and list(t.groups) == [0, 0, 1]),
    "gaps in a category": (".csv", lines("a,city,y", lambda i: f"{i % 5},{('A', 'B', '', 'B')[i % 4]},{i % 2}"),
                           {"missing": "median"}, lambda t: t.X[2, 1] == 1.0),
    "infinite": (".csv", lines("a,b,y", lambda i: f"{'inf' if i == 2 else i},{i % 5},{i % 2}"), {},
                 "not finite"),
    "no target in some rows": (".csv", lines("a,y", lambda i: f"{i * i % 7},{'' if i < 3 else i % 2}"), {},
                               lambda t: t.X.shape == (9, 1) and has_note(t, "3 of 12 rows")),
    "no target at all": (".csv", lines("a,y", lambda i: f"{i * i % 7},"), {}, "no value in any row"),
    "no such target": (".csv", PLAIN, {"target": "z"}, "no column 'z'"),
    "numbers for a header": (".csv", PLAIN.split("\n", 1)[1], {"target": "x2"}, "header=False"),
    "no header": (".csv", PLAIN.split("\n", 1)[1], {"target": "x2", "form": TextForm(header=False)},
                  lambda t: named(t, "x0", "x1") and t.X.shape[0] == 12),
    "a short line": (".csv", PLAIN + "1,2\n", {}, "line 14 .* 2 cells"),
    "nothing": (".csv", b"", {}, "is empty"),
    "a header alone": (".csv", "a,b,y\n", {}, "no data"),
    "nothing but the target": (".csv", lines("y,id", lambda i: f"{i % 2},P{i}"), {}, "no column is left"),
    "genes in rows": (".csv", GENES, {"target": "g3"}, "transpose=True"),
    "genes in rows, the target elsewhere": (
        ".csv", "gene," + ",".join(f"s{i}" for i in range(30)) + "\n" + "".join(
            f"g{j}," + ",".join(str((i * j) % 5 + j) for i in range(30)) + "\n" for j in range(9)),
        {"target": "status"}, "transpose=True.*pheno='FILE' pheno_name='status'"),
    "genes turned": (".csv", GENES, {"target": "g3", "transpose": True},
                     lambda t: t.X.shape[0] == 12 and "g4" in (t.feature_names or ())
                     and t.ids is not None and t.ids[0] == "s0"),
    "lists and patterns": (".csv", lines("x_1,x_2,b,c,y", lambda i: f"{i},{i * i},{i % 5},{i % 7},{i % 2}"),
                           {"drop": ("x_*,b",)}, lambda t: named(t, "c")),
    "an unknown ending": (".docx", "PK", {}, "format"),
    "variants as VCF": (".vcf", "##fileformat=VCFv4.2\n", {}, "plink2 --vcf"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXT)
def test_a_file_as_it_comes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python, and through polars, as files of megabytes are, the same."""
    ending, content, more, expected = TEXT[name]
    path, given = tmp_path / f"data{ending}", {"target": "y"} | more
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    plain = check(path, given, expected)
    if plain is None:
        return
    pytest.importorskip("polars")
    monkeypatch.setattr(text, "LIMITS", FileLimits(fast_bytes=0))
    fast = read(path, **given)
    assert fast.feature_names == plain.feature_names
    assert np.array_equal(np.asarray(_dense(fast.X)), np.asarray(_dense(plain.X)))
    assert fast.ids == plain.ids


def check(path: Path, given: dict[str, Any], expected: Any) -> DataTable | None:
    """Return the table, of which the expected holds; None where it is refused as expected."""
    if isinstance(expected, str):
        with pytest.raises((ValueError, FileNotFoundError), match=expected) as caught:
            read(path, **given)
        assert len(str(caught.value).replace(str(path), path.name)) < MOST
        assert "\n" not in str(caught.value)
        return None
    table = read(path, **given)
    assert expected(table)
    assert table.y is not None
    assert table.y.size == table.X.shape[0]
    return table


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


# --- files with types of their own -----------------------------------------------------------------


def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "id": [f"P{i}" for i in range(ROWS)],
            "a": np.arange(ROWS) * 0.5,
            "city": pandas.Categorical(["A", "B", "C"] * 4),
            "day": pandas.date_range("2024-01-01", periods=ROWS),
            "flag": [i % 3 == 0 for i in range(ROWS)],
            "y": np.arange(ROWS) % 2,
        }
    )


TYPED = ("a", "city=A", "city=B", "city=C", "flag")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".arrow", ".xlsx", ".csv", "frame"])
def test_tables_with_types_are_as_from_text(ending: str, tmp_path: Path) -> None:
    table, path = frame(), tmp_path / f"data{ending}"
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    elif ending in (".feather", ".arrow"):
        pytest.importorskip("pyarrow")
        table.to_feather(path)
    elif ending == ".xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(path, index=False)
    elif ending == ".csv":
        table.assign(flag=table.flag.astype(int)).to_csv(path, index=False)
    found = read(table if ending == "frame" else path, "y")
    assert found.feature_names == TYPED
    assert found.X[3].tolist() == [1.5, 1.0, 0.0, 0.0, 1.0]
    assert found.ids is not None
    assert found.ids[2] == "P2"


def test_two_columns_of_one_name_in_parquet_are_as_in_text(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table([[1.0, 2.0], [3.0, 5.0], [0, 1]], names=["a", "a", "y"])
    # Nor are folders of such names columns.
    (tmp_path / "part=3").mkdir()
    parquet.write_table(table, tmp_path / "part=3" / "twice.parquet")
    found = read(tmp_path / "part=3" / "twice.parquet", "y")
    assert found.feature_names == ("a", "a_2")
    assert has_note(found, "came twice")


def test_arrays_with_gaps_and_targets_of_their_own(tmp_path: Path) -> None:
    X = np.arange(24.0).reshape(8, 3)
    X[2, 1] = np.nan
    names = np.array(["a", "b", "c"])
    np.savez(tmp_path / "o.npz", X=X, y=np.r_[np.nan, np.arange(7.0)], features=names)
    with pytest.raises(ValueError, match=r"column 'b'.*missing='median'"):
        read(tmp_path / "o.npz")
    table = read(tmp_path / "o.npz", missing="indicator")
    assert table.feature_names == ("a", "b", "b=missing", "c")
    assert table.X.shape == (7, 4)
    sp.save_npz(tmp_path / "s.npz", sp.csr_matrix(np.nan_to_num(X)))
    np.save(tmp_path / "y.npy", np.arange(8))
    assert read(tmp_path / "s.npz", str(tmp_path / "y.npy")).X.shape == (8, 3)
    (tmp_path / "names.txt").write_text("one\ntwo\nthree\n")
    found = read(tmp_path / "s.npz", str(tmp_path / "y.npy"), names=tmp_path / "names.txt")
    assert found.feature_names == ("one", "two", "three")


def test_libsvm_with_a_file_of_names(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 1:2 3:4\n-1 2:1\n1 1:1 2:5\n")
    (tmp_path / "words.txt").write_text("apple\nbee\ncat\n")
    table = read(path, names=tmp_path / "words.txt")
    assert table.feature_names == ("apple", "bee", "cat")
    assert table.X.toarray()[0].tolist() == [2.0, 0.0, 4.0]


def test_a_schema_is_obeyed(tmp_path: Path) -> None:
    path, schema = tmp_path / "d.csv", tmp_path / "schema.json"
    path.write_text(
        lines("zip,grade,a,y", lambda i: f"{10 + i % 3},{'xyz'[i % 3]},{i * 0.5},{i % 2}")
    )
    schema.write_text(
        '{"format": "atomlearn-schema", "version": 1, "columns": ['
        '{"name": "zip", "kind": "count", "use": "category"},'
        '{"name": "grade", "kind": "category", "use": "ordered", "values": ["z", "y", "x"]},'
        '{"name": "y", "kind": "0/1", "use": "target"}]}'
    )
    table = read(path, schema=schema)
    assert table.feature_names == ("zip=10", "zip=11", "zip=12", "grade", "a")
    assert table.X[:3, 3].tolist() == [2.0, 1.0, 0.0]
    assert table.y is not None
    schema.write_text('{"format": "atomlearn-schema", "columns": [{"name": "a", "use": "cube"}]}')
    with pytest.raises(ValueError, match="use must be one of"):
        read(path, schema=schema)


def test_a_table_and_a_file_of_phenotypes_are_joined(tmp_path: Path) -> None:
    path, pheno = tmp_path / "genes.csv", tmp_path / "pheno.csv"
    path.write_text(GENES)
    pheno.write_text("sample,age,status\n" + "".join(f"s{i},{30 + i},{i % 2}\n" for i in range(10)))
    table = read(path, transpose=True, pheno=pheno, pheno_name="status")
    assert table.X.shape[0] == 10
    assert table.target_name == "status"
    with pytest.raises(ValueError, match=r"no phenotype 'state'.*did you mean 'status'"):
        read(path, transpose=True, pheno=pheno, pheno_name="state")
    with pytest.raises(ValueError, match="2 phenotypes"):
        read(path, transpose=True, pheno=pheno)
    with pytest.raises(ValueError, match=r"samples are columns of the data: type transpose=True"):
        read(path, pheno=pheno, pheno_name="status")
    # One file for both: what is to be predicted is no covariate.
    table = read(path, transpose=True, pheno=pheno, pheno_name="status", covar=pheno)
    assert [table.feature_names[place] for place in table.covariates] == ["age"]


def test_one_phenotype_of_minus_nine_stops_nothing(tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 3, (20, 6)).astype(float)
    write_plink(tmp_path / "g.bed", X, phenotype=np.r_[np.nan, np.arange(19.0)])
    table = read(tmp_path / "g.bed")
    assert table.X.shape == (19, 6)
    assert table.ids is not None
    assert table.ids[0] == "s1"


def test_requests_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="missing must be one of"):
        read(tmp_path / "none.csv", missing="mean")


@pytest.mark.parametrize("late", ["NA", "abc", '"q"', "1,2", "", "1\n\n", "Null", "x"])
@pytest.mark.parametrize("place", [0, 2])
def test_what_shows_late_in_a_file(
    late: str, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks of missing values, text, quotes, short and long lines behind what was looked at."""
    pytest.importorskip("polars")
    rows = [[str(i), str(0.5 * i), str(i * i % 7)] for i in range(300)]
    rows[280][place] = late
    path = tmp_path / "d.csv"
    path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
    form = TextForm(na=("x",))

    def found() -> Any:
        try:
            frame = text.TextFile(path, form).frame()
        except ValueError as error:
            return str(error)
        return {name: frame.cells(name).tolist() for name in frame.header}

    plain = found()
    monkeypatch.setattr(text, "LIMITS", FileLimits(fast_bytes=256, piece_bytes=1024))
    assert found() == plain
