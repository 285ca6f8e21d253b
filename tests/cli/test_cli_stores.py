"""The command line on stores and .bed files: the same model as from the file they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, FeatureGenerator
from atomlearn.cli import main
from atomlearn.datasets import write_plink
from atomlearn.designs import OnDisk, PlinkBed
from tests.oracles.commands import rows, run, written
from tests.oracles.genotypes import filled, genotypes


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    y = X[:, 2] - 2 * X[:, 5] + 0.1 * rng.standard_normal(80)
    columns = {f"f{j}": x for j, x in enumerate(X.T.tolist())}
    return written(columns | {"y": y.tolist()}, tmp_path / "x.csv")


def test_select_and_predict_from_a_store(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "x.store"
    assert run("convert", str(table), str(store), "--target", "y", "--memory", "4M") == 0
    for data, folder, more in ((table, "a", ["--target", "y"]), (store, "b", [])):
        out = str(tmp_path / folder)
        words = ["select", str(data), *more, "--n-features", "4", "--out", out, "--quiet"]
        assert main(words) == 0
    mine, theirs = rows(tmp_path / "b" / "selected.csv"), rows(tmp_path / "a" / "selected.csv")
    assert mine == theirs
    for data, name in ((store, "mine"), (table, "theirs")):
        out = str(tmp_path / f"{name}.csv")
        assert run("predict", str(tmp_path / "b" / "model.json"), str(data), "--out", out) == 0
    first = [float(row["prediction"]) for row in rows(tmp_path / "mine.csv")]
    second = [float(row["prediction"]) for row in rows(tmp_path / "theirs.csv")]
    assert_allclose(first, second, rtol=1e-12)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table with a category of three labels, beside numbers."""
    rng = np.random.default_rng(1)
    X, kinds = rng.standard_normal((120, 6)), np.array(["a", "b", "c"])[rng.integers(0, 3, 120)]
    y = X[:, 1] + 2.0 * (kinds == "b") - (kinds == "c") + 0.3 * rng.standard_normal(120)
    columns = {f"f{j}": x for j, x in enumerate(X.T.tolist())}
    return written(columns | {"kind": kinds, "size": y.tolist()}, tmp_path / "people.csv")


def test_a_category_stays_a_group_in_a_store(people: Path, tmp_path: Path) -> None:
    store = tmp_path / "people.store"
    assert run("convert", str(people), str(store), "--target", "size", "--quiet") == 0
    words = ["--norm", "groups", "--alpha", "0.3", "--quiet", "--test-fraction", "0"]
    for data, folder, more in ((people, "a", ["--target", "size"]), (store, "b", [])):
        assert run("select", str(data), *more, *words, "--out", str(tmp_path / folder)) == 0
    mine = rows(tmp_path / "b" / "selected.csv")
    assert mine == rows(tmp_path / "a" / "selected.csv")
    assert {"kind=a", "kind=b", "kind=c"} < {row["feature"] for row in mine}
    model, found = str(tmp_path / "b" / "model.json"), []
    for data in (people, store):
        out = tmp_path / "p.csv"
        assert run("predict", model, str(data), "--out", str(out)) == 0
        found.append([float(row["prediction"]) for row in rows(out)])
    assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("norm", ["ksupport:k=2,3", "groups"])
def test_groups_that_overlap_are_told_which_norm_to_type(
    table: Path, norm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = tmp_path / "groups.txt"
    groups.write_text("a f0 f1 f2\nb f2 f3 f5\n")
    words = ["select", str(table), "--target", "y", "--groups", str(groups), "--norm"]
    assert main([*words, norm, "--out", str(tmp_path / "o")]) == 2
    latent = f"latent{norm}"
    assert f"type {latent.partition(':')[0]} in its place" in capsys.readouterr().err
    last = ["--alpha", "0.1", "--quiet", "--out", str(tmp_path / "o")]
    assert main([*words, latent.replace("2,3", "2"), *last]) == 0


def test_select_goes_on_from_a_checkpoint(table: Path, tmp_path: Path) -> None:
    words = ["select", str(table), "--target", "y", "--norm", "l1", "--cv", "--quiet"]
    kept = ["--checkpoint", str(tmp_path / "state")]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    for folder in ("b", "c"):
        assert main([*words, *kept, "--out", str(tmp_path / folder)]) == 0
    files = [rows(tmp_path / folder / "selected.csv") for folder in "abc"]
    assert len(list((tmp_path / "state").glob("*.npz"))) > 100
    for found in files[1:]:
        assert [row["feature"] for row in found] == [row["feature"] for row in files[0]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select", "B", "--out", "o"], "has no target"),
        (["convert", "S", "T"], "is a directory"),
        (["convert", "nothing.csv", "T"], "there is no file"),
        (["convert", "x.csv", "T", "--memory", "lots"], "a size such as 500M"),
        (["predict", "m", "S"], "m"),
    ],
)
def test_errors_are_one_line(
    words: list[str], message: str, table: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run("convert", str(table), "S.store", "--target", "y", "--quiet") == 0
    write_plink("B.bed", genotypes(9, 5, 0.0))
    named = {"S": "S.store", "B": "B.bed", "T": "T.store"}
    capsys.readouterr()
    assert main([named.get(word, word) for word in words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_estimators_take_paths_designs_and_give_names(tmp_path: Path) -> None:
    X = genotypes(70, 25, 0.05, seed=1)
    y = filled(X)[:, 0] + np.random.default_rng(0).standard_normal(70)
    write_plink(tmp_path / "g.bed", X, names=[f"rs{j}" for j in range(25)], phenotype=y)
    path, dense = tmp_path / "g.bed", filled(X)
    for model in (
        AtomicRegressor(alpha=0.05),
        AtomicRegressorCV(cv=3, n_alphas=4),
        AtomicClassifier(alpha=0.02),
        FeatureGenerator(n_features=5, batch=2, standardize=True),
    ):
        target = y if "Regressor" in type(model).__name__ else y > 0.5
        plain = type(model)(**model.get_params()).fit(dense, target)
        model.fit(str(path), target)
        assert_allclose(model.objective_, plain.objective_, rtol=1e-5)
        assert_array_equal(model.predict(path), model.predict(PlinkBed(path)))
        assert_allclose(model.coef_, plain.coef_, atol=1e-3)
        assert list(model.feature_names_in_) == [f"rs{j}" for j in range(25)]
        assert model.n_features_in_ == 25
    assert_allclose(model.transform(path), dense[:, np.sort(model.selected_)])
    write_plink(tmp_path / "h.bed", X, names=[f"other{j}" for j in range(25)])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(tmp_path / "h.bed")
    write_plink(tmp_path / "i.bed", X[:, :7])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(tmp_path / "i.bed")
    assert run("convert", str(path), str(tmp_path / "g.store"), "--quiet") == 0
    assert_allclose(OnDisk(tmp_path / "g.store").target, y)
