"""The verdict: its statistics against definitions and enumeration, its level, its words."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from atomlearn import AtomicRegressor
from atomlearn.cli import main
from atomlearn.findings import (
    classification_verdict,
    held_out_verdict,
    regression_verdict,
    survival_verdict,
)
from atomlearn.findings.ranking import area


def two_classes(n: int = 60, shift: float = 0.8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % 2)
    # Rounded, so that there are ties.
    return codes, np.round(shift * codes + rng.standard_normal(n), 1)


def test_auc_and_delongs_error_are_those_of_their_definitions() -> None:
    codes, decisions = two_classes()
    found = area(codes, decisions, np.random.default_rng(0))
    assert found.score == pytest.approx(roc_auc_score(codes, decisions), abs=1e-12)
    above, below = decisions[codes == 1], decisions[codes == 0]
    kernel = (above[:, None] > below) + 0.5 * (above[:, None] == below)
    variance = kernel.mean(axis=1).var(ddof=1) / above.size
    variance += kernel.mean(axis=0).var(ddof=1) / below.size
    assert found.error == pytest.approx(np.sqrt(variance), rel=1e-12)


def test_p_values_are_shares_of_all_labelings() -> None:
    codes, decisions = np.array([0, 0, 1, 0, 1, 1, 0, 1]), np.array([1, 2, 3, 3, 5, 4, 0, 7.0])
    observed = roc_auc_score(codes, decisions)
    scores = []
    for chosen in combinations(range(8), 4):
        labels = np.zeros(8, dtype=int)
        labels[list(chosen)] = 1
        scores.append(roc_auc_score(labels, decisions))
    exact = np.mean(np.array(scores) >= observed - 1e-12)
    assert classification_verdict(codes, decisions).p_value == pytest.approx(exact, abs=0.006)


def test_the_p_value_of_a_correlation_is_that_of_all_orders() -> None:
    rng = np.random.default_rng(3)
    truth, predicted = rng.standard_normal(6), rng.standard_normal(6)
    observed = np.corrcoef(truth, predicted)[0, 1]
    orders = [np.corrcoef(order, predicted)[0, 1] for order in permutations(truth)]
    exact = np.mean(np.array(orders) >= observed - 1e-12)
    found = regression_verdict(truth, predicted)
    assert found.score == pytest.approx(observed)
    assert found.p_value == pytest.approx(exact, abs=0.015)


def test_concordance_counts_the_pairs_whose_order_is_known() -> None:
    rng = np.random.default_rng(1)
    time, event = rng.integers(1, 12, 40).astype(float), rng.random(40) < 0.6
    risk = np.round(-0.2 * time + rng.standard_normal(40), 1)
    right = known = 0.0
    for i in range(40):
        for j in range(40):
            later = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if event[i] and later and i != j:
                known += 1
                right += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    assert survival_verdict(time, event, risk).score == pytest.approx(right / known)


def test_several_classes_take_the_mean_of_their_areas() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, 90)
    decisions = np.eye(3)[codes] + rng.standard_normal((90, 3))
    each = [roc_auc_score(codes == code, decisions[:, code]) for code in range(3)]
    found = classification_verdict(codes, decisions)
    assert found.score == pytest.approx(np.mean(each))
    assert found.better
    assert found.interval[0] < found.score < found.interval[1]


def test_the_limit_for_many_rows_is_that_of_the_draws() -> None:
    codes, decisions = two_classes(21_000, shift=0.02)
    limit = area(codes, decisions, np.random.default_rng(0))
    some = area(codes[:20_000], decisions[:20_000], np.random.default_rng(0))
    assert limit.null is None
    assert some.null is not None
    assert limit.null_spread * np.sqrt(21_000 / 20_000) == pytest.approx(some.null.std(), rel=0.05)


@pytest.mark.parametrize("kind", ["classes", "many", "numbers", "times"])
def test_noise_is_called_better_about_as_often_as_promised(kind: str) -> None:
    calls = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        noise = rng.standard_normal((50, 3))
        if kind == "classes":
            found = classification_verdict(rng.permutation(np.arange(50) % 2), noise[:, 0], seed)
        elif kind == "many":
            found = classification_verdict(rng.permutation(np.arange(50) % 3), noise, seed)
        elif kind == "numbers":
            found = regression_verdict(noise[:, 0], noise[:, 1], seed)
        else:
            event = rng.random(50) < 0.7
            found = survival_verdict(rng.exponential(size=50), event, noise[:, 0], seed)
        calls.append(found.better)
    # 60 draws at 5%: 3 standard errors are 8.4%.
    assert np.mean(calls) <= 0.134


def test_few_rows_are_called_few_and_a_perfect_order_of_few_is_enough() -> None:
    codes, noise = np.array([0, 1, 0, 1, 1, 0]), np.array([3.0, 1, 2, 5, 4, 6])
    assert classification_verdict(codes, noise).verdict == "too few rows to tell"
    few = classification_verdict(np.repeat([0, 1], 4), np.arange(8.0))
    assert few.better
    assert few.interval[0] < 0.5 < few.interval[1] == 1.0
    assert classification_verdict(np.zeros(9), np.arange(9.0)).n_rows == 0


def test_a_constant_prediction_is_no_better() -> None:
    truth = np.random.default_rng(0).standard_normal(60)
    found = regression_verdict(truth, np.full(60, 0.1) * 3)
    assert (found.verdict, found.score, found.p_value) == ("no better", 0.0, 1.0)
    codes = (truth > 0).astype(int)
    found = classification_verdict(codes, np.zeros(60))
    assert (found.verdict, found.interval) == ("no better", (0.5, 0.5))


def test_estimators_are_judged_by_rows_that_they_have_not_seen() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 300))
    noise, signal = rng.standard_normal(120), X[:, 0] - X[:, 1]
    model = AtomicRegressor(alpha=0.01)
    assert model.fit(X, noise).score(X, noise) > 0.9  # it fits noise well,
    assert not held_out_verdict(model, X, noise).better  # which is no finding
    assert held_out_verdict(AtomicRegressor(alpha=0.1), X, signal).better
    labels = np.array(["a", "b"])[(signal > 0).astype(int)]
    assert held_out_verdict(LogisticRegression(), X, labels).score_name == "AUC"


@pytest.fixture
def noise_csv(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    rows = ["site," + ",".join(f"g{j}" for j in range(40))]
    for row in rng.standard_normal((100, 40)):
        rows.append("AB"[rng.integers(2)] + "," + ",".join(f"{value:.5f}" for value in row))
    (tmp_path / "noise.csv").write_text("\n".join(rows))
    return tmp_path / "noise.csv"


def test_the_command_line_writes_the_verdict_and_claims_no_more(
    noise_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = [str(noise_csv), "--target", "site", "--n-features", "5", "--out", str(out)]
    assert main(["select", *given]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "no better"
    assert summary["interval"][0] < summary["score"] < summary["interval"][1]
    assert summary["p_value"] > 0.05
    assert summary["baseline"] == 0.5
    assert (summary["n_selected"], summary["fitted_exactly"]) == (5, True)
    assert set(summary["how"]) >= {"score", "interval", "p_value", "verdict", "proved_gap"}
    page = (out / "report.html").read_text()
    assert "no better than a guess" in page
    assert "features predict site" not in page
    assert page.index("no better") < page.index("fitted exactly")
    assert "no better than a guess of site" in capsys.readouterr().out


def test_nothing_held_out_is_nothing_known(noise_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = [str(noise_csv), "--target", "site", "--n-features", "5", "--out", str(out)]
    assert main(["select", *given, "--test-fraction", "0", "--quiet"]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "too few rows to tell"
    assert summary["score"] is None
    assert "not tested" in summary["headline"]


def test_a_verdict_prints_in_one_line() -> None:
    found = classification_verdict(*two_classes())
    assert str(found).startswith("better than a guess: held-out AUC 0.")
    assert str(replace(found, verdict="too few rows to tell")).startswith("too few rows to tell: ")


def test_several_splits_are_joined_by_twice_the_median() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    y = X[:, 0] + rng.standard_normal(60)
    model = AtomicRegressor(alpha=0.2)
    each = [held_out_verdict(model, X, y, rng=k) for k in range(5)]
    found = held_out_verdict(model, X, y, n_splits=5)
    assert found.p_value == pytest.approx(min(1.0, 2 * np.median([v.p_value for v in each])))
    assert found.score == pytest.approx(np.median([v.score for v in each]))
    assert found.better == (found.p_value <= 0.05)
    assert "median over 5" in found.how["score"]
    with pytest.raises(ValueError, match="n_splits"):
        held_out_verdict(model, X, y, n_splits=0)


def test_joined_splits_of_noise_are_called_better_no_more_often_than_asked() -> None:
    rng, better = np.random.default_rng(1), 0
    for seed in range(40):
        X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
        better += held_out_verdict(AtomicRegressor(alpha=0.1), X, y, rng=seed, n_splits=3).better
    assert better <= 6  # 5% of 40 is 2; 6 or more have probability 0.014
