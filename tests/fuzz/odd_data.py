"""Odd data through every public entry point: an answer, or one line that says what is expected.

python -m tests.fuzz.odd_data --only knockoffs     entries whose name contains this
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

import atomlearn as al
from atomlearn import findings, losses, paths
from atomlearn.core import Array
from atomlearn.findings.knockoffs import knockoff_threshold
from atomlearn.findings.verdict import verdict_on
from tests.fuzz.rule import LONGEST, Impolite, _Hang, _time_limit

#: Processor time that one call on a dozen rows may take.
SECONDS = 20
N, P = 12, 4
_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((N, P))
NUMBERS = X[:, 0] + 0.5 * _RNG.standard_normal(N)
LABELS = np.where(np.arange(N) % 2, "a", "b")
TIMES = losses.survival_target(np.arange(N) % 3 > 0, np.exp(NUMBERS))

Entry = Callable[[Any, Any], Any]


def _model(make: Callable[[], Any], **new: Any) -> Entry:
    """Return a fit, and what a fitted model then makes of the same rows."""

    def fit(X: Any, y: Any) -> Any:
        model = make().fit(X, y, **new)
        known = hasattr(model, "predict")
        return model.predict(X) if known else model.transform(X)

    return fit


def _after(use: Callable[[Any, Any, Any], Any], make: Callable[[], Any]) -> Entry:
    """Return the use of a model that was fitted to sound rows."""
    model = make()
    model.fit(X, LABELS if is_classifier(model) else NUMBERS)
    return lambda X, y: use(model, X, y)


def _of_numbers() -> dict[str, Entry]:
    one, cv = al.AtomicRegressor, al.AtomicRegressorCV
    few: dict[str, Any] = {"n_alphas": 3, "cv": 2}
    fast = al.SubsetRegressor
    return {
        "solve": lambda X, y: al.solve(X, y, alpha=0.01, fit_intercept=False),
        "solve_subset": lambda X, y: al.solve_subset(X, y, n_features=2, l2=0.01, time_limit=1.0),
        "path": lambda X, y: paths.path(X, y, n_alphas=3, fit_intercept=False),
        "regressor": _model(lambda: one(alpha=0.1)),
        "regressor ksupport": _model(lambda: one(al.norms.KSupport(2), alpha=0.1)),
        "regressor groups": _model(lambda: one(al.norms.Groups([[0, 1], [2, 3]]), alpha=0.1)),
        "regressor rows": _model(lambda: one("rows", alpha=0.1)),
        "regressor huber": _model(lambda: one(loss="huber", alpha=0.1)),
        "regressor quantile": _model(lambda: one(loss=losses.Quantile(0.3), alpha=0.1)),
        "regressor poisson": _model(lambda: one(loss="poisson", alpha=0.1)),
        "regressor products": _model(lambda: one(alpha=0.1, features="interactions")),
        "regressor curves": _model(lambda: one(alpha=0.1, features="splines")),
        "regressor cv": _model(lambda: cv(**few)),
        "regressor cv ksupport": _model(lambda: cv("ksupport", **few)),
        "regressor cv rows": _model(lambda: cv("rows", **few)),
        "regressor cv relaxed": _model(lambda: cv(relax=(0.0, 1.0), **few)),
        "generator": _model(lambda: al.FeatureGenerator(2, loss="squared", standardize=True)),
        "subset": _model(lambda: fast(2, time_limit=1.0)),
        "subset cv": _model(lambda: fast(range(1, 3), cv=2, time_limit=1.0)),
        "kernels": _model(lambda: al.MultipleKernelRegressor(rank=2)),
        "knockoffs": _model(lambda: al.KnockoffSelector(fdr=0.5, random_state=0)),
        "stability": _model(lambda: al.StabilitySelector(one(alpha=0.1), 3, random_state=0)),
        "p_values": lambda X, y: findings.p_values(X, y),
        "twins": lambda X, y: findings.twins(one(alpha=0.1).fit(X, y), X, y),
        "estimates": lambda X, y: findings.estimates(one(alpha=0.1).fit(X, y), X, y),
        "estimates exact": lambda X, y: findings.estimates(
            one(alpha=0.1).fit(X, y), X, y, how="exact"
        ),
        "verdict": lambda X, y: findings.held_out_verdict(one(alpha=0.1), X, y),
        "importance": lambda X, y: findings.conditional_importance(one(alpha=0.1), X, y),
        "keep": lambda X, y: findings.keep(one(alpha=0.1).fit(X, y), X, y),
        "conformal": lambda X, y: findings.full_conformal(
            one(alpha=0.1, tol=1e-9).fit(X, y), X, y, X[:1]
        ),
        "verdict_on": lambda X, y: verdict_on("regression", y, y),
    }


def _of_labels() -> dict[str, Entry]:
    one, cv = al.AtomicClassifier, al.AtomicClassifierCV
    return {
        "classifier": _model(lambda: one(alpha=0.1)),
        "classifier softmax": _model(lambda: one(alpha=0.1, multi_class="multinomial")),
        "classifier hinge": _model(lambda: one(alpha=0.1, loss="squared_hinge")),
        "classifier balanced": _model(lambda: one(alpha=0.1, class_weight="balanced")),
        "classifier cv": _model(lambda: cv(n_alphas=3, cv=2)),
        "generator of labels": _model(lambda: al.FeatureGenerator(2, standardize=True)),
        "subset classifier": _model(
            lambda: al.SubsetClassifier(2, time_limit=1.0, standardize=True)
        ),
        "kernel classifier": _model(lambda: al.MultipleKernelClassifier(rank=2)),
        "knockoffs of labels": _model(lambda: al.KnockoffSelector(fdr=0.5, random_state=0)),
        "stability of labels": _model(
            lambda: al.StabilitySelector(one(alpha=0.1), 3, random_state=0)
        ),
        "p_values of labels": lambda X, y: findings.p_values(X, y),
        "verdict of labels": lambda X, y: findings.held_out_verdict(one(alpha=0.1), X, y),
        "estimates of labels": lambda X, y: findings.estimates(one(alpha=0.1).fit(X, y), X, y),
        "importance of labels": lambda X, y: findings.conditional_importance(one(alpha=0.1), X, y),
    }


def _of_times() -> dict[str, Entry]:
    return {
        "survival": _model(lambda: al.AtomicSurvival(alpha=0.1)),
        "survival cv": _model(lambda: al.AtomicSurvivalCV(n_alphas=3, cv=2)),
        "knockoffs of times": _model(lambda: al.KnockoffSelector(fdr=0.5, random_state=0)),
        "p_values of times": lambda X, y: findings.p_values(X, y),
        "verdict of times": lambda X, y: findings.held_out_verdict(
            al.AtomicSurvival(alpha=0.1), X, y
        ),
    }


def _of_nothing() -> dict[str, Entry]:
    return {
        "completion": _model(lambda: al.MatrixCompletion(rank=2, standardize=True)),
        "sparse pca": lambda X, y: al.SparsePCA(n_components=1, max_iter=50).fit(X).transform(X),
        "low rank": _model(lambda: al.SparseLowRank(tol=1e-3)),
        "pursuit": lambda X, y: al.MatrixPursuit(tol=1e-3).fit(X).affinity_,
        "knockoffs alone": lambda X, y: findings.gaussian_knockoffs(X, rng=0),
        "power": lambda X, y: findings.power(
            al.AtomicRegressor(alpha=0.1), X, sizes=[0.5], n_true=1, n_draws=2
        ),
    }


def _of_fitted() -> dict[str, Entry]:
    one, of = (lambda: al.AtomicRegressor(alpha=0.1)), (lambda: al.AtomicClassifier(alpha=0.1))
    cv = lambda: al.AtomicRegressorCV(n_alphas=3, cv=2)  # noqa: E731
    return {
        "predict": _after(lambda m, X, y: m.predict(X), one),
        "score": _after(lambda m, X, y: m.score(X, y), one),
        "transform": _after(lambda m, X, y: m.transform(X), lambda: al.SparsePCA(n_components=1)),
        "predict classes": _after(lambda m, X, y: m.predict_proba(X), of),
        "score of classes": _after(lambda m, X, y: m.score(X, y), of),
        "interval": _after(lambda m, X, y: m.predict(X, interval=0.8), cv),
        "explain": _after(lambda m, X, y: findings.explain(m, X), one),
        "explain reference": _after(lambda m, X_, y: findings.explain(m, X, X_), one),
        "predict subset": _after(
            lambda m, X, y: m.predict(X), lambda: al.SubsetRegressor(2, standardize=True)
        ),
        "monitor": _after(lambda m, X_, y: findings.monitor(m, X_, y, old=(X, NUMBERS)), one),
        "conformal of new rows": _after(
            lambda m, X_, y: findings.full_conformal(m, X, NUMBERS, X_), one
        ),
        "weights": _after(lambda m, X_, y: al.AtomicRegressor().fit(X, NUMBERS, y), one),
        "offset": _after(lambda m, X_, y: al.AtomicRegressor().fit(X, NUMBERS, None, y), one),
        "threshold": lambda X, y: knockoff_threshold(y, 0.2),
        "order": _after(
            lambda m, X_, y: al.AtomicRegressorCV(n_alphas=3, cv=2).fit(X, NUMBERS, order=y), one
        ),
        "groups of rows": _after(
            lambda m, X_, y: al.AtomicRegressorCV(n_alphas=3, cv=2).fit(X, NUMBERS, groups=y), one
        ),
    }


ENTRIES = {
    "numbers": (_of_numbers(), NUMBERS),
    "labels": (_of_labels(), LABELS),
    "times": (_of_times(), TIMES),
    "nothing": (_of_nothing(), NUMBERS),
    "fitted": (_of_fitted(), NUMBERS),
}


def _with(place: Any, value: float, array: Any = X) -> Array:
    changed = np.array(array, dtype=np.float64)
    changed[place] = value
    return changed


class Lengthless:
    """What has a shape and numbers, and no length, as targets of the array API have none."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def dtype(self) -> Any:
        return self.values.dtype


