"""Claims of all losses, norms and forms: proved again, and refused where they are wrong."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import atomlearn
from atomlearn import losses, norms, solve
from atomlearn.reports import write_model
from atomlearn.verification import check, claim_digest, fit_of_result, proved

N, P = 60, 40
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, P)) * RNG.uniform(0.5, 4.0, P) + RNG.uniform(-5.0, 5.0, P)
SCORE = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :3] @ np.array([1.5, -1.0, 0.5])
WEIGHT = RNG.integers(0, 4, N).astype(np.float64)
LABELS = np.where(RNG.random(N) < 1.0 / (1.0 + np.exp(-SCORE)), 1.0, -1.0)
TARGETS: dict[str, Any] = {
    "squared": SCORE + RNG.standard_normal(N),
    "huber": SCORE + RNG.standard_t(2, N),
    "quantile": SCORE + RNG.standard_normal(N),
    "logistic": LABELS,
    "squared_hinge": LABELS,
    "poisson": RNG.poisson(np.exp(SCORE / 2)).astype(np.float64),
    "gamma": RNG.gamma(2.0, np.exp(SCORE / 2)) + 1e-3,
    "cox": losses.survival_target(
        RNG.random(N) < 0.7, RNG.exponential(np.exp(-SCORE / 2)).round(1) + 0.1
    ),
}
OVERLAPPING = [list(range(first, first + 6)) for first in range(0, P - 5, 4)]
NORMS: dict[str, Any] = {
    "l1": "l1",
    "weights": norms.L1(weights=np.append(np.inf, RNG.uniform(0.5, 2.0, P - 1))),
    "nonnegative": norms.L1(lower=0.0),
    "boxes": norms.L1(lower=-0.05, upper=0.1),
    "groups": norms.Groups(np.arange(P) // 4, "sqrt_size"),
    "ksupport": norms.KSupport(3),
    "groups of k": norms.KSupport(2, np.arange(P) // 4),
    "owl": norms.OWL(np.linspace(2.0, 1.0, P)),
    "latent": norms.LatentGroups(OVERLAPPING),
    "trees": norms.Trees([list(range(8)), list(range(4))]),
}
FORMS: dict[str, dict[str, Any]] = {
    "penalized": {"alpha": 0.1},
    "squared": {"alpha": 0.5, "form": "squared"},
    "constrained": {"radius": 0.2, "form": "constrained"},
    "elastic": {"alpha": 0.1, "l1_ratio": 0.5},
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", TARGETS)
def test_each_loss_with_each_norm_is_proved_again(loss: str, norm: str) -> None:
    # One form for each pair, all forms over all pairs.
    form = list(FORMS)[(list(TARGETS).index(loss) + list(NORMS).index(norm)) % 4]
    if form == "elastic" and norm in ("latent", "trees"):
        form = "penalized"
    y = TARGETS[loss]
    fit = solve(X, y, loss=loss, norm=NORMS[norm], sample_weight=WEIGHT, **FORMS[form])
    found = atomlearn.verify(fit, X, y, sample_weight=WEIGHT)
    assert fit.converged
    assert found.holds, found.explanation
    assert found.relative_gap <= 1.01 * fit.relative_gap + 1e-10
    assert found.objectives[0] == pytest.approx(fit.objective, rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "quantile", "cox"])
def test_columns_without_a_penalty_and_offsets(loss: str) -> None:
    y = TARGETS[loss]
    offset = 0.1 * RNG.standard_normal(N)
    given = {"offset": offset, "sample_weight": WEIGHT}
    fit = solve(X, y, loss=loss, alpha=0.1, unpenalized=[4, 7], **given)
    found = atomlearn.verify(fit, X, y, **given)
    assert found.holds, found.explanation
    assert found.relative_gap <= 1.01 * fit.relative_gap + 1e-10


def test_strata_entries_and_both_ties_of_cox() -> None:
    y = losses.survival_target(
        RNG.random(N) < 0.8,
        RNG.integers(2, 9, N),
        entry=RNG.integers(0, 2, N),
        stratum=RNG.integers(0, 2, N),
    )
    for ties in ("efron", "breslow"):
        fit = solve(X, y, loss=losses.Cox(ties), alpha=0.05, sample_weight=WEIGHT)
        found = atomlearn.verify(fit, X, y, sample_weight=WEIGHT)
        assert found.holds, found.explanation
        assert found.relative_gap <= 1.01 * fit.relative_gap + 1e-10


MODELS: dict[str, tuple[Any, Any]] = {
    "standardized": (atomlearn.AtomicRegressor(alpha=0.1, standardize=True), "squared"),
    "no intercept": (atomlearn.AtomicRegressor(alpha=0.1, fit_intercept=False), "squared"),
    "search": (atomlearn.AtomicRegressorCV(n_alphas=4, cv=3, standardize=True), "squared"),
    "classes": (atomlearn.AtomicClassifier(alpha=0.05, standardize=True), "logistic"),
    "survival": (atomlearn.AtomicSurvival(alpha=0.05, standardize=True), "cox"),
    "generated": (atomlearn.FeatureGenerator(3, C=1.0, standardize=True), "logistic"),
    "products": (
        atomlearn.AtomicRegressor(alpha=0.2, features="interactions", standardize=True),
        "squared",
    ),
    "curves": (atomlearn.AtomicRegressor("groups", 0.2, features="splines"), "squared"),
    "quantile": (atomlearn.AtomicRegressor(alpha=0.1, loss=losses.Quantile(0.8)), "squared"),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_proved_again(name: str) -> None:
    model, loss = MODELS[name]
    model.fit(X, TARGETS[loss])
    found = atomlearn.verify(model, X, TARGETS[loss])
    assert found.holds, found.explanation
    assert found.relative_gap <= 1.01 * model.gap_ / abs(model.objective_) + 1e-10


def test_several_targets_and_classes() -> None:
    Y = np.column_stack([TARGETS["squared"], TARGETS["huber"]])
    model = atomlearn.AtomicRegressor("rows", 0.2, standardize=True).fit(X, Y)
    assert atomlearn.verify(model, X, Y).relative_gap < 2e-6
    labels = np.array(["a", "b", "c"])[np.argmax(X[:, :3] - X[:, :3].mean(axis=0), axis=1)]
    for multi_class in ("ovr", "multinomial"):
        norm = "rows" if multi_class == "multinomial" else "l1"
        model = atomlearn.AtomicClassifier(
            norm, 0.05, standardize=True, multi_class=multi_class
        ).fit(X, labels)
        found = atomlearn.verify(model, X, labels)
        assert found.holds, found.explanation
        assert found.relative_gap < 2e-6
        assert len(found.gaps) == (3 if multi_class == "ovr" else 1)


def test_sparse_and_float32_data() -> None:
    dense = np.where(np.abs(X) > 4.0, X, 0.0).astype(np.float32)
    y = TARGETS["squared"]
    for data in (dense, sparse.csr_array(dense)):
        model = atomlearn.AtomicRegressor(alpha=0.05, standardize=True).fit(data, y)
        found = atomlearn.verify(model, data, y)
        assert found.holds, found.explanation
        assert found.relative_gap < 1.1e-6


def test_what_has_no_claim_is_refused_by_name() -> None:
    y = TARGETS["squared"]
    Y = np.column_stack([y, y[::-1]])
    refused = {
        "matrices": (atomlearn.AtomicRegressor("trace", 0.3), Y),
        "relax": (atomlearn.AtomicRegressor(alpha=0.3, relax=0.5), y),
        "best subset": (atomlearn.SubsetRegressor(2), y),
    }
    for word, (model, target) in refused.items():
        found = atomlearn.verify(model.fit(X, target), X, target)
        assert not found.holds
        assert word in found.explanation
        assert found.relative_gap == math.inf
    fit = solve(X, np.abs(y) + 1.0, loss=losses.Tweedie(1.5), alpha=0.1)
    assert "tweedie" in atomlearn.verify(fit, X, np.abs(y) + 1.0).explanation


def test_other_data_or_another_point_prove_less() -> None:
    y = TARGETS["squared"]
    model = atomlearn.AtomicRegressor(alpha=0.1, standardize=True).fit(X, y)
    assert atomlearn.verify(model, X, y).holds
    found = atomlearn.verify(model, X, y + 0.01 * X[:, 5])
    assert not found.holds
    assert "received" in found.explanation
    assert not atomlearn.verify(model, X, y, sample_weight=WEIGHT).holds


# --- the claim itself, by the function that reads nothing of the solvers


@pytest.fixture(scope="module")
def claimed() -> tuple[dict[str, Any], Any]:
    y = TARGETS["logistic"]
    claim, data = fit_of_result(solve(X, y, loss="logistic", alpha=0.05, tol=1e-9), X, y).claim()
    return json.loads(json.dumps(claim)), data.y


def _sealed(claim: dict[str, Any]) -> dict[str, Any]:
    """Return the claim as somebody forges it, who computes the hash again."""
    return claim | {"sha256": claim_digest(claim)}


def test_a_changed_digit_is_refused(claimed: Any) -> None:
    claim, y = claimed
    assert check(claim, X, y)["gap"] <= claim["gap"]
    for key in ("objective", "gap", "alpha"):
        with pytest.raises(ValueError, match="sha256 of the claim"):
            check(claim | {key: claim[key] * (1 + 1e-9)}, X, y)


def test_a_forged_claim_is_refused_by_arithmetic(claimed: Any) -> None:
    claim, y = claimed
    with pytest.raises(ValueError, match="objective"):
        check(_sealed(claim | {"objective": claim["objective"] * (1 - 1e-9)}), X, y)
    with pytest.raises(ValueError, match="gap"):
        check(_sealed(claim | {"gap": 0.0}), X, y)
    forged = copy.deepcopy(claim)
    forged["coefficients"][0] *= 1.01
    with pytest.raises(ValueError, match=r"objective|gap"):
        check(_sealed(forged), X, y)
    steps = claim["dual"]["steps"].split()
    # One step more, and the dual point no longer adds up to 0.
    steps[3] = str(int(steps[3]) + 1)
    forged = claim | {"dual": claim["dual"] | {"steps": " ".join(steps)}}
    with pytest.raises(ValueError, match="a sum of 0"):
        check(_sealed(forged), X, y)
    # Steps that add up to 0, but belong to no slope of the loss.
    moved = np.array(claim["dual"]["steps"].split(), dtype=np.int64)
    moved[np.argmax(moved)] *= 4
    moved[np.argmin(moved)] -= moved.sum()
    forged = claim | {"dual": claim["dual"] | {"steps": " ".join(map(str, moved.tolist()))}}
    with pytest.raises(ValueError, match="slopes of the loss"):
        check(_sealed(forged), X, y)


def test_parts_that_hide_a_penalty_are_refused(claimed: Any) -> None:
    claim, y = claimed
    forged = copy.deepcopy(claim)
    for key in ("columns", "coefficients"):
        forged[key] = [forged[key][0], *forged[key]]
    forged["coefficients"][0] /= 2
    forged["coefficients"][1] /= 2
    with pytest.raises(ValueError, match="once"):
        check(_sealed(forged), X, y)
    for changes in ({"alpha": -0.05}, {"columns": [-1] * len(claim["columns"])}):
        with pytest.raises(ValueError, match=r"positive|columns"):
            check(_sealed(claim | changes), X, y)


def test_other_data_are_refused_by_their_hash(claimed: Any) -> None:
    claim, y = claimed
    other = X.copy()
    other[3, 5] = np.nextafter(other[3, 5], np.inf)
    with pytest.raises(ValueError, match="sha256 of X"):
        check(claim, other, y)
    with pytest.raises(ValueError, match="rows and columns"):
        check(claim, X[1:], y[1:])


def test_a_weaker_point_has_a_larger_gap_that_is_true(claimed: Any) -> None:
    # A point that is off by 10% is not refused for what it is, but for what it claims.
    claim, y = claimed
    forged = copy.deepcopy(claim)
    forged["coefficients"][0] *= 1.1
    forged |= {"gap": math.inf, "objective": math.nan}
    found = proved(forged, X, y, np.ones(N), np.zeros((N, 1)))
    assert found["gap"] >= found["objective"] - claim["objective"] > 0.0


def test_a_file_with_permuted_columns(tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=[f"gene {number}" for number in range(P)])
    y = np.where(TARGETS["logistic"] > 0, "ill", "well")
    model = atomlearn.AtomicClassifier(alpha=0.05, standardize=True).fit(frame, y)
    file = tmp_path / "model.json"
    write_model(file, model, "status", frame, y)
    for data in (frame, frame[frame.columns[::-1]]):
        found = atomlearn.verify(file, data, y)
        assert found.holds, found.explanation
    assert "labels" in atomlearn.verify(file, frame, np.where(y == "ill", "sick", y)).explanation
    assert not atomlearn.verify(file, frame.iloc[1:], y[1:]).holds
    lost = frame.rename(columns={"gene 3": "gene three"})
    assert "gene 3" in atomlearn.verify(file, lost, y).explanation


def test_a_file_whose_coefficients_are_not_the_claimed_ones(tmp_path: Any) -> None:
    y = TARGETS["squared"]
    model = atomlearn.AtomicRegressor(alpha=0.2).fit(X, y)
    file = tmp_path / "model.json"
    write_model(file, model, "y", X, y)
    content = json.loads(file.read_text())
    content["coefficients"][0][0] += 1e-6
    assert "changed after it was written" in atomlearn.verify(content, X, y).explanation
    forged = content | {"sha256": claim_digest(content)}
    assert "as claimed" in atomlearn.verify(forged, X, y).explanation
    write_model(file, model, "y")
    assert "without its data" in atomlearn.verify(file, X, y).explanation


def test_one_column_is_counted_as_one() -> None:
    y = X[:, 0] > 0
    found = atomlearn.verify(atomlearn.FeatureGenerator(1).fit(X, y), X, y)
    assert "the 1 selected column," in found.explanation + ","
    assert "1 columns" not in found.explanation


def test_a_search_that_stops_early_claims_no_bound_over_all_columns() -> None:
    model = atomlearn.FeatureGenerator(2, C=10.0).fit(X, X[:, :20].sum(axis=1) > 0)
    found = atomlearn.verify(model, X, X[:, :20].sum(axis=1) > 0)
    assert found.relative_gap >= 1.0
    assert "of the best over the 2 selected columns" in found.explanation
    assert found.explanation.endswith(f"; over all {P} columns nothing is proved")
