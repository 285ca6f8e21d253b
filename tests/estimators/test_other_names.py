"""Words of other packages: each error names what to write here."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

import atomlearn as al
from atomlearn._support import PARAMETERS, SAME
from atomlearn.interfaces import DenseBlock

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)
TABLE = pd.DataFrame(X, columns=list("abcde"))


@pytest.mark.parametrize(
    ("made", "meant"),
    [
        (lambda: al.AtomicClassifier(C=1.0), "alpha=1 / (C * n_samples)"),
        (lambda: al.AtomicRegressor(tau=0.5), "l1_ratio"),
        (lambda: al.AtomicRegressorCV(penalty="l1"), "norms='l1'"),
        (lambda: al.AtomicRegressor(random_state=0), "leave it out"),
        (lambda: al.AtomicRegressorCV(random_state=0), "cv=KFold"),
        (lambda: al.StabilitySelector(rng=0), "random_state=rng"),
        (lambda: al.StabilitySelector(max_features=3), "n_features=max_features"),
        (lambda: al.KnockoffSelector(seed=0), "random_state=0"),
        (lambda: al.SubsetRegressor(ridge=0.1), "l2=ridge"),
        (lambda: al.SubsetRegressor(k=3), "n_features=k"),
        (lambda: al.findings.estimates(None, X, Y, level=0.9), "confidence=0.95"),
        (lambda: al.findings.prediction_sets(None, X, Y, X, share=0.9), "confidence=0.9"),
        (lambda: al.AtomicRegressor(n_alphas=3), "'alpha'"),
        (lambda: al.SparsePCA(k=3), "n_features=k"),
        (lambda: al.MatrixCompletion(level=3.0), "alpha=level / n_entries"),
        (lambda: al.MatrixPursuit(standardize=True), "normalize=True"),
        (lambda: al.SubsetRegressor(max_iter=50), "max_nodes=max_iter"),
        (lambda: al.solve(X, Y, level=4.0), "alpha=level / n_samples"),
        (lambda: al.solve(X, Y, alpha=0.1, intercept=True), "fit_intercept=True"),
        (lambda: al.paths.path(X, Y, gap=0.1), "tol=1e-6"),
        (lambda: al.solve(X, Y, normalize=True), "designs.Standardized(X)"),
        (lambda: al.solve(X, Y, weights=Y), "sample_weight=weights"),
        (lambda: al.solve_subset(X, Y, max_iter=9), "max_nodes=max_iter"),
        (lambda: al.paths.path(X, Y, nlambda=50), "n_alphas="),
        (lambda: al.paths.path(X, Y, lambda_min_ratio=0.1), "alpha_ratio="),
        (lambda: al.paths.path(X, Y, lmda_path=[1.0]), "alphas="),
        (lambda: al.paths.path(X, Y, penalty_factor=Y), "norms.L1(weights=penalty_factor)"),
        (lambda: al.paths.path(X, Y, thresh=0.1), "tol=1e-6"),
        (lambda: al.AtomicRegressor(positive=True), "norms.L1(lower=0)"),
        (lambda: al.AtomicRegressor(lower_limits=0), "norms.L1(lower=..., upper=...)"),
        (lambda: al.AtomicRegressor(max_epochs=9), "max_iter=max_epochs"),
        (lambda: al.AtomicRegressorCV(eps=1e-3), "alpha_ratio="),
        (lambda: al.AtomicRegressorCV(tau=0.5), "alphas=(levels + tau) / n_samples"),
        (lambda: al.AtomicClassifierCV(Cs=10), "alphas=1 / (Cs * n_samples)"),
        (lambda: al.AtomicClassifierCV(nfolds=10), "cv="),
        (lambda: al.SubsetRegressor(n_nonzero_coefs=3), "n_features="),
        (lambda: al.AtomicRegressor(family="poisson"), "loss='squared' (gaussian)"),
        (lambda: al.AtomicSurvival(family="cox"), "leave it out"),
        (lambda: al.AtomicRegressor(quantile=0.9), "losses.Quantile(quantile)"),
        (lambda: al.solve(X, Y, power=1.5), "losses.Tweedie(power)"),
        (lambda: al.AtomicRegressorCV(n_lambda=50), "n_alphas="),
        (lambda: al.AtomicSurvival(penalty_factor=Y), "norms.L1(weights=penalty_factor)"),
        (lambda: al.AtomicClassifierCV(positive=True), "norms=norms.L1(lower=0)"),
        (lambda: al.datasets.read(TABLE, "a", mising="drop"), "'missing'"),
    ],
)
def test_parameters_of_others_are_named_by_ours(made: Any, meant: str) -> None:
    with pytest.raises(TypeError, match="has no parameter") as caught:
        made()
    assert meant in str(caught.value)


def test_an_answer_names_a_parameter_that_exists() -> None:
    named = [getattr(al, name) for name in al.__all__]
    takers = [each for each in named if callable(each)]
    takers += [al.paths.path, al.subsets.subset_path, al.findings.estimates]
    takers += [
        DenseBlock,
        al.datasets.convert,
        al.findings.prediction_sets,
        al.findings.full_conformal,
    ]
    known = {name for each in takers for name in inspect.signature(each).parameters}
    for old, answers in PARAMETERS.items():
        assert answers.keys() <= known, old
    assert PARAMETERS.keys() >= set(SAME.values())


@pytest.mark.parametrize(
    ("parameters", "meant"),
    [
        ({"norm": "lasso"}, "norm='l1'"),
        ({"norm": "elastic_net"}, "ElasticNetNorm(k=10)"),
        ({"norm": "group-lasso"}, "norms.Groups(groups)"),
        ({"norm": "ksuport"}, "'ksupport'"),
        ({"loss": "mse"}, "loss='squared'"),
        ({"loss": "log_loss"}, "loss='logistic'"),
        ({"loss": "softmax"}, "multi_class='multinomial'"),
    ],
)
def test_norms_and_losses_of_others_are_named_by_ours(
    parameters: dict[str, Any], meant: str
) -> None:
    with pytest.raises(ValueError, match=r"did you mean|has no k") as caught:
        al.AtomicRegressor(**parameters).fit(X, Y)
    assert meant in str(caught.value)


def test_methods_that_are_missing_say_what_to_call() -> None:
    model = al.AtomicClassifier(loss="squared_hinge").fit(X, Y > 0)
    for name, meant in (("predict_proba", "loss='logistic'"), ("partial_fit", "warm_start=True")):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=meant):
            getattr(model, name)


@pytest.mark.parametrize("kind", ["category", "object"])
def test_columns_of_words_are_named_with_a_remedy(kind: str) -> None:
    table = TABLE.assign(city=pd.Series(["oslo", "rome"] * 20).astype(kind))
    with pytest.raises(TypeError, match=r"'city'.*encode=True.*datasets.read"):
        al.solve(table, Y, alpha=0.1)
    assert al.AtomicRegressor(alpha=0.01).fit(table, Y).encoding_.names[-1] == "city=rome"


def test_gaps_of_nullable_columns_are_named() -> None:
    table = TABLE.assign(visits=pd.array([1, None] * 20, dtype="Int64"))
    with pytest.raises(ValueError, match=r"NaN at .*'visits'.*impute"):
        al.solve(table, Y, alpha=0.1)
    assert al.AtomicRegressor().fit(table, Y).encoding_.imputed == {"visits": 0.5}


def test_reading_speaks_of_its_own_parameters() -> None:
    table = TABLE.assign(a=[np.nan, *X[1:, 0]])
    with pytest.raises(
        ValueError, match=r"missing='indicator' and drop are other ways.*missing='median\'"
    ) as caught:
        al.datasets.read(table, "b")
    assert "--" not in str(caught.value)
    assert al.datasets.read(table, "b", missing="drop").notes == (
        "1 rows with missing values left out (missing='drop')",
    )


def test_reading_takes_options_of_text_and_roles(tmp_path: Any) -> None:
    file = tmp_path / "a.txt"
    file.write_text("".join(f"{row % 7}|{row % 5}|{row % 3 or '?!'}\n" for row in range(30)))
    found = al.datasets.read(
        file, "x0", header=False, delimiter="|", na=["?!"], missing="median", weights="x1"
    )
    assert found.X.shape == (30, 1)
    assert found.extras["weights"].size == 30


def test_the_report_says_what_comes_first() -> None:
    model = al.AtomicRegressor().fit(X, Y)
    with pytest.raises(TypeError, match="the model comes first, got ndarray, ndarray, Atomic"):
        al.report(X, Y, model)
    with pytest.raises(TypeError, match=r"y must be the target, got 'page.html'"):
        al.report(model, X, "page.html")


def test_a_generator_says_what_to_do() -> None:
    with pytest.warns(UserWarning, match=r"n_features=100 of 5 .* n_features='auto'"):
        al.FeatureGenerator(100).fit(X, Y > 0)
    with pytest.raises(ValueError, match=r"FeatureGenerator\(loss='squared'\)"):
        al.FeatureGenerator(3).fit(X, Y)
    with pytest.raises(ValueError, match=r"Unknown label type.*use AtomicRegressor"):
        al.AtomicClassifier().fit(X, Y)


def test_folds_of_groups_ask_for_the_groups() -> None:
    groups = np.repeat(np.arange(8), 5)
    model = al.AtomicRegressorCV(n_alphas=2, cv=GroupKFold(3))
    with pytest.raises(ValueError, match=r"fit\(X, y, groups=groups\)"):
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, Y, groups=groups).alpha_ > 0