#: Rows and columns, and which rows of the target go with them.
ODD_X: dict[str, Any] = {
    "no rows": X[:0],
    "one row": X[:1],
    "two rows": X[:2],
    "three rows": X[:3],
    "no columns": X[:, :0],
    "one column": X[:, :1],
    "nothing at all": np.zeros((0, 0)),
    "a number": 3.0,
    "None": None,
    "a word": "X",
    "a list of words": ["a", "b"],
    "an empty list": [],
    "1-d": X[:, 0],
    "3-d": X[None],
    "zeros": np.zeros_like(X),
    "a constant": np.full_like(X, 3.7),
    "a constant column": _with((slice(None), 1), 2.5),
    "equal columns": X[:, [0, 0, 1, 1]],
    "equal columns but for rounding": X[:, [0, 0, 1, 1]] * [1, 1 + 1e-15, 1, 1],
    "opposite columns": X[:, [0, 0, 1, 1]] * [1, -1, 1, -1],
    "dependent columns": np.column_stack([X[:, :3], X[:, :3].sum(axis=1)]),
    "equal rows": np.tile(X[:1], (N, 1)),
    "rows twice": np.vstack([X[:6], X[:6]]),
    "more columns than rows": np.tile(X, (1, 8)) + _RNG.standard_normal((N, 8 * P)),
    "NaN": _with((3, 2), np.nan),
    "all NaN": np.full_like(X, np.nan),
    "infinity": _with((3, 2), np.inf),
    "huge": X * 1e150,
    "larger than huge": X * 1e300,
    "tiny": X * 1e-150,
    "less than tiny": X * 1e-310,
    "one huge entry": _with((0, 0), 1e200),
    "whole numbers": np.round(X).astype(int),
    "unsigned": np.abs(np.round(X)).astype(np.uint8),
    "truth": X > 0,
    "words": np.full((N, P), "a"),
    "objects": np.array([[object() for _ in range(P)] for _ in range(N)]),
    "objects of numbers": X.astype(object),
    "None within": np.where(X > 1.0, None, X.astype(object)),
    "complex": X + 1j,
    "float16": X.astype(np.float16),
    "float32": X.astype(np.float32),
    "wrong number of rows": X[:5],
    "a list": X.tolist(),
    "ragged": [[1.0, 2.0], [3.0]],
    "a frame": pd.DataFrame(X, columns=list("abcd")),
    "a frame of other names": pd.DataFrame(X, columns=list("efgh")),
    "a frame of equal names": pd.DataFrame(X, columns=list("aaab")),
    "a frame of mixed names": pd.DataFrame(X, columns=["a", 1, 2.5, None]),
    "a frame with words": pd.DataFrame({"a": X[:, 0], "b": ["u"] * N, "c": X[:, 1], "d": X[:, 2]}),
    "an empty frame": pd.DataFrame(),
    "sparse": sparse.csr_array(np.where(X > 0, X, 0.0)),
    "sparse, empty": sparse.csc_array((N, P)),
    "sparse, no rows": sparse.csr_array((0, P)),
    "sparse NaN": sparse.csr_array(_with((3, 2), np.nan)),
}
CUT = {"no rows": 0, "one row": 1, "two rows": 2, "three rows": 3, "sparse, no rows": 0}


