"""best_atom: the atom that attains the polar, for every norm that has one to give."""

from __future__ import annotations

from atomlearn.core.interfaces.design import Scores
from atomlearn.core.interfaces.norm import Atom, Norm, SupportsAtoms, SupportsRestriction


def best_atom(norm: Norm, scores: Scores) -> Atom:
    """Return a = argmax <a, z> over gauge(a) <= 1, empty where no atom has <a, z> > 0.

    A norm that says so itself is asked. For others a part of z scaled to gauge 1 is tried, which
    is right for the l1, l2, group and k-support norms, and checked against the polar.

    Raises
    ------
    TypeError
        Where the atom that was tried does not attain the polar.
    """
    if isinstance(norm, SupportsAtoms):
        return norm.best_atom(scores)
    if not isinstance(norm, SupportsRestriction):
        raise TypeError(
            f"{norm!r} neither hands out its best atom (best_atom) nor can be restricted to the "
            "columns of it; use ColumnGeneration or FISTA"
        )
    columns = norm.best_columns(scores, 1)
    values = scores.at(columns)
    gauge = norm.restrict(columns, scores.n_columns).value(values)
    if gauge == 0.0:
        return Atom(columns[:0], values[:0])
    atom = values / gauge
    polar, reached = norm.polar(scores), float(atom @ values)
    if reached < polar * (1 - 1e-9):
        raise TypeError(
            f"the best atom of {norm!r} is not a part of the scores: the part reaches {reached} "
            f"of the polar {polar}; give the norm a best_atom, or use ColumnGeneration or FISTA"
        )
    return Atom(columns, atom)
