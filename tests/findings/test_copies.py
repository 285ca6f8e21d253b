"""Held-out rows that are nearly training rows: told where subjects recur, not where chance does."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from atomlearn import AtomicClassifier
from atomlearn.findings import held_out_verdict
from atomlearn.findings.copies import joined, repeated_rows

RNG = np.random.default_rng(0)
N = 300


def alike(X):
    """Return the share of rows that repeat another one."""
    found = repeated_rows(X)
    return 0.0 if found is None else np.mean(np.bincount(found)[found] > 1)


def one_hot(*levels):
    return np.hstack([np.eye(k)[RNG.integers(k, size=N)] for k in levels])


HONEST = {
    "one column": RNG.standard_normal((N, 1)),
    "two columns": RNG.standard_normal((N, 2)),
    "twelve columns": RNG.standard_normal((N, 12)),
    "0 and 1": RNG.integers(2, size=(N, 5)) * 1.0,
    "variants": RNG.binomial(2, 0.2, (N, 8)) * 1.0,
    "categories": one_hot(5, 4, 6),
    "questions": (RNG.standard_normal((N, 1)) + RNG.standard_normal((N, 10)) > 0) * 1.0,
    "design": np.tile(one_hot(2, 3)[:30], (10, 1)),
    "tumors": load_breast_cancer().data[:N],
    "sums to zero": np.zeros((N, 4)) + np.arange(N)[:, None] % 2 * [1.0, -1.0, 1.0, 1.0],
}


def test_rows_that_meet_by_chance_all_count():
    for name, table in HONEST.items():
        assert repeated_rows(table) is None, name


@pytest.mark.parametrize(("own", "columns"), [(0.0, 12), (0.02, 100), (0.05, 12), (0.05, 100)])
def test_rows_of_the_same_subjects_are_told(own, columns):
    rng = np.random.default_rng(columns)
    subject = rng.permutation(np.arange(N) % 20)
    subjects = rng.standard_normal((20, columns))[subject]
    X = np.sqrt(1 - own) * subjects + np.sqrt(own) * rng.standard_normal((N, columns))
    found = repeated_rows(X)
    assert alike(X) > 0.9
    # Two subjects may be joined, but hardly one is cut.
    assert np.mean([np.unique(found[subject == one]).size == 1 for one in range(20)]) >= 0.9


def test_a_few_copies_are_told_one_by_one():
    X = RNG.standard_normal((N, 40))
    X[210], X[240], X[250] = X[3], X[230], X[3]
    X[220] = X[4].round(3)
    found = repeated_rows(X)
    sizes = np.bincount(found)
    assert [np.flatnonzero(found == one).tolist() for one in np.flatnonzero(sizes > 1)] == [
        [3, 210, 250], [4, 220], [230, 240]
    ]  # fmt: skip


def tables():
    """Return tables of every kind, without a row twice."""
    X = RNG.standard_normal((N, 12))
    gaps = np.where(RNG.random((N, 12)) < 0.1, np.nan, X)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)]).assign(
        site=RNG.choice(["a", "b", "c"], N), stage=RNG.choice(["I", None], N)
    )
    sparse = scipy.sparse.random(N, 200, 0.05, "csr", random_state=1)
    words = pd.DataFrame({f"w{j}": RNG.choice(list("abcdefgh"), N) for j in range(9)})
    large = RNG.standard_normal((4000, 20))
    return {
        "numbers": X,
        "gaps": gaps,
        "frame": frame,
        "sparse": sparse,
        "words": words,
        "many": large,
    }


@pytest.mark.parametrize("kind", ["numbers", "gaps", "frame", "sparse", "words", "many"])
def test_copies_are_found_in_tables_of_every_kind(kind):
    table = tables()[kind]
    assert alike(table) <= 0.01
    n_rows = table.shape[0]
    rows = RNG.permutation(np.r_[np.arange(n_rows), np.arange(n_rows // 3)])
    twice = np.bincount(rows)[rows] > 1
    copied = table.iloc[rows] if kind in ("frame", "words") else table[rows]
    found = repeated_rows(copied)
    assert (np.bincount(found)[found] > 1).tolist() == twice.tolist()
    assert all(
        np.unique(rows[found == one]).size == 1
        for one in np.flatnonzero(np.bincount(found) > 1)[:50]
    )


def test_copies_that_were_rounded_are_found_in_large_tables():
    X = RNG.standard_normal((3000, 30))
    assert repeated_rows(X) is None
    rows = RNG.permutation(4000)
    found = repeated_rows(np.vstack([X, X[:1000].round(3)])[rows])
    of = np.where(rows < 3000, rows, rows - 3000)
    assert np.mean((np.bincount(found)[found] > 1) == (np.bincount(of)[of] > 1)) > 0.99


def test_labels_are_joined_by_the_rows_that_they_share():
    groups, repeated = np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 3, 4])
    assert joined(6, groups, repeated).tolist() == [0, 0, 0, 0, 1, 2]
    assert joined(6, None, repeated).tolist() == repeated.tolist()
    assert joined(6, None, None) is None


def test_the_verdict_keeps_subjects_together():
    """Noise of 30 subjects, eight rows each, one value missing: few subjects are few rows."""
    better = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.standard_normal((30, 40)), 8, axis=0)
        X[0, 0] = np.nan
        y = np.repeat(rng.permutation(np.arange(30) % 2), 8)
        model = make_pipeline(SimpleImputer(), AtomicClassifier(alpha=0.02))
        found = held_out_verdict(model, X, y, rng=seed)
        assert found.n_rows <= 10
        better.append(found.better)
    assert sum(better) <= 2  # 5% of 6 is 0.3; above 2 has probability 0.002


def test_values_that_recur_by_chance_leave_the_verdict_as_it_is():
    rng = np.random.default_rng(1)
    X = rng.integers(2, size=(400, 5)) * 1.0
    y = (X[:, 0] + 0.5 * rng.standard_normal(400) > 0.5).astype(int)
    assert held_out_verdict(AtomicClassifier(alpha=0.02), X, y).better
