"""Data frames with words, categories, dates, booleans and gaps, in every estimator.

The encoded columns are held against pandas.get_dummies and scikit-learn's OneHotEncoder and
SimpleImputer, which nobody here wrote.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    FeatureGenerator,
    StabilitySelector,
    SubsetRegressor,
    datasets,
    interop,
)
from atomlearn.findings import estimates, explain, held_out_verdict, prediction_sets
from atomlearn.losses import survival_target

pa = pytest.importorskip("pyarrow")

N = 240
RNG = np.random.default_rng(5)
STAGE = RNG.choice(["1", "2", "3", "4"], N)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(60, 10, N),
        "stage": pd.Categorical(STAGE, categories=["1", "2", "3", "4"]),
        "sex": RNG.choice(["f", "m"], N),
        "smoker": RNG.random(N) < 0.4,
        "seen": pd.Timestamp("2020-03-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "dose": RNG.exponential(2.0, N),
    }
)
GAPS = FRAME.assign(
    dose=FRAME.dose.mask(RNG.random(N) < 0.2), sex=FRAME.sex.mask(RNG.random(N) < 0.1)
)
RISK = 0.08 * (FRAME.age - 60) + 1.5 * (STAGE == "4") + 0.8 * (FRAME.sex == "m")
Y = RISK + 0.3 * RNG.standard_normal(N)
ILL = RNG.random(N) < 1 / (1 + np.exp(-2 * RISK))
NAMES = ["age", "stage=2", "stage=3", "stage=4", "sex=m", "smoker", "seen", "dose"]


def by_hand(frame: pd.DataFrame, train: Any = slice(None)) -> pd.DataFrame:
    """Return the frame encoded by pandas, with gaps filled by the median or the mode of rows."""
    seen = (frame.seen - frame.seen.min()) / pd.Timedelta(days=1)
    filled = frame.assign(
        seen=seen,
        dose=frame.dose.fillna(frame.dose.iloc[train].median()),
        sex=frame.sex.fillna(frame.sex.iloc[train].mode()[0]),
    )
    coded = pd.get_dummies(filled, columns=["stage", "sex"], prefix_sep="=", drop_first=True)
    return coded[NAMES].astype(float)


@pytest.mark.parametrize("frame", [FRAME, GAPS])
@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(alpha=0.05, standardize=True),
        AtomicRegressor(alpha=0.05, standardize=True, unpenalized=["seen"]),
        AtomicRegressor(alpha=0.05, features="splines", norm="groups"),
        AtomicRegressor(alpha=0.05, features="interactions", standardize=True),
    ],
)
def test_a_frame_is_fitted_as_its_columns_encoded_by_pandas(frame: Any, model: Any) -> None:
    fitted = model.fit(frame, Y)
    coef, names = fitted.coef_, fitted.selected_names_
    assert_array_equal(fitted.feature_names_in_, frame.columns)
    assert fitted.n_features_in_ == frame.shape[1]
    prediction = fitted.predict(frame)
    plain = model.fit(by_hand(frame), Y)
    assert_allclose(coef, plain.coef_, rtol=1e-9, atol=1e-12)
    assert names == plain.selected_names_
    assert_allclose(prediction, plain.predict(by_hand(frame)), rtol=1e-9)


@pytest.mark.parametrize("library", ["polars", "pyarrow", "capsule"])
def test_every_library_gives_the_same_model(library: str) -> None:
    expected = AtomicClassifier(alpha=0.01, standardize=True).fit(GAPS, ILL)
    other: Any = pl.from_pandas(GAPS) if library == "polars" else pa.Table.from_pandas(GAPS)

    class Capsule:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.Table.from_pandas(GAPS).__arrow_c_stream__(requested_schema)

    other = Capsule() if library == "capsule" else other
    model = AtomicClassifier(alpha=0.01, standardize=True).fit(other, ILL)
    assert model.selected_names_ == expected.selected_names_
    assert "stage=4" in model.selected_names_
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(other), expected.predict_proba(GAPS), rtol=1e-9)


def test_gaps_are_filled_by_the_training_rows_of_each_fold() -> None:
    """Scores of the search equal those of folds that pandas fills; filling before would not."""
    folds = list(KFold(4).split(GAPS))
    alphas = [0.5, 0.1, 0.02]
    model = AtomicRegressorCV(alphas=alphas, cv=folds, tol=1e-9).fit(GAPS, Y)
    leaky = AtomicRegressorCV(alphas=alphas, cv=folds, tol=1e-9).fit(by_hand(GAPS), Y)
    same = True
    for number, (train, test) in enumerate(folds):
        one = AtomicRegressorCV(alphas=alphas, cv=[(train, test)], tol=1e-9)
        expected = one.fit(by_hand(GAPS, train), Y).cv_results_["split0_test_score"]
        got = model.cv_results_[f"split{number}_test_score"]
        assert_allclose(got, expected, rtol=1e-9)
        before = leaky.cv_results_[f"split{number}_test_score"]
        same = same and np.allclose(got, before, rtol=1e-9)
    assert not same
    shares = {"dose": GAPS.dose.isna().mean(), "sex": GAPS.sex.isna().mean()}
    assert model.encoding_.imputed == pytest.approx(shares)


def test_a_category_is_one_group_where_the_norm_is_of_groups() -> None:
    model = AtomicRegressor("groups", alpha=0.3, standardize=True).fit(FRAME, Y)
    chosen = {name.partition("=")[0] for name in model.selected_names_}
    stages = [name for name in model.selected_names_ if name.startswith("stage")]
    assert chosen < set(FRAME.columns)
    assert len(stages) == 3
    subset = SubsetRegressor(n_features=3, standardize=True).fit(FRAME, Y)
    assert subset.selected_names_ == ["age", "stage=2", "stage=3", "stage=4", "sex=m"]
    generated = FeatureGenerator(3, loss="squared", standardize=True).fit(FRAME, Y)
    assert set(generated.selected_names_) == set(subset.selected_names_)


def test_covariates_are_named_as_in_the_table() -> None:
    model = AtomicRegressor(alpha=0.4, standardize=True, unpenalized=["stage"]).fit(FRAME, Y)
    assert {"stage=2", "stage=3", "stage=4"} <= set(model.selected_names_)
    by_number = AtomicRegressor(alpha=0.4, standardize=True, unpenalized=[1]).fit(FRAME, Y)
    assert_allclose(by_number.coef_, model.coef_)


def test_survival_classes_and_searches_take_frames() -> None:
    y = survival_target(RNG.random(N) < 0.7, RNG.exponential(np.exp(-RISK)))
    cox = AtomicSurvival(alpha=0.03, standardize=True).fit(GAPS, y)
    assert {"age", "stage=4"} <= set(cox.selected_names_)
    kinds = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    together = AtomicClassifier(alpha=0.02, multi_class="multinomial", standardize=True)
    assert together.fit(GAPS, kinds).score(GAPS, kinds) > 0.6
    search = AtomicClassifierCV(n_alphas=6, cv=3, standardize=True).fit(GAPS, ILL)
    sure, sets = search.predict(GAPS, interval=0.9)
    assert sets.shape == (N, 2)
    assert np.mean(sure == ILL) > 0.7


def test_it_equals_a_pipeline_of_scikit_learn() -> None:
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")),
         ["stage", "sex"]),
        (SimpleImputer(strategy="median"), ["age", "dose"]),
        ("passthrough", ["smoker"]),
    )  # fmt: skip
    frame = GAPS.drop(columns="seen")
    theirs = make_pipeline(encoder, LogisticRegression(C=1.0, tol=1e-8, max_iter=2000))
    ours = AtomicClassifier("l2", alpha=5 / (4 * N), form="squared", tol=1e-10)
    found = [cross_val_score(each, frame, ILL, scoring="neg_log_loss") for each in (theirs, ours)]
    assert_allclose(found[0], found[1], rtol=1e-4)


def test_names_pass_through_the_tools_of_scikit_learn() -> None:
    model = AtomicClassifier(alpha=0.02, standardize=True)
    out = model.set_output(transform="pandas").fit_transform(GAPS, ILL)
    assert [*out.columns] == [*model.get_feature_names_out()] == model.selected_names_
    selector = AtomicClassifier(alpha=0.02, standardize=True)
    steps = make_pipeline(selector, StandardScaler(), LogisticRegression())
    assert steps.fit(GAPS, ILL).score(GAPS, ILL) > 0.7
    assert [*steps[:1].get_feature_names_out()] == model.selected_names_
    search = GridSearchCV(AtomicRegressor(standardize=True), {"alpha": [0.3, 0.03]}, cv=3)
    assert "stage=4" in search.fit(GAPS, Y).best_estimator_.selected_names_
    numbers = GAPS[["age", "smoker", "dose", "seen"]]
    chosen = SelectFromModel(AtomicRegressor(alpha=0.1, standardize=True)).fit(numbers, Y)
    assert [*chosen.get_feature_names_out()] == ["age"]
    plain = interop.to_sklearn(AtomicRegressor(alpha=0.02).fit(FRAME, Y))
    assert [*plain.feature_names_in_] == NAMES


def test_new_rows_are_named_where_they_are_strange() -> None:
    model = AtomicRegressor(alpha=0.02, standardize=True).fit(FRAME, Y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(model.predict(FRAME.to_numpy()[:5]), model.predict(FRAME[:5]))
    strange = FRAME[:6].assign(stage=["5", "1", "2", "3", "4", "1"])
    with pytest.warns(UserWarning, match=r"'stage' holds '5' in 1 rows.*count as missing"):
        found = model.predict(strange)
    usual = FRAME.stage.mode()[0]
    assert_allclose(found, model.predict(strange.replace({"stage": {"5": usual}})))
    with pytest.warns(UserWarning, match="'dose': values are missing"):
        model.predict(FRAME[:5].assign(dose=np.nan))
    with pytest.raises(ValueError, match=r"feature names should match .*\['sex'\]"):
        model.predict(FRAME.drop(columns="sex"))
    with pytest.raises(ValueError, match=r"'dose' of the table held numbers.*'high'"):
        model.predict(FRAME[:2].assign(dose=["1", "high"]))


NAMED = FRAME.assign(name=[f"patient {k}" for k in range(N)])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (NAMED, r"'name' \(240 different labels in 240 rows\); leave them out, as by X.drop"),
        (FRAME.assign(dose=[*map(str, FRAME.dose[1:]), "high"]), "'dose' .'high' among numbers."),
        (FRAME.assign(dose=np.nan), "'dose' .no value in any row."),
        (FRAME.assign(dose=np.inf), r"infinity at \(row, column\) = \(0, 5\), 'dose'"),
        (pd.DataFrame({"a": ["u"] * N}), "no column of the table has two values"),
    ],
)
def test_columns_that_cannot_become_numbers_are_refused(frame: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        AtomicRegressor().fit(frame, Y)
    assert "\n" not in str(caught.value)


def test_encoding_can_be_turned_off() -> None:
    with pytest.raises(TypeError, match=r"not numeric or boolean: 'stage'.*encode=True"):
        AtomicRegressor(encode=False).fit(FRAME, Y)
    with pytest.raises(ValueError, match="contains NaN"):
        AtomicRegressor(encode=False).fit(GAPS[["age", "dose"]], Y)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_numbers_are_not_touched(library: Any) -> None:
    frame = FRAME[["age", "smoker", "dose"]]
    numbers = library(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AtomicRegressor(alpha=0.02).fit(numbers, Y)
    assert not hasattr(model, "encoding_")
    expected = AtomicRegressor(alpha=0.02).fit(frame.to_numpy(dtype=float), Y)
    assert_array_equal(model.coef_, expected.coef_)
    words = AtomicRegressor(alpha=0.02).fit(FRAME, Y)
    assert hasattr(words, "encoding_")
    assert not hasattr(words.fit(numbers, Y), "encoding_")


def test_float32_stays_float32() -> None:
    single = FRAME.astype({"age": "float32", "dose": "float32"})[["age", "stage", "dose"]]
    assert AtomicRegressor(alpha=0.02).fit(single, Y).predict(single).dtype == np.float32


def test_findings_take_frames_with_words() -> None:
    model = AtomicRegressor(alpha=0.05, standardize=True).fit(GAPS, Y)
    assert held_out_verdict(model, GAPS, Y).verdict == "better"
    explained = explain(model, GAPS[:3])
    assert explained.names == model.selected_names_
    assert_allclose(explained.decisions[:, 0], model.predict(GAPS[:3]))
    named = estimates(model, GAPS, Y, ["stage=4"])
    assert 1.2 < named.values[0] < 1.8
    selector = StabilitySelector(AtomicRegressor(alpha=0.2, standardize=True), 10, random_state=0)
    selector.fit(GAPS, Y)
    assert [*GAPS.columns[selector.get_support()]] == ["age", "stage", "sex"]
    search = AtomicRegressorCV(n_alphas=5, cv=3, standardize=True).fit(GAPS, Y)
    _, low, high = prediction_sets(search, GAPS, Y, GAPS, confidence=0.8)
    assert 0.7 < ((low <= Y) & (high >= Y)).mean() < 0.95


def test_tables_that_were_read_show_themselves() -> None:
    table = datasets.read(GAPS.assign(y=Y).rename(columns={"age": "<age>"}), "y", missing="median")
    text = str(table)
    page = table._repr_html_()
    assert text.startswith("the table: X has 240 rows and")
    assert "target 'y'" in text
    assert "sex=m" in page
    assert "&lt;age&gt;" in page
    assert "<age>" not in page
    assert f"{int(GAPS.dose.isna().sum())} missing" in page
