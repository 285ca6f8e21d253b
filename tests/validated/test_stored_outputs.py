"""The rows of ``docs/validated.md``: numbers that other programs and books printed, and ours.

Each function returns our numbers and the stored ones of one row. The page says how far they may be
apart, so that it cannot claim more than these tests check.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicSurvival,
    SubsetRegressor,
    losses,
    norms,
)
from atomlearn.losses import survival_target

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "validated.md"
STORED: dict[str, Any] = json.loads((HERE / "stored.json").read_text(encoding="utf-8"))
TOL = 1e-11

Array = NDArray[np.float64]
#: Our numbers and the stored ones.
Pairs = list[tuple[Any, Any]]
CASES: dict[str, Callable[[], Pairs]] = {}


def case(compare: Callable[[], Pairs]) -> Callable[[], Pairs]:
    """Keep the comparison under its name, the first word of a row of the page."""
    CASES[compare.__name__] = compare
    return compare


def table(name: str) -> dict[str, Any]:
    """Return the columns of a stored table: numbers, or words where some value is none."""
    with (HERE / "tables" / f"{name}.csv").open(encoding="utf-8") as lines:
        head, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    columns = dict(zip(head, np.array(rows).T, strict=True))
    return {k: v.astype(float) if k not in ("race", "celltype") else v for k, v in columns.items()}


def matrix(columns: dict[str, Any], names: str) -> Array:
    return np.column_stack([columns[name] for name in names.split()])


def scaled(X: Array) -> Array:
    """Return columns of mean 0 and standard deviation 1, as R's ``scale`` makes them."""
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))


def coefficients(model: Any, *data: Any) -> Array:
    """Fit; return the intercept, if one is fitted, and the coefficients."""
    model.fit(*data)
    assert model.status_.is_converged
    has = getattr(model, "fit_intercept", False)
    return np.append(np.ravel(model.intercept_) if has else [], np.ravel(model.coef_))


def unpenalized(X: Array, y: Array, loss: Any, **options: Any) -> Array:
    """Return the maximum likelihood: every column is free of the penalty."""
    kind = AtomicClassifier if loss == "logistic" else AtomicRegressor
    return coefficients(kind(loss=loss, unpenalized=range(X.shape[1]), tol=TOL, **options), X, y)


@case
def glmnet_gaussian() -> Pairs:
    data = table("glmnet_gaussian")
    found = []
    for n, p, mixing, level, *theirs in STORED["glmnet_gaussian"]:
        X = scaled(matrix(data, "x1 x2 x3 x4 x5")[: int(n), : int(p)])
        y = scaled(data["y"][: int(n)])
        # glmnet divides y by this number, and its ridge part is not multiplied back.
        spread = np.sqrt(np.mean(y**2))
        ridge = level * (1 - mixing) / spread
        alpha = level * mixing + ridge
        ratio = level * mixing / alpha
        model = AtomicRegressor(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=TOL)
        found.append((coefficients(model, X, y), theirs))
    return found


def glmnet_without_intercept(name: str, kind: Any, loss: str) -> Pairs:
    data = table(name)
    X = scaled(matrix(data, "x1 x2 x3 x4 x5"))
    options: dict[str, Any] = {"loss": loss, "fit_intercept": False, "tol": TOL}
    return [
        (coefficients(kind(alpha=level, l1_ratio=mixing, **options), X, data["y"]), theirs)
        for mixing, level, *theirs in STORED[name]
    ]


@case
def glmnet_binomial() -> Pairs:
    return glmnet_without_intercept("glmnet_binomial", AtomicClassifier, "logistic")


@case
def glmnet_poisson() -> Pairs:
    return glmnet_without_intercept("glmnet_poisson", AtomicRegressor, "poisson")


