"""report(): one page about any fitted estimator; what it tells is what the model is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.tree import DecisionTreeClassifier

import atomlearn
from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicSurvival,
    FeatureGenerator,
    MatrixCompletion,
    SparseLowRank,
    SparsePCA,
    StabilitySelector,
    norms,
)
from atomlearn.designs import as_design
from atomlearn.reports.chromosomes import ChromosomesDisplay
from atomlearn.reports.suspects import suspects
from atomlearn.reports.tables import summary_lines


def diabetes() -> tuple[pd.DataFrame, Any]:
    data = load_diabetes(as_frame=True)
    return (data.data - data.data.mean()) / data.data.std(), data.target


def page_of(estimator: Any, X: Any, y: Any, tmp_path: Path, **options: Any) -> tuple[Any, str]:
    path = tmp_path / "report.html"
    content = atomlearn.report(estimator.fit(X, y), X, y, path, **options)
    return content, path.read_text(encoding="utf-8")


def shown(content: Any, kind: type) -> list[Any]:
    return [display for display in content.displays if isinstance(display, kind)]


def test_a_classifier_with_cross_validation_tells_everything(tmp_path: Path) -> None:
    data = load_breast_cancer()
    X = pd.DataFrame(scale(data.data), columns=data.feature_names)
    model = AtomicClassifierCV(n_alphas=5, cv=3, tol=1e-4)
    content, page = page_of(model, X, data.target, tmp_path, n_resamples=4, target="diagnosis")
    assert content.verdict.better
    assert "features predicts diagnosis" in page
    used = np.flatnonzero(model.coef_[0])
    assert {item.index for item in content.selected} == set(used.tolist())
    for item in content.selected:
        assert item.coefficients[0] == pytest.approx(model.coef_[0, item.index])
        assert 0 <= item.stability <= 1
    assert any("r = " in word for item in content.selected for word in item.twins)
    assert any("objective +" in word for item in content.selected for word in item.twins)
    for title in ("ROC on held-out",
                  "Precision and recall", "Calibration", "How the level was",
                  "Coefficients along the path", "in each class", "Stability", "fitted exactly",
                  "AtomicClassifierCV("):  # fmt: skip
        assert title in page, title
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["verdict"] == "better"
    assert summary["n_selected"] == used.size


@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(norms.LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6, 7, 8, 9]]), 0.5),
        AtomicRegressor("groups", 2.0, features="splines"),
        AtomicRegressor(alpha=3.0, features="interactions"),
        FeatureGenerator(n_features=4, batch=1, loss="squared", standardize=True),
        Ridge(),
        make_pipeline(StandardScaler(), AtomicRegressor(alpha=2.0)),
        StabilitySelector(AtomicRegressor(alpha=2.0), 4, random_state=0),
        AtomicRegressor(alpha=1e6),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_has_a_page(model: Any, tmp_path: Path) -> None:
    X, y = diabetes()
    content, page = page_of(model, X, y, tmp_path, n_resamples=0)
    assert content.headline in page.replace("&#39;", "'")
    assert content.n_samples == len(y)
    assert content.verdict.better == (len(content.selected) > 0)


def test_several_classes_and_matrices_alone_have_a_page(tmp_path: Path) -> None:
    data = load_wine(as_frame=True)
    X = (data.data - data.data.mean()) / data.data.std()
    model = AtomicClassifier(alpha=0.05)
    content, page = page_of(model, X, data.target, tmp_path, n_resamples=0)
    assert content.verdict.score_name == "mean AUC"
    assert content.outputs == ("0", "1", "2")
    assert page.count("<svg") >= 4
    for alone, words in (
        (SparsePCA(n_features=3), "components, in"),
        (MatrixCompletion(standardize=True), "components, in"),
        (SparseLowRank(), "sparse: "),
    ):
        content, page = page_of(alone, np.asarray(X)[:20], None, tmp_path)
        assert words in content.headline
        assert "<svg" in page


def test_the_policy_allows_this_script_and_no_other(tmp_path: Path) -> None:
    X, y = diabetes()
    _, page = page_of(Ridge(), X, y, tmp_path, test_fraction=0, n_resamples=0)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    told = policy.group(1).replace("&#39;", "'")
    assert told.startswith("default-src 'none'")
    assert "http" not in told
    # It stands before everything that it is about, and alone: each one that is added forbids more.
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert page.count("Content-Security-Policy") == 1
    for tag in ("script", "style"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside.group(1).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in told
    assert not re.search(r"(?:https?:)?//(?! )\w|url\([^#]|@import", page.split("<script>")[0])


def test_data_that_leak_recur_or_repeat_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    y = rng.standard_normal(100)
    X[:, 3] = y + 0.01 * rng.standard_normal(100)
    X[:, 4], X[:, 5] = 1.0, X[:, 6]
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    content, page = page_of(AtomicRegressor(alpha=0.1), X, y, tmp_path, n_resamples=0)
    words = " ".join(content.warnings)
    assert "x3 alone tells the target with a rank correlation of 1.000" in words
    assert "1 columns are constant" in words
    assert "copies of others" in words
    assert "100 of 200 rows repeat another one" in " ".join(content.notes)
    assert content.held_out.warnings == []
    assert "is it a copy of the target?" in page
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["warnings"] == list(content.warnings)
    assert all(
        f"warning: {told}" in "\n".join(summary_lines(content)) for told in summary["warnings"]
    )


def test_rows_of_ones_own_are_judged_without_another_fit(tmp_path: Path) -> None:
    data = load_breast_cancer()
    X = scale(data.data)
    model = LogisticRegression(C=0.1).fit(X[:400], data.target[:400])
    content = atomlearn.report(model, X[:400], data.target[:400], tmp_path / "r.html",
                               test=(X[400:], data.target[400:]), n_resamples=0)  # fmt: skip
    assert content.held_out.n_test == 169
    assert not content.held_out.refitted
    assert content.verdict.better
    tree = DecisionTreeClassifier().fit(X, data.target)
    with pytest.raises(TypeError, match="has no coef_"):
        atomlearn.report(tree, X, data.target, tmp_path / "t.html")


def test_curves_are_told_with_the_sign_of_their_trend_and_a_band(tmp_path: Path) -> None:
    X, y = diabetes()
    model = AtomicRegressor("groups", 2.0, features="splines")
    content, page = page_of(model, X, y, tmp_path, n_resamples=6, test_fraction=0)
    assert "Shades hold the middle 80%" in page
    for feature, curve in zip(content.selected, content.curves, strict=True):
        x = X[feature.name].to_numpy()
        added = np.interp(x, *model.curve(feature.name))
        slope = np.polyfit(x, added, 1)[0]
        assert feature.coefficients[0] == pytest.approx(slope, rel=0.1, abs=0.1)
        assert feature.standardized[0] == pytest.approx(
            np.sign(slope) * added.std(), rel=0.1, abs=0.1
        )
        assert (curve.low <= curve.high).all()
        assert feature.stability is not None
    sex = next(curve for curve in content.curves if curve.name == "sex")
    assert sex.steps
    assert sex.levels.tolist() == np.unique(X["sex"]).tolist()


def test_names_that_tell_a_place_are_drawn_along_chromosomes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"{'X' if j > 30 else 1 + j % 3}:{100 * j + 7}_A_G" for j in range(40)]
    X = pd.DataFrame(rng.binomial(2, 0.4, (80, 40)).astype(float), columns=names)
    y = X.iloc[:, 3] + 0.5 * rng.standard_normal(80)
    content, page = page_of(AtomicRegressor(alpha=0.3), X, y, tmp_path, test_fraction=0)
    [found] = shown(content, ChromosomesDisplay)
    assert "Along the chromosomes" in page
    assert [*found.chromosomes] == ["1", "2", "3", "X"]
    heights = {name: height for name, (_, height) in found.selected.items()}
    for name, height in heights.items():
        assert height == pytest.approx(abs(np.corrcoef(X[name], y)[0, 1]))
    assert names[3] in heights
    told = ["7"] * 40, np.arange(40)
    moved = atomlearn.report(AtomicRegressor(alpha=0.3).fit(X, y), X, y, tmp_path / "two.html",
                             test_fraction=0, positions=told)  # fmt: skip
    assert [*shown(moved, ChromosomesDisplay)[0].chromosomes] == ["7"]


def test_rows_that_are_nearly_training_rows_count_for_nothing(tmp_path: Path) -> None:
    """Eight measurements of each of 15 patients, and labels that have nothing to do with them."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((15, 40)), 8, axis=0) + 0.05 * rng.standard_normal((120, 40))
    y = np.repeat(rng.integers(0, 2, 15), 8)
    found = atomlearn.report(
        AtomicClassifier(alpha=0.02).fit(X, y), X, y, tmp_path / "r.html", n_resamples=0
    )
    assert found.verdict.verdict == "too few rows to tell"
    assert "predict y" not in found.headline.replace("whether", "")
    assert "105 of 120 rows repeat another one" in " ".join(found.notes)
    assert found.held_out is not None
    assert found.held_out.warnings == []


