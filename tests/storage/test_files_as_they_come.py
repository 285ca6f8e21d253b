"""Files as programs write them: encodings, archives, titles, columns beside the samples."""

from __future__ import annotations

import re
import shlex
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.datasets import read
from atomlearn.storage.formats.messages import typed
from atomlearn.storage.intake.registry import FORMATS, format_of

N = 30
VALUES = np.random.default_rng(0).normal(size=(N, 2)).round(3)
TEXT = "a\tb\ty\n" + "".join(f"{a}\t{b}\t{i % 2}\n" for i, (a, b) in enumerate(VALUES.tolist()))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
def test_text_is_known_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_bytes(TEXT.replace("a\t", "größe\t", 1).encode(encoding))
    assert format_of(path).name == "delimited"
    table = read(path, "y")
    assert table.feature_names == ("größe", "b")
    assert_allclose(table.X, VALUES)


def test_a_zip_of_one_file_is_that_file(tmp_path: Path) -> None:
    for name, inner in (("d.csv.zip", "d.csv"), ("data.zip", "folder/d.tsv")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            text = TEXT if inner.endswith("tsv") else TEXT.replace("\t", ",")
            archive.writestr("__MACOSX/._d.csv", "x")
            archive.writestr(inner, text)
        assert_allclose(read(tmp_path / name, "y").X, VALUES)
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("one.csv", TEXT)
        archive.writestr("two.csv", TEXT)
    with pytest.raises(ValueError, match=r"holds 'one.csv', 'two.csv'; unzip it"):
        read(tmp_path / "two.zip", "y")
    (tmp_path / "bad.zip").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(ValueError, match=r"not a readable .zip file"):
        read(tmp_path / "bad.zip", "y")


def test_names_below_a_title_are_found_and_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("Report of 2021\n\n" + TEXT.replace("\t", ","))
    with pytest.raises(ValueError, match=r"line 1 .* has 1 cells, .* 3. .*type header_row='3'$"):
        read(path, "y")
    assert_allclose(read(path, "y", header_row="3").X, VALUES)
    with pytest.raises(ValueError, match=r"no line 99"):
        read(path, "y", header_row="99")
    with pytest.raises(ValueError, match=r"must be the number of a line, .* got 'x'"):
        read(path, "y", header_row="x")


def test_names_in_two_lines_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    lines = TEXT.replace("\t", ",").splitlines()[1:]
    path.write_text("\n".join(["note", "dose,,outcome", "day 1,day 2,", *lines]))
    table = read(path, "outcome", header_row="2,3")
    assert table.feature_names == ("dose day 1", "dose day 2")
    assert_allclose(table.X, VALUES)
    assert table.y is not None
    assert_array_equal(table.y, np.arange(N) % 2)


def test_sheets_with_a_title(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["Report"], [], ["", "lab", ""], ["y", "CRP", "sodium"]]
    for i, row in enumerate(VALUES.tolist()):
        rows.append([i % 2, *row])
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    with pytest.raises(ValueError, match=r"no column 'y'.*row 1 names 1 of 3.*header_row='4'"):
        read(tmp_path / "d.xlsx", "y")
    table = read(tmp_path / "d.xlsx", "y", header_row="4")
    assert table.feature_names == ("CRP", "sodium")
    assert_allclose(table.X, VALUES)
    table = read(tmp_path / "d.xlsx", "y", header_row="3,4")
    assert table.feature_names == ("lab CRP", "lab sodium")
    frame = pd.DataFrame(VALUES, columns=["a", "b"])
    frame.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="text and sheets take header_row="):
        read(tmp_path / "d.parquet", header_row="2")


COUNTS = np.random.default_rng(1).integers(0, 99, (9, 12))


def pheno(folder: Path) -> Path:
    path = folder / "samples.csv"
    path.write_text("id,cond\n" + "".join(f"s{i},{'ab'[i % 2]}\n" for i in range(12)))
    return path


