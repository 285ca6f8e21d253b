"""The first twenty minutes of three newcomers, each as they would type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import AtomicClassifierCV, AtomicSurvivalCV, datasets, report
from atomlearn.losses import survival_target
from tests.oracles.commands import rows, run


def test_a_data_scientist_with_two_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Customers and their contracts, with dates, categories and gaps: who leaves?"""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 240
    customers = pd.DataFrame({
        "customer": [f"c{i:03d}" for i in range(n)], "age": rng.normal(45, 12, n).round(),
        "city": rng.choice(["Oslo", "Rome", "Lima"], n), "income": rng.normal(50, 9, n).round(1),
    })  # fmt: skip
    customers.loc[rng.random(n) < 0.1, "income"] = np.nan
    contracts = pd.DataFrame({
        "customer": customers["customer"], "calls": rng.poisson(3, n),
        "since": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        "plan": pd.Categorical(rng.choice(["small", "large"], n)),
        "visits": pd.array(rng.integers(0, 9, n), dtype="Int64"),
    }).sample(frac=1.0, random_state=0)  # fmt: skip
    risk = 1.2 * (contracts["calls"] - 3) + 2.0 * (contracts["plan"] == "small") - 1.0
    contracts["leaves"] = np.where(risk + rng.logistic(size=n) > 0, "yes", "no")

    table = customers.merge(contracts, on="customer")
    data = datasets.read(table, "leaves", missing="indicator", dates="elapsed", id="customer")
    assert {"calls", "plan=small", "since", "income=missing"} <= set(data.feature_names or ())
    train, test = train_test_split(np.arange(n), random_state=0, stratify=data.y)
    model = make_pipeline(StandardScaler(), AtomicClassifierCV(n_alphas=6, cv=3))
    model.fit(data.X[train], data.y[train])
    assert model.score(data.X[test], data.y[test]) > 0.75
    page = report(model, data.X, data.y, feature_names=data.feature_names, n_resamples=2)
    assert page.verdict.better
    assert page.selected[0].name in ("calls", "plan=small", "plan=large")
    assert "How exactly the problem was solved" in Path("report.html").read_text()

    table.to_csv("customers.csv", index=False)
    words = ["customers.csv", "--target", "leaves", "--missing", "indicator", "--id", "customer"]
    assert run("select", *words, "--n-features", 3, "--time-limit", 60, "--out", "out") == 0
    told = capsys.readouterr()
    assert "predicts leaves" in told.out
    assert "--dates parts" in told.err  # what is left out is said, with the remedy
    assert run("predict", "out", "customers.csv", "--out", "p.csv") == 0
    predicted = [row["prediction"] for row in rows(Path("p.csv"))]
    assert np.mean(np.array(predicted) == table["leaves"].to_numpy()) > 0.75


def test_a_biologist_with_a_matrix_and_pathways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Genes in rows, samples in columns; the status elsewhere; pathways that overlap."""
    monkeypatch.chdir(tmp_path)
    rng, n_samples, n_genes = np.random.default_rng(1), 90, 60
    counts = rng.normal(8.0, 1.0, (n_samples, n_genes))
    genes, samples = [f"G{j}" for j in range(n_genes)], [f"s{i}" for i in range(n_samples)]
    score = (counts[:, 10:18] - 8.0).sum(axis=1)
    frame = pd.DataFrame(counts.T.round(3), index=pd.Index(genes, name="gene"), columns=samples)
    frame.to_csv("expression.tsv", sep="\t")
    status = np.where(score + rng.standard_normal(n_samples) > 0, "tumor", "normal")
    pd.DataFrame({"IID": samples, "status": status}).to_csv("samples.tsv", sep="\t", index=False)
    sets = {f"PATHWAY_{k}": genes[start : start + 12] for k, start in enumerate(range(0, 48, 8))}
    sets["LOST"] = ["NOT_THERE"]
    lines = ["\t".join([name, "-", *members]) for name, members in sets.items()]
    Path("pathways.gmt").write_text("\n".join(lines) + "\n")

    words = ["expression.tsv", "--transpose", "--pheno", "samples.tsv", "--pheno-name", "status"]
    words += ["--groups", "pathways.gmt", "--norm", "latentgroups", "--time-limit", "60"]
    assert run("select", *words, "--out", "out") == 0
    told = capsys.readouterr()
    assert "groups, the heaviest first\n    PATHWAY_1: " in told.out
    assert "1 groups have no column of the data: 'LOST'" in told.err
    assert rows(Path("out/groups.csv"))[0]["group"] == "PATHWAY_1"
    page = Path("out/report.html").read_text()
    assert "Which groups?" in page
    assert "array([" not in page


def test_a_clinician_with_start_and_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row a visit: (start, stop], whether it ended in an event, and what was measured."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    visits: list[dict[str, Any]] = []
    for patient in range(110):
        age = rng.normal()
        for visit in range(3):
            pressure = rng.normal()
            wait = rng.exponential(4.0 * np.exp(-0.9 * age - 0.9 * pressure))
            visits.append({
                "patient": f"p{patient}", "start": float(visit), "died": int(wait < 1.0),
                "stop": visit + min(wait, 1.0) + 1e-3, "age": age, "pressure": pressure,
                **{f"lab{j}": rng.normal() for j in range(4)},
            })  # fmt: skip
            if wait < 1.0:
                break
    table = pd.DataFrame(visits)
    table.to_csv("visits.csv", index=False)
    words = ["visits.csv", "--time", "stop", "--event", "died", "--entry", "start"]
    words += ["--rows-of", "patient", "--n-features", 2, "--time-limit", 60, "--out", "out"]
    assert run("select", *words) == 0
    told = capsys.readouterr()
    assert "time-varying: a row is at risk after start until stop" in told.err
    assert "rows of one are held out, folded and halved together" in told.err
    assert {row["feature"] for row in rows(Path("out/selected.csv"))} == {"age", "pressure"}
    assert "hazard \u00d7 " in told.out
    assert json.loads(Path("out/summary.json").read_text())["verdict"] == "better"
    assert "Held-out rows without an event" in Path("out/report.html").read_text()

    X = table[["age", "pressure", *(f"lab{j}" for j in range(4))]]
    y = survival_target(table["died"], table["stop"], entry=table["start"])
    model = AtomicSurvivalCV(n_alphas=8, cv=3).fit(X, y, groups=table["patient"])
    assert {"age", "pressure"} <= set(model.selected_names_)
    risk = model.predict(X)
    ends = X.iloc[[int(risk.argmax()), int(risk.argmin())]]
    low, high = (function(1.5) for function in model.predict_survival_function(ends))
    assert low < high
