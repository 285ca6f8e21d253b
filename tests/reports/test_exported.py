"""Model files of estimators: the command line predicts from a file of words, dates and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicSurvival,
    MultipleKernelRegressor,
    SubsetRegressor,
)
from atomlearn.cli import main
from atomlearn.losses import survival_target
from atomlearn.reports import read_model, write_model

N = 120
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(60, 10, N).round(2),
        "stage": RNG.choice(["I", "II", "III"], N),
        "sex": pd.Series(RNG.choice(["f", "m"], N)).mask(RNG.random(N) < 0.1),
        "seen": pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), unit="D"),
        "dose": pd.Series(RNG.exponential(2.0, N).round(3)).mask(RNG.random(N) < 0.2),
    }
)
RISK = 0.05 * (FRAME.age - 60) + 1.5 * (FRAME.stage == "III") + 0.002 * FRAME.seen.dt.dayofyear
Y = RISK + 0.2 * RNG.standard_normal(N)
TIMES = survival_target(RNG.random(N) < 0.7, RNG.exponential(np.exp(-RISK)))
KINDS = np.digitize(Y, np.quantile(Y, [0.3, 0.6])).astype(str)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (AtomicRegressor(alpha=0.01, standardize=True), Y),
        (AtomicRegressor(alpha=0.02, features="interactions", standardize=True), Y),
        (AtomicRegressor(alpha=0.05, features="splines", norm="groups"), Y),
        (AtomicSurvival(alpha=0.01, standardize=True), TIMES),
        (SubsetRegressor(3, standardize=True), Y),
        (AtomicClassifier(alpha=0.01, standardize=True), KINDS),
        (AtomicClassifier(alpha=0.01, standardize=True, multi_class="multinomial"), KINDS),
    ],
)
def test_the_command_line_predicts_what_the_estimator_does(
    model: Any, y: Any, tmp_path: Path
) -> None:
    fitted = model.fit(FRAME, y)
    write_model(tmp_path / "model.json", fitted, target="risk")
    assert read_model(tmp_path / "model.json").target == "risk"
    FRAME.to_csv(tmp_path / "new.csv", index=False)
    files = [str(tmp_path / name) for name in ("model.json", "new.csv", "out.csv")]
    assert main(["predict", *files[:2], "--out", files[2]]) == 0
    found = pd.read_csv(files[2], dtype={"prediction": str if y is KINDS else float})
    if y is KINDS:
        assert (found.prediction == fitted.predict(FRAME)).all()
        shown = found[[f"probability[{label}]" for label in fitted.classes_]]
        assert_allclose(shown, fitted.predict_proba(FRAME), rtol=1e-9)
    else:
        predicted = found.select_dtypes("float").iloc[:, 0]  # its name is of the task
        assert_allclose(predicted, fitted.predict(FRAME), rtol=1e-9, atol=1e-12)


def test_other_models_are_refused(tmp_path: Path) -> None:
    model = MultipleKernelRegressor(rank=3).fit(FRAME[["age"]], Y)
    with pytest.raises(TypeError, match="got MultipleKernelRegressor; persist others by pickle"):
        write_model(tmp_path / "model.json", model)
