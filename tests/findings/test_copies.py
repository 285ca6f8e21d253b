"""Held-out rows that are nearly training rows: told where subjects recur, not where chance does."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from atomlearn import AtomicClassifier
from atomlearn.designs import as_design
from atomlearn.findings import held_out_verdict
from atomlearn.findings.copies import known_already

RNG = np.random.default_rng(0)
N = 300
TRAIN, TEST = np.arange(200), np.arange(200, N)


def known(X):
    return known_already(as_design(X), TRAIN, TEST)


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
        assert not known(table).any(), name


@pytest.mark.parametrize(("own", "columns"), [(0.0, 12), (0.02, 100), (0.05, 12), (0.05, 100)])
def test_rows_of_the_same_subjects_are_told(own, columns):
    rng = np.random.default_rng(columns)
    subjects = rng.standard_normal((20, columns))[rng.permutation(np.arange(N) % 20)]
    X = np.sqrt(1 - own) * subjects + np.sqrt(own) * rng.standard_normal((N, columns))
    assert known(X).mean() > 0.9


def test_a_few_copies_are_told_one_by_one_and_held_out_rows_count_once():
    X = RNG.standard_normal((N, 40))
    X[210], X[240] = X[3], X[230]
    X[220] = X[4] + 1e-3  # a single row that is near tells of no subjects
    assert np.flatnonzero(known(X)).tolist() == [10, 40]


def test_the_verdict_of_a_clone_leaves_subjects_out():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.standard_normal((15, 40)), 8, axis=0)
    y = np.repeat(rng.permutation(np.arange(15) % 2), 8)
    model = AtomicClassifier(alpha=0.02)
    assert held_out_verdict(model, X, y).n_rows == 0
    X = rng.integers(2, size=(400, 5)) * 1.0
    y = (X[:, 0] + 0.5 * rng.standard_normal(400) > 0.5).astype(int)
    assert held_out_verdict(model, X, y).better