def odd_targets(y: Any) -> dict[str, Any]:
    """Return odd targets that are as these in kind, or in nothing."""
    numbers = NUMBERS
    found: dict[str, Any] = {
        "no targets": y[:0],
        "one target": y[:1],
        "too many": np.concatenate([y, y]),
        "one column": y[:, None],
        "two columns": np.column_stack([y, y]) if y.dtype.names is None else y[:, None],
        "no column": np.zeros((N, 0)),
        "3-d": np.zeros((N, 1, 1)),
        "a constant target": y[[0] * N],
        "all but one alike": y[[0] * (N - 1) + [1]],
        "None": None,
        "a number": 3.0,
        "a word": "y",
        "words": np.array(list("abcdefghijkl")),
        "objects": np.array([object() for _ in range(N)]),
        "objects of numbers": numbers.astype(object),
        "None within": np.where(numbers > 1, None, numbers.astype(object)),
        "NaN": _with(3, np.nan, numbers),
        "all NaN": np.full(N, np.nan),
        "infinity": _with(3, np.inf, numbers),
        "zeros": np.zeros(N),
        "negative": -np.abs(numbers),
        "counts": np.arange(N) % 3,
        "huge": numbers * 1e150,
        "larger than huge": numbers * 1e300,
        "tiny": numbers * 1e-150,
        "less than tiny": numbers * 1e-310,
        "one huge": _with(3, 1e200, numbers),
        "far from zero": numbers + 1e12,
        "complex": numbers + 1j,
        "truth": numbers > 0,
        "dates": np.arange(N).astype("M8[D]"),
        "lengthless": Lengthless(numbers),
        "a list": list(y),
        "a series": pd.Series(y) if y.dtype.names is None else y,
        "a series of other rows": pd.Series(numbers, index=np.arange(N)[::-1]),
        "a frame of one column": pd.DataFrame({"y": numbers}),
        "sparse": sparse.csr_array(numbers[:, None]),
        "a set": set(range(N)),
    }
    if y.dtype.names is not None:
        found |= {
            "no events": losses.survival_target(np.zeros(N, bool), y["time"]),
            "one event": losses.survival_target(np.arange(N) == 3, y["time"]),
            "equal times": losses.survival_target(y["event"], np.ones(N)),
        }
    return found


