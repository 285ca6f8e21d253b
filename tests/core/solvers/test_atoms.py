"""AtomSet: grows, shrinks and combines like the dense matrix it stands for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import designs, losses, norms
from atomlearn.core import AtomSet, Problem, Regularizer
from atomlearn.core.solvers.atom_generation import with_candidate
from atomlearn.core.solvers.atoms import atom_key
from atomlearn.designs import as_design
from atomlearn.interfaces import Atom
from atomlearn.testing.cases import each

Array = NDArray[np.float64]


def random_atom(rng: np.random.Generator, n_features: int) -> Atom:
    columns = rng.permutation(n_features)[: rng.integers(1, 5)].astype(np.int64)
    return Atom(columns, rng.standard_normal(columns.size))


def dense(atom: Atom, n_features: int) -> Array:
    u = np.zeros(n_features)
    u[atom.columns] = atom.values
    return u


@each("seed", range(6))
@pytest.mark.parametrize("cached", [False, True])
def test_against_the_dense_matrix(seed: int, cached: bool) -> None:
    """Random appends and drops; every state before stays what it was."""
    rng = np.random.default_rng(seed)
    n_samples, n_features = 7, 12
    X = rng.standard_normal((n_samples, n_features))
    design = as_design(X)
    atoms, U = AtomSet.empty(n_samples, gram=True, cached=cached), np.zeros((n_features, 0))
    history = [(atoms, U)]
    for _ in range(25):
        if atoms.size and rng.random() < 0.3:
            kept = np.flatnonzero(rng.random(atoms.size) < 0.7)
            atoms, U = atoms.take(kept), U[:, kept]
        else:
            atom = random_atom(rng, n_features)
            atoms, U = atoms.append(design, atom), np.column_stack([U, dense(atom, n_features)])
        history.append((atoms, U))
    for atoms, U in history if not cached else history[-1:]:
        shares = rng.standard_normal(U.shape[1])
        w = np.zeros(n_features)
        w[atoms.columns] = atoms.combine(shares)
        assert np.unique(atoms.columns).size == atoms.columns.size
        assert set(np.flatnonzero(U.any(axis=1))) <= set(atoms.columns)
        assert atoms.combine(shares).dtype == np.float64
        assert_allclose(w, U @ shares, atol=1e-12)
        assert_allclose(atoms.images.predict(shares), X @ U @ shares, atol=1e-12)
        v = rng.standard_normal(n_features)
        assert_allclose(atoms.products(v[atoms.columns]), U.T @ v, atol=1e-12)
        assert_allclose(atoms.gram, U.T @ U, atol=1e-12)
        for number in range(U.shape[1]):
            columns = np.flatnonzero(U[:, number])[::-1]
            assert atoms.find(Atom(columns, U[columns, number])) == number


def test_atoms_equal_but_for_rounding_are_one() -> None:
    atom = Atom(np.array([2, 5]), np.array([1.0, -3.0]))
    same = Atom(np.array([5, 2, 7]), np.array([-3.0 * (1 + 1e-15), 1.0, 1e-17]))
    assert atom_key(atom) == atom_key(same)
    for other in (
        Atom(np.array([2, 5]), np.array([1.0, 3.0])),
        Atom(np.array([2, 6]), np.array([1.0, -3.0])),
        Atom(np.array([2, 5]), np.array([2.0, -6.0])),
        Atom(np.array([2, 5]), np.array([1.0, -3.000001])),
    ):
        assert atom_key(atom) != atom_key(other)


def test_candidates_that_are_held_are_not_added_again(table):
    X, y = table
    problem = Problem.build(
        designs.as_design(X), y, losses.Squared(), Regularizer(norms.L1(), "penalized", 3.0)
    )
    first, second = (Atom(np.array([j]), np.array([1.0])) for j in (0, 1))
    atoms = AtomSet.empty(40).append(problem.design, first).append(problem.design, second)
    state = SimpleNamespace(atoms=atoms, candidate=second, shares=np.ones(2))
    held, shares = with_candidate(problem, state)
    assert held.size == 2
    assert shares.tolist() == [1.0, 1.0]
