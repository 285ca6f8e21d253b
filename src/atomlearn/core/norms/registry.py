"""Norms by name: the meaning of ``norm="l1"``."""

from __future__ import annotations

from typing import Any

from atomlearn.core.catalogue import NORMS, loaded
from atomlearn.core.interfaces import Norm, instead

#: Names of norms in other packages, and the names here.
OTHERS = {
    "lasso": "norm='l1'",
    "ridge": "norm='l2' with form='squared'",
    "euclidean": "norm='l2'",
    "elasticnet": "norms.ElasticNetNorm(k), or norm='l1' with l1_ratio below 1",
    "grouplasso": "norms.Groups(groups)",
    "sparsegrouplasso": "norms.Trees(groups and single columns)",
    "overlap": "norms.LatentGroups(groups)",
    "fusedlasso": "norms.Operators(...)",
    "slope": "norms.OWL(weights)",
    "nuclear": "norm='trace'",
    "max": "norm='linf'",
}


def as_norm(norm: str | Norm, **parameters: Any) -> Norm:
    """Return the norm of a name such as "l1", or the norm object itself.

    parameters : of the class with this name, as in ``as_norm("ksupport", k=20)``. Raises ValueError
    or TypeError if ``norm`` is neither, or if a required parameter is missing.
    """
    if isinstance(norm, Norm):
        if parameters:
            raise TypeError(
                f"as_norm: parameters {sorted(parameters)} were given with the object {norm!r}; "
                "set them on the object"
            )
        return norm
    if not isinstance(norm, str):
        remedy = f"; write {norm.__name__}(...)" if isinstance(norm, type) else ""
        raise TypeError(
            f"norm must be a name ({', '.join(map(repr, NORMS))}) or an object such as "
            f"norms.KSupport(k=10), got {type(norm).__name__}{remedy}"
        )
    # Case, hyphens and underscores do not matter: "k-support" is "ksupport".
    name = norm.lower().replace("-", "").replace("_", "")
    if name not in NORMS:
        raise ValueError(
            f"norm {norm!r} is unknown; use one of {', '.join(map(repr, NORMS))}, or an object "
            f"such as norms.KSupport(k=10){instead(norm, NORMS, OTHERS)}"
        )
    # The catalogue has the module and the name of the class, and its required parameters.
    part, required = NORMS[name]
    kind: type[Norm] = loaded(part)
    missing = [parameter for parameter in required if parameter not in parameters]
    if missing:
        raise ValueError(
            f"norm {norm!r} needs {' and '.join(missing)}: pass an object such as "
            f"norms.{kind.__name__}({missing[0]}=...){instead(norm, (), OTHERS)}"
        )
    return kind(**parameters)
