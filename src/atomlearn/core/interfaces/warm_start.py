"""WarmStart: the initial point of a solve, and the atoms of which it is a combination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Array, Columns
from atomlearn.core.interfaces.factored import MatrixPart

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Atom:
    """A sparse vector a = sum_j values_j e_(columns_j), one of the atoms of a norm.

    Attributes
    ----------
    columns : (s,) int64
        Positions of the nonzero entries, without repeats.
    values : (s,) float64
    """

    columns: Columns
    values: Array


@dataclass(slots=True)
class WarmStart:
    """The initial point of a solve: columns with weights, and an intercept. Empty means w = 0.

    Attributes
    ----------
    columns : (m,) int64
        Columns of X with a weight.
    weights : (m,) float64
        Their coefficients.
    intercept : float
    lifted : tuple[Columns, Array], optional
        The lifted coordinates and weights of an earlier result, for norms with latent parts that
        add up to w. Without them each feature goes to the first set that has it.
    atoms : tuple[tuple[Atom, float], ...]
        Atoms and weights c with w as their combination, if they are known. The atoms must be *of
        the norm of the problem to solve*. Solvers over atoms use sum c as a bound on the gauge;
        with atoms of another norm, their certificate would be wrong. Empty is always valid.
    norm : object
        The norm whose atoms these are; ``run`` drops them for a problem of another norm. None: not
        checked.
    matrix_parts : tuple[MatrixPart, ...], optional
        The terms of an earlier fit with the same kinds of matrix norms, in their order.
    """

    columns: Columns
    weights: Array
    intercept: float = 0.0
    lifted: tuple[Columns, Array] | None = None
    atoms: tuple[tuple[Atom, float], ...] = ()
    matrix_parts: tuple[MatrixPart, ...] | None = None
    norm: object = None

    def arrays(self) -> Arrays:
        """Return the point and its atoms as arrays by name, to be saved in a file.

        The columns and values of all atoms are concatenated; ``atom_sizes`` tells where each ends.
        """
        atoms = [atom for atom, _ in self.atoms]
        sizes = [atom.columns.size for atom in atoms]
        return {
            "columns": self.columns,
            "weights": self.weights,
            "intercept": np.array(self.intercept),
            "atom_sizes": np.array(sizes, dtype=np.int64),
            "atom_columns": np.concatenate(
                [np.zeros(0, np.int64), *(atom.columns for atom in atoms)]
            ),
            "atom_values": np.concatenate([np.zeros(0), *(atom.values for atom in atoms)]),
            "shares": np.array([share for _, share in self.atoms], dtype=np.float64),
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> WarmStart:
        """Return the warm start that the method ``arrays`` turned into ``arrays``."""
        atoms: tuple[tuple[Atom, float], ...] = ()
        # Split the concatenated atoms; ``shares`` are their weights.
        if arrays["shares"].size:
            ends = np.cumsum(arrays["atom_sizes"])[:-1]
            columns = np.split(arrays["atom_columns"].astype(np.int64), ends)
            values = np.split(arrays["atom_values"], ends)
            atoms = tuple(
                (Atom(atom_columns, atom_values), float(share))
                for atom_columns, atom_values, share in zip(
                    columns, values, arrays["shares"], strict=True
                )
            )
        return cls(
            arrays["columns"].astype(np.int64),
            arrays["weights"].astype(np.float64),
            float(arrays["intercept"]),
            atoms=atoms,
        )