@pytest.mark.parametrize(
    ("first", "beside", "name"),
    [
        ("# Program:featureCounts v2\n", ["Chr", "Start", "End", "Strand", "Length"], "/d/s{}.bam"),
        ("", ["gene_length"], "s{}Aligned.sortedByCoord.out.bam"),
        ("#1.2\n9\t12\n", ["Description"], "s{}"),
        ("", ["NAME", "GWEIGHT"], "s{}.fastq.gz"),
    ],
)
def test_columns_beside_the_samples_are_no_samples(
    first: str, beside: list[str], name: str, tmp_path: Path
) -> None:
    path = tmp_path / ("counts.gct" if first.startswith("#1.2") else "counts.txt")
    given = {"Chr": "chr1", "Strand": "+", "Description": "a gene", "NAME": "a gene"}
    lines = ["\t".join(["Geneid", *beside, *(name.format(i) for i in range(12))])]
    if "GWEIGHT" in beside:
        lines.append("\t".join(["EWEIGHT", "", "", *["1"] * 12]))
    for gene, row in enumerate(COUNTS.tolist()):
        cells = [given.get(each, f"{300 + gene}") for each in beside]
        lines.append("\t".join([f"g{gene}", *cells, *map(str, row)]))
    path.write_text(first + "\n".join(lines) + "\n")
    table = read(path, transpose=True, pheno=pheno(tmp_path), pheno_name="cond")
    assert table.feature_names == tuple(f"g{gene}" for gene in range(9))
    assert_array_equal(table.X, COUNTS.T)
    assert table.y is not None
    assert table.y.tolist() == ["a", "b"] * 6
    assert any("columns beside the samples left out" in note for note in table.notes)


