"""Genotypes from .bed, phenotype and covariate files to a model that predicts other coding."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.cli import main
from atomlearn.datasets import convert, read, write_plink
from atomlearn.designs import OnDisk
from atomlearn.reports import read_model
from atomlearn.storage.intake.genotypes import (
    components,
)
from tests.oracles.commands import rows
from tests.oracles.genotypes import filled, genotypes

N, P = 120, 40


def with_alleles(
    folder: Path, name: str, X: Any, alleles: list[tuple[str, str]], **more: Any
) -> Path:
    """Write a .bed whose alleles are these, counted one first."""
    path = folder / f"{name}.bed"
    write_plink(path, X, **more)
    lines = path.with_suffix(".bim").read_text().splitlines()
    fields = [[*line.split()[:4], *pair] for line, pair in zip(lines, alleles, strict=True)]
    path.with_suffix(".bim").write_text("".join("\t".join(f) + "\n" for f in fields))
    return path


@pytest.fixture
def study(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    X = genotypes(N, P, 0.02, seed=3)
    age, sex = rng.integers(30, 70, N), rng.integers(1, 3, N)
    y = 2.0 * filled(X)[:, 4] - 1.5 * filled(X)[:, 11] + 0.3 * age + sex
    y = y + 0.3 * rng.standard_normal(N)
    alleles = [("A", "G") if j % 3 else ("A", "T") for j in range(P)]
    alleles[4], alleles[11] = ("A", "C"), ("G", "T")
    path = with_alleles(
        tmp_path, "study", X, alleles, names=[f"rs{j}" for j in range(P)],
        chromosomes=[1 + j // 20 for j in range(P)],
        positions=[1000 * (j % 20 + 1) for j in range(P)],
    )  # fmt: skip
    pheno = ["FID IID bmi other", *(f"s{i} s{i} {float(y[i])!r} {i}" for i in range(N))]
    pheno[6] = "s5 s5 -9 5"
    (tmp_path / "study.pheno").write_text("\n".join(pheno) + "\n")
    covar = ["FID IID age sex", *(f"s{i} s{i} {age[i]} {sex[i]}" for i in range(N - 2))]
    (tmp_path / "study.covar").write_text("\n".join(covar) + "\n")
    return {"path": path, "X": X, "y": y, "alleles": alleles, "folder": tmp_path, "age": age}


def select(study: dict[str, Any], *words: str) -> Path:
    folder = study["folder"]
    out = folder / "out"
    arguments = ["select", str(study["path"]), "--pheno", str(folder / "study.pheno")]
    arguments += ["--pheno-name", "bmi", "--covar", str(folder / "study.covar"), "--quiet"]
    assert main([*arguments, "--n-features", "2", "--out", str(out), *words]) == 0
    return Path(out)


def test_phenotypes_and_covariates_are_joined_and_those_without_dropped(
    study: dict[str, Any],
) -> None:
    folder = study["folder"]
    table = read(
        study["path"], pheno=folder / "study.pheno", pheno_name="bmi", covar=folder / "study.covar"
    )
    # -9 is no phenotype, and two samples have no covariates.
    assert table.X.shape == (N - 3, P + 2)
    assert table.covariates == (P, P + 1)
    assert table.ids is not None
    assert "s5" not in table.ids
    keep = [i for i in range(N - 2) if i != 5]
    assert_allclose(table.y, study["y"][keep])
    assert_allclose(table.X.gather(np.array([P])).dense()[:, 0], study["age"][keep])
    assert any("lack the target" in note for note in table.notes)
    said = "\n".join(table.notes)
    assert "the target is the phenotype 'bmi' of study.pheno; there are also 'other'" in said
    assert "2 samples lack a covariate and are left out (missing='median' fills in): " in said
    assert f"'s{N - 2}', 's{N - 1}'" in said
    assert "no principal components are among the covariates" in said


def test_a_model_knows_alleles_and_predicts_other_codings(
    study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    out = select(study)
    model = read_model(out / "model.json")
    assert {allele.name for allele in model.alleles} == {"rs4", "rs11"}
    selected = {row["feature"]: row for row in rows(out / "selected.csv") if row["rank"]}
    assert {"rs4", "rs11"} == set(selected)
    assert {"rs4", "rs11", "age", "sex"} == {feature.name for feature in model.features}
    assert selected["rs4"]["chromosome"] == "1"
    assert selected["rs4"]["position"] == "5000"
    assert (selected["rs4"]["counted_allele"], selected["rs4"]["other_allele"]) == ("A", "C")
    covar = ["--covar", str(study["folder"] / "study.covar")]
    plain = predictions(study, out, study["path"], covar)
    # Swapped at rs4 (and counted the other way round), on the other strand at rs11.
    other, alleles = study["X"].copy(), list(study["alleles"])
    other[:, 4] = 2.0 - other[:, 4]
    alleles[4], alleles[11] = ("C", "A"), ("C", "A")
    names = [f"rs{j}" for j in range(P)]
    path = with_alleles(study["folder"], "other", other, alleles, names=names)
    capsys.readouterr()
    again = predictions(study, out, path, covar)
    told = capsys.readouterr().err
    assert "alleles swapped, and recoded ('rs4')" in told
    assert "other strand, and flipped ('rs11')" in told
    assert_allclose(again, plain, rtol=1e-9)
    # A variant under another name is found where it lies.
    write_plink(path, other, names=[f"n{j}" for j in range(P)])
    with_alleles(
        study["folder"], "renamed", other, alleles, names=[f"n{j}" for j in range(P)],
        chromosomes=[f"chr{1 + j // 20}" for j in range(P)],
        positions=[1000 * (j % 20 + 1) for j in range(P)],
    )  # fmt: skip
    again = predictions(study, out, study["folder"] / "renamed.bed", covar)
    told = capsys.readouterr().err
    assert "2 variants under another name, and found by chromosome and position" in told
    assert_allclose(again, plain, rtol=1e-9)
    # A variant that is not there counts as its mean.
    path = with_alleles(study["folder"], "less", other[:, :11], alleles[:11], names=names[:11])
    predictions(study, out, path, covar)
    assert "1 variants not in the data: taken as the mean ('rs11')" in capsys.readouterr().err


def predictions(study: dict[str, Any], out: Path, path: Path, covar: list[str]) -> list[float]:
    # Two samples have no covariates; the new data leaves them out.
    keep = N - 2
    lines = path.with_suffix(".fam").read_text().splitlines()[:keep]
    held = read_bed(path)[:keep]
    name = f"{path.stem}_few"
    bim = path.with_suffix(".bim").read_text()
    write_plink(study["folder"] / f"{name}.bed", held)
    (study["folder"] / f"{name}.bim").write_text(bim)
    (study["folder"] / f"{name}.fam").write_text("\n".join(lines) + "\n")
    file = study["folder"] / "p.csv"
    data = str(study["folder"] / f"{name}.bed")
    told = file.with_suffix(".explained")
    command = ["predict", str(out / "model.json"), data, "--out", str(file), *covar]
    assert main([*command, "--explain", str(told)]) == 0
    found = rows(file)
    for kept in (found, rows(told)):
        assert [row["IID"] for row in kept] == [f"s{i}" for i in range(keep)]
    return [float(row["prediction"]) for row in found]


def read_bed(path: Path) -> Any:
    from atomlearn.designs import PlinkBed

    design = PlinkBed(path)
    values = np.array(design.gather(np.arange(design.shape[1])).dense())
    values[~np.isin(values, (0, 1, 2))] = np.nan
    return values


def test_samples_without_covariates_are_named_at_prediction(
    study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    out, folder = select(study), study["folder"]
    command = ["predict", str(out / "model.json"), str(study["path"])]
    covar = ["--covar", str(folder / "study.covar")]
    assert main([*command, *covar]) == 2
    said = f"2 of {N} samples lack a covariate in study.covar: 's{N - 2}', 's{N - 1}'"
    told = capsys.readouterr().err
    assert said in told
    assert "--missing drop" in told
    assert main([*command, *covar, "--missing", "drop", "--out", str(folder / "p.csv")]) == 0
    assert f"{said}; they have no prediction" in capsys.readouterr().err
    assert [row["IID"] for row in rows(folder / "p.csv")] == [f"s{i}" for i in range(N - 2)]
    out = select(study, "--missing", "median", "--test-fraction", "0")
    assert main([*command, *covar, "--out", str(folder / "p.csv")]) == 0
    assert f"{said}; filled in" in capsys.readouterr().err
    assert len(rows(folder / "p.csv")) == N


def test_an_ambiguous_swap_is_told_and_taken_as_the_mean() -> None:
    from atomlearn.cli.genotypes import _relation_of_alleles
    from atomlearn.reports.model import Allele

    palindromic = Allele("v", "1", 5, "A", "T", 0.5)
    plain = Allele("v", "1", 5, "A", "C", 0.5)
    assert _relation_of_alleles(palindromic, "A", "T") == "same"
    assert _relation_of_alleles(palindromic, "T", "A") == "ambiguous"
    assert _relation_of_alleles(plain, "C", "A") == "swapped"
    assert _relation_of_alleles(plain, "T", "G") == "flipped"
    assert _relation_of_alleles(plain, "G", "T") == "flipped swapped"
    assert _relation_of_alleles(plain, "0", "C") == "same"
    assert _relation_of_alleles(plain, "0", "A") == "swapped"
    assert _relation_of_alleles(plain, "A", "T") == "different"


def test_filters_count_what_they_leave_out(study: dict[str, Any]) -> None:
    X = study["X"]
    share = np.nansum(X, axis=0) / 2 / np.maximum(np.isfinite(X).sum(axis=0), 1)
    missing = np.isnan(X).mean(axis=0)
    folder = study["folder"]
    table = read(
        study["path"], pheno=folder / "study.pheno", pheno_name="other",
        maf=0.2, geno=0.03,
    )  # fmt: skip
    kept = (np.minimum(share, 1 - share) >= 0.2) & (missing <= 0.03)
    assert 0 < kept.sum() < P
    assert list(table.feature_names or ()) == [f"rs{j}" for j in np.flatnonzero(kept)]
    assert table.variants.positions.size == kept.sum()
    assert any(note.startswith("maf=") for note in table.notes)


def test_components_are_those_of_the_singular_values(study: dict[str, Any]) -> None:
    from atomlearn.designs import PlinkBed

    rng = np.random.default_rng(0)
    populations = rng.uniform(0.1, 0.9, (3, 300))
    X = rng.binomial(2, populations[rng.integers(0, 3, 90)]).astype(float)
    path = study["folder"] / "many.bed"
    write_plink(path, X)
    design = PlinkBed(path)
    found, kept = components(design, 2, design.variants, design.names)
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    assert_allclose(np.abs(found), np.abs(left[:, :2] * sizes[:2]), rtol=1e-3, atol=1e-2)
    assert_allclose(scaled @ kept.loadings, found, rtol=1e-3, atol=1e-2)
    # New people from the same populations: as near to the components of all as rotation allows.
    new = rng.binomial(2, populations[rng.integers(0, 3, 60)]).astype(float)
    Z = (new - kept.means) / kept.scales
    plain = Z @ kept.loadings
    placed = kept.projected(plain, np.sum(Z**2, axis=1))
    together = np.vstack([X, new])
    write_plink(path, together)
    every = components(PlinkBed(path), 2, design.variants, design.names)[0]
    one, overlap, other = np.linalg.svd(every[:90].T @ found)
    joint = overlap.sum() / np.sum(every[:90] ** 2) * every[90:] @ one @ other

    def wrong(scores: Any) -> float:
        return float(np.linalg.norm(scores - joint) / np.linalg.norm(joint))

    assert wrong(placed) < 0.1
    assert wrong(placed) < 0.8 * wrong(plain)


def test_components_are_covariates_of_the_command(
    study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    out = select(study, "--pcs", "2", "--test-fraction", "0")
    covariates = json.loads((out / "summary.json").read_text())["covariates"]
    assert {item["name"] for item in covariates} == {"PC1", "PC2", "age", "sex"}
    # The people of the fit, as new ones: nearly the scores of the fit.
    folder = study["folder"]
    asked = ["--covar", str(folder / "study.covar"), "--missing", "drop"]
    command = ["predict", str(out), str(study["path"]), *asked, "--out", str(folder / "p.csv")]
    assert main(command) == 0
    assert f"projected from {P} of their {P} variants" in capsys.readouterr().err
    found = {row["IID"]: float(row["prediction"]) for row in rows(folder / "p.csv")}
    kept = [i for i in range(N - 2) if i != 5]
    close = np.corrcoef([found[f"s{i}"] for i in kept], study["y"][kept])[0, 1]
    assert close > 0.95
    (out / "components.tsv").write_text("##SIZES\t1\nID\n")
    assert main(command) == 2
    assert "components.tsv is damaged" in capsys.readouterr().err
    (out / "components.tsv").unlink()
    assert main(command) == 0
    assert "there is no components.tsv" in capsys.readouterr().err


def test_windows_and_regions_are_groups(study: dict[str, Any]) -> None:
    folder = study["folder"]
    (folder / "regions.txt").write_text("near chr1:4000-6000\nfar chr1:12000-12500 rs30\n")
    out = select(study, "--test-fraction", "0", "--groups", str(folder / "regions.txt"))
    names = {row["feature"] for row in rows(out / "selected.csv")}
    assert {"rs3", "rs4", "rs5", "rs11", "rs30"} <= names
    out = select(study, "--test-fraction", "0", "--groups", "windows:4k")
    assert "rs4" in {row["feature"] for row in rows(out / "selected.csv")}


def test_the_score_file_is_the_genetic_part_of_the_score(study: dict[str, Any]) -> None:
    """By hand, and by plink2 where it is installed."""
    out = select(study, "--seed", "1")
    lines = [line.split("\t") for line in (out / "score.tsv").read_text().splitlines()]
    assert lines.pop(0) == ["ID", "A1", "WEIGHT"]
    assert "<code>score.tsv</code>" in (out / "report.html").read_text()
    assert {line[0] for line in lines} == {"rs4", "rs11"}
    own = {f"rs{j}": pair[0] for j, pair in enumerate(study["alleles"])}
    assert all(own[name] == allele for name, allele, _ in lines)
    model = read_model(out / "model.json")
    weights = dict(zip((f.name for f in model.features), model.coefficients[0], strict=True))
    assert {name: float(weight) for name, _, weight in lines} == {
        name: weights[name] for name in ("rs4", "rs11")
    }
    if shutil.which("plink2") is None:
        return
    command = ["plink2", "--bfile", str(study["path"].with_suffix("")), "--out", str(out / "p")]
    command += ["--score", str(out / "score.tsv"), "header-read", "cols=+scoresums"]
    command += ["no-mean-imputation"]
    subprocess.run(command, check=True, capture_output=True)
    told = [line.split("\t") for line in (out / "p.sscore").read_text().splitlines()]
    place = told[0].index("WEIGHT_SUM")
    X = np.nan_to_num(study["X"])
    expected = sum(X[:, int(name[2:])] * float(weight) for name, _, weight in lines)
    assert_allclose([float(line[place]) for line in told[1:]], expected, rtol=1e-4, atol=1e-5)


def test_inspect_counts_missing_genotypes_and_quiet_tells_lost_samples(
    study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(study["path"]), "--pcs", "2", "--maf", "0.01"]) == 0
    gaps = np.isnan(study["X"])
    said = f"{gaps.any(axis=0).sum()} of {P} variants lack genotypes, {gaps.mean():.2%} of all"
    told = capsys.readouterr().out
    assert said in told
    assert "--maf 0.01 --pcs 2" in told.splitlines()[-1] or "--pcs 2 --maf 0.01" in told
    select(study)  # --quiet
    told = capsys.readouterr().err
    assert f"{N - 2} of {N} samples are in study.covar" in told


def test_marginal_statistics_are_of_each_variant_and_the_covariates(study: dict[str, Any]) -> None:
    out = select(study, "--test-fraction", "0")
    table = read(
        study["path"], pheno=study["folder"] / "study.pheno", pheno_name="bmi",
        covar=study["folder"] / "study.covar",
    )  # fmt: skip
    X = table.X.gather(np.array([*range(P), *table.covariates])).dense()
    found_rows = [row for row in rows(out / "selected.csv") if row["rank"]]
    assert len(found_rows) == 2
    for row in found_rows:
        columns = X[:, [int(row["feature"][2:]), P, P + 1]]
        found = linregress_with(columns, table.y)
        assert_allclose(float(row["marginal_coefficient"]), found[0], rtol=1e-3)
        assert_allclose(float(row["marginal_error"]), found[1], rtol=1e-3)
        assert_allclose(float(row["marginal_p"]), found[2], rtol=1e-3)


def linregress_with(columns: Any, y: Any) -> tuple[float, float, float]:
    """Return slope, error and p-value of the first column by partial regression (Frisch-Waugh)."""
    from scipy.stats import linregress, t

    others = np.column_stack([np.ones(len(y)), columns[:, 1:]])
    keep = [v - others @ np.linalg.lstsq(others, v, rcond=None)[0] for v in (columns[:, 0], y)]
    found = linregress(*keep)
    free = len(y) - others.shape[1] - 1
    error = found.stderr * np.sqrt((len(y) - 2) / free)
    return found.slope, error, 2 * t.sf(abs(found.slope / error), free)


def test_logistic_marginal_statistics_are_those_of_plain_likelihood() -> None:
    from scipy.optimize import minimize

    from atomlearn.findings.marginal import marginal_tests

    rng = np.random.default_rng(0)
    X = rng.binomial(2, 0.3, (200, 3)).astype(float)
    covariates = np.column_stack([rng.normal(size=200), np.ones((200, 2))])  # constant: redundant
    y = (rng.random(200) < 1 / (1 + np.exp(-X[:, 0] - covariates[:, 0] + 0.5))) * 1.0

    for j, (value, error, p) in enumerate(marginal_tests(X, covariates, y, True)):
        Z = np.column_stack([np.ones(200), covariates[:, 0], X[:, j]])

        def loss(w: Any, Z: Any = Z) -> float:
            return float(np.sum(np.logaddexp(0, Z @ w) - y * (Z @ w)))

        w = minimize(loss, np.zeros(3), tol=1e-12).x
        share = 1 / (1 + np.exp(-Z @ w))
        expected = np.sqrt(np.linalg.inv((Z.T * (share * (1 - share))) @ Z)[2, 2])
        assert_allclose((value, error), (w[2], expected), rtol=1e-4)
        assert 0 < p < 1
    # A column that separates the classes, and one that the covariates determine.
    strange = np.column_stack([y, covariates[:, 0]])
    assert np.isnan(marginal_tests(strange, covariates, y, True)).all()
    assert np.isnan(marginal_tests(covariates[:, :1], covariates, y, False)).all()


def test_products_of_two_variants(
    study: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """From the packed genotypes as from a table of the same numbers."""
    folder = study["folder"]
    X = filled(study["X"])
    y = 3.0 * (X[:, 3] - X[:, 3].mean()) * (X[:, 17] - X[:, 17].mean())
    y += 0.1 * np.random.default_rng(1).standard_normal(N)
    (folder / "pair.pheno").write_text(
        "FID IID trait\n" + "".join(f"s{i} s{i} {float(y[i])!r}\n" for i in range(N))
    )
    np.savez(folder / "pair.npz", X=X, y=y, feature_names=[f"rs{j}" for j in range(P)])
    common = ["--interactions", "--n-features", "3", "--C", "1", "--test-fraction", "0", "--quiet"]
    pheno = ["--pheno", str(folder / "pair.pheno")]
    assert main(["select", str(study["path"]), *pheno, *common, "--out", str(folder / "a")]) == 0
    assert "PLINK cannot score products" in capsys.readouterr().err
    assert main(["select", str(folder / "pair.npz"), *common, "--out", str(folder / "b")]) == 0
    packed, plain = (rows(folder / name / "selected.csv") for name in "ab")
    assert [row["feature"] for row in packed] == [row["feature"] for row in plain]
    assert "rs3:rs17" in {row["feature"] for row in packed}
    for one, other in zip(packed, plain, strict=True):
        assert_allclose(float(one["coefficient"]), float(other["coefficient"]), rtol=1e-4)
    [pair] = [row for row in packed if row["feature"] == "rs3:rs17"]
    assert pair["position"] == "4000:18000"
    assert not (folder / "a" / "score.tsv").exists()
    file = folder / "p.csv"
    assert main(["predict", str(folder / "a"), str(study["path"]), "--out", str(file)]) == 0
    assert np.corrcoef([float(row["prediction"]) for row in rows(file)], y)[0, 1] > 0.9


def test_dosages_of_a_pgen_stay_numbers(tmp_path: Path) -> None:
    pgenlib = pytest.importorskip("pgenlib")
    rng = np.random.default_rng(0)
    X = np.round(np.clip(rng.binomial(2, 0.4, (50, 6)) + rng.uniform(-0.3, 0.3, (50, 6)), 0, 2), 3)
    X[3, 2] = np.nan
    path = tmp_path / "d.pgen"
    with pgenlib.PgenWriter(str(path).encode(), 50, variant_ct=6, dosage_present=True) as writer:
        for column in X.T:
            values = np.where(np.isnan(column), -9.0, column)
            writer.append_dosages(np.ascontiguousarray(values, dtype=np.float32))
    lines = [f"1\t{100 * j + 1}\tv{j}\tG\tA" for j in range(6)]
    (tmp_path / "d.pvar").write_text("\n".join(["#CHROM\tPOS\tID\tREF\tALT", *lines]) + "\n")
    y = X[:, 0] - X[:, 1]
    lines = [f"s{i}\ts{i}\t{value!r}" for i, value in enumerate(y.tolist())]
    (tmp_path / "d.psam").write_text("\n".join(["#FID\tIID\tPHENO1", *lines]) + "\n")
    table = read(path)
    expected = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    assert_allclose(table.X.gather(np.arange(6)).dense(), expected, atol=1e-4)
    assert_allclose(table.y, y)
    assert any("in .psam next to d.pgen" in note for note in table.notes)
    assert read(path, maf=0.01, geno=0.01).X.shape == (50, 5)
    store = OnDisk(convert(path, tmp_path / "d.store").path)
    assert_allclose(store.gather(np.arange(6)).dense(), expected, atol=1e-4)
    out = tmp_path / "out"
    asked = ["--n-features", "2", "--test-fraction", "0", "--C", "10", "--quiet"]
    assert main(["select", str(path), *asked, "--out", str(out)]) == 0
    assert {row["feature"] for row in rows(out / "selected.csv")} == {"v0", "v1"}
    assert main(["predict", str(out), str(path), "--out", str(tmp_path / "p.csv")]) == 0
    found = [float(row["prediction"]) for row in rows(tmp_path / "p.csv")]
    assert np.corrcoef(found, y)[0, 1] > 0.95
