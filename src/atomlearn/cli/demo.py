"""``atomlearn demo``: 20 of 495 features of real data that scikit-learn bundles."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from atomlearn.cli.arguments import build_parser
from atomlearn.cli.select import select
from atomlearn.core import whole_file


def demo(options: argparse.Namespace) -> int:
    """Write the breast cancer data, run ``atomlearn select`` on them, and return its exit code."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    data = Path(options.out) / "breast_cancer.npz"
    data.parent.mkdir(parents=True, exist_ok=True)
    diagnosis = bunch.target_names[bunch.target]
    with whole_file(data) as stream:
        np.savez(stream, X=bunch.data, diagnosis=diagnosis, features=bunch.feature_names)
    words = ["select", str(data), "--target", "diagnosis", "--interactions", "--n-features", "20"]
    words += ["--out", options.out, *(["--quiet"] if options.quiet else [])]
    chosen = build_parser().parse_args(words)
    chosen.given = words
    chosen.began = options.began
    return select(chosen)
