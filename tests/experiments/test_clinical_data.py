"""Published studies: the ratios and intervals of lifelines and statsmodels on the same columns.

The files are those of R's package survival (pbc, colon, heart), of D. Chicco and G. Jurman (heart
failure; BMC Medical Informatics 20, 2020) and of W. H. Wolberg (breast cancer; UCI repository).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifier, AtomicSurvival
from atomlearn.findings import estimates
from atomlearn.losses import survival_target
from benchmarks.harness.real_data import data_file
from tests.oracles.commands import rows, run

#: Hazard ratio, lower and upper end of the 95% interval of each column, by CoxPHFitter of lifelines
#: 0.30.3 (Efron's ties; of both events of colon with cluster_col="id").
PBC = {
    "age": (1.03908, 1.0228, 1.05563),
    "edema": (2.55184, 1.4694, 4.43166),
    "bili": (1.12291, 1.09463, 1.15191),
    "albumin": (0.37872, 0.25322, 0.56643),
    "protime": (1.22233, 1.09401, 1.36571),
}
DEATHS_OF_COLON = {
    "lev": (0.92732, 0.74174, 1.15933),
    "fu": (0.68373, 0.53852, 0.86809),
    "sex": (0.95548, 0.78991, 1.15577),
    "age": (1.00605, 0.99797, 1.01421),
    "nodes": (1.0926, 1.07247, 1.11312),
    "differ": (1.15727, 0.95025, 1.40939),
    "extent": (1.62817, 1.29825, 2.04194),
    "surg": (1.28873, 1.04648, 1.58706),
}
COLON = {
    "lev": (0.9378, 0.75963, 1.15777),
    "fu": (0.64381, 0.51274, 0.80837),
    "sex": (0.90125, 0.75185, 1.08033),
    "age": (1.0012, 0.99326, 1.00921),
    "nodes": (1.08509, 1.05986, 1.11093),
    "differ": (1.15107, 0.93668, 1.41454),
    "extent": (1.62908, 1.32051, 2.00975),
    "surg": (1.28934, 1.06313, 1.56368),
}
HEART = {
    "age": (1.02754, 1.00029, 1.05553),
    "year": (0.86386, 0.75242, 0.9918),
    "surgery": (0.52877, 0.25744, 1.08604),
    "transplant": (0.9898, 0.53515, 1.8307),
}
HEART_FAILURE = {
    "age": (1.04082, 1.01898, 1.06312),
    "anaemia": (1.55045, 0.96402, 2.4936),
    "ejection_fraction": (0.94141, 0.91899, 0.96438),
    "high_blood_pressure": (1.82837, 1.13101, 2.95572),
    "serum_creatinine": (1.41029, 1.20951, 1.64441),
    "serum_sodium": (0.96939, 0.91703, 1.02474),
}
#: Odds ratios of malignant tumors by Logit of statsmodels 0.14.
BREAST_CANCER = [1.70747, 0.99374, 1.38086, 1.39185, 1.10146, 1.46671, 1.56391, 1.23742, 1.70717]
#: Coefficients that R prints for coxph(Surv(time, status == 2) ~ age + edema + log(bili) +
#: log(protime) + log(albumin), pbc): T. M. Therneau and P. M. Grambsch, Modeling Survival Data,
#: 2000; vignettes of the package survival.
PRINTED = [0.0396, 0.896, 0.864, 2.387, -2.507]


def study(name: str, **options: Any) -> pd.DataFrame:
    """Return a file of the folder of clinical data, or skip the test without it."""
    path = data_file(f"clinical/{name}")
    if not path.is_file():
        pytest.skip(f"there is no file {path}")
    return pd.read_csv(path, **options)


def assert_ratios(
    table: pd.DataFrame, y: Any, expected: dict[str, Any], groups: Any = None
) -> None:
    """Compare the ratios of unpenalized columns, and their intervals."""
    columns = list(expected)
    model = AtomicSurvival(unpenalized=columns, tol=1e-9).fit(table[columns], y)
    found = estimates(model, table[columns], y, columns, groups=groups)
    assert_allclose(np.exp(model.coef_), found.ratios[:, 0], rtol=1e-4)
    assert_allclose(found.ratios, list(expected.values()), atol=1e-3)


def test_primary_biliary_cholangitis() -> None:
    table = study("pbc.csv").dropna(subset=["protime"])
    y = survival_target(table.status, table.time, observed=2)
    assert_ratios(table, y, PBC)
    logs = np.log(table[["bili", "protime", "albumin"]])
    X = np.column_stack([table[["age", "edema"]], logs])
    model = AtomicSurvival(unpenalized=list(range(5)), tol=1e-9).fit(X, y)
    assert_allclose(model.coef_, PRINTED, atol=6e-4)


def test_colon_cancer_with_one_and_two_rows_a_patient() -> None:
    table = study("colon.csv").dropna(subset=["nodes", "differ"])
    table = table.assign(lev=table.rx.eq("Lev"), fu=table.rx.eq("Lev+5FU")).astype(
        {"lev": float, "fu": float}
    )
    deaths = table[table.etype == 2]
    assert_ratios(deaths, survival_target(deaths.status, deaths.time), DEATHS_OF_COLON)
    assert_ratios(table, survival_target(table.status, table.time), COLON, groups=table.id)


def test_heart_transplants_with_start_and_stop() -> None:
    table = study("heart.csv")
    assert_ratios(table, survival_target(table.event, table.stop, table.start), HEART)


def test_heart_failure() -> None:
    table = study("hf.csv", encoding="utf-8-sig").dropna()
    columns = {**HEART_FAILURE, "platelets": (1.11387, 0.88225, 1.40629)}
    table = table.assign(platelets=table.platelets / 1e5)
    assert_ratios(table, survival_target(table.DEATH_EVENT, table.time), columns)


def test_breast_cancer() -> None:
    table = study("bcw.data", na_values="?").dropna()
    X = table[list("abcdefghi")]
    model = AtomicClassifier(unpenalized=list(X), tol=1e-10).fit(X, table["class"])
    assert_allclose(np.exp(model.coef_[0]), BREAST_CANCER, atol=1e-3)


def test_the_command_line_has_the_same_ratios(tmp_path: Path) -> None:
    """0/1/2 as it is in the file, and forced covariates: no other column is selected."""
    study("pbc.csv")
    others = "trt,ascites,hepato,spiders,chol,copper,alk.phos,ast,trig,platelet,stage"
    words = ["--time", "time", "--event", "status=2", "--missing", "drop", "--drop", others]
    words += ["--covariates", ",".join(PBC), "--norm", "l1", "--alpha", 1e6, "--gap", 1e-9]
    out = ["--test-fraction", 0, "--quiet", "--out", tmp_path]
    assert run("select", data_file("clinical/pbc.csv"), *words, *out) == 0
    found = {row["feature"]: float(row["hazard_ratio"]) for row in rows(tmp_path / "selected.csv")}
    assert found == pytest.approx({name: ratio for name, (ratio, *_) in PBC.items()}, abs=1e-3)
