"""UserNorm: a gauge known by one function of yours, the oracle that finds its best atom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import Array, Atom, Columns, Norm, Scores, is_number
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.vectors import l2_norm, to_float64

#: Former answers that a new one is compared with: their maximum number, and that of their entries.
REMEMBERED = 16
REMEMBERED_ENTRIES = 2**20
#: An atom counts as better than the oracle's if it is by this, relative to ||a|| ||z||.
BEATEN = 1e-9


class UserNorm(Parameters, Norm):
    """gauge(w) = min { sum c : w = sum_h c_h a_h, c >= 0 } over atoms that one function knows.

    A function that answers "which atom goes farthest along z" defines a norm: the polar is that
    distance, and fits, paths, cross-validation and the certificate follow, by
    ``solvers.AtomGeneration``.

    Parameters
    ----------
    oracle : callable
        ``oracle(z)`` for z float64 of shape (p,), its own copy, returns an atom a that maximises
        <a, z>: an array (p,), a pair (indices, values), or a SciPy sparse vector. Every proof of
        accuracy rests on the answer being the best: a heuristic gives gaps that prove nothing.
    value : callable, optional
        ``value(w)`` for w of shape (p,) returns gauge(w). Fits do not need it.
    symmetric : bool
        True: with an atom a, -a is one too, so that <a, z> >= 0 always. False: a gauge; where no
        atom has <a, z> > 0 the answer counts as "none".
    name : str, optional
        What errors call the norm; default: the name of the oracle.

    Notes
    -----
    Each answer is checked: its shape, that it is finite, that <a, z> >= 0 (symmetric), and that
    none of the last few answers, all of them atoms, goes farther along z. That finds many oracles
    that miss the best atom, not all. The oracle is called once for each z: the last answer is
    kept, and so are up to 16 former ones (16 MB at most); copies and pickles begin without.

    ``best_columns`` are those of the one best atom. There is no restriction and no proximal map.

    References
    ----------
    [V] Algorithm 1, which asks for the best atom only.

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
        self.oracle = oracle
        self._value = value
        self.symmetric = symmetric
        self.name = name
        #: Answers to check new ones against; of another oracle, or other features, they are none.
        self._former: list[Atom] = []
        self._asked: tuple[Any, ...] = ()
        self._last: tuple[Array, Atom, float] | None = None

    # ``value`` is a parameter and a method; as a parameter it lives under another name.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {**super().get_params(deep), "value": self._value}

    def set_params(self, **parameters: Any) -> UserNorm:
        """Set parameters by name."""
        if "value" in parameters:
            self._value = parameters.pop("value")
        return super().set_params(**parameters)

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> UserNorm:
        """The norm itself; raise TypeError where oracle or value cannot be called."""
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
        """gauge(w), by the function given as ``value``."""
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
        """<a, z> for the oracle's atom a (0 if no atom has <a, z> > 0)."""
        return self._answer(scores)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """The oracle's atom, empty if <a, z> <= 0."""
        return self._answer(scores)[0]

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of the oracle's atom, largest entries first."""
        atom = self.best_atom(scores)
        return atom.columns[np.argsort(-np.abs(atom.values), kind="stable")]

    def _answer(self, scores: Scores) -> tuple[Atom, float]:
        """Return the best atom with <a, z>, checked; the oracle is called once for one z."""
        z = np.array(scores.full(), dtype=np.float64)
        asked = self.oracle, self.symmetric, z.size
        if asked != self._asked:
            self._asked = asked
            self._former = []
            self._last = None
        if self._last is None or not np.array_equal(self._last[0], z):
            none = Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
            atom = none
            reached = 0.0
            if z.any():
                atom = self._read(self.oracle(z.copy()), z.size)
                reached = float(atom.values @ z[atom.columns])
                self._compare(atom, reached, z)
                kept = max(1, min(REMEMBERED, REMEMBERED_ENTRIES // z.size))
                self._former = [*self._former, atom][-kept:]
            self._last = (z, atom, reached) if reached > 0 else (z, none, 0.0)
        return self._last[1:]

    def _read(self, answer: Any, n_features: int) -> Atom:
        """Return the atom that the oracle gave, checked."""
        dense: Any = answer
        if sparse.issparse(answer):
            dense = dense.toarray()
            dense = dense.ravel() if 1 in dense.shape else dense
        elif isinstance(answer, tuple):
            dense = self._of_pair(answer, n_features)
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
        columns = np.flatnonzero(dense)
        return Atom(columns, dense[columns].astype(np.float64))

    def _of_pair(self, answer: tuple[Any, ...], n_features: int) -> Array:
        """Return (indices, values) as an array of all entries."""
        parts = [np.asarray(part) for part in answer]
        if len(parts) != 2 or parts[0].ndim != 1 or parts[0].shape != parts[1].shape:
            raise ValueError(
                f"{self._title}: the oracle must return a pair (indices, values), two vectors of "
                f"one length; got shapes {[part.shape for part in parts]}"
            )
        columns, values = parts
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

    def _compare(self, atom: Atom, reached: float, z: Array) -> None:
        """Raise ValueError where the answer is not the best atom, as far as can be seen."""
        if self.symmetric and reached < 0:
            raise ValueError(
                f"{self._title}: the oracle's atom has <a, z> = {reached} < 0, so -a is better; "
                "return the atom of largest <a, z>, or pass symmetric=False if -a is not an atom"
            )
        for former in self._former:
            other = float(former.values @ z[former.columns])
            other = abs(other) if self.symmetric else other
            longest = max(l2_norm(former.values), l2_norm(atom.values))
            if other > max(reached, 0.0) + BEATEN * l2_norm(z) * longest:
                raise ValueError(
                    f"{self._title}: the oracle's atom has <a, z> = {reached}, but an atom that "
                    f"it returned before has {other}; it must return the best atom for every z, "
                    "or the gap would prove nothing"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_asked": (), "_former": [], "_last": None}

    @property
    def _title(self) -> str:
        if self.name is not None:
            return f"UserNorm {self.name!r}"
        return f"UserNorm({getattr(self.oracle, '__name__', type(self.oracle).__name__)})"
