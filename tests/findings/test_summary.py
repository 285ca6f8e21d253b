"""summary(): coefficients, intervals and ratios, held against stored tables of other packages.

The numbers of OLS (with HC3 errors), Logit and the Poisson GLM are those of statsmodels 0.14; the
hazard ratios are those of CoxPHFitter of lifelines, on the same columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    FeatureGenerator,
    SubsetRegressor,
    findings,
)
from atomlearn.losses import survival_target

DATA = load_diabetes(as_frame=True, scaled=False)
Y = DATA.target
X = pd.DataFrame(
    {
        "sex": np.where(DATA.data.sex == 1, "woman", "man"),
        "bmi": DATA.data.bmi,
        "bp": DATA.data.bp,
        "age": pd.cut(DATA.data.age, [0, 40, 55, 99], labels=["young", "middle", "old"]),
    }
)
FREE = [*X.columns]
_RNG = np.random.default_rng(1)
EVENT = _RNG.random(len(Y)) < 0.7
TIME = np.round(_RNG.exponential(np.exp(-0.1 * (X.bmi - 26) - 0.4 * (X.sex == "man"))), 3) + 0.001
TIMES = survival_target(EVENT, TIME)

NAMES = ["sex=woman", "bmi", "bp", "age=middle", "age=old"]
OLS = [10.687239851575, 8.485676395312, 1.440656885518, -2.249184063813, 4.725655126340]
HC3 = [
    [-0.8474668105276, 22.2219465136775],
    [7.0532068866810, 9.9181459039424],
    [0.9721653040277, 1.9091484670088],
    [-16.2874656704749, 11.7890975428428],
    [-9.4330161415412, 18.8843263942211],
]
LOGIT = [0.479155621939, 0.227914963583, 0.045407588431, -0.209817330515, 0.093349080083]
POISSON = [0.063631734978, 0.051833783132, 0.009236889025, 0.001264554011, 0.055039763468]
COX = [-0.426413, 0.098162, 0.001326, 0.071825, 0.044288]
COX_ENDS = [
    [-0.655206, -0.197620],
    [0.068915, 0.127408],
    [-0.007686, 0.010339],
    [-0.208607, 0.352258],
    [-0.261261, 0.349838],
]


def table(summary: Any) -> pd.DataFrame:
    frame = summary.to_frame().set_index("name")
    return frame.loc[NAMES]


@pytest.mark.parametrize(
    ("model", "y", "expected", "ratio"),
    [
        (AtomicRegressor(unpenalized=FREE, tol=1e-10), Y, OLS, ""),
        (AtomicRegressor(alpha=1e-3, standardize=True, relax=1.0, tol=1e-10), Y, OLS, ""),
        (AtomicClassifier(unpenalized=FREE, tol=1e-12), Y > 140, LOGIT, "odds ratio"),
        (
            AtomicRegressor(unpenalized=FREE, loss="poisson", tol=1e-10),
            Y,
            POISSON,
            "ratio of means",
        ),
        (AtomicSurvival(unpenalized=FREE, tol=1e-12), TIMES, COX, "hazard ratio"),
    ],
)
def test_coefficients_and_ratios_are_those_of_other_packages(
    model: Any, y: Any, expected: Any, ratio: str
) -> None:
    summary = model.fit(X, y).summary()
    found = table(summary)
    assert_allclose(found.coefficient, expected, rtol=1e-4, atol=1e-6)
    assert summary.ratio_name == ratio
    if ratio:
        assert_allclose(found.ratio, np.exp(expected), rtol=1e-4)
    else:
        assert found.ratio.isna().all()


def test_intervals_without_a_penalty_are_those_of_other_packages() -> None:
    found = table(AtomicRegressor(unpenalized=FREE, tol=1e-10).fit(X, Y).summary(X, Y))
    assert_allclose(found[["low", "high"]], HC3, rtol=1e-5)
    assert_allclose(found.estimate, OLS, rtol=1e-6)
    cox = AtomicSurvival(unpenalized=FREE, tol=1e-12).fit(X, TIMES).summary(X, TIMES)
    assert_allclose(table(cox)[["low", "high"]], COX_ENDS, atol=2e-5)
    assert_allclose(table(cox)[["ratio_low", "ratio_high"]], np.exp(COX_ENDS), rtol=1e-4)


def test_reference_levels_covariates_and_units_are_listed() -> None:
    gaps = X.assign(
        bp=X.bp.mask(np.arange(len(X)) % 4 == 0),
        seen=pd.Timestamp("2021-05-04") + pd.to_timedelta(np.arange(len(X)), unit="D"),
    )
    model = AtomicRegressor(alpha=5.0, standardize=True, unpenalized=["age", "seen"]).fit(gaps, Y)
    summary = model.summary()
    found = summary.to_frame().set_index("name")
    rest = ["bmi", "bp", "age=young", "age=middle", "age=old", "seen"]
    assert [*found.index] == ["intercept", *rest]
    assert found.loc["age=young", "role"] == "reference"
    assert found.loc["age=young", "coefficient"] == 0.0
    assert found.loc["age=old", "role"] == "covariate"
    assert found.loc["bmi", "role"] == "penalized"
    assert found.loc["seen", "note"] == "days since 2021-05-04"
    assert any("bp 25.1%" in note for note in summary.notes)


def test_text_and_html_tell_what_is_proved_from_what_is_estimated() -> None:
    model = AtomicRegressorCV(n_alphas=6, cv=3, standardize=True).fit(X, Y)
    plain = model.summary()
    assert "Proved, for these rows: the objective is" in str(plain)
    assert "no intervals: pass the data of the fit" in str(plain)
    full = model.summary(X, Y)
    for text in (str(full), full._repr_html_()):
        assert "Estimated, not proved: 95% intervals" in text
        assert "95% interval" in text
        assert "which other rows selected" in text
    names = X.rename(columns={"bmi": "<b>"})
    shown = AtomicRegressor(alpha=0.1).fit(names, Y).summary()._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<td><b>" not in shown


def test_other_estimates_can_be_shown() -> None:
    model = AtomicRegressor(alpha=3.0).fit(X, Y)
    exact = findings.estimates(model, X, Y, how="exact", confidence=0.9)
    summary = model.summary(estimates=exact)
    found = summary.to_frame().set_index("name").loc["bmi"]
    at = model.encoding_.names.index("bmi")
    [place] = np.flatnonzero(exact.columns == at)
    assert_allclose([found.low, found.high], exact.intervals[place])
    assert "all rows select exactly these columns" in summary.estimated
    assert "90% interval" in str(summary)


def test_every_kind_of_model_has_a_summary() -> None:
    curves = AtomicRegressor(alpha=1.0, features="splines", norm="groups").fit(X, Y).summary(X, Y)
    assert "curves, surfaces and kernels have no coefficient" in curves.estimated
    assert [row.name for row in curves.rows if row.role == "term"][1:3] == ["bmi", "bp"]
    kinds = np.digitize(Y, [100, 200])
    several = AtomicClassifier(alpha=0.02, standardize=True).fit(X, kinds).summary(X, kinds)
    assert {row.output for row in several.rows if row.name == "bmi"} == {"0", "1", "2"}
    assert several.estimated.startswith("no intervals: estimates are of")
    for model in (SubsetRegressor(2, standardize=True), FeatureGenerator(2, loss="squared")):
        names = [row.name for row in model.fit(X, Y).summary().rows]
        assert names == ["intercept", "bmi", "bp"]
    products = AtomicRegressor(alpha=5.0, features="interactions", standardize=True).fit(X, Y)
    assert any(":" in row.name for row in products.summary().rows)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_each_library(library: str) -> None:
    pytest.importorskip(library)
    frame = AtomicRegressor(alpha=1.0).fit(X, Y).summary().to_frame(library)
    assert type(frame).__module__.startswith(library)


def test_half_of_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="needs both X and y"):
        AtomicRegressor(alpha=1.0).fit(X, Y).summary(X)
