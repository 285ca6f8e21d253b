"""Every format of the table is read, converted, selected from and predicted with; one line each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from atomlearn.cli import main
from atomlearn.datasets import convert, read, write_plink
from atomlearn.designs import OnDisk, as_design
from atomlearn.storage.intake.registry import FORMATS, STORE, format_of
from atomlearn.storage.store.encoding import encode_values
from tests.oracles.genotypes import filled, genotypes

Array = np.ndarray[Any, Any]


def _csv(path: Path, X: Array, y: Array) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*(f"c{j}" for j in range(X.shape[1])), "y"])
        writer.writerows([*row, value] for row, value in zip(X.tolist(), y.tolist(), strict=True))


def _parquet(path: Path, X: Array, y: Array) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame.assign(y=y).to_parquet(path)


def _feather(path: Path, X: Array, y: Array) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame.assign(y=y).to_feather(path)


def _excel(path: Path, X: Array, y: Array) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame.assign(y=y).to_excel(path, index=False)


def _statistics(path: Path, X: Array, y: Array) -> None:
    pandas = pytest.importorskip("pandas")
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    pyreadstat.write_sav(frame.assign(y=y), str(path))


def _arff(path: Path, X: Array, y: Array) -> None:
    pytest.importorskip("arff")
    names = [*(f"c{j}" for j in range(X.shape[1])), "y"]
    lines = [f"@ATTRIBUTE {name} NUMERIC" for name in names]
    rows = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
    path.write_text("\n".join(["@RELATION made", *lines, "@DATA", *rows]) + "\n")


def _json(path: Path, X: Array, y: Array) -> None:
    rows = zip(X.tolist(), y.tolist(), strict=True)
    lines = [json.dumps({f"c{j}": c for j, c in enumerate(row)} | {"y": v}) for row, v in rows]
    path.write_text("\n".join(lines) + "\n")


def _biom(path: Path, X: Array, y: Array) -> None:
    biom = pytest.importorskip("biom")
    names = [f"c{j}" for j in range(X.shape[1])], [f"s{i}" for i in range(X.shape[0])]
    table = biom.Table(X.T, *names, sample_metadata=[{"y": value} for value in y.tolist()])
    path.write_text(table.to_json("made"))


def _series_matrix(path: Path, X: Array, y: Array) -> None:
    names = [f'"GSM{i}"' for i in range(X.shape[0])]
    lines = [
        ["!Series_title", '"made"'],
        ["!Sample_geo_accession", *names],
        ["!Sample_characteristics_ch1", *(f'"y: {value!r}"' for value in y.tolist())],
        ["!series_matrix_table_begin"],
        ['"ID_REF"', *names],
        *([f'"c{j}"', *map(repr, column)] for j, column in enumerate(X.T.tolist())),
        ["!series_matrix_table_end"],
    ]
    path.write_text("\n".join("\t".join(line) for line in lines) + "\n")


def _h5ad(path: Path, X: Array, y: Array) -> None:
    anndata = pytest.importorskip("anndata")
    held = anndata.AnnData(sp.csr_matrix(X))
    held.obs["y"] = y
    held.write_h5ad(path)


def _npy(path: Path, X: Array, y: Array) -> None:
    np.save(path, X)
    np.save(path.with_name("y.npy"), y)


def _bed(path: Path, X: Array, y: Array) -> None:
    write_plink(path, X, phenotype=y)


def _pgen(path: Path, X: Array, y: Array) -> None:
    pgenlib = pytest.importorskip("pgenlib")
    with pgenlib.PgenWriter(str(path).encode(), X.shape[0], variant_ct=X.shape[1]) as writer:
        for column in X.T:
            writer.append_biallelic(np.ascontiguousarray(column.astype(np.int8)))
    lines = [f"1\t{100 * j + 1}\tv{j}\tG\tA" for j in range(X.shape[1])]
    path.with_suffix(".pvar").write_text("\n".join(["#CHROM\tPOS\tID\tREF\tALT", *lines]) + "\n")
    lines = [f"s{i}\ts{i}\t{value!r}" for i, value in enumerate(y.tolist())]
    path.with_suffix(".psam").write_text("\n".join(["#FID\tIID\tPHENO1", *lines]) + "\n")


def _store(path: Path, X: Array, y: Array) -> None:
    source = path.with_suffix(".npz")
    np.savez(source, X=X, y=y)
    convert(source, path)


#: For each format: the end of a file's name, what writes one, and how its target is named.
WRITERS: dict[str, tuple[str, Callable[[Path, Array, Array], Any], str | None]] = {
    "npz": (".npz", lambda path, X, y: np.savez(path, X=X, y=y), None),
    "npy": (".npy", _npy, "y.npy"),
    "libsvm": (".svm", lambda path, X, y: dump_svmlight_file(X, y, str(path)), None),
    "delimited": (".csv", _csv, "y"),
    "parquet": (".parquet", _parquet, "y"),
    "arrow": (".feather", _feather, "y"),
    "excel": (".xlsx", _excel, "y"),
    "statistics": (".sav", _statistics, "y"),
    "arff": (".arff", _arff, "y"),
    "json": (".jsonl", _json, "y"),
    "biom": (".biom", _biom, "y"),
    "series matrix": (".txt", _series_matrix, "y"),
    "mat": (".mat", lambda path, X, y: savemat(path, {"X": X, "y": y}), None),
    "h5ad": (".h5ad", _h5ad, "y"),
    "bed": (".bed", _bed, None),
    "pgen": (".pgen", _pgen, None),
    STORE.name: (".store", _store, None),
}
each_format = pytest.mark.parametrize("form", [*FORMATS, STORE], ids=lambda form: form.name)


@each_format
def test_every_reader_of_files_takes_the_format(form: Any, tmp_path: Path) -> None:
    ending, write, target = WRITERS[form.name]
    X, path = filled(genotypes(60, 8, 0.0, seed=2)), tmp_path / f"data{ending}"
    X[:2] = [[0.0], [2.0]]  # no column is constant
    y = X[:, 2] - X[:, 5] + 1e-3 * np.arange(60)
    write(path, X, y)
    assert format_of(path) is form
    if form.in_place:
        assert read(path, target).X.shape == (60, 8)
        assert as_design(path).shape == (60, 8)
    else:
        table = read(path, target)
        dense = table.X.toarray() if sp.issparse(table.X) else table.X
        assert_allclose(dense, X)
        assert table.y is not None
        assert_allclose(table.y, y)
    if form is not STORE:
        made = OnDisk(convert(path, tmp_path / "made.store", target=target).path)
        assert_array_equal(made.gather(np.arange(8)).dense(), X)
        assert_allclose(made.target, y)
    out = tmp_path / "out"
    named = [] if target is None else ["--target", target]
    words = ["--norm", "l1", "--alpha", "1e-3", "--task", "regression", "--quiet"]
    assert main(["select", str(path), *named, *words, "--out", str(out)]) == 0
    predicted = out / "predictions.csv"
    assert main(["predict", str(out / "model.json"), str(path), "--out", str(predicted)]) == 0
    lines = predicted.read_text().splitlines()
    values = [float(row["prediction"]) for row in csv.DictReader(lines)]
    assert np.corrcoef(values, y)[0, 1] > 0.99


def test_every_format_has_its_line_here() -> None:
    assert set(WRITERS) == {form.name for form in (*FORMATS, STORE)}


# --- what was written before ----------------------------------------------------------------------


def test_a_store_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Files as `atomlearn convert` wrote them before this table was, to the byte."""
    manifest = {
        "format": "atomlearn column store", "version": 1, "layout": "dense", "dtype": "float64",
        "n_samples": 2, "n_features": 2, "n_chunks": 1, "row_dtype": "", "nonzeros": 0,
        "first_index": 0, "checksums": {"chunks.bin": 1038676969, "names.json": 146132647},
        "source": "b.npz", "crc32": 4276808632,
    }  # fmt: skip
    folder = tmp_path / "old.store"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    (folder / "names.json").write_text('["a", "b"]')
    (folder / "values.bin").write_bytes(np.array([1.0, 2.0, 3.0, 4.0], dtype="<f8").tobytes())
    (folder / "chunks.bin").write_bytes(np.array([0, 2], "<i8").tobytes() + b"\x2b\x62\xed\x0c")
    design = OnDisk(folder)
    design.verify()
    assert design.feature_names == ["a", "b"]
    assert design.gather(np.arange(2)).dense().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def _masked_text(group: Any, name: str, values: list[str], missing: list[bool]) -> None:
    made = group.create_group(name)
    made.attrs["encoding-type"] = "nullable-string-array"
    made["values"], made["mask"] = np.array(values, dtype=object), np.array(missing)


def test_h5ad_of_today_keeps_text_beside_a_mask(tmp_path: Path) -> None:
    """AnnData writes names so since pandas has text of its own."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.arange(6.0).reshape(3, 2)
        obs, var = file.create_group("obs"), file.create_group("var")
        _masked_text(var, "_index", ["one", "two"], [False, False])
        _masked_text(obs, "_index", ["a", "b", "c"], [False] * 3)
        _masked_text(obs, "label", ["u", "v", "u"], [False] * 3)
        _masked_text(obs, "torn", ["u", "", "u"], [False, True, False])
    table = read(tmp_path / "x.h5ad", target="label")
    assert list(table.feature_names) == ["one", "two"]
    assert table.y.tolist() == ["u", "v", "u"]
    torn = read(tmp_path / "x.h5ad", target="torn")
    assert torn.ids == ("a", "c")
    assert "1 of 3 rows lack the target 'torn'" in torn.notes[-1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_genotypes_of_any_type_are_encoded(dtype: Any) -> None:
    given = np.array([[0, 2], [1, 0]], dtype=dtype)
    assert_array_equal(encode_values(given, "genotype"), given.astype(np.int8))
    assert encode_values(given, "genotype").dtype == np.int8
