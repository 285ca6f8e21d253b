"""UserNorm: a gauge known by one function of yours, the oracle that finds its best atom."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import Array, Atom, Columns, Norm, Scores
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.vectors import l2_norm, to_float64

#: What an oracle may return: all p entries, (indices, values), or a sparse vector of SciPy.
Answer = Any

#: Former answers that a new one is compared with: at most so many, of so many entries together.
REMEMBERED, REMEMBERED_ENTRIES = 16, 2**20
#: An atom counts as better than the oracle's where it is by this, relative to ||a|| ||z||.
BEATEN = 1e-9


@dataclass(slots=True)
class Memory:
    """Answers of one oracle: ``asked`` is the oracle, whether it is symmetric, and the features.

    last : the last scores, with the answer; former : atoms it returned before, with their norms.
    """

    asked: tuple[Any, bool, int]
    last: tuple[Array, tuple[Atom, float]] | None = None
    former: list[tuple[Atom, float]] = field(default_factory=list)

    def add(self, atom: Atom) -> None:
        """Remember one more atom, and forget the oldest where there are many."""
        self.former = [*self.former, (atom, l2_norm(atom.values))][-REMEMBERED:]
        while len(self.former) > 1 and (
            sum(atom.columns.size for atom, _ in self.former) > REMEMBERED_ENTRIES
        ):
            self.former.pop(0)


class UserNorm(Parameters, Norm):
    """gauge(w) = min { sum c : w = sum_h c_h a_h, c >= 0 } over atoms that one function knows.

    Whoever can answer "which atom goes farthest along z" has a norm: the polar is that distance,
    and fits, paths, cross-validation and the certificate follow, by ``solvers.AtomGeneration``.

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

    Examples
    --------
    The l_infinity ball, whose atoms are all sign vectors:

    >>> import numpy as np
    >>> from atomlearn.norms import UserNorm
    >>> norm = UserNorm(lambda z: np.where(z >= 0, 1.0, -1.0), value=lambda w: np.abs(w).max())

    References
    ----------
    [V] Algorithm 1, which asks for the best atom only.
    """

    def __init__(
        self,
        oracle: Callable[[Array], Answer],
        value: Callable[[Array], float] | None = None,
        symmetric: bool = True,
        name: str | None = None,
    ) -> None:
        self.oracle = oracle
        self._value = value
        self.symmetric = symmetric
        self.name = name

    # ``value`` is a parameter and a method; as a parameter it lives under another name.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {**super().get_params(deep), "value": self._value}

    def set_params(self, **parameters: Any) -> UserNorm:
        """Set parameters by name."""
        if "value" in parameters:
            self._value = parameters.pop("value")
        return super().set_params(**parameters)

    def check(self, n_features: int) -> None:
        """Raise TypeError where oracle or value cannot be called."""
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

    @property
    def knows_value(self) -> bool:
        """True where ``value`` was given."""
        return self._value is not None

    def value(self, w: Array) -> float:
        """gauge(w), by the function given as ``value``."""
        if self._value is None:
            raise TypeError(
                f"{self._title}: gauge(w) is not known, only the oracle is; pass "
                "UserNorm(oracle, value=...), or compute it with its own gap by "
                "solvers.gauge_by_generation(norm, w)"
            )
        gauge = self._value(to_float64(w).copy())
        if not isinstance(gauge, numbers.Real) or not float(gauge) >= 0:
            raise ValueError(f"{self._title}: value(w) must return a number >= 0, got {gauge!r}")
        return float(gauge)

    def polar(self, scores: Scores) -> float:
        """<a, z> for the oracle's atom a (0 where no atom has <a, z> > 0)."""
        return self._answer(scores)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """The oracle's atom, empty where <a, z> <= 0."""
        return self._answer(scores)[0]

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of the oracle's atom, largest entries first."""
        atom = self.best_atom(scores)
        return atom.columns[np.argsort(-np.abs(atom.values), kind="stable")]

    def _answer(self, scores: Scores) -> tuple[Atom, float]:
        """Return the best atom with <a, z>, checked; the oracle is asked once for one z."""
        z = np.array(scores.full(), dtype=np.float64)
        none = Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
        if not z.any():
            return none, 0.0
        memory = self._memory(z.size)
        if memory.last is not None and np.array_equal(memory.last[0], z):
            return memory.last[1]
        atom = self._read(self.oracle(z.copy()), z.size)
        reached = float(atom.values @ z[atom.columns])
        self._compare(atom, reached, z, memory)
        memory.add(atom)
        answer = (atom, reached) if reached > 0 else (none, 0.0)
        memory.last = (z, answer)
        return answer

    def _memory(self, n_features: int) -> Memory:
        """Return what is remembered of this very oracle on so many features; at first nothing."""
        memory: Memory | None = self.__dict__.get("_remembered")
        asked = self.oracle, self.symmetric, n_features
        if memory is None or memory.asked[0] is not self.oracle or memory.asked[1:] != asked[1:]:
            memory = Memory(asked)
            self.__dict__["_remembered"] = memory
        return memory

    def _read(self, answer: Answer, n_features: int) -> Atom:
        """Return what the oracle gave as an atom with increasing columns, no zeros, checked."""
        if sparse.issparse(answer):
            columns, values = self._of_sparse(answer, n_features)
        elif isinstance(answer, tuple):
            columns, values = self._of_pair(answer, n_features)
        else:
            dense = self._numbers(answer, "array")
            if dense.shape != (n_features,):
                raise ValueError(
                    f"{self._title}: the oracle must return an atom of shape ({n_features},), "
                    f"as z, or a pair (indices, values); got shape {dense.shape}"
                )
            columns, values = np.flatnonzero(dense), dense[dense != 0]
        if not np.isfinite(values).all():
            place = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"{self._title}: the oracle's atom is {values[place]} at feature "
                f"{columns[place]}; atoms must be finite"
            )
        order = np.argsort(columns, kind="stable")
        order = order[values[order] != 0]
        return Atom(columns[order].astype(np.int64), values[order])

    def _of_sparse(self, answer: Any, n_features: int) -> tuple[Columns, Array]:
        if answer.shape not in ((n_features,), (n_features, 1), (1, n_features)):
            raise ValueError(
                f"{self._title}: the oracle must return a sparse vector of {n_features} entries, "
                f"got shape {answer.shape}"
            )
        # A copy: sum_duplicates works in place, and the vector is not ours.
        row = answer.T if answer.shape == (n_features, 1) else answer.reshape((1, n_features))
        flat = sparse.coo_array(row, copy=True)
        flat.sum_duplicates()
        columns = flat.col
        return columns.astype(np.int64), self._numbers(flat.data, "sparse vector")

    def _of_pair(self, answer: tuple[Any, ...], n_features: int) -> tuple[Columns, Array]:
        if len(answer) != 2:
            raise ValueError(
                f"{self._title}: the oracle must return a pair (indices, values), got a tuple of "
                f"{len(answer)}"
            )
        columns, values = np.asarray(answer[0]), self._numbers(answer[1], "values")
        if columns.ndim != 1 or columns.shape != values.shape:
            raise ValueError(
                f"{self._title}: the oracle's indices and values must be vectors of one length, "
                f"got shapes {columns.shape} and {values.shape}"
            )
        if columns.size and columns.dtype.kind not in "iu":
            raise TypeError(
                f"{self._title}: the oracle's indices must be whole numbers, got {columns.dtype}; "
                "use np.flatnonzero"
            )
        columns = columns.astype(np.int64)
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
            raise ValueError(
                f"{self._title}: the oracle's indices must lie between 0 and {n_features - 1}, "
                f"got values from {columns.min()} to {columns.max()}"
            )
        if np.unique(columns).size < columns.size:
            raise ValueError(f"{self._title}: the oracle's indices repeat; name each feature once")
        return columns, values

    def _numbers(self, given: Any, what: str) -> Array:
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise TypeError(
                f"{self._title}: the oracle must return an array (p,), a pair (indices, values) "
                f"or a sparse vector of real numbers; got {type(given).__name__} of dtype "
                f"{array.dtype} as its {what}"
            )
        return array.astype(np.float64)

    def _compare(self, atom: Atom, reached: float, z: Array, memory: Memory) -> None:
        """Raise ValueError where the answer is not the best atom, as far as can be seen."""
        if self.symmetric and reached < 0:
            raise ValueError(
                f"{self._title}: the oracle's atom has <a, z> = {reached} < 0, so -a is better; "
                "return the atom of largest <a, z>, or say symmetric=False where -a is no atom"
            )
        size = l2_norm(z)
        for former, length in memory.former:
            other = float(former.values @ z[former.columns])
            other = abs(other) if self.symmetric else other
            slack = BEATEN * size * max(length, l2_norm(atom.values))
            if other > max(reached, 0.0) + slack:
                raise ValueError(
                    f"{self._title}: the oracle's atom has <a, z> = {reached}, but an atom that "
                    f"it returned before has {other}; it must return the best atom for every z, "
                    "or the gap would prove nothing"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_remembered"}

    @property
    def _title(self) -> str:
        if self.name is not None:
            return f"UserNorm {self.name!r}"
        return f"UserNorm({getattr(self.oracle, '__name__', type(self.oracle).__name__)})"
