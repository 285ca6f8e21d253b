"""The verdict: its statistics against definitions and enumeration, its level, its words."""

from __future__ import annotations

import json
import time
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator
from atomlearn.cli import main
from atomlearn.findings import held_out_verdict, trials
from atomlearn.findings.held_out import fits_of
from atomlearn.findings.ranking import areas
from atomlearn.findings.trials import Trial
from atomlearn.findings.verdict import numbers_of, verdict_on
from atomlearn.losses import survival_target


def two_classes(n: int = 60, shift: float = 0.8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % 2)
    # Rounded, so that there are ties.
    return codes, np.round(shift * codes + rng.standard_normal(n), 1)


def test_auc_and_delongs_error_are_those_of_their_definitions() -> None:
    codes, decisions = two_classes()
    found = areas(codes, decisions[:, None], np.random.default_rng(0))
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
    assert verdict_on("classification", codes, decisions).p_value == pytest.approx(exact, abs=0.006)


def test_the_p_value_of_a_correlation_is_that_of_all_orders() -> None:
    rng = np.random.default_rng(3)
    truth, predicted = rng.standard_normal(6), rng.standard_normal(6)

    def over_its_error(y: np.ndarray) -> float:
        products = (y - y.mean()) * (predicted - predicted.mean())
        return float(products.sum() / np.linalg.norm(products))

    orders = [over_its_error(np.array(order)) for order in permutations(truth)]
    exact = np.mean(np.array(orders) >= over_its_error(truth) - 1e-12)
    found = verdict_on("regression", truth, predicted)
    assert found.score == pytest.approx(np.corrcoef(truth, predicted)[0, 1])
    assert found.p_value == pytest.approx(exact, abs=0.015)


def test_the_p_value_of_an_area_is_that_of_scores_over_their_errors() -> None:
    """With ties, three classes and all labelings: placements counted pair by pair."""
    codes = np.array([0, 1, 2, 0, 1, 2, 0])
    decisions = np.array(
        [[1, 2, 2], [2, 2, 1], [1, 3, 3], [3, 1, 1], [2, 3, 1], [1, 1, 2], [2, 2, 2]]
    )

    def over_its_error(labels: np.ndarray) -> float:
        rows = np.zeros(labels.size)
        for code in range(3):
            mine, x = labels == code, decisions[:, code]
            for i in range(labels.size):
                others = x[mine != mine[i]]
                below = np.mean(others < x[i]) + 0.5 * np.mean(others == x[i])
                rows[i] += ((below if mine[i] else 1 - below) - 0.5) / np.sum(mine == mine[i])
        size = np.linalg.norm(rows)
        return float(rows.sum() / size) if size else 0.0

    every = [over_its_error(np.array(labels)) for labels in set(permutations(codes.tolist()))]
    exact = np.mean(np.array(every) >= over_its_error(codes) - 1e-9)
    found = verdict_on("classification", codes, decisions)
    assert found.p_value == pytest.approx(exact, abs=0.02)


def test_only_the_spread_of_the_target_depends_on_the_prediction() -> None:
    """Whose mean does not: a permuted plain correlation is too small then."""
    better = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 21])
        told = rng.standard_normal(72)
        spread = np.abs(told)
        better.append(verdict_on("regression", spread * rng.standard_normal(72), told, seed).better)
        codes = rng.permutation(np.arange(72) % 4 == 0).astype(int)
        told = rng.standard_normal(72) * np.where(codes, 4.0, 1.0)
        better.append(verdict_on("classification", codes, told, seed).better)
    # 120 draws at 5%: 3 standard errors are 6%; permuted scores without their errors gave 16%.
    assert np.mean(better) <= 0.11


