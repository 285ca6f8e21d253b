"""[T] Theorems 1, 3 and 4, Proposition 3, Remark 3: what the computations say."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.common.claims import Found, never
from experiments.common.runs import Kept


def found(results: Mapping[str, Kept]) -> Found:
    """Return the statements that are computed on small problems."""
    pieces = results["theorems"].pieces
    made: Found = {}
    if one := pieces.get("Theorem 1"):
        words = f"largest relative difference {one['worst']:.0e}"
        made["Theorem 1"] = (words, never(int(one["worst"] > 1e-6), one["cases"], ""))
    if one := pieces.get("Theorem 3"):
        words = ", ".join(f"{loss} {off:.0e}" for loss, off in one["worst"].items())
        bad = sum(off > 1e-6 for off in one["worst"].values())
        made["Theorem 3"] = (f"largest difference {words}", never(bad, one["cases"], ""))
    if one := pieces.get("Theorem 4"):
        words = f"the left side is at most {one['worst']:.2g} times the right"
        made["Theorem 4"] = (words, never(int(one["worst"] > 1.0), one["cases"], ""))
    if one := pieces.get("Proposition 3"):
        names = ("kappa <= B", "flat")
        words = ", ".join(f"{name} {one[name]:.0e}" for name in names)
        bad = sum(one[name] > 1e-9 for name in names)
        made["Proposition 3"] = (f"largest difference: {words}", never(bad, one["vectors"], ""))
    if one := pieces.get("Remark 3"):
        words = f"{one['outside']} of {one['cases']} outside"
        made["Remark 3"] = (words, never(one["outside"], one["cases"], ""))
    return made
