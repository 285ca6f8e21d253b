"""Norms by name: what ``norm="l1"`` means."""

from __future__ import annotations

from typing import Any

from atomlearn.core.interfaces import Norm, instead
from atomlearn.core.norms.elastic_net import ElasticNetNorm
from atomlearn.core.norms.groups import L2, Groups
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.l1 import L1
from atomlearn.core.norms.ordered import OWL, LInf

#: Names users may give, with the class and the parameters that class cannot do without. Wings add
#: theirs where they are opened.
NAMES: dict[str, tuple[type[Norm], tuple[str, ...]]] = {
    "l1": (L1, ()),
    "l2": (L2, ()),
    "ksupport": (KSupport, ()),
    "elasticnet": (ElasticNetNorm, ()),
    "groups": (Groups, ("groups",)),
    "owl": (OWL, ("weights",)),
    "linf": (LInf, ()),
}
#: Names of norms in other packages, and their names here.
OTHERS = {
    "lasso": "norm='l1'",
    "ridge": "norm='l2' with form='squared'",
    "euclidean": "norm='l2'",
    "elasticnet": "norms.ElasticNetNorm(k), or solve(level=, tau=) for the sum of l1 and ridge",
    "grouplasso": "norms.Groups(groups)",
    "sparsegrouplasso": "norms.Trees(groups and single columns)",
    "overlap": "norms.LatentGroups(groups)",
    "fusedlasso": "norms.Operators(...)",
    "slope": "norms.OWL(weights)",
    "nuclear": "norm='trace'",
    "max": "norm='linf'",
}


def as_norm(norm: str | Norm, **parameters: Any) -> Norm:
    """Return the norm of a name such as "l1", or the object itself.

    ``parameters`` go to the class of the name: ``as_norm("ksupport", k=20)``.
    """
    if isinstance(norm, Norm):
        if parameters:
            raise TypeError(
                f"as_norm: parameters {sorted(parameters)} were given beside the object {norm!r}; "
                "set them on the object"
            )
        return norm
    if not isinstance(norm, str):
        remedy = f"; write {norm.__name__}(...)" if isinstance(norm, type) else ""
        raise TypeError(
            f"norm must be a name ({', '.join(map(repr, NAMES))}) or an object such as "
            f"norms.KSupport(k=10), got {type(norm).__name__}{remedy}"
        )
    name = norm.lower().replace("-", "").replace("_", "")
    if name not in NAMES:
        raise ValueError(
            f"norm {norm!r} is unknown; use one of {', '.join(map(repr, NAMES))}, or an object "
            f"such as norms.KSupport(k=10){instead(norm, NAMES, OTHERS)}"
        )
    kind, required = NAMES[name]
    missing = [parameter for parameter in required if parameter not in parameters]
    if missing:
        raise ValueError(
            f"norm {norm!r} needs {' and '.join(missing)}: pass an object such as "
            f"norms.{kind.__name__}({missing[0]}=...){instead(norm, (), OTHERS)}"
        )
    return kind(**parameters)
