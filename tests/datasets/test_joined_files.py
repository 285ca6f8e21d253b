"""Files of phenotypes and covariates are joined by names, whatever the order of their lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atomlearn import datasets

N = 30
WHO = [f"s{i}" for i in range(N)]


@pytest.fixture(params=["genotypes", "genes in rows", "an id column"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """Return a file of the same samples, and what to ask of it."""
    X = np.random.default_rng(0).integers(0, 3, (N, 4)).astype(float)
    X[:, 1] = X[:, 1] + 0.25 if request.param != "genotypes" else X[:, 1]
    if request.param == "genotypes":
        datasets.write_plink(tmp_path / "study.bed", X)
        return tmp_path / "study.bed", {}
    path = tmp_path / "study.csv"
    if request.param == "genes in rows":
        frame = pd.DataFrame(X.T, index=pd.Index(list("abcd"), name="gene"), columns=WHO)
        frame.to_csv(path)
        return path, {"transpose": True}
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "person", WHO)
    frame.to_csv(path, index=False)
    return path, {"id": "person"}


@pytest.mark.parametrize(
    ("order", "labels"), [("reversed", True), ("shuffled", False), ("with others", True)]
)
def test_as_many_lines_in_another_order(
    study: tuple[Path, dict[str, object]], order: str, labels: bool, tmp_path: Path
) -> None:
    """A file with exactly the samples of the data, in another order, is put into its order."""
    path, options = study
    value = np.arange(N) + 0.5
    trait = [f"label {'ab'[i % 2]}" for i in range(N)] if labels else value
    told = pd.DataFrame({"FID": WHO, "IID": WHO, "trait": trait})
    ages = pd.DataFrame({"FID": WHO, "IID": WHO, "age": 2.0 * value})
    places = np.random.default_rng(1).permutation(N) if order == "shuffled" else range(N)[::-1]
    told, ages = told.iloc[places], ages.iloc[places]
    if order == "with others":
        more = pd.DataFrame({"FID": ["x"], "IID": ["x"], "trait": [trait[0]]})
        told = pd.concat([more, told])
    told.to_csv(tmp_path / "pheno.txt", sep=" ", index=False)
    ages.to_csv(tmp_path / "covar.txt", sep=" ", index=False)
    # Names of files may be text.
    read = datasets.read(
        path,
        pheno=str(tmp_path / "pheno.txt"),
        pheno_name="trait",
        covar=str(tmp_path / "covar.txt"),
        **options,
    )
    assert read.y is not None
    assert read.y.tolist() == (trait if labels else value.tolist())
    w = np.zeros(len(read.feature_names))
    w[read.feature_names.index("age")] = 1.0
    X = read.X
    found = X @ w if isinstance(X, np.ndarray) else X.predict(w)
    np.testing.assert_allclose(np.asarray(found).ravel(), 2.0 * value)
