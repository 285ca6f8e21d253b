"""The data sets of benchmarks/quality.py: what is at hand of real ones, and made ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from atomlearn.testing.synthetic import make_zou_hastie
from benchmarks.harness.real_data import data_file, load

Array = Any


@dataclass(frozen=True)
class Table:
    """classes : whether y has two classes, 0 and 1; groups : lists of columns, or None; truth : the
    columns that y depends on, of made data."""

    X: Array
    y: Array
    classes: bool
    groups: list[list[int]] | None = None
    truth: Array | None = None


def array_file(path: str) -> Any:
    """Return the arrays of an .npz of the data folder."""
    return np.load(data_file(path), allow_pickle=False)


def two_classes(name: str, rows: int | None = None) -> Table:
    """Return a data set of two classes, or some of its rows."""
    data = load(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    order = np.random.default_rng(0).permutation(y.size)[:rows]
    return Table(X[order], (y[order] == np.unique(y)[-1]).astype(float), True)


def numbers(name: str, rows: int | None = None) -> Table:
    """Return a data set whose target is a number."""
    data = load(name)
    order = np.random.default_rng(0).permutation(len(data.y))[:rows]
    X = np.asarray(data.X, dtype=np.float64)[order]
    return Table(X, np.asarray(data.y, dtype=np.float64)[order], False)


def pathways() -> Table:
    """50 cell lines, 4301 genes, 308 pathways that overlap: is p53 mutated?"""
    file = array_file("groups/p53_pathways.npz")
    names = {key.lower(): key for key in file.files}
    X, y = file[names["x"]], file[names["y"]]
    cuts = file["group_indptr"]
    groups = [file["group_indices"][a:b].tolist() for a, b in pairwise(cuts)]
    return Table(X.astype(np.float64), (y == np.unique(y)[-1]).astype(float), True, groups)


def newsgroups(least: int = 20) -> Table:
    """Documents of alt.atheism and talk.religion.misc; log counts of words in `least` or more."""
    data = load("20news")
    rows = np.flatnonzero(np.isin(data.y, (0, 19)))
    counts = data.X[rows].tocsc()
    often = np.diff(counts.indptr) >= least
    X = np.log1p(counts[:, often].toarray().astype(np.float64))
    return Table(X, (np.asarray(data.y)[rows] == 19).astype(float), True)


def digits(first: int, second: int, rows: int) -> Table:
    """Images of two digits of MNIST, those pixels that vary among these rows."""
    file = array_file("mnist/mnist.npz")
    wanted = np.flatnonzero(np.isin(file["y_train"], (first, second)))
    chosen = np.random.default_rng(0).permutation(wanted)[:rows]
    X = file["x_train"][chosen].reshape(rows, -1) / 255.0
    return Table(X[:, X.std(axis=0) > 0], (file["y_train"][chosen] == second).astype(float), True)


def labeled(path: str, target: str, classes: bool) -> Table:
    """Return a data set with one group label a column."""
    file = array_file(path)
    labels, y = file["group"], file[target].astype(np.float64)
    groups = [np.flatnonzero(labels == one).tolist() for one in np.unique(labels)]
    y = (y == y.max()).astype(float) if classes else y
    return Table(file["X"].astype(np.float64), y, classes, groups)


def abess_draw(seed: int, rho: float, classes: bool) -> Table:
    """A draw of abess's own simulation: 10 of 1000 features, correlations rho^|i - j|."""
    from abess.datasets import make_glm_data

    np.random.seed(seed)  # noqa: NPY002 - abess draws from the global generator
    family = "binomial" if classes else "gaussian"
    made = make_glm_data(n=300, p=1000, k=10, rho=rho, family=family, corr_type="exp")
    return Table(made.x, made.y.ravel(), classes, None, np.flatnonzero(made.coef_))


def zou_hastie(seed: int) -> Table:
    """Three bunches of five nearly equal features among 40 ([A] section 5)."""
    data = make_zou_hastie(seed)
    return Table(data.X, data.y, False, None, np.arange(15))


def at_hand(make: Callable[[], Table]) -> Callable[[int], Table | None]:
    """Return the data set for every repeat, None where its file is not on this machine."""

    @cache
    def made() -> Table | None:
        try:
            return make()
        except FileNotFoundError as error:
            print(f"left out: {error}")
            return None

    return lambda repeat: made()


#: Those whose target is a number.
NUMBERS = ("birth weight", "bardet", "california, 1000 rows", "riboflavin")
#: The cheap ones first, so that a run that is cut has whole repeats of them.
REAL: dict[str, Callable[[int], Table | None]] = {
    "saheart": at_hand(lambda: two_classes("saheart")),
    "birth weight, low": at_hand(lambda: labeled("groups/birthwt.npz", "low", True)),
    "birth weight": at_hand(lambda: labeled("groups/birthwt.npz", "bwt", False)),
    "colon, groups": at_hand(lambda: labeled("groups/gglasso_colon.npz", "y", True)),
    "bardet": at_hand(lambda: labeled("groups/bardet.npz", "y", False)),
    "california, 1000 rows": at_hand(lambda: numbers("california", 1000)),
    "alon": at_hand(lambda: two_classes("alon")),
}
MADE: dict[str, Callable[[int], Table | None]] = {
    "abess simulation, rho 0.2": lambda seed: abess_draw(seed, 0.2, False),
    "abess simulation, rho 0.8": lambda seed: abess_draw(seed, 0.8, False),
    "abess simulation, two classes": lambda seed: abess_draw(seed, 0.2, True),
    "Zou-Hastie bunches": zou_hastie,
}
LARGE: dict[str, Callable[[int], Table | None]] = {
    "MNIST, 4 and 9, 1000 rows": at_hand(lambda: digits(4, 9, 1000)),
    "20 newsgroups, atheism and religion": at_hand(newsgroups),
    "riboflavin": at_hand(lambda: numbers("riboflavin")),
    "p53 pathways": at_hand(pathways),
    "shipp": at_hand(lambda: two_classes("shipp")),
    "west": at_hand(lambda: two_classes("west")),
    "golub": at_hand(lambda: two_classes("golub")),
    "prostate6033": at_hand(lambda: two_classes("prostate6033")),
    "madelon, 1000 rows": at_hand(lambda: two_classes("madelon", 1000)),
}
