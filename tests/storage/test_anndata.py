"""AnnData, as its own package writes it: layers, columns of obs, and pseudo-bulk."""

import json
import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn.cli import main
from atomlearn.datasets import convert, read
from atomlearn.designs import OnDisk

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

DONORS = np.repeat(np.arange(24), 8)


def _cells(seed: int = 0):
    """Return 192 cells of 24 donors; of 12 columns the first is larger in those who are ill."""
    rng = np.random.default_rng(seed)
    ill = np.arange(24) % 2 == 1
    depth = rng.lognormal(0, 0.5, DONORS.size)[:, None]
    rate = np.full((DONORS.size, 12), 5.0)
    rate[:, 0] *= np.where(ill[DONORS], 3.0, 1.0)
    counts = rng.poisson(rate * depth)
    obs = pd.DataFrame(
        {
            "donor": pd.Categorical([f"D{d}" for d in DONORS]),
            "disease": pd.Categorical(np.where(ill, "ill", "well")[DONORS]),
            "batch": pd.Categorical((np.arange(24) // 2 % 2)[DONORS]),
            "age": pd.array((50 + np.arange(24) // 3)[DONORS], dtype="Int64"),
            "depth": depth[:, 0],
        },
        index=[f"cell{i}" for i in range(DONORS.size)],
    )
    var = pd.DataFrame(index=[f"G{j}" for j in range(12)])
    logs = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True)).astype("f4")
    data = anndata.AnnData(sp.csr_matrix(logs), obs, var)
    data.layers["counts"] = sp.csc_matrix(counts)
    data.raw = data[:, :9].copy()
    return data, counts


@pytest.fixture(params=["file", "object"])
def given(request: pytest.FixtureRequest, tmp_path: Path):
    """What is read, and its counts."""
    data, counts = _cells()
    if request.param == "object":
        return data, counts
    data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad", counts


def test_a_layer_with_columns_of_obs(given):
    source, counts = given
    table = read(source, "disease", layer="counts", covariates="age,batch")
    X = table.X.toarray()
    assert_allclose(X[:, :12], counts)
    assert table.feature_names[-2:] == ("age", "batch=1")
    assert table.covariates == (12, 13)
    assert_allclose(X[:, 12], (50 + np.arange(24) // 3)[DONORS])
    assert table.ids[5] == "cell5"
    # Cells of one donor belong together, though nobody said so.
    assert table.extras["rows_of"][8] == "D1"
    assert any("raw counts" in note and "larger values" in note for note in table.notes)
    raw = read(source, "disease", layer="raw", rows_of="none")
    assert raw.X.shape == (192, 9)
    assert "rows_of" not in raw.extras
    assert any("log-normalized" in note for note in raw.notes)


def test_pseudo_bulk_sums_counts_and_averages_logarithms(given):
    source, counts = given
    table = read(source, "disease", layer="counts", pseudobulk="donor", covariates="depth")
    sums = np.array([counts[donor == DONORS].sum(axis=0) for donor in range(24)])
    order = np.argsort([f"D{d}" for d in range(24)])
    sums = sums[order]
    expected = np.log2(1 + 1e6 * sums / sums.sum(axis=1, keepdims=True))
    assert_allclose(table.X[:, :12], expected)
    assert list(table.ids) == [f"D{d}" for d in order]
    assert list(table.y) == ["ill" if d % 2 else "well" for d in order]
    assert any("'depth' differs" in note for note in table.notes)
    means = read(source, "disease", pseudobulk="donor")
    assert any("as means" in note for note in means.notes)
    both = read(source, "disease", pseudobulk="donor,batch")
    assert both.extras["rows_of"].tolist() == [f"D{d}" for d in order]  # by the first of the two
    for asked, said in (
        ({"layer": "count"}, "did you mean 'counts'"),
        ({"pseudobulk": "batch"}, "'disease' differs between the rows of '0'"),
        ({"covariates": "aeg"}, "obs of .* has no column 'aeg'; did you mean 'age'"),
        ({"covariates": "disease"}, "is the target"),
    ):
        with pytest.raises(ValueError, match=said):
            read(source, "disease", **asked)
    with pytest.raises(ValueError, match="are for AnnData"):
        read(pd.DataFrame({"y": [0, 1], "a": [1, 2]}), "y", layer="counts")


def test_gaps_of_obs_and_of_x(tmp_path: Path):
    data, _ = _cells()
    data.obs.loc["cell3", ["disease", "age"]] = None
    data.obs.loc["cell9", "age"] = None
    X = data.X.toarray()
    X[0, 0] = np.nan
    for dense in (False, True):
        if dense:
            data.X = X
            data.raw = None
        data.write_h5ad(tmp_path / "gaps.h5ad")
        table = read(tmp_path / "gaps.h5ad", "disease", covariates="age", missing="median")
        assert table.X.shape == (191, 13)  # one row without a target
        assert len(table.covariates) == 1
        assert np.isfinite(table.X.toarray() if sp.issparse(table.X) else table.X).all()


def test_from_the_command_line_to_predictions(tmp_path: Path, capsys):
    data, _ = _cells()
    data.write_h5ad(tmp_path / "cells.h5ad")
    _cells(1)[0].write_h5ad(tmp_path / "new.h5ad")
    out = str(tmp_path / "out")
    asked = ["--layer", "counts", "--pseudobulk", "donor", "--covariates", "age,batch"]
    common = ["--target", "disease", "--n-features", "1", "--out", out, "--quiet"]
    assert main(["select", str(tmp_path / "cells.h5ad"), *asked, *common]) == 0
    told = capsys.readouterr()
    assert "G0" in told.out
    assert "192 rows are 24 by 'donor'" in told.err
    # The layer and the pooling are in the model, and need not be said again.
    assert main(["predict", out, str(tmp_path / "new.h5ad")]) == 0
    lines = [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    right = [("ill" if int(donor[1:]) % 2 else "well") == called for donor, called in lines]
    assert len(right) == 24
    assert np.mean(right) > 0.9
    assert main(["predict", out, str(tmp_path / "new.h5ad"), "--layer", "X"]) == 0
    assert "the model was fitted to raw counts" in capsys.readouterr().err


def test_a_store_of_a_layer(tmp_path: Path):
    data, counts = _cells()
    data.write_h5ad(tmp_path / "cells.h5ad")
    options = ["--layer", "counts", "--target", "disease", "--quiet"]
    store = str(tmp_path / "cells.store")
    assert main(["convert", str(tmp_path / "cells.h5ad"), store, *options]) == 0
    assert_allclose(OnDisk(store).gather(np.arange(12)).dense(), counts)
    data.obs.loc["cell3", "disease"] = None
    data.write_h5ad(tmp_path / "torn.h5ad")
    with pytest.raises(ValueError, match="has missing entries"):
        convert(tmp_path / "torn.h5ad", tmp_path / "torn.store", target="disease")


def _old_layout(path: Path, data, counts: np.ndarray) -> None:
    """Write cells as anndata did before version 0.7: obs and var are arrays of records."""
    h5py = pytest.importorskip("h5py")
    labels = data.obs["disease"].cat.categories.to_numpy().astype("S")
    obs = np.zeros(counts.shape[0], [("index", "S8"), ("disease", "i1"), ("depth", "f4")])
    obs["index"] = data.obs_names.to_numpy().astype("S")
    obs["disease"] = data.obs["disease"].cat.codes
    obs["depth"] = data.obs["depth"]
    var = np.zeros(counts.shape[1], [("index", "S4"), ("gene_symbols", "S8")])
    var["index"] = data.var_names.to_numpy().astype("S")
    var["gene_symbols"] = [b"", *(b"SYM%d" % j for j in range(1, counts.shape[1]))]
    S = sp.csr_matrix(counts)
    with h5py.File(path, "w") as file:
        file["X"] = counts.astype("f4")
        file["obs"] = obs
        file["var"] = var
        file["uns/disease_categories"] = labels
        file["raw.var"] = var
        raw = file.create_group("raw.X")
        raw.attrs["h5sparse_format"] = "csr"
        raw.attrs["h5sparse_shape"] = S.shape
        for key in ("data", "indices", "indptr"):
            raw[key] = getattr(S, key)


def test_the_layout_before_version_0_7(tmp_path: Path):
    data, counts = _cells()
    _old_layout(tmp_path / "old.h5ad", data, counts)
    for layer in (None, "raw"):
        table = read(tmp_path / "old.h5ad", "disease", layer=layer, covariates="depth")
        X = table.X.toarray() if sp.issparse(table.X) else table.X
        assert_allclose(X[:, :12], counts)
        assert_allclose(X[:, 12], data.obs["depth"], rtol=1e-6)
        assert list(table.y) == list(data.obs["disease"])
        assert table.ids == tuple(data.obs_names)
        assert table.feature_names[:2] == ("G0", "G1")
        assert table.schema.symbols["G1"] == "SYM1"
        assert "G0" not in table.schema.symbols  # it has none


@pytest.mark.parametrize("version", [2, 3])
def test_a_matrix_of_10x(version, tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    data, counts = _cells()
    S = sp.csc_matrix(counts.T)  # genes in rows
    genes = [b"ENSG%d" % j for j in range(12)]
    symbols = [b"SYM%d" % j for j in range(12)]
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        for key in ("data", "indices", "indptr", "shape"):
            group[key] = getattr(S, key)
        group["barcodes"] = data.obs_names.to_numpy().astype("S")
        ids, names = ("features/id", "features/name") if version == 3 else ("genes", "gene_names")
        group[ids] = genes
        group[names] = symbols
    pheno = data.obs[["disease"]].reset_index(names="barcode")
    pheno.to_csv(tmp_path / "labels.csv", index=False)
    table = read(tmp_path / "cells.h5", pheno=tmp_path / "labels.csv")
    assert_allclose(table.X.toarray(), counts)
    assert table.feature_names[3] == "ENSG3"
    assert table.schema.symbols["ENSG3"] == "SYM3"
    assert list(table.y) == list(data.obs["disease"])
    with pytest.raises(ValueError, match="no column 'disease'"):
        read(tmp_path / "cells.h5", "disease")
    with h5py.File(tmp_path / "else.h5", "w") as file:
        file["weights"] = np.eye(3)
    with pytest.raises(ValueError, match=r"neither AnnData .* its parts are weights"):
        read(tmp_path / "else.h5")


def _written_zarr(data, folder: Path, version: int) -> Path:
    pytest.importorskip("zarr")
    path = folder / "cells.zarr"
    with (
        warnings.catch_warnings(action="ignore"),
        anndata.settings.override(zarr_write_format=version),
    ):
        data.write_zarr(path)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_folders_and_archives(version, tmp_path: Path):
    data, counts = _cells()
    data.obs.loc["cell9", "age"] = None
    path = _written_zarr(data, tmp_path, version)
    shutil.make_archive(str(path), "zip", path)
    for name in ("cells.zarr", "cells.zarr.zip"):
        table = read(tmp_path / name, "disease", layer="counts", covariates="age,batch")
        assert_allclose(table.X.toarray()[:, :12], np.delete(counts, 9, axis=0))
        assert table.ids[5] == "cell5"
        assert read(tmp_path / name, "disease", layer="raw").X.shape == (192, 9)
    with pytest.raises(ValueError, match="has no layer 'count'; did you mean 'counts'"):
        read(path, "disease", layer="count")


def test_types_of_zarr_that_nobody_reads_do_not_matter(tmp_path: Path):
    data, counts = _cells()
    plain = anndata.AnnData(counts, obs=data.obs, uns={"ranks": np.arange(3.0)})
    path = _written_zarr(plain, tmp_path, 3)
    meta = json.loads((path / "uns" / "ranks" / "zarr.json").read_text())
    broken = {**meta, "data_type": "a type of the next version"}
    (path / "uns" / "ranks" / "zarr.json").write_text(json.dumps(broken))
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"]["uns/ranks"] = broken
    root["consolidated_metadata"]["metadata"].pop("raw", None)
    (path / "zarr.json").write_text(json.dumps(root))
    zarr = pytest.importorskip("zarr")
    with pytest.raises(ValueError, match="type"):
        zarr.open_group(str(path), mode="r")
    # scanpy's archive has a raw that is None, written as an array.
    empty = zarr.open_group(str(path), mode="r+", use_consolidated=False)
    if "raw" not in empty:
        empty.create_array("raw", shape=(), dtype=bool)
    table = read(path, "disease")
    assert table.X.shape[1] == counts.shape[1]
    with pytest.raises(ValueError, match="has no layer 'raw'"):
        read(path, "disease", layer="raw")


class _Trap:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickles_in_zarr_are_not_opened(tmp_path: Path):
    path = _written_zarr(_cells()[0], tmp_path, 2)
    (path / ".zmetadata").unlink(missing_ok=True)
    column = path / "obs" / "depth"
    meta = json.loads((column / ".zarray").read_text())
    meta |= {"dtype": "|O", "filters": [{"id": "pickle"}], "compressor": None, "fill_value": 0}
    (column / ".zarray").write_text(json.dumps(meta))
    (column / "0").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(ValueError, match=r"'pickle'|is pickled"):
        read(path, "disease", covariates="depth")
    assert not (tmp_path / "sprung").exists()


def test_inspect_lists_the_columns_of_obs(tmp_path: Path, capsys):
    data, _ = _cells()
    data.var["gene_name"] = [f"SYM{j}" for j in range(12)]
    data.obs.loc["cell3", "age"] = None
    data.write_h5ad(tmp_path / "cells.h5ad")
    assert main(["inspect", str(tmp_path / "cells.h5ad"), "--covariates", "depth"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [disease] = [line for line in lines if line.split()[:1] == ["disease"]]
    assert disease.endswith(("ill 96, well 96", "well 96, ill 96"))
    [age] = [line for line in lines if line.split()[:1] == ["age"]]
    assert age.split() == ["age", "count", "1", "8", "50", "to", "57"]
    assert any("12 columns have a gene symbol in var" in line for line in lines)
    assert not any("of them with missing values" in line for line in lines)


def test_markers_of_each_class(tmp_path: Path, capsys):
    rng = np.random.default_rng(0)
    kinds = np.repeat(["B", "NK", "T"], 60)
    X = rng.normal(size=(180, 30)) ** 2
    X[:, 0] += 3 * (kinds == "B") + 2.5 * (kinds == "NK")  # a marker of two classes
    X[:, 1] += 3 * (kinds == "B")
    X[:, 2] += 3 * (kinds == "T")
    var = pd.DataFrame({"symbol": [f"SYM{j}" for j in range(30)]}, [f"G{j}" for j in range(30)])
    obs = pd.DataFrame({"kind": kinds}, [f"c{i}" for i in range(180)])
    anndata.AnnData(X, obs, var).write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "out"
    asked = ["--target", "kind", "--n-features", "3", "--C", "1", "--out", str(out), "--quiet"]
    assert main(["select", str(tmp_path / "cells.h5ad"), *asked]) == 0
    told = capsys.readouterr().out
    assert "\n    NK: SYM0 (G0) +" in told  # it speaks for B as well
    table = pd.read_csv(out / "markers.csv")
    assert table.shape == (9, 10)
    first = table.set_index(["class", "feature"])
    assert set(table["symbol"]) == {"SYM0", "SYM1", "SYM2"}
    for kind in ("B", "NK", "T"):
        for j in range(3):
            row = first.loc[(kind, f"G{j}")]
            assert_allclose(row["mean_in_class"], X[kinds == kind, j].mean())
            assert_allclose(row["mean_elsewhere"], X[kinds != kind, j].mean())
            assert row["nonzero_in_class"] == 1
    assert first.loc[("NK", "G0"), "coefficient"] > 0 > first.loc[("T", "G0"), "coefficient"]
    selected = pd.read_csv(out / "selected.csv").set_index("feature")
    assert_allclose(selected.loc["G0", "coefficient[NK]"], first.loc[("NK", "G0"), "coefficient"])
    page = (out / "report.html").read_text()
    assert "Markers of each class" in page
    assert "SYM2 (G2)" in page


def test_donors_are_held_out_counted_and_named(tmp_path: Path, capsys):
    data, _ = _cells()
    data.write_h5ad(tmp_path / "cells.h5ad")
    common = ["--target", "disease", "--n-features", "1", "--C", "1", "--quiet"]
    common += ["--out", str(tmp_path / "out")]
    asked = ["--layer", "counts", "--pseudobulk"]
    for by in ("donor", "donor,batch"):
        assert main(["select", str(tmp_path / "cells.h5ad"), *asked, by, *common]) == 0
        [note] = [line for line in capsys.readouterr().err.splitlines() if "held out:" in line]
        head, names = note.split("): ")
        assert head == "note: held out: 6 of 24 donor (3 ill, 3 well"
        held = names.replace("'", "").split(", ")
        assert len(set(held)) == 6
        assert sum(int(name[1:]) % 2 for name in held) == 3


def test_sets_by_symbol_and_the_universe_of_an_enrichment(tmp_path: Path, capsys):
    data, _ = _cells()
    data.var["gene_symbols"] = [f"SYM{j}" for j in range(12)]
    X = data.X.toarray()
    X[:, 11] = 0.0
    data.X = X
    data.write_h5ad(tmp_path / "cells.h5ad")
    lines = ["REAL\tna\tSYM0\tG1", "OTHER\tna\tSYM5\tSYM6\tSYM11\tABSENT", "LOST\tna\tELSEWHERE"]
    (tmp_path / "sets.gmt").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    common = ["--target", "disease", "--test-fraction", "0", "--quiet", "--out", str(out)]
    sets = str(tmp_path / "sets.gmt")
    asked = ["--n-features", "1", "--C", "1", "--enrichment", sets]
    assert main(["select", str(tmp_path / "cells.h5ad"), *common, *asked]) == 0
    told = capsys.readouterr()
    assert "the universe is the 11 columns that vary, 4 of them in a set" in told.out
    assert "REAL: 1 of 2 selected, 0.18 expected; p = 0.18, adjusted 0.36" in told.out
    assert "2 members of groups are no column of the data" in told.err
    table = pd.read_csv(out / "enrichment.csv")
    assert table[["set", "size", "selected", "members"]].values.tolist() == [["REAL", 2, 1, "SYM0"]]
    # Whole sets: the headline tells sets from the columns outside of them.
    asked = ["--norm", "latentgroups", "--alpha", "0.05", "--groups", sets]
    assert main(["select", str(tmp_path / "cells.h5ad"), *common, *asked]) == 0
    assert "1 of 2 groups" in (said := capsys.readouterr().out.splitlines()[0])
    assert "of 7 columns in no group" in said


@pytest.mark.parametrize("layer", [[], ["--layer", "counts"]])
def test_gene_symbols_stay_in_a_store(tmp_path: Path, layer: list[str]) -> None:
    data, _ = _cells()
    data.var["gene_symbols"] = [f"SYM{j}" if j else "" for j in range(12)]
    file, folder = str(tmp_path / "cells.h5ad"), str(tmp_path / "cells.store")
    data.write_h5ad(file)
    assert main(["convert", file, folder, "--target", "disease", *layer, "--quiet"]) == 0
    found = read(folder)
    assert found.schema.symbols == {f"G{j}": f"SYM{j}" for j in range(1, 12)}