#: Numbers whose squares or inverses are no floats.
EXTREME = ("huge", "larger than huge", "less than tiny", "one huge entry", "one huge")


def cases(extreme: bool = False) -> Iterator[tuple[str, str, Entry, Any, Any]]:
    """Yield (entry, case, call, X, y): all pairs of both."""
    for entries, sound in ENTRIES.values():
        odd_y = odd_targets(sound)
        for name, entry in entries.items():
            for case, odd in ODD_X.items():
                if extreme or case not in EXTREME:
                    yield name, f"X: {case}", entry, odd, sound[: CUT.get(case, N)]
            for case, odd in odd_y.items():
                if extreme or case not in EXTREME:
                    yield name, f"y: {case}", entry, X, odd


#: Folders whose own words no user should read: what is raised there was not looked at before.
INNER = ("/numpy/linalg/", "/scipy/", "/numpy/_core/", "/numpy/lib/")


def judged(entry: Entry, X: Any, y: Any) -> str:
    """Return "answered" or the refusal; raise Impolite for everything else."""
    try:
        with _time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            entry(X, y)
    except _Hang:
        raise Impolite(f"it takes more than {SECONDS} s") from None
    except (ValueError, TypeError, FileNotFoundError) as error:
        if isinstance(error, NotFittedError):
            raise Impolite(f"not fitted: {error}") from error
        return _refusal(error)
    except Exception as error:
        raise Impolite(f"{type(error).__name__}: {error}"[:300]) from error
    return "answered"


def _refusal(error: Exception) -> str:
    """Return the message; raise Impolite where it is not one line of ours."""
    message, frame = str(error), traceback.extract_tb(error.__traceback__)[-1]
    if not message.strip() or "\n" in message or len(message) > LONGEST:
        raise Impolite(f"{len(message)} letters: {message!r:.300}") from error
    ours = type(error) in (ValueError, TypeError, FileNotFoundError)
    if not ours or any(part in frame.filename for part in INNER):
        raise Impolite(f"from {Path(frame.filename).name}: {message}") from error
    return message


def main() -> int:
    """Try all of them; return 1 where one broke the rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.odd_data", description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--extreme", action="store_true", help="numbers near the ends of floats")
    parser.add_argument("--verbose", action="store_true", help="print what is said")
    options = parser.parse_args()
    count = Counter[str]()
    for name, case, entry, odd_x, odd_y in cases(options.extreme):
        if options.only not in name:
            continue
        try:
            found = judged(entry, odd_x, odd_y)
        except Impolite as fault:
            found = f"FAULT: {fault} [{where(fault)}]"
        count[found if found == "answered" else "faults" if "FAULT" in found else "refused"] += 1
        if options.verbose or "FAULT" in found:
            print(f"{name} | {case} | {found}", flush=True)
    print(dict(count))
    return int(count["faults"] > 0)


def where(fault: Impolite) -> str:
    """Return the last line of ours that a fault passed."""
    frames = traceback.extract_tb(fault.__cause__.__traceback__) if fault.__cause__ else []
    ours = [f for f in frames if "/atomlearn/" in f.filename]
    return f"{ours[-1].filename.split('/atomlearn/')[-1]}:{ours[-1].lineno}" if ours else "?"


if __name__ == "__main__":
    sys.exit(main())
