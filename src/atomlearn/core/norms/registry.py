"""Norms by name: what ``norm="l1"`` means."""

from __future__ import annotations

from typing import Any

from atomlearn.core.interfaces import Norm
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
            "such as norms.KSupport(k=10)"
        )
    kind, required = NAMES[name]
    missing = [parameter for parameter in required if parameter not in parameters]
    if missing:
        raise ValueError(
            f"norm {norm!r} needs {' and '.join(missing)}: pass an object such as "
            f"norms.{kind.__name__}({missing[0]}=...)"
        )
    return kind(**parameters)
