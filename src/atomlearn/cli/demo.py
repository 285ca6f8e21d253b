"""``atomlearn demo``: 20 of 495 features of real data that scikit-learn bundles."""

from __future__ import annotations

import argparse
import shlex

from atomlearn.cli.features import with_products
from atomlearn.cli.plan import Plan
from atomlearn.cli.select import Manner, output_folder, select_from
from atomlearn.cli.source import Dataset
from atomlearn.cli.targets import prepare_target
from atomlearn.storage.formats.table import Schema


def demo(options: argparse.Namespace) -> int:
    """Run the command; return 0, or 130 after Ctrl-C."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [str(name) for name in bunch.feature_names]
    features = with_products(bunch.data, names)
    source = Dataset(
        name="breast cancer (scikit-learn)",
        features=features,
        schema=Schema(len(names), tuple(names)),
        target=prepare_target(bunch.target_names[bunch.target], "diagnosis", "auto", None),
        command=shlex.join(["atomlearn", *options.given]),
    )
    with output_folder(options.out) as folder:
        way = Manner(folder, quiet=options.quiet)
        way.say(
            f"breast cancer, {bunch.data.shape[0]} tumors: 30 measurements, their squares and all "
            f"their pairs make {features.n_features} features"
        )
        return select_from(source, Plan(n_features=20), way)
