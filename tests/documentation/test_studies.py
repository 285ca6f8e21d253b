"""Each study runs from its file to its predictions, with the commands that its page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn.cli import main
from tests.documentation.test_pages import BLOCKS, DOCS


def _run(page: str, commands: int, names: dict[str, Any]) -> None:
    """Run the Python of a page, then its first commands."""
    text = (DOCS / page).read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert first is not None
    exec(compile(first[1], page, "exec"), names)
    lines = re.findall(r"^(atomlearn .*)$", text, re.MULTILINE)[:commands]
    assert len(lines) == commands
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] == "select":
            words += ["--quiet", "--seed", "0"]
        assert main(words) == 0, line


def test_the_cells_of_the_page_go_from_file_to_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("anndata")
    pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    _run("study_cells.md", 3, names)
    said = capsys.readouterr()
    assert "next: atomlearn select cells.h5ad --target cell_type" in said.out
    assert "held out: 2 of 8 donor" in said.err
    cells = names["cells"]
    markers = pd.read_csv("markers/markers.csv")
    found = markers[markers["standardized_coefficient"] > 0].groupby("class")["feature"].first()
    true = {
        kind: set(cells.var_names[3 * code : 3 * code + 3])
        for code, kind in enumerate(names["kinds"])
    }
    assert all(found[kind] in true[kind] for kind in names["kinds"])
    values = cells.to_df()
    for row in markers.itertuples():
        own = values.loc[cells.obs["cell_type"] == row[1], row.feature]
        other = values.loc[cells.obs["cell_type"] != row[1], row.feature]
        expected = [own.mean(), other.mean(), (own != 0).mean(), (other != 0).mean()]
        given = [row.mean_in_class, row.mean_elsewhere, row.nonzero_in_class, row.nonzero_elsewhere]
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-7)
    labels = pd.read_csv("labels.csv")
    assert (labels["prediction"].to_numpy() == cells.obs["cell_type"].to_numpy()[:20]).mean() > 0.8


def test_the_genotypes_of_the_page_go_from_file_to_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Marginal statistics are least squares by hand, and predictions are PLINK's sums."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    _run("study_genotypes.md", 3, names)
    said = capsys.readouterr().err
    assert "the target is the phenotype 'bmi' of people.pheno" in said
    assert "20 samples lack a covariate and are left out" in said
    selected = pd.read_csv("scan/selected.csv").set_index("feature")
    chosen = selected[selected["rank"].notna()]
    assert set(chosen.index) == {"v20", "v140", "v250"}
    copies = names["copies"][:480]
    copies = np.where(np.isnan(copies), np.nanmean(copies, axis=0), copies)
    components = _components(copies)
    known = np.column_stack([names["age"][:480], components])
    y = names["trait"].round(3)[:480]
    for name, row in chosen.iterrows():
        column = copies[:, int(str(name)[1:])]
        coefficient, error = _least_squares(np.column_stack([column, np.ones(480), known]), y)
        np.testing.assert_allclose(row["marginal_coefficient"], coefficient, rtol=2e-3)
        np.testing.assert_allclose(row["marginal_error"], error, rtol=2e-3)
    score = pd.read_csv("scan/score.tsv", sep="\t")
    assert list(score.columns) == ["ID", "A1", "WEIGHT"]
    sums = sum(w * copies[:, int(v[1:])] for v, _, w in score.itertuples(index=False))
    predicted = pd.read_csv("predicted.csv")["prediction"].to_numpy()
    weights = selected.loc[selected["rank"].isna(), "coefficient"]
    rest = predicted - sums - weights["age"] * names["age"][:480]
    design = np.column_stack([np.ones(480), components])
    left = rest - design @ np.linalg.lstsq(design, rest, rcond=None)[0]
    assert np.abs(left).max() < 0.02


def _least_squares(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the least-squares coefficient of the first column, and its standard error."""
    inverse = np.linalg.inv(X.T @ X)
    coefficients = inverse @ X.T @ y
    spread = np.sum((y - X @ coefficients) ** 2) / (len(X) - X.shape[1])
    return float(coefficients[0]), float(np.sqrt(spread * inverse[0, 0]))


def _components(copies: np.ndarray) -> np.ndarray:
    """Return two principal components of the standardized genotypes."""
    standard = (copies - copies.mean(axis=0)) / copies.std(axis=0)
    left, sizes, _ = np.linalg.svd(standard, full_matrices=False)
    return np.asarray(left[:, :2] * sizes[:2])


def test_the_pages_have_the_blocks_that_run() -> None:
    for page in ("study.md", "study_cells.md", "study_genotypes.md"):
        assert BLOCKS.BLOCK.search((DOCS / page).read_text(encoding="utf-8"))
