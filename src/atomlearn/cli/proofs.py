"""The proof that `atomlearn select` writes into the model file, for `atomlearn verify`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from atomlearn.cli.scoring import ScoredSelection
from atomlearn.cli.settings import LARGE
from atomlearn.cli.source import Dataset
from atomlearn.verification.answers import claimed
from atomlearn.verification.models import proof_of_estimator

#: Options of `select`, with their arguments, that do not change what is read and fitted.
OUTSIDE = {"--out": 1, "--checkpoint": 1, "--quiet": 0, "--verbose": 0, "--json": 0}


def proof_of_selection(
    source: Dataset, scored: ScoredSelection, options: argparse.Namespace
) -> tuple[dict[str, object], str]:
    """Return the proof of the written model, and a sentence on the proved claims.

    The proof is the content that ``atomlearn verify`` checks; without one it holds the reason.
    ``source`` is the data that was read and ``scored`` the fitted and scored selection. ``options``
    is the parsed command line.
    """
    fitted = scored.fitted
    command = {"select": options_to_repeat(options.given, options.data)}
    data = fitted.data
    n_rows = source.target.values.size
    n_columns = source.map.n_columns
    y = source.target.values
    n_events = int(y["event"].sum()) if source.target.is_survival else 0
    # Models that cannot be verified, or only in a long time, get a reason in place of claims.
    reason = ""
    if scored.interrupted:
        reason = "the selection was interrupted"
    elif fitted.screened is not None:
        reason = "--fdr or --stability chose the columns; `atomlearn verify --full` repeats that"
    elif source.roles.on_disk:
        reason = "columns that stay on disk are not read again"
    elif n_rows * n_columns > LARGE:
        reason = f"{n_rows:,} x {n_columns:,} columns are too many to be read again"
    elif n_rows * n_events > LARGE:
        reason = f"{n_events:,} events of {n_rows:,} rows take too long"
    if reason:
        return {"why": reason, "claims": [], **command}, f"not verified: {reason}"
    proof: dict[str, Any] = proof_of_estimator(
        fitted.model, data.design, data.y, data.roles.weight, data.roles.offset
    )
    # Only of a linear model the features are the named columns of the file.
    linear = not source.map.has_pairs and not fitted.has_curves and source.schema.names is not None
    target = source.target
    proof |= {
        "names": source.names if linear else None,
        "classes": None if target.classes is None else list(target.classes),
        "plans": [plan.portable() for plan in source.schema.columns if plan.made() != [plan.name]],
        **command,
    }
    return proof, claimed(proof)


def options_to_repeat(arguments: Sequence[str], data: str) -> list[str]:
    """Return the options of a selection, without its data file and its results.

    ``arguments`` are the words of the command line, beginning with the command.
    """
    words = []
    n_to_skip = 0
    has_seen_data = False
    for word in arguments[1:]:
        name = word.partition("=")[0]
        if n_to_skip:
            n_to_skip -= 1
        elif name in OUTSIDE:
            n_to_skip = OUTSIDE[name] if "=" not in word else 0
        elif word == data and not has_seen_data:
            has_seen_data = True
        else:
            words.append(word)
    return words