def test_a_p_value_at_its_floor_is_printed_as_at_most() -> None:
    truth = np.arange(60.0)
    told = truth + np.random.default_rng(0).standard_normal(60)
    found = verdict_on("regression", truth, told)
    assert "p at most 0.0001" in str(found)
    assert found.as_dict()["p_value_at_most"] is True
    assert "p = " in str(verdict_on("regression", truth, told[::-1]))


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "leverage"])
def test_the_interval_of_a_correlation_covers_where_tails_are_heavy(kind: str) -> None:
    covered = []
    for seed in range(100):
        rng = np.random.default_rng([seed, 33])
        told, noise = rng.standard_normal((2, 20_066))
        if kind == "heavy tails":
            noise = rng.standard_t(3, told.size)
        if kind == "leverage":
            scale = np.exp(rng.standard_normal(told.size))
            told, noise = told * scale, noise * scale
        truth = told + noise
        population = np.corrcoef(truth[66:], told[66:])[0, 1]
        low, high = verdict_on("regression", truth[:66], told[:66]).interval
        covered.append(low <= population <= high)
    # 90% is asked for, of 100 draws; the influence of rows, with normal quantiles, gave 0.75.
    assert np.mean(covered) >= 0.82


def test_concordance_counts_the_pairs_whose_order_is_known() -> None:
    time, event = np.array([1.0, 2, 2, 3, 5, 5]), np.array([1, 1, 0, 0, 1, 0], dtype=bool)
    risk = np.array([5.0, 2, 3, 2, 1, 0])
    # Known: the first before the five others, the second before four, the fifth before the last;
    # of these ten the second does not come before the third, and ties with the fourth.
    found = verdict_on("survival", survival_target(event, time), risk)
    assert found.score == pytest.approx(8.5 / 10)


def test_concordance_is_of_rows_at_risk_together_in_one_stratum() -> None:
    rng = np.random.default_rng(4)
    n = 60
    time = rng.integers(2, 15, n).astype(float)
    event, stratum, risk = rng.random(n) < 0.7, rng.integers(0, 3, n), rng.standard_normal(n)
    entry = time - rng.integers(1, 9, n)
    right = pairs = 0.0
    for i, j in permutations(range(n), 2):
        longer = time[j] > time[i] or (time[j] == time[i] and not event[j])
        if event[i] and longer and entry[j] < time[i] and stratum[i] == stratum[j]:
            pairs += 1
            right += risk[i] > risk[j]
    records = survival_target(event, time, entry, stratum)
    assert verdict_on("survival", records, risk).score == pytest.approx(right / pairs, abs=1e-12)
    # Martingale residuals sum to 0 in each stratum, and are those of the definition.
    residual = numbers_of("survival", records)[:, 0]
    assert np.bincount(stratum, residual) == pytest.approx(np.zeros(3), abs=1e-12)
    hazard = 0.0
    for t in np.unique(time[event & (stratum == stratum[0])]):
        mine = stratum == stratum[0]
        if entry[0] < t <= time[0]:
            at_risk = np.count_nonzero(mine & (entry < t) & (time >= t))
            hazard += np.count_nonzero(mine & event & (time == t)) / at_risk
    assert residual[0] == pytest.approx(event[0] - hazard)


def test_risks_that_tell_strata_alone_are_no_better() -> None:
    """Events come sooner in the second stratum; to know the stratum tells no order within it."""
    rng = np.random.default_rng(0)
    stratum = np.repeat([0, 1], 40)
    time = rng.exponential(np.where(stratum, 1.0, 5.0))
    risk = stratum + 0.1 * rng.standard_normal(80)
    event = np.ones(80, dtype=bool)
    assert verdict_on("survival", survival_target(event, time), risk).better
    assert not verdict_on("survival", survival_target(event, time, stratum=stratum), risk).better


def test_several_classes_take_the_mean_of_their_areas() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, 90)
    decisions = np.eye(3)[codes] + rng.standard_normal((90, 3))
    each = [roc_auc_score(codes == code, decisions[:, code]) for code in range(3)]
    found = verdict_on("classification", codes, decisions)
    assert found.score == pytest.approx(np.mean(each))
    assert found.better
    assert found.interval[0] < found.score < found.interval[1]