def series_matrix(path: Path, *table: str, ids: str = '"GSM1"\t"GSM2"\t"GSM3"') -> Path:
    lines = [
        '!Series_title\t"made"',
        f"!Sample_geo_accession\t{ids}",
        '!Sample_contact_city\t"Oslo"\t"Oslo"\t"Rome"',
        '!Sample_characteristics_ch1\t"disease: lupus"\t"disease: none"\t"disease: lupus"',
        '!Sample_characteristics_ch1\t"sex: F"\t"age: 31"\t"sex: M"',
        '!Sample_characteristics_ch1\t"age: 54"\t""\t"age: 28"',
        "!series_matrix_table_begin",
        '"ID_REF"\t"GSM1"\t"GSM2"\t"GSM3"',
        *table,
        "!series_matrix_table_end",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_series_matrices_describe_their_samples(tmp_path: Path) -> None:
    path = series_matrix(
        tmp_path / "GSE1_series_matrix.txt", '"p1"\t1.5\t2.5\t3.5', '"p2"\t2\t\t0.5'
    )
    for options in ({}, {"transpose": True}):
        table = read(path, "disease", missing="median", drop="sex", id="geo_accession", **options)
        assert table.feature_names == ("age", "p1", "p2")
        assert_array_equal(table.X, [[54, 1.5, 2], [31, 2.5, 1.25], [28, 3.5, 0.5]])
        assert table.ids == ("GSM1", "GSM2", "GSM3")
        assert table.y is not None
        assert table.y.tolist() == ["lupus", "none", "lupus"]
    with pytest.raises(ValueError, match=r"no values between .* supplementary files"):
        read(series_matrix(tmp_path / "rna.txt"), "disease")
    other = series_matrix(tmp_path / "o.txt", '"p1"\t1\t2\t3', ids='"GSM1"\t"GSM2"\t"GSM4"')
    with pytest.raises(ValueError, match=r"describes other samples"):
        read(other, "disease")


def test_values_with_labels_are_read_by_their_labels(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    ages = [31.0, 99.0, 45.0, *[31.0, 45.0] * 4, 38.0]
    frame = pd.DataFrame({"age": ages, "sex": [1.0, 2.0, np.nan] * 4})
    frame["y"], path = np.arange(12.0), str(tmp_path / "d.sav")
    labels = {"sex": {1: "male", 2: "female"}, "age": {99: "refused"}}
    pyreadstat.write_sav(frame, path, variable_value_labels=labels)
    with pytest.raises(ValueError, match=r"'age': 'refused' among numbers"):
        read(path, "y")
    table = read(path, "y", na=["refused"], missing="indicator")
    assert table.feature_names == ("age", "age=missing", "sex=male", "sex=missing")
    assert_array_equal(table.X[:3], [[31, 0, 1, 0], [38, 1, 0, 0], [45, 0, 0, 1]])


@pytest.mark.parametrize("ending", [".dta", ".xpt"])
def test_stata_and_sas_keep_dates_and_gaps(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"a": [1.5, np.nan, 2.5] * 4, "y": np.arange(12.0)})
    frame["seen"] = pd.date_range("2020-02-28", periods=12)
    path = tmp_path / f"d{ending}"
    if ending == ".dta":
        frame.to_stata(path, write_index=False)
    else:
        pyreadstat.write_xport(frame, str(path))
    table = read(path, "y", missing="median", dates="elapsed")
    assert table.feature_names == ("a", "seen")
    assert_array_equal(table.X[:4], [[1.5, 0], [2, 1], [2.5, 2], [1.5, 3]])


def test_arff_with_quotes_and_sparse_rows(tmp_path: Path) -> None:
    pytest.importorskip("arff")
    head = "% made\n@RELATION r\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE 'b c' {'x y',z}\n@DATA\n"
    path = tmp_path / "d.arff"
    path.write_text(head + "1,'x y'\n?,z\n3,z\n")
    table = read(path, missing="median")
    assert table.feature_names == ("a", "b c=z")
    assert_array_equal(table.X, [[1, 0], [2, 1], [3, 1]])
    path.write_text(head + "{0 1.5}\n{1 z}\n{0 3, 1 z}\n")
    assert_array_equal(read(path).X, [[1.5, 0], [0, 1], [3, 1]])
    path.write_text(head + "1\n")
    with pytest.raises(ValueError, match="not a readable ARFF file"):
        read(path)


def test_json_rows_may_lack_fields_and_nest(tmp_path: Path) -> None:
    rows = ['{"a": 1.5, "p": {"age": 3}}', "", '{"a": null, "p": {"age": "7"}, "b": true}']
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(rows))
    expected = [[1.5, 3], [1.5, 7]]
    assert_array_equal(read(path, missing="median", categories="a", drop="a,b").X[:, 0], [3, 7])
    path = tmp_path / "d.json"
    path.write_text(f"[{rows[0]}, {rows[0].replace('1.5', '2').replace('3', '7')}]")
    assert_array_equal(read(path).X, [[1.5, 3], [2, 7]])
    assert expected[0] == [1.5, 3]
    for bad in ('{"a": [1, 2]}', "3", '{"a": 1'):
        (tmp_path / "bad.jsonl").write_text(bad + "\n")
        with pytest.raises(ValueError, match="not a readable file of JSON lines"):
            read(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("ending", "module", "package"),
    [
        (".sav", "pyreadstat", "pyreadstat"),
        (".arff", "arff", "liac-arff"),
        (".biom", "biom", "biom-format"),
        (".xlsx", "openpyxl", "openpyxl"),
        (".parquet", "pyarrow.parquet", "pyarrow"),
    ],
)
def test_an_absent_package_is_named_with_what_installs_it(
    ending: str, module: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / f"d{ending}"
    path.write_bytes(b"something")
    with pytest.raises(ValueError, match=rf"needs {package}: pip install {package} \(in a clone"):
        read(path, "y")


def test_files_that_are_not_read_have_a_remedy(tmp_path: Path) -> None:
    for name, remedy in (
        ("d.xls", "save it as .xlsx"),
        ("d.rds", "write.csv"),
        ("d.vcf", "plink2"),
    ):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(ValueError, match=f"files are not read; .*{remedy}"):
            read(tmp_path / name)
    endings = [suffix for form in FORMATS for suffix in form.suffixes]
    assert len(set(endings)) == len(endings)


def test_options_in_messages_can_be_pasted() -> None:
    for cells in (["<0.5"], ["$0.99"], ["*444", "a b"], ["-9"], ["it's", '"'], ["~", "!x", "(n)"]):
        text = typed("--na", cells)
        words = shlex.split(text.replace("=", " ", 1) if text.startswith("--na=") else text)
        assert words == ["--na", ",".join(cells)]


def test_many_cells_among_numbers_are_not_called_missing(tmp_path: Path) -> None:
    def refused(stray: Any, values: int = 120) -> str:
        lines = [f"{i / 4},{stray(i) if i % 6 == 0 else i % values},{i % 7}" for i in range(120)]
        (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *lines]))
        with pytest.raises(ValueError) as caught:
            read(tmp_path / "d.csv", "y")
        return str(caught.value)

    assert "Type na=['n/k']" in refused(lambda i: "n/k")
    assert "Type na=['2 of 3']" in refused(lambda i: "2 of 3")
    many = refused(lambda i: f"{i} of 3")
    assert "mend them, or leave the column out" in many
    assert re.search(r"Type drop=\['b'\]$", many)
    labels = refused(lambda i: f"{i} of 3", values=30)
    assert re.search(r"'b': .* among numbers, as labels have. Type categories=\['b'\]$", labels)