@case
def glmnet_small() -> Pairs:
    a, b = np.arange(-4.0, 5), np.array([0.0, 0, 1, 0, 1, 1, 1, 0, 0])
    X = np.column_stack([a, b])
    ridge: dict[str, Any] = {"alpha": 1.0, "l1_ratio": 0.0, "tol": 1e-13}
    two = coefficients(AtomicClassifier(**ridge), X, [0, 0, 0, 1, 1, 1, 1, 1, 1])
    three = AtomicClassifier(multi_class="multinomial", **ridge)
    three.fit(X, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    joint = np.column_stack([three.intercept_, three.coef_])
    Z, counts = np.array([[-2.0, 0], [-1, 0], [1, 1], [2, 1]]), [0, 1, 1, 2]
    of_counts = AtomicRegressor(loss="poisson", **ridge)
    mixed = AtomicRegressor(loss="poisson", alpha=1.0, l1_ratio=0.5, tol=1e-13)
    ours = [two, joint, coefficients(of_counts, Z, counts), coefficients(mixed, Z, counts)]
    return list(zip(ours, STORED["glmnet_small"], strict=True))


@case
def coxnet_simple() -> Pairs:
    y = survival_target([True, False, False, True, False], [7.0, 8, 11, 11, 23])
    X = np.column_stack(
        [
            [1, 1, 1, 0, 0],
            [23, 43, 54, 75, 67],
            [120, 98, 78, 91, 79],
            [0.123, 0.541, 0.784, 0.846, 0.331],
        ]
    )
    return [
        (coefficients(AtomicSurvival(alpha=alpha, ties="breslow", tol=TOL), X, y), theirs)
        for alpha, *theirs in STORED["coxnet_simple"]
    ]


@case
def coxph() -> Pairs:
    found = []
    for key, theirs in STORED["coxph"].items():
        size = "_".join(key.split("_")[:2])
        data = table(f"coxph_{size}")
        X = matrix(data, " ".join(k for k in data if k.startswith("x")))
        more = {"entry": data["entry"]} if "_et_" in f"{key}_" else {}
        if "_st_" in f"{key}_":
            more["stratum"] = np.repeat(np.arange(5), len(X) // 5)
        y = survival_target(data["status"] == 1, data["time"], **more)
        ties: Any = "breslow" if key.endswith("bre") else "efron"
        model = AtomicSurvival(ties=ties, unpenalized=range(X.shape[1]), tol=TOL)
        found.append((coefficients(model, X, y), theirs))
    return found


@case
def coxph_veteran() -> Pairs:
    data = table("veteran")
    kinds = [data["celltype"] == kind for kind in ("smallcell", "adeno", "large")]
    others = matrix(data, "test karno diagtime age prior")
    X = np.column_stack([others[:, :1], *kinds, others[:, 1:]])
    y = survival_target(data["death"] == 1, data["time"])
    return [(coefficients(AtomicSurvival(unpenalized=range(8), tol=TOL), X, y), STORED["veteran"])]


@case
def grpreg_birthwt() -> Pairs:
    data = table("birthwt")
    parts = {
        "age": powers(data["age"]),
        "lwt": powers(data["lwt"]),
        "race": np.column_stack([data["race"] == "white", data["race"] == "black"]),
        "smoke": data["smoke"][:, None],
        "ptl": np.column_stack([data["ptl"] == 1, data["ptl"] >= 2]),
        "ht": data["ht"][:, None],
        "ui": data["ui"][:, None],
        "ftv": np.column_stack([data["ftv"] == 1, data["ftv"] == 2, data["ftv"] >= 3]),
    }
    X = np.hstack([*parts.values()]).astype(float)
    labels = np.repeat(np.arange(8), [part.shape[1] for part in parts.values()])
    # grpreg makes the columns of a group orthonormal, and weighs groups by the root of their size.
    centered = X - X.mean(axis=0)
    bases = []
    for group in range(8):
        U, d, Vt = np.linalg.svd(centered[:, labels == group], full_matrices=False)
        bases.append((np.sqrt(len(X)) * U, Vt.T / d * np.sqrt(len(X))))
    norm = norms.Groups(labels, weights="sqrt_size")
    y = data["bwt"] / 1000
    Z = np.hstack([basis for basis, _ in bases])
    turned = coefficients(AtomicRegressor(norm, alpha=0.05, tol=TOL), Z, y)[1:]
    coef = np.concatenate([back @ turned[labels == g] for g, (_, back) in enumerate(bases)])
    return [(np.append(y.mean() - X.mean(axis=0) @ coef, coef), STORED["grpreg_birthwt"])]


def powers(x: Array) -> Array:
    """Return the orthonormal polynomials of degree 1 to 3, with positive leading coefficients."""
    Q, R = np.linalg.qr(np.vander(x - x.mean(), 4, increasing=True))
    return np.asarray(Q * np.sign(np.diag(R)))[:, 1:]


@case
def esl_prostate() -> Pairs:
    data = table("prostate")
    X = scaled(matrix(data, "lcavol lweight age lbph svi lcp gleason pgg45"))
    train = data["train"] == 1
    X, y = X[train], data["lpsa"][train]
    mean, spread = X.mean(axis=0), X.std(axis=0, ddof=1)
    stored = {key: np.array(values) for key, values in STORED["esl_prostate"].items()}
    found = [(unpenalized(X, y, "squared"), stored["least squares"])]
    best = SubsetRegressor(n_features=2, l2=1e-9, tol=1e-9).fit(X, y)
    found.append((np.append(best.intercept_, best.coef_), stored["best subset"]))
    # Ridge regression of five degrees of freedom; its intercept is of centered columns.
    squares = np.linalg.svd(X - mean, compute_uv=False) ** 2
    ridge = brentq(lambda k: (squares / (squares + k)).sum() - 5.0, 0.1, 1e3, xtol=1e-12)
    model = AtomicRegressor(alpha=ridge / len(y), l1_ratio=0.0, tol=TOL)
    found.append((coefficients(model, X - mean, y), stored["ridge"]))
    # The lasso's penalty is of the training rows scaled once more.
    radius = (np.abs(stored["lasso"][1:]) * spread).sum()
    ball = AtomicRegressor(form="constrained", radius=radius, tol=TOL)
    slopes = coefficients(ball, (X - mean) / spread, y)[1:] / spread
    found.append((np.append(y.mean() - mean @ slopes, slopes), stored["lasso"]))
    return found


@case
def lars() -> Pairs:
    rows = [
        [0.47299829, 0, 0, 0, 0],
        [0.08239882, 0.85784863, 0, 0, 0],
        [0.30114139, -0.07501577, 0.80895216, 0, 0],
        [-0.01460346, -0.1015233, 0.0407278, 0.80338378, 0],
        [-0.69363927, 0.06754067, 0.18064514, -0.0803561, 0.40427291],
    ]
    X = np.array(rows).T
    y = np.array([-6.45006793, -3.51251449, -8.52445396, 6.12277822, -19.42109366])
    found = []
    for theirs in np.transpose(STORED["lars"])[:-1]:
        # A kink of the path: the largest correlation of a column with the residual.
        alpha = np.abs(X.T @ (y - X @ theirs)).max() / len(y)
        model = AtomicRegressor(alpha=alpha, fit_intercept=False, tol=1e-15)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(X, y)
        assert model.gap_ <= 1e-12 * model.objective_
        found.append((model.coef_, theirs))
    return found


@case
def glm_low_birth_weight() -> Pairs:
    data = table("birthwt")
    black, other = data["race"] == "black", data["race"] == "other"
    X = np.column_stack([matrix(data, "age lwt"), black, other, matrix(data, "smoke ptl ht ui")])
    return [(unpenalized(X, data["low"], "logistic"), STORED["glm_low_birth_weight"])]


@case
def glm_counts() -> Pairs:
    data = table("cpunish")
    data["logvc"] = np.log(data["vc100k96"])
    X = matrix(data, "income perpoverty perblack logvc south degree")
    return [(unpenalized(X, data["executions"], "poisson"), STORED["glm_counts"])]


@case
def glm_gamma() -> Pairs:
    data = table("cancer")
    X = np.column_stack([data["age"], data["drug"] == 2, data["drug"] == 3]).astype(float)
    return [(unpenalized(X, data["studytime"], "gamma"), STORED["glm_gamma"])]


@case
def quantreg() -> Pairs:
    data = table("stackloss")
    X = matrix(data, "air water acid")
    return [
        (unpenalized(X, data["loss"], losses.Quantile(float(q))), theirs)
        for q, theirs in STORED["quantreg"].items()
    ]


def rows() -> dict[str, tuple[int, float]]:
    """Return the number of values and the largest difference that the page states, by row."""
    page = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(\w+)` .*\| ([\d,]+) \| (\S+) \|$", page, re.MULTILINE)
    return {name: (int(count.replace(",", "")), float(size)) for name, count, size in lines}


ROWS = rows()


@pytest.mark.parametrize("name", ROWS)
def test_numbers_are_those_that_others_printed(name: str) -> None:
    count, difference = ROWS[name]
    pairs = [(np.ravel(ours), np.ravel(theirs)) for ours, theirs in CASES[name]()]
    assert sum(theirs.size for _, theirs in pairs) == count
    worst = max(np.abs(ours - theirs).max() for ours, theirs in pairs)
    assert worst <= difference


def test_every_comparison_is_a_row_of_the_page() -> None:
    assert list(CASES) == list(ROWS)
