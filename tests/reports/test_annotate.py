"""Selections written into AnnData, as scanpy reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.cli import main
from atomlearn.interop import to_anndata

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

KINDS = ["B/naive", "NK", "T"]


@pytest.fixture
def cells() -> Any:
    """Return 180 cells of three kinds, with a marker of each kind and one of two kinds."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(KINDS, 60)
    X = rng.gamma(2.0, 0.4, size=(180, 20))
    X[:, 3] += 2.0 * (kinds == "B/naive") + 1.5 * (kinds == "NK")
    X[:, 5] += 2.0 * (kinds == "B/naive")
    X[:, 7] += 2.0 * (kinds == "T")
    obs = pd.DataFrame({"kind": pd.Categorical(kinds)}, index=[f"c{i}" for i in range(180)])
    data = anndata.AnnData(X, obs, pd.DataFrame(index=[f"G{j}" for j in range(20)]))
    data.layers["scaled"] = StandardScaler().fit_transform(X)
    data.raw = data.copy()
    return data


def test_an_estimator_of_classes(cells: Any, tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), AtomicClassifier(alpha=0.05))
    model.fit(cells.X, cells.obs["kind"].astype(str))
    to_anndata(model, cells, groupby="kind")
    coef = model[-1].coef_
    assert_allclose(cells.varm["atomlearn"], coef.T, atol=1e-12)  # of standardized columns
    assert (cells.var["atomlearn_selected"] == coef.any(axis=0)).all()
    assert cells.var.loc["G5", "atomlearn_class"] == "B/naive"
    assert_allclose(cells.var.loc["G7", "atomlearn_coefficient"], np.abs(coef[:, 7]).max())
    found = cells.uns["atomlearn"]
    assert found["names"].dtype.names == tuple(KINDS)
    for at, kind in enumerate(KINDS):
        scores = found["scores"][kind]
        assert (np.diff(scores) <= 0).all()
        names = [int(name[1:]) for name in found["names"][kind]]
        assert_allclose(scores, coef[at, names], rtol=1e-5)
    assert found["names"]["NK"][0] == "G3"  # a marker of two classes is listed for both
    assert found["logfoldchanges"]["T"][0] > 1
    assert np.isnan(found["pvals"]["T"]).all()
    cells.write_h5ad(tmp_path / "told.h5ad")
    again = anndata.read_h5ad(tmp_path / "told.h5ad")
    assert list(again.uns["atomlearn"]["names"]["T"]) == list(found["names"]["T"])


def test_scanpy_draws_it(cells: Any) -> None:
    scanpy = pytest.importorskip("scanpy")
    model = AtomicClassifier(alpha=0.05).fit(cells.X, cells.obs["kind"].astype(str))
    to_anndata(model, cells, groupby="kind")
    table = scanpy.get.rank_genes_groups_df(cells, group="T", key="atomlearn")
    assert table["names"][0] == "G7"
    scanpy.settings.autoshow = False
    scanpy.pl.rank_genes_groups(cells, key="atomlearn", show=False)
    scanpy.pl.rank_genes_groups_dotplot(cells, key="atomlearn", n_genes=2, show=False)


def test_the_folder_of_a_selection(cells: Any, tmp_path: Path) -> None:
    cells.obs["depth"] = cells.X.sum(axis=1) + np.random.default_rng(1).normal(size=180)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "out"
    asked = ["--target", "kind", "--n-features", "3", "--C", "1", "--layer", "scaled", "--quiet"]
    asked += ["--covariates", "depth", "--test-fraction", "0", "--out", str(out)]
    assert main(["select", str(tmp_path / "cells.h5ad"), *asked]) == 0
    to_anndata(out, cells, key="chosen")
    assert set(cells.var_names[cells.var["chosen_selected"]]) == {"G3", "G5", "G7"}
    table = pd.read_csv(out / "selected.csv").set_index("feature")
    for name in ("G3", "G5", "G7"):
        expected = table.loc[name, [f"standardized_coefficient[{kind}]" for kind in KINDS]]
        row = cells.varm["chosen"][cells.var_names.get_loc(name)]
        assert_allclose(row, expected.astype(float), rtol=1e-6)
    params = cells.uns["chosen"]["params"]
    assert (params["layer"], params["groupby"]) == ("scaled", "kind")


def test_two_classes_numbers_and_raw(cells: Any) -> None:
    ill = cells.X[:, 7] > 1.5
    cells.obs["ill"] = np.where(ill, "ill", "well")
    model = AtomicClassifier(alpha=0.02).fit(cells.X, cells.obs["ill"])
    part = cells[:, 5:].copy()  # raw has all genes
    to_anndata(model, part, groupby="ill", layer="raw")
    assert part.uns["atomlearn"]["names"].dtype.names == ("ill", "well")
    assert_allclose(part.varm["atomlearn"][:, 0], -part.varm["atomlearn"][:, 1])
    assert part.var.loc["G7", "atomlearn_class"] in ("ill", "well")
    assert part.uns["atomlearn"]["params"]["use_raw"]
    numbers = AtomicRegressor(alpha=0.01).fit(cells.X, cells.X[:, 2])
    to_anndata(numbers, cells, key="numbers")
    assert cells.var["numbers_coefficient"].idxmax() == "G2"
    assert "names" not in cells.uns["numbers"]
    for asked, said in (
        ({}, "give groupby="),
        ({"groupby": "illl"}, "did you mean 'ill'"),
        ({"groupby": "ill", "layer": "scald"}, "did you mean 'scaled'"),
    ):
        with pytest.raises(ValueError, match=said):
            to_anndata(model, cells, **asked)
    with pytest.raises(TypeError, match="needs an AnnData"):
        to_anndata(model, cells.X)


def test_identifiers_in_a_column_of_var(cells: Any, tmp_path: Path) -> None:
    """scanpy.read_10x_h5 names variables by symbols; the file has identifiers."""
    cells.write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "out"
    asked = ["--target", "kind", "--n-features", "3", "--C", "1", "--test-fraction", "0"]
    assert main(["select", str(tmp_path / "cells.h5ad"), *asked, "--quiet", "--out", str(out)]) == 0
    named = anndata.AnnData(cells.X, cells.obs, pd.DataFrame(index=[f"SYM{j}" for j in range(20)]))
    with pytest.raises(ValueError, match="of the model are no variables of adata"):
        to_anndata(out, named)
    named.var["gene_ids"] = list(cells.var_names)
    to_anndata(out, named)
    assert set(named.var_names[named.var["atomlearn_selected"]]) == {"SYM3", "SYM5", "SYM7"}
    # And the other way round: a model of symbols predicts data that are named by identifiers.
    named.write_h5ad(tmp_path / "named.h5ad")
    other = tmp_path / "other"
    asked = [*asked, "--quiet", "--out", str(other)]
    assert main(["select", str(tmp_path / "named.h5ad"), *asked]) == 0
    cells.var["gene_symbols"] = list(named.var_names)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for data in ("cells", "named"):
        file = str(tmp_path / f"{data}.csv")
        assert main(["predict", str(other), str(tmp_path / f"{data}.h5ad"), "--out", file]) == 0
    one, two = (pd.read_csv(tmp_path / f"{data}.csv") for data in ("cells", "named"))
    assert (one["prediction"] == two["prediction"]).all()
