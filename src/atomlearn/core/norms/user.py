"""UserNorm: a gauge that a user defines by a linear minimization oracle over its atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn._support import l2_norm, to_float64
from atomlearn.core.interfaces import Array, Atom, Columns, Norm, Scores, is_number
from atomlearn.core.norms.parameters import Parameters

#: Maximum number of earlier atoms with which a new one is compared, and of their entries in total.
REMEMBERED = 16
REMEMBERED_ENTRIES = 2**20
#: An earlier atom a' contradicts the oracle's atom a if <a', z> - <a, z> exceeds this tolerance
#: times ||a|| ||z||, with the longer of the two atoms.
BEATEN = 1e-9


class UserNorm(Parameters, Norm):
    """gauge(w) = min { sum_h c_h : w = sum_h c_h a_h, c >= 0 }, the atomic norm of a user's oracle.

    The atoms a_h are known only through the oracle: a function that returns an atom a with the
    largest inner product <a, z> for given scores z. (It is a linear minimization oracle, as in
    Frank-Wolfe methods.) That maximum is the polar of the gauge at z, also called its dual norm
    or support function. Fits, paths, cross-validation and duality gaps need nothing else;
    ``solvers.AtomGeneration`` computes them.

    Parameters
    ----------
    oracle : callable
        ``oracle(z)`` receives a copy of the scores, float64 of shape (p,), and returns an atom a
        that maximizes <a, z>: an array (p,), a pair (indices, values), or a SciPy sparse vector.
        The duality gap is valid only if the returned atom is a global maximizer; a heuristic
        oracle gives gaps that prove nothing.
    value : callable, optional
        ``value(w)`` for w of shape (p,) returns gauge(w). Fits do not need it.
    symmetric : bool
        If True, -a is an atom whenever a is, so that the best atom has <a, z> >= 0. If False, the
        gauge may be asymmetric; if no atom has <a, z> > 0, the polar is 0 and there is no best
        atom.
    name : str, optional
        Name of the norm in error messages; default: the name of the oracle.

    Notes
    -----
    Each returned atom is checked: its shape, that its entries are finite, that <a, z> >= 0 (if
    symmetric), and that none of the last few returned atoms has a larger <a, z>. These checks
    detect many inexact oracles, but not all. The oracle is called once per z: the last atom is
    cached, and up to 16 earlier ones are kept (16 MB at most); copies and pickles start without
    them.

    ``best_columns`` is the support of the one best atom. The norm has no restriction to columns
    and no proximal map.

    References
    ----------
    [V] Algorithm 1, which needs only the best atom.

    Examples
    --------
    The l_infinity ball, whose atoms are all sign vectors:

    >>> import numpy as np
    >>> from atomlearn.norms import UserNorm
    >>> norm = UserNorm(lambda z: np.where(z >= 0, 1.0, -1.0), value=lambda w: np.abs(w).max())
    """

    def __init__(
        self,
        oracle: Callable[[Array], Any],
        value: Callable[[Array], float] | None = None,
        symmetric: bool = True,
        name: str | None = None,
    ) -> None:
        """Store the parameters and start without earlier atoms; ``on`` checks the parameters."""
        self.oracle = oracle
        self._value = value
        self.symmetric = symmetric
        self.name = name
        #: Atoms that new atoms are compared with; they are dropped if the oracle or n_features
        #: changes.
        self._earlier_atoms: list[Atom] = []
        #: The oracle, ``symmetric`` and the number of features of the last call.
        self._last_key: tuple[Any, ...] = ()
        #: The last scores z, the best atom for them, and its <a, z>.
        self._last: tuple[Array, Atom, float] | None = None

    # ``value`` is the name of a parameter and of a method, so the parameter is kept in ``_value``.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, parameters of nested objects, too."""
        return {**super().get_params(deep), "value": self._value}

    def set_params(self, **parameters: Any) -> UserNorm:
        """Set parameters by name, as scikit-learn does, and return the norm."""
        if "value" in parameters:
            self._value = parameters.pop("value")
        return super().set_params(**parameters)

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> UserNorm:
        """Return the norm itself; raise TypeError if a parameter has a wrong type.

        ``n_features`` and ``shape`` do not matter.
        """
        if not callable(self.oracle):
            raise TypeError(
                f"UserNorm: oracle must be a function of the scores z that returns the best atom, "
                f"got {type(self.oracle).__name__}"
            )
        if self._value is not None and not callable(self._value):
            raise TypeError(
                f"{self._title}: value must be a function of w that returns its gauge, or None; "
                f"got {type(self._value).__name__}"
            )
        if not isinstance(self.symmetric, bool | np.bool_):
            raise TypeError(
                f"{self._title}: symmetric must be True or False, got {self.symmetric!r}"
            )
        return self

    def value(self, w: Array) -> float:
        """Return gauge(w) >= 0, computed by the user's function ``value``."""
        if self._value is None:
            raise TypeError(
                f"{self._title}: gauge(w) is not known, only the oracle is; pass "
                "UserNorm(oracle, value=...), or compute it with its own gap by "
                "solvers.gauge_by_generation(norm, w)"
            )
        gauge = self._value(to_float64(w).copy())
        if not (is_number(gauge) and gauge >= 0):
            raise ValueError(f"{self._title}: value(w) must return a number >= 0, got {gauge!r}")
        return float(gauge)

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores z): <a, z> for the oracle's atom a.

        It is 0 if no atom has <a, z> > 0.
        """
        return self._answer(scores)[1]

    def polar_of_sizes(self, sizes: Scores) -> float:
        """Return sum_j sizes_j times the largest entry of the known atoms, without the oracle.

        It bounds the polar of all scores of these ``sizes`` or less, whatever their signs, if no
        atom has a larger entry.
        """
        entries = [np.abs(atom.values).max(initial=0.0) for atom in self._earlier_atoms]
        return float(max(entries, default=1.0) * sizes.full().sum())

    def best_atom(self, scores: Scores) -> Atom:
        """Return the oracle's atom a, or the empty atom if <a, z> <= 0.

        scores : z (n_features,).
        """
        return self._answer(scores)[0]

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the support of the oracle's atom, in decreasing order of magnitude.

        ``count`` has no effect, since only one atom is known. scores : z (n_features,).
        """
        atom = self.best_atom(scores)
        return atom.columns[np.argsort(-np.abs(atom.values), kind="stable")]

    def _answer(self, scores: Scores) -> tuple[Atom, float]:
        """Return the oracle's best atom a for the scores z, checked, and <a, z>.

        The atom is empty if <a, z> <= 0. ``_last`` caches z, the atom and <a, z> of the last call,
        and ``_earlier_atoms`` are the atoms with which new ones are compared.
        """
        z = np.array(scores.full(), dtype=np.float64)
        # Forget the earlier atoms if the norm has changed.
        key = self.oracle, self.symmetric, z.size
        if key != self._last_key:
            self._last_key = key
            self._earlier_atoms = []
            self._last = None
        if self._last is None or not np.array_equal(self._last[0], z):
            empty = Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
            atom = empty
            value = 0.0
            if z.any():
                atom = self._read(self.oracle(z.copy()), z.size)
                value = float(atom.values @ z[atom.columns])
                self._compare(atom, value, z)
                # Keep this atom for later comparisons, within a bounded memory.
                n_cached = max(1, min(REMEMBERED, REMEMBERED_ENTRIES // z.size))
                self._earlier_atoms = [*self._earlier_atoms, atom][-n_cached:]
            self._last = (z, atom, value) if value > 0 else (z, empty, 0.0)
        return self._last[1:]

    def _read(self, answer: Any, n_features: int) -> Atom:
        """Return the oracle's ``answer`` as an Atom; raise if it is not a finite vector.

        An answer is a dense array (n_features,), a SciPy sparse vector, or a pair (indices,
        values).
        """
        # Make a dense array of any of the three forms.
        dense: Any = answer
        if sparse.issparse(answer):
            dense = dense.toarray()
            # A sparse matrix of one row or column is a vector.
            dense = dense.ravel() if 1 in dense.shape else dense
        elif isinstance(answer, tuple):
            dense = self._dense_pair(answer, n_features)
        else:
            dense = np.asarray(answer)
        if dense.dtype.kind not in "biuf":
            raise TypeError(
                f"{self._title}: the oracle must return an array (p,), a pair (indices, values) "
                f"or a sparse vector of real numbers; got {type(answer).__name__} of dtype "
                f"{dense.dtype}"
            )
        if dense.shape != (n_features,):
            raise ValueError(
                f"{self._title}: the oracle must return an atom of shape ({n_features},), as z, "
                f"or a pair (indices, values); got shape {dense.shape}"
            )
        wrong = np.flatnonzero(~np.isfinite(dense))
        if wrong.size:
            raise ValueError(
                f"{self._title}: the oracle's atom is {dense[wrong[0]]} at feature {wrong[0]}; "
                "atoms must be finite"
            )
        # An atom holds only its nonzero entries.
        columns = np.flatnonzero(dense)
        return Atom(columns, dense[columns].astype(np.float64))

    def _dense_pair(self, answer: tuple[Any, ...], n_features: int) -> Array:
        """Return the pair (indices, values) as a dense array of shape (n_features,).

        Raises ValueError or TypeError if the indices are invalid or repeat. answer : the pair.
        """
        arrays = [np.asarray(array) for array in answer]
        if len(arrays) != 2 or arrays[0].ndim != 1 or arrays[0].shape != arrays[1].shape:
            raise ValueError(
                f"{self._title}: the oracle must return a pair (indices, values), two vectors of "
                f"one length; got shapes {[array.shape for array in arrays]}"
            )
        columns, values = arrays
        if columns.size and columns.dtype.kind not in "iu":
            raise TypeError(
                f"{self._title}: the oracle's indices must be whole numbers, got {columns.dtype}; "
                "use np.flatnonzero"
            )
        columns = columns.astype(np.int64)
        if (columns < 0).any() or (columns >= n_features).any():
            raise ValueError(
                f"{self._title}: the oracle's indices must be between 0 and {n_features - 1}, "
                f"got values from {columns.min()} to {columns.max()}"
            )
        if np.unique(columns).size < columns.size:
            raise ValueError(f"{self._title}: the oracle's indices repeat; name each feature once")
        dense = np.zeros(n_features, dtype=values.dtype)
        dense[columns] = values
        return dense

    def _compare(self, atom: Atom, value: float, z: Array) -> None:
        """Raise ValueError if a known atom is better than the oracle's atom a, for the scores z.

        Known atoms are -a and the earlier ones. value : <a, z> of the oracle's atom.
        """
        if self.symmetric and value < 0:
            raise ValueError(
                f"{self._title}: the oracle's atom has <a, z> = {value} < 0, so -a is better; "
                "return the atom of largest <a, z>, or pass symmetric=False if -a is not an atom"
            )
        for earlier in self._earlier_atoms:
            known = float(earlier.values @ z[earlier.columns])
            known = abs(known) if self.symmetric else known
            # A difference within rounding, relative to the lengths, is accepted.
            longest = max(l2_norm(earlier.values), l2_norm(atom.values))
            if known > max(value, 0.0) + BEATEN * l2_norm(z) * longest:
                raise ValueError(
                    f"{self._title}: the oracle's atom has <a, z> = {value}, but an atom that "
                    f"it returned before has {known}; it must return the best atom for every z, "
                    "or the gap would prove nothing"
                )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy or pickle: without earlier atoms."""
        return {**self.__dict__, "_last_key": (), "_earlier_atoms": [], "_last": None}

    @property
    def _title(self) -> str:
        """The name of the norm in error messages."""
        if self.name is not None:
            return f"UserNorm {self.name!r}"
        return f"UserNorm({getattr(self.oracle, '__name__', type(self.oracle).__name__)})"
