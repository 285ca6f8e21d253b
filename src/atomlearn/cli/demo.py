"""``atomlearn demo``: 6 of 30 measurements of tumors, which scikit-learn bundles."""

from __future__ import annotations

import argparse
from pathlib import Path

from atomlearn._support import write_text
from atomlearn.cli.arguments import build_parser
from atomlearn.cli.select import select


def demo(options: argparse.Namespace) -> int:
    """Write the breast cancer data, run ``atomlearn select`` on them, and return its exit code.

    ``options`` is the parsed command line.
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    data = Path(options.out) / "tumors.csv"
    data.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(bunch.data.tolist(), bunch.target_names[bunch.target], strict=True)
    lines = [
        [*bunch.feature_names, "diagnosis"],
        *([*map(repr, row), label] for row, label in rows),
    ]
    write_text(data, "".join(",".join(line) + "\n" for line in lines))
    arguments = ["select", str(data), "--target", "diagnosis", "--n-features", "6"]
    arguments += ["--out", options.out, *(["--quiet"] if options.quiet else [])]
    select_options = build_parser().parse_args(arguments)
    select_options.given = arguments
    select_options.began = options.began
    return select(select_options)
