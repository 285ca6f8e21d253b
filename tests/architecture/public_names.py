"""The public names and their parameters, as text; run it to write ``public_names.json`` anew.

python -m tests.architecture.public_names    writes the file and the page docs/renamed.md
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "renamed.md"
MODULES = (
    "", "datasets", "designs", "findings", "interfaces", "interop", "losses", "masters", "norms",
    "paths", "problem", "reports", "result", "solvers", "subsets",
)  # fmt: skip


def signature(thing: Any) -> str:
    """Return the parameters of a function or a class, without annotations."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [
        each.replace(annotation=each.empty, default=Shown.of(each.default))
        for each in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


class Shown:
    """A default value that prints without the address of an object."""

    def __init__(self, text: str) -> None:
        self.text = text

    @staticmethod
    def of(default: Any) -> Any:
        if default is inspect.Parameter.empty or default is None:
            return default
        plain = isinstance(default, bool | int | float | str | tuple | range)
        return Shown(repr(default) if plain else f"<{type(default).__name__}>")

    def __repr__(self) -> str:
        return self.text


def public() -> dict[str, str]:
    """Return the signature of each public name, by module and name."""
    found = {}
    for part in MODULES:
        name = f"atomlearn.{part}".rstrip(".")
        module = importlib.import_module(name)
        for each in sorted(module.__all__):
            thing = getattr(module, each)
            found[f"{name}.{each}"] = signature(thing) if callable(thing) else ""
    return found


def page(renamed: list[dict[str, str]]) -> str:
    """Return docs/renamed.md."""
    lines = [
        "# Renamed words",
        "",
        "One idea has one word, in functions and estimators alike, and the loss is a *mean*.",
        "An old parameter, and an old method that a class of yours defines, is refused with a line",
        "that names the new one.",
        "n is the number of samples, or the sum of the sample weights.",
        "",
        "| in | old | new |",
        "|---|---|---|",
    ]
    rows = sorted(renamed, key=lambda row: (row["in"], row["old"]))
    lines += [f"| {row['in']} | `{row['old']}` | {row['new']} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    kept = json.loads(FILE.read_text()) if FILE.exists() else {"renamed": []}
    kept["names"] = public()
    FILE.write_text(
        json.dumps({"renamed": kept["renamed"], "names": kept["names"]}, indent=1) + "\n"
    )
    PAGE.write_text(page(kept["renamed"]))


if __name__ == "__main__":
    main()