def test_other_data_than_that_of_the_fit_are_refused(tmp_path: Path) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = AtomicClassifier(alpha=0.1).fit(scale(X), y)
    page = tmp_path / "report.html"
    with pytest.raises(ValueError, match="5 features, but AtomicClassifier is expecting 30"):
        atomlearn.report(model, scale(X)[:, :5], y, page)
    with pytest.raises(ValueError, match="the class 2, and the model knows"):
        atomlearn.report(model, scale(X), np.where(X[:, 0] > 20, 2, y), page)
    assert not page.exists()


@pytest.mark.parametrize("y", [[0, 1], [0, 0, 0, 0, 0, 0, 1], [0.1, 0.5, 0.2]])
def test_few_rows_are_no_verdict_and_no_halves(y: list[Any], tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((len(y), 3))
    model = AtomicClassifier(alpha=0.01) if 1 in y else AtomicRegressor(alpha=0.01)
    found = atomlearn.report(model.fit(X, y), X, y, tmp_path / "report.html")
    assert found.verdict.verdict == "too few rows to tell"
    assert {item.stability for item in found.selected} == {None}


def test_gaps_are_told_where_nothing_or_all_is_proved(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    quick: dict[str, Any] = {"test_fraction": 0, "n_resamples": 0}
    page_of(Ridge(), X, y, tmp_path, **quick)
    assert json.loads((tmp_path / "summary.json").read_text())["proved_gap"] is None
    for shift in (3.0, 3.1):  # constant targets are fitted perfectly
        _, page = page_of(AtomicRegressor(alpha=0.1), X, np.full(y.size, shift), tmp_path, **quick)
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert summary["fitted_exactly"]
        assert 0.0 <= summary["proved_gap"] <= 1e-15
        assert "fitted exactly" in page
    content, _ = page_of(AtomicRegressor(alpha=0.1), X[:, 2:3], y, tmp_path, n_resamples=2)
    assert content.verdict.better


def test_a_page_that_has_no_place_is_refused_before_any_work(tmp_path: Path) -> None:
    X, y = diabetes()
    model = Ridge().fit(X, y)
    for place in (tmp_path / "missing" / "report.html", tmp_path):
        with pytest.raises(ValueError, match=str(place)):
            atomlearn.report(model, X, y, place)
    assert not list(tmp_path.iterdir())


def test_times_are_told_by_the_hazard(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = np.array(
        list(zip(rng.random(80) < 0.8, rng.exponential(np.exp(-X[:, 0])), strict=True)),
        dtype=[("event", bool), ("time", float)],
    )
    content, page = page_of(AtomicSurvival(alpha=0.1), X, y, tmp_path, n_resamples=0)
    assert content.task == "survival"
    assert "raises the hazard" in page


def test_targets_are_named_as_the_data_names_them(tmp_path: Path) -> None:
    X, y = diabetes()
    both = pd.DataFrame({"progression": y, "its opposite": -y + X["s6"]})
    content, page = page_of(Ridge(), X, both, tmp_path, n_resamples=0)
    assert content.outputs == ("progression", "its opposite")
    assert "Strongest target" in page
    content, _ = page_of(Ridge(), X, y.rename("progression"), tmp_path, n_resamples=0)
    told = "10 of 10 features were selected; a model of 10 features predicts progression"
    assert content.headline == told
    assert content.again == ", 10 of them again when 25% of the rows were left out"
    assert repr(content).startswith(content.headline)
    assert len(repr(content)) < 300


def test_what_a_search_chose_is_told_and_halves_search_again(tmp_path: Path) -> None:
    X, y = diabetes()
    search = GridSearchCV(Lasso(), {"alpha": [1.0, 10.0]}, cv=3)
    content, _ = page_of(search, X, y, tmp_path, n_resamples=4)
    assert len(content.selected) == np.count_nonzero(search.best_estimator_.coef_)
    assert all(item.stability is not None for item in content.selected)
    with pytest.raises(TypeError, match="RandomForestRegressor has no coef_"):
        page_of(RandomForestRegressor(2), X, y, tmp_path)


def test_a_selector_before_the_model_chose_from_all_columns(tmp_path: Path) -> None:
    X, y = diabetes()
    model = make_pipeline(
        StandardScaler(), StabilitySelector(Lasso(2.0), 4, random_state=0), Ridge()
    )
    content, _ = page_of(model, X, y, tmp_path)
    chosen = int(model[1].get_support().sum())
    assert chosen < 10
    again = content.held_out
    told = f"{chosen} of 10 features were selected; "
    model = f"a model of {chosen} features"
    model = model if again.n_selected == chosen else "a model selected in this way"
    assert content.headline == f"{told}{model} predicts target"
    assert content.again == f", {again.overlap} of them again when 25% of the rows were left out"
    assert content.chosen_first


def leaks_of(X: np.ndarray, y: np.ndarray, classes: list[str] | None) -> list[str]:
    names = [f"x{j}" for j in range(X.shape[1])]
    found = suspects(as_design(X), y, classes, range(min(10, X.shape[1])), names, "y")
    return [said.split()[0] for said in (*found[0], *found[1]) if " alone tells " in said]


def test_leaks_are_found_by_rank() -> None:
    """Noisy, binned and monotone copies of the target; not the strongest of many good features."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 50)), rng.standard_normal(200)
    X[:, :5] += 0.5 * y[:, None]
    X[:, 2], X[:, 7] = np.exp(6 * y), np.digitize(y, [-1, -0.3, 0.3, 1])
    assert leaks_of(X, y, None) == ["x2", "x7"]
    labels = (y > 0).astype(np.int64)
    X = rng.standard_normal((200, 50))
    X[:, 3] = labels + 0.39 * rng.standard_normal(200)
    assert leaks_of(X, labels, ["a", "b"]) == ["x3"]
    data = load_breast_cancer()
    assert leaks_of(data.data[:, 20:], data.target, ["malignant", "benign"]) == []


def test_what_chance_makes_among_many_columns_is_no_leak() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], [40, 3])
    X = rng.standard_normal((43, 3_000))
    X[labels == 1, 0] += 10.0  # in a pure noise of 22,283 columns 4 are expected to be as good
    assert leaks_of(X, labels, ["many", "few"]) == []
    assert leaks_of(X[:, :10], np.repeat([0, 1], [30, 13]), ["a", "b"]) == []
    X[:, 1] = np.repeat([0, 1], [22, 21]) + 0.01 * rng.standard_normal(43)
    assert leaks_of(X, np.repeat([0, 1], [22, 21]), ["a", "b"]) == ["x1"]


def test_covariates_are_counted_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 12))
    y = 3 * X[:, 4] + X[:, 0] + rng.standard_normal(200)
    model = AtomicRegressor(alpha=0.1, unpenalized=[4])
    content, page = page_of(model, X, y, tmp_path, n_resamples=0)
    assert [item.name for item in content.covariates] == ["x4"]
    assert "x4" not in {item.name for item in content.selected}
    assert [item.rank for item in content.selected] == list(range(1, len(content.selected) + 1))
    assert f"{len(content.selected)} of 11 features were selected beside 1 covariate" in page
    assert content.headline.endswith("predicts the target better than the covariates alone")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["n_covariates"], summary["n_selected"]) == (1, len(content.selected))
    assert summary["covariates"][0]["name"] == "x4"
    assert summary["compared_with"] == "the covariates alone"


def test_noise_is_told_and_hostile_names_are_inert(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((1600, 30)), rng.integers(0, 2, 1600)
    names = [f"<img src=x onerror=alert({j})>\"'&" for j in range(30)]
    content, page = page_of(AtomicClassifier(alpha=0.03), X, y, tmp_path, feature_names=names,
                            target="</title><script>alert(1)</script>", n_resamples=0)  # fmt: skip
    assert content.verdict.verdict == "no better"
    assert "no better than a guess" in page
    assert "<img" not in page
    assert page.count("<script") == 1


@pytest.mark.parametrize("y", [[0, 1], [0, 0, 0, 0, 0, 0, 1]])
def test_few_rows_of_a_class_are_no_verdict(y: list[int], tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((len(y), 3))
    model = AtomicClassifier(alpha=0.01).fit(X, y)
    found = atomlearn.report(model, X, y, tmp_path / "report.html", n_resamples=2)
    assert found.verdict.verdict == "too few rows to tell"


def test_what_proved_nothing_claims_no_gap_and_one_column_is_enough(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    atomlearn.report(Ridge().fit(X, y), X, y, tmp_path / "report.html", n_resamples=2)
    assert json.loads((tmp_path / "summary.json").read_text())["proved_gap"] is None
    model = AtomicRegressor(alpha=0.1).fit(X[:, 2:3], y)
    found = atomlearn.report(model, X[:, 2:3], y, tmp_path / "report.html", n_resamples=2)
    assert found.verdict.better
