"""AnnData, as its own package writes it: layers, columns of obs, and pseudo-bulk."""

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
