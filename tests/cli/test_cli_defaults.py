"""The command line and the estimators have the same defaults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, AtomicSurvivalCV, FeatureGenerator
from atomlearn.cli.arguments import build_parser
from atomlearn.cli.estimators import TrainingData, build_estimator
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import read_settings
from atomlearn.cli.source import DataRoles
from atomlearn.cli.targets import Target
from atomlearn.core import DenseDesign
from atomlearn.losses import survival_target

#: Parameters whose value in a command has another form: printed progress, the time that is left,
#: the loss of the task, folds drawn by --seed, a list of norms with its usual form, and half of the
#: tolerance.
OTHER_FORM = {"observers", "time_limit", "loss", "cv", "norms", "form", "selected_tol"}
#: Files have columns in different units; in an estimator alpha and C are those of scikit-learn.
ON_PURPOSE = {"standardize"}


def _built(target: Target, *words: str) -> dict[str, object]:
    """Return the parameters of the estimator that ``atomlearn select`` fits with these options."""
    options = build_parser().parse_args(["select", "t.csv", *words, "--out", "o"])
    settings = read_settings(options)
    design = DenseDesign(np.eye(len(target.values)))
    data = TrainingData(design, target, target.values, DataRoles())
    built = build_estimator(settings, data, ProgressPrinter(quiet=True))
    return dict(built.get_params(deep=False))


def _targets() -> list[Target]:
    """Return targets of a regression, two classes, and survival times."""
    codes = np.arange(40) % 2
    times = survival_target(codes, np.arange(40) + 1.0)
    return [
        Target("y", None, np.arange(40.0)),
        Target("y", ("a", "b"), codes),
        Target("y", None, times),
    ]


@pytest.mark.parametrize("target", _targets(), ids=lambda target: target.task)
def test_defaults_of_feature_generation_are_the_same(target: Target) -> None:
    found = _built(target)
    expected = FeatureGenerator().get_params(deep=False)
    differ = {name for name in expected if found[name] is not expected[name]}
    differ = {name for name in differ if found[name] != expected[name]}
    assert differ - OTHER_FORM == ON_PURPOSE


@pytest.mark.parametrize("target", _targets(), ids=lambda target: target.task)
def test_defaults_of_a_search_are_the_same(target: Target) -> None:
    kinds = {
        "regression": AtomicRegressorCV,
        "classification": AtomicClassifierCV,
        "survival": AtomicSurvivalCV,
    }
    found = _built(target, "--norm", "l1")
    expected = kinds[target.task]().get_params(deep=False)
    differ = {name for name in expected if found[name] is not expected[name]}
    differ = {name for name in differ if found[name] != expected[name]}
    # The command standardizes before the fit: coefficients are those of the standardized columns.
    assert differ - OTHER_FORM == set()


def test_the_one_default_that_differs_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "faq.md").read_text(encoding="utf-8")
    assert "the one default in which the command line differs: it standardizes" in page
    with pytest.raises(SystemExit):
        build_parser().parse_args(["select", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert "estimators in Python need standardize=True" in words
    assert "--no-standardize" in words