def test_the_limit_for_many_rows_is_that_of_the_draws() -> None:
    codes, decisions = two_classes(11_000, shift=0.02)
    limit = areas(codes, decisions[:, None], np.random.default_rng(0))
    some = areas(codes[:10_000], decisions[:10_000, None], np.random.default_rng(0))
    assert limit.null.std() * np.sqrt(1.1) == pytest.approx(some.null.std(), rel=0.05)
    assert limit.critical() - 0.5 == pytest.approx(1.645 * limit.null.std(), rel=0.01)


@pytest.mark.parametrize("kind", ["many", "numbers", "times"])
def test_noise_is_called_better_about_as_often_as_promised(kind: str) -> None:
    calls = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        noise = rng.standard_normal((50, 3))
        if kind == "many":
            found = verdict_on("classification", rng.permutation(np.arange(50) % 3), noise, seed)
        elif kind == "numbers":
            found = verdict_on("regression", noise[:, 0], noise[:, 1], seed)
        else:
            event = rng.random(50) < 0.7
            times = survival_target(event, rng.exponential(size=50))
            found = verdict_on("survival", times, noise[:, 0], seed)
        calls.append(found.better)
    # 60 draws at 5%: 3 standard errors are 8.4%.
    assert np.mean(calls) <= 0.134


def test_few_rows_are_called_few_and_a_perfect_order_of_few_is_enough() -> None:
    codes, noise = np.array([0, 1, 0, 1, 1, 0]), np.array([3.0, 1, 2, 5, 4, 6])
    assert verdict_on("classification", codes, noise).verdict == "too few rows to tell"
    few = verdict_on("classification", np.repeat([0, 1], 4), np.arange(8.0))
    assert few.better
    assert few.interval[0] < 0.5 < few.interval[1] == 1.0
    assert verdict_on("classification", np.zeros(9), np.arange(9.0)).n_rows == 0


def test_a_constant_prediction_is_no_better() -> None:
    truth = np.random.default_rng(0).standard_normal(60)
    found = verdict_on("regression", truth, np.full(60, 0.1) * 3)
    assert (found.verdict, found.score, found.p_value) == ("no better", 0.0, 1.0)
    codes = (truth > 0).astype(int)
    found = verdict_on("classification", codes, np.zeros(60))
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
    for row in rng.standard_normal((800, 40)):
        rows.append("AB"[rng.integers(2)] + "," + ",".join(f"{value:.5f}" for value in row))
    (tmp_path / "noise.csv").write_text("\n".join(rows))
    return tmp_path / "noise.csv"


