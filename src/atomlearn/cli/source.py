"""Source: the data that is selected from, read from the file that the command line names."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from atomlearn.cli.errors import CommandError
from atomlearn.cli.features import Features
from atomlearn.cli.plan import Plan
from atomlearn.cli.targets import Target, prepare_target
from atomlearn.core.data.compressed import is_sparse
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.table import Request, Schema


@dataclass(frozen=True, slots=True)
class Source:
    """Data to select from: where it came from, what is in it, and its target."""

    name: str
    features: Features
    schema: Schema
    target: Target
    command: str


def read_source(options: argparse.Namespace, plan: Plan, say: Callable[[str], None]) -> Source:
    """Return the data of the file that the options name, and the target as they ask for it."""
    path = Path(options.data)
    form = format_of(path)
    if options.target is None and form.named:
        raise CommandError(f"which column of {path} is to be predicted? Give --target NAME")
    if form.in_place and (options.exclude or options.interactions):
        raise CommandError(
            f"--exclude and --interactions need a table in memory, and {path} is opened as it "
            "is; leave them out (`atomlearn convert` takes --exclude)"
        )
    began = time.perf_counter()
    table = form.table(path, Request(options.target, exclude=tuple(options.exclude or ())))
    if table.y is None:
        raise CommandError(
            f"{path} has no target (for every sample); give --target NAME, or --target FILE.npy"
        )
    task = options.task if options.positive else plan.task_for(table.y, options.task)
    target = prepare_target(table.y, table.target_name or "y", task, options.positive)
    n_samples, n_features = table.X.shape
    kind = "on disk" if form.in_place else "sparse" if is_sparse(table.X) else "dense"
    say(
        f"read {path.name}: {n_samples:,} rows, {n_features:,} columns, {kind}, "
        f"{time.perf_counter() - began:.1f} s"
    )
    if target.guessed:
        say(f"task: {target.task} ({target.guessed}; --task says otherwise)")
    plan.loss_for(target.task)
    names = [table.schema.name(column) for column in range(n_features)]
    features = Features(table.X, names, options.interactions)
    if options.interactions:
        say(f"interactions: {features.n_features:,} features")
    command = shlex.join(["atomlearn", *options.given])
    return Source(path.name, features, table.schema, target, command)
