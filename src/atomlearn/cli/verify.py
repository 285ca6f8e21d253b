"""``atomlearn verify``: a model and its data in; the proved claims out."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.cli.arguments import build_parser
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.scoring import design_of
from atomlearn.cli.select import select
from atomlearn.cli.settings import read_settings
from atomlearn.cli.source import read_source
from atomlearn.verification.answers import (
    Verified,
    in_order,
    model_content,
    proof_of,
    refused,
    verify_file,
)
from atomlearn.verification.claims import DesignColumns

#: Largest relative difference of coefficients that were selected again.
SAME = 1e-5


def verify(options: argparse.Namespace) -> int:
    """Run ``atomlearn verify``: print the proved claims; return 0, or 1 if one is wrong.

    ``options`` is the parsed command line.
    """
    content = model_content(options.model)
    try:
        verdict = _reselected(content, options) if options.full else _proved(content, options)
    except ValueError as error:
        verdict = refused(str(error))
    if options.json:
        gap = verdict.relative_gap if verdict.holds else None
        answer = {"holds": verdict.holds, "relative_gap": gap, "explanation": verdict.explanation}
        print(json.dumps(answer))
    else:
        print(verdict.explanation)
        print(f"sha256 of the model file: {content.get('sha256')}")
    return 0 if verdict.holds else 1


def _options_of(content: Mapping[str, Any], options: argparse.Namespace) -> argparse.Namespace:
    """Return the options of the selection that wrote a model, with the data to verify it on.

    ``content`` is the content of the model file, ``options`` those of ``verify``.
    """
    command = content.get("proof", {}).get("select")
    if command is None:
        raise ValueError(
            "the model file was not written by `atomlearn select`: use atomlearn.verify(file, X, y)"
        )
    words = shlex.split(options.select_options)
    parsed = build_parser().parse_args(["select", options.data, *command, "--out", ".", *words])
    parsed.given = ["select", options.data, *command, *words]
    parsed.began = options.began
    return parsed


def _proved(content: dict[str, Any], options: argparse.Namespace) -> Verified:
    """Return what is proved of the claims of a file on the data that the options name.

    ``content`` is the content of the model file. The data is read in the same way as by ``select``.
    """
    proof = proof_of(content)
    select_options = _options_of(content, options)
    settings = read_settings(select_options)
    source = read_source(select_options, settings, ProgressPrinter(quiet=True))
    settings = settings.with_groups(source.roles.groups, source.roles.overlap)
    # The columns are put in the order of the claim, by their names.
    names = None if proof["names"] is None else source.names
    X = in_order(DesignColumns(design_of(source, settings)), names, proof)
    target = source.target
    y: Any = target.values
    if target.classes is not None:
        y = np.array(target.classes, dtype=object)[target.values]
    return verify_file(content, X, y, source.roles.weight, source.roles.offset)


def _reselected(content: dict[str, Any], options: argparse.Namespace) -> Verified:
    """Select again by the options and the seed of a model file, and compare the two models.

    ``content`` is the content of the model file. Raises ValueError if columns or coefficients
    differ.
    """
    select_options = _options_of(content, options)
    with tempfile.TemporaryDirectory() as folder:
        select_options.out = folder
        select_options.quiet = True
        with contextlib.redirect_stdout(io.StringIO()):
            select(select_options)
        other_content = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
    saved = _coefficients(content)
    repeated = _coefficients(other_content)
    # Both models must have the same features, with nearly equal coefficients.
    if saved.keys() != repeated.keys():
        differences = sorted(saved.keys() ^ repeated.keys())
        raise ValueError(
            f"expected the same selection again; received another one at {differences[:3]}"
        )
    largest = max([float(np.abs(values).max()) for values in saved.values()], default=0.0)
    change = max(
        [float(np.abs(values - repeated[name]).max()) for name, values in saved.items()],
        default=0.0,
    )
    if change > SAME * largest:
        ratio = change / largest
        raise ValueError(
            f"expected coefficients within {SAME:g} of the largest one; received {ratio:.2g}"
        )
    gap = max((proof["relative_gap"] for proof in other_content["certificates"]), default=0.0)
    words = (
        f"verified: selected again by the same options and seed: the same {len(saved):,} columns"
    )
    return Verified(
        True, gap, f"{words}, coefficients equal within {change / (largest or 1.0):.1g}"
    )


def _coefficients(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the coefficients of each feature by its name.

    ``content`` is the content of the model file.
    """
    table = np.array(content["coefficients"], dtype=np.float64)
    return {feature["name"]: table[:, index] for index, feature in enumerate(content["features"])}