def test_the_command_line_writes_the_verdict_and_claims_no_more(
    noise_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = [str(noise_csv), "--target", "site", "--n-features", "5", "--C", "1", "--out", str(out)]
    assert main(["select", *given]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "no better"
    assert summary["power"] >= 0.8
    assert summary["interval"][0] < summary["score"] < summary["interval"][1]
    assert summary["p_value"] > 0.05
    assert summary["baseline"] == 0.5
    assert (summary["n_selected"], summary["fitted_exactly"]) == (5, True)
    assert set(summary["how"]) >= {"score", "interval", "p_value", "verdict", "proved_gap"}
    page = (out / "report.html").read_text()
    assert "no better than a guess" in page
    assert "features predicts site better" not in page
    assert summary["warnings"] == []
    assert page.index("no better") < page.index("fitted exactly")
    told = "5 of 40 features were selected; a model of 5 features predicts site no better"
    assert told in capsys.readouterr().out
    assert summary["headline"].startswith(told)
    assert f"all rows, {summary['n_selected_again']} of them again when 25%" in page


def test_nothing_held_out_is_nothing_known(noise_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = [str(noise_csv), "--target", "site", "--n-features", "5", "--out", str(out)]
    assert main(["select", *given, "--test-fraction", "0", "--quiet"]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "too few rows to tell"
    assert summary["score"] is None
    assert "not tested" in summary["headline"]


@pytest.mark.repeats
def test_few_rows_are_judged_by_permutations_of_the_whole_cross_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal that 18 held-out rows alone miss is told, and of noise about as many as promised."""
    monkeypatch.setattr(trials, "N_REPEATS", 39)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 20))
    y = 0.8 * X[:, 0] + rng.standard_normal(60)
    model = AtomicRegressor(alpha=0.2, tol=1e-4)
    found = held_out_verdict(model, X, y, rng=1)
    assert (found.n_rows, found.n_folds) == (60, 5)
    assert "its own cross-validation" in found.how["p_value"]
    assert found.better
    calls = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 11])
        X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
        calls.append(held_out_verdict(model, X, y, rng=seed).better)
    assert sum(calls) <= 2  # 5% of 4 is 0.2; above 2 has probability 0.0005


def test_the_interval_of_a_nearly_perfect_area_is_as_wide_as_that_of_a_guess() -> None:
    y, draws = np.arange(40) % 2, [(0.4, 0.1), (0.45, 0.1), (0.55, 0.1), (0.6, 0.1)] * 10
    trial = Trial(lambda *rows: np.zeros(0), "classification", y, 0)
    width = 1.645 * np.std([score for score, _ in draws])
    found = trial._verdict((0.998, 0.1), draws, 40, 5, "permutations")
    assert found.interval == pytest.approx((0.998 - width, 1.0), abs=1e-3)


@pytest.mark.repeats
def test_permutations_end_as_soon_as_the_p_value_is_above_the_level() -> None:
    decided = []

    def decide(train: Any, test: Any, values: Any, order: Any) -> np.ndarray:
        decided.append(order)
        return np.random.default_rng(len(decided)).standard_normal(test.size)

    y = np.random.default_rng(0).standard_normal(40)
    rows = np.arange(40)
    found = Trial(decide, "regression", y, 0, work=1.0).verdict(rows[:28], rows[28:], y[28:])
    assert not found.better
    assert 5 * 20 <= len(decided) < 5 * 199
    moved = [order for order in decided if order is not None]
    assert all(np.array_equal(np.sort(order), rows) for order in moved)


def with_age(seed: int, n: int, signal: float) -> tuple[np.ndarray, np.ndarray]:
    """Return columns, the first of them an age that half of the others depend on, and a target."""
    rng = np.random.default_rng([seed, 5])
    X = rng.standard_normal((n, 21))
    X[:, 1:11] += 0.7 * X[:, :1]
    return X, 2 * X[:, 0] + signal * X[:, 1] + rng.standard_normal(n)


def test_covariates_are_the_baseline() -> None:
    free = {"unpenalized": [0], "tol": 1e-4}
    better = []
    for seed in range(6):
        X, y = with_age(seed, 120, 0.0)
        assert held_out_verdict(AtomicRegressor(alpha=0.05), X, y, rng=seed).better
        found = held_out_verdict(AtomicRegressor(alpha=0.05, **free), X, y, rng=seed)
        better.append(found.better)
        labels = (y > 0).astype(int)
        model = AtomicClassifier(alpha=0.03, **free)
        better.append(held_out_verdict(model, X, labels, rng=seed).better)
    assert sum(better) <= 3  # 5% of 12 is 0.6; above 3 has probability 0.002
    found = held_out_verdict(AtomicRegressor(alpha=0.05, **free), *with_age(0, 120, 1.5))
    assert (found.verdict, found.guess) == ("better", "the covariates alone")
    assert found.score_name == "partial correlation"


def test_a_partial_correlation_is_that_of_two_regressions() -> None:
    rng = np.random.default_rng(4)
    known, truth, told = (rng.standard_normal((30, count)) for count in (3, 1, 1))
    beside = np.column_stack([np.ones(30), known])
    left = [v - beside @ np.linalg.lstsq(beside, v, rcond=None)[0] for v in (truth, told)]
    expected = np.corrcoef(left[0].ravel(), left[1].ravel())[0, 1]
    found = verdict_on("regression", truth.ravel(), told.ravel(), known=known)
    assert found.score == pytest.approx(expected)
    many = verdict_on("regression", truth.ravel(), told, known=rng.standard_normal((30, 28)))
    assert many.verdict == "too few rows to tell"


def test_a_test_without_power_says_that_rows_are_few() -> None:
    rng = np.random.default_rng(6)
    few, many = (
        held_out_verdict(
            AtomicRegressor(alpha=0.2), rng.standard_normal((n, p)), rng.standard_normal(n)
        )
        for n, p in ((300, 400), (900, 20))
    )
    assert few.verdict == "too few rows to tell"
    assert few.power < 0.8
    assert many.verdict == "no better"
    assert many.power >= 0.8


def test_few_held_out_rows_are_too_few_without_a_trial() -> None:
    """Not even the very signal as a prediction would have been detected with so few."""
    truth, noise = np.random.default_rng(1).standard_normal((2, 60))
    found = verdict_on("regression", truth, noise)
    assert (found.verdict, found.power) == ("too few rows to tell", None)


def test_groups_are_held_out_and_permuted_together() -> None:
    """Noise of 30 patients, five rows each, nearly the same within a patient."""
    better = {True: 0, False: 0}
    for seed in range(5):
        rng = np.random.default_rng([seed, 9])
        patient = np.repeat(np.arange(30), 5)
        X = rng.standard_normal((30, 30))[patient] + 0.5 * rng.standard_normal((150, 30))
        y = rng.standard_normal(30)[patient]
        for told in (True, False):
            groups = patient if told else None
            found = held_out_verdict(AtomicRegressor(alpha=0.1), X, y, rng=seed, groups=groups)
            better[told] += found.better
    assert better[False] >= 4
    assert better[True] <= 2  # 5% of 5 is 0.25; above 2 has probability 0.001


@pytest.mark.repeats
def test_few_rows_next_to_covariates_are_judged_by_those_held_out() -> None:
    """No repetition of the cross-validation is known to hold the level there."""
    model = AtomicRegressor(alpha=0.2, unpenalized=[0], tol=1e-3)
    found = held_out_verdict(model, *with_age(1, 60, 2.0))
    assert (found.n_folds, found.n_rows) == (0, 18)


def test_a_curve_of_a_covariate_is_no_finding() -> None:
    """Features that know the square of the age add nothing to an age that acts by its square."""
    better = []
    for seed in range(5):
        rng = np.random.default_rng([seed, 12])
        age, X = rng.standard_normal(300), rng.standard_normal((300, 20))
        X[:, :8] += age[:, None] ** 2
        y = age + age**2 + rng.standard_normal(300)
        X = np.column_stack([age, X])
        found = held_out_verdict(AtomicRegressor(alpha=0.1, unpenalized=[0]), X, y, rng=seed)
        better.append(found.better)
    assert sum(better) <= 1
    assert "cubic spline" in found.how["compared_with"]


@pytest.mark.parametrize("pace", [0.0, 3600.0])
def test_no_clock_decides_how_often_rows_are_permuted(
    pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine where each look at a clock takes an hour the answer is the same."""
    at = [0.0]

    def slow() -> float:
        at[0] += pace
        return at[0]

    for clock in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(time, clock, slow)
    monkeypatch.setattr(trials, "FEW_ROWS", 50)
    monkeypatch.setattr(trials, "MOST_WORK", 20 * 5 * 3 * trials.A_FIT)
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    found = held_out_verdict(LinearRegression(), X, X[:, 0] + y)
    assert (found.n_draws, found.n_folds, found.verdict) == (39, 5, "better")
    assert found.p_value == 1 / 40


def test_passes_of_a_generation_without_a_search_count_as_fits() -> None:
    X = np.random.default_rng(0).standard_normal((60, 12))
    model = FeatureGenerator(4, batch=2, C=10.0, loss="squared").fit(X, X.sum(axis=1))
    assert fits_of(model) == 1 + model.n_iter_ > 2
