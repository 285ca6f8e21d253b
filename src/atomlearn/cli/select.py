"""``atomlearn select``: a file in; selected features, a model and a report out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from atomlearn.cli.assembly import content_of, model_of
from atomlearn.cli.errors import CommandError
from atomlearn.cli.evidence import half_fits
from atomlearn.cli.fitting import Fitted, fit
from atomlearn.cli.plan import Plan, read_plan
from atomlearn.cli.running import cost
from atomlearn.cli.scoring import confusion, held_out_scores, split
from atomlearn.cli.source import Source, read_source
from atomlearn.cli.survival import with_baseline
from atomlearn.cli.targets import Target
from atomlearn.cli.watching import Watch
from atomlearn.core.data.parts import part_of
from atomlearn.core.interfaces import Array, Deadline, Design, Rows, Task
from atomlearn.core.losses.probabilities import log_probabilities
from atomlearn.designs import as_design
from atomlearn.findings.trials import LOOSE_GAP, Trial
from atomlearn.findings.verdict import LONG_TAILED
from atomlearn.losses import as_loss
from atomlearn.maps.additive import Additive
from atomlearn.norms import as_norm
from atomlearn.reports.class_displays import curves_of_classes
from atomlearn.reports.content import Content, HeldOut
from atomlearn.reports.data_displays import PredictionDisplay
from atomlearn.reports.drawing import Display
from atomlearn.reports.halves import Half
from atomlearn.reports.html import ReportUnavailable, write_report
from atomlearn.reports.model_file import write_model
from atomlearn.reports.suspects import recurring
from atomlearn.reports.tables import summary_lines, write_selected_csv, write_summary


@dataclass(frozen=True, slots=True)
class Way:
    """How a selection is run, whatever is selected: where to, split, time, and how loud.

    checkpoint : folder that keeps the state of the fits, None for none; json : print nothing but
    JSON.
    """

    folder: Path
    test_fraction: float = 0.25
    time_limit: float | None = None
    quiet: bool = False
    checkpoint: Path | None = None
    json: bool = False

    def say(self, line: str) -> None:
        """Print one line of progress, unless quiet."""
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)


def select(options: argparse.Namespace) -> int:
    """Run the command; return 0, or 130 after Ctrl-C (the files are written then, too)."""
    plan = read_plan(options)
    began = time.perf_counter()
    with output_folder(options.out) as folder:
        way = Way(
            folder,
            options.test_fraction,
            options.time_limit,
            options.quiet,
            None if options.checkpoint is None else Path(options.checkpoint),
            options.json,
        )
        source = read_source(options, plan, way.say)
        code = select_from(source, plan.with_groups(source.given.groups, source.given.overlap), way)
    if options.json:
        print((folder / "summary.json").read_text(encoding="utf-8"), end="")
    way.say(f"{cost(began)}; --config {folder / 'summary.json'} repeats the run")
    return code


@contextmanager
def output_folder(out: str) -> Iterator[Path]:
    """Yield the folder, made where needed: before the fit, so that no result has no place.

    Where nothing was written to it in the end, what was made goes again.
    """
    folder = Path(out)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out {out} is a file; give a folder, which is made where needed")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # not empty: something is in it
            for place in made:
                place.rmdir()
        raise


def select_from(source: Source, plan: Plan, way: Way) -> int:
    """Select, score, refit on all rows, write the files, print the result."""
    began = time.perf_counter()
    fitted, held_out, notes, interrupted = _fits(source, plan, way)
    seconds = time.perf_counter() - began
    again: list[Half] = []
    if not interrupted and way.time_limit is None:
        again = half_fits(source, plan, partial(_of_half, source, plan, fitted))
    content = content_of(source, plan, fitted, held_out, notes, seconds, again)
    written = _write(way.folder, source, fitted, content)
    if not way.json:
        print(f"\n{content.data}: {content.headline}")
        print("\n".join(summary_lines(content)))
        print(f"\n  {', '.join(written)} in {way.folder}/")
    for note in content.notes:
        if note not in source.notes:  # those were told when the data was read
            way.say(f"note: {note}")
    return 130 if interrupted else 0


def _fits(source: Source, plan: Plan, way: Way) -> tuple[Fitted, HeldOut | None, list[str], bool]:
    """Return the final model, its held-out scores, what should be noted, and if Ctrl-C came."""
    target, whole = source.target, Deadline.after(way.time_limit or np.inf)
    with whole.kept():
        design = _design(source, plan)
    train, test = split(target, way.test_fraction, plan.seed, source.given)
    everything = np.arange(target.values.size)

    def one(rows: Rows, chosen: Plan, share: float) -> Fitted:
        watch = Watch(Deadline.after(share * whole.left), way.quiet, checkpoint=way.checkpoint)
        fitted = fit(design, target, rows, chosen, watch, source.given)
        return with_baseline(fitted, design, target, rows, source.given)

    if test.size == 0:
        way.say(f"fitting on all {everything.size:,} rows; no rows are held out")
        final = one(everything, plan, 1.0)
        return final, None, [], final.interrupted
    way.say(f"fitting on {train.size:,} rows; {test.size:,} are held out for the scores")
    began = time.process_time()
    final = first = one(train, plan, 0.5)
    seconds = np.inf if way.time_limit is not None else time.process_time() - began
    trial = _trial(source, plan, way, first)
    if not first.interrupted:
        way.say(f"fitting on all {everything.size:,} rows: the model that is written")
        with suppress(KeyboardInterrupt):
            final = one(everything, _refit_plan(plan, first), 1.0)
    notes = []
    if interrupted := final is first or final.interrupted:
        final, seconds = first, np.inf
        notes = [f"interrupted: this model was fitted to the {train.size:,} training rows only"]
    held_out = _held_out(source, design, train, test, first, final, trial, seconds)
    return final, held_out, notes, interrupted


def _design(source: Source, plan: Plan) -> Design:
    design = source.features.design()
    if not plan.additive:
        return design
    return Additive(design, plan.additive, normalize=plan.standardize)


def _of_half(source: Source, plan: Plan, final: Fitted, rows: Rows) -> Fitted:
    """Return the same selection from some rows, without a word."""
    chosen = _refit_plan(plan, final)
    # The selection does not depend on a smaller gap.
    chosen = replace(chosen, gap=max(chosen.gap, 1e-3))
    design = _design(source, plan)
    return fit(design, source.target, rows, chosen, Watch(quiet=True), source.given)


def _refit_plan(plan: Plan, first: Fitted) -> Plan:
    """Return the plan for all rows: what cross-validation chose is kept."""
    if first.chosen is None:
        return plan
    norm, alpha = first.chosen
    return replace(plan, norms=(norm,), alpha=alpha, chosen_by=first.settings["alpha_chosen_by"])


def _held_out(
    source: Source,
    design: Design,
    train: Rows,
    test: Rows,
    first: Fitted,
    final: Fitted,
    trial: Trial,
    seconds: float,
) -> HeldOut:
    target = source.target
    decisions = first.decisions(design, test, source.given.offset)
    known, regression = trial.copies(train, test), target.task == "regression"
    verdict = trial.verdict(train, test, decisions, seconds)
    if regression:
        # On the scale of the target, where the loss has a link.
        decisions = as_loss(first.settings["loss"]).mean(decisions)
    scores = held_out_scores(target, train, test, decisions)
    if trial.known is not None:
        alone = held_out_scores(target, train, test, _alone(source, design, train, test, first))
        scores = tuple(
            replace(ours, baseline=theirs.value, baseline_name="the covariates alone")
            for ours, theirs in zip(scores, alone, strict=True)
        )
    found = np.setdiff1d(first.units, source.given.covariates)
    return HeldOut(
        n_train=int(train.size),
        n_test=int(test.size),
        scores=scores,
        confusion=confusion(target, test, decisions),
        n_selected=int(found.size),
        overlap=int(np.intersect1d(found, final.units).size),
        refitted=final is not first,
        displays=_curves(target, test, decisions, first),
        warnings=recurring(known),
        verdict=verdict,
    )


def _alone(source: Source, design: Design, train: Rows, test: Rows, first: Fitted) -> Array:
    """Return the decisions of the model of covariates and offset alone."""
    given, loss = source.given, first.settings["loss"]
    free = np.array(given.covariates, dtype=np.int64)
    over = part_of(design, columns=free if free.size else np.arange(1))
    plan = Plan(norms=(as_norm("l1"),), alpha=1e6, loss=loss, n_features=None)
    mine = replace(given, covariates=tuple(range(free.size)), groups=None, center=False)
    fitted = fit(over, source.target, train, plan, Watch(quiet=True), mine)
    decisions = fitted.decisions(over, test, given.offset)
    return as_loss(loss).mean(decisions) if source.target.task == "regression" else decisions


def _curves(target: Target, test: Rows, decisions: Array, fitted: Fitted) -> Sequence[Display]:
    """Return curves of classes of the held-out rows, or predicted against true numbers."""
    if target.task == "regression":
        return [PredictionDisplay(target.values[test], decisions[:, 0])]
    if target.classes is None:
        return ()
    told, loss = None, as_loss(fitted.settings["loss"])
    if loss.has_probabilities:
        told = np.exp(log_probabilities(loss, decisions, fitted.together))
    return curves_of_classes(target.values[test], decisions, target.outputs, told)


def _trial(source: Source, plan: Plan, way: Way, fitted: Fitted) -> Trial:
    """Return how this selection is judged, with what a guess knows: covariates and offsets."""
    given, target, X = source.given, source.target, source.features.X
    listed, loss = not given.on_disk, as_loss(fitted.settings["loss"])
    inputs, plan = as_design(X), replace(plan, gap=max(plan.gap, LOOSE_GAP))
    free = np.array(given.covariates, dtype=np.int64)
    known = list[Array]()
    if free.size:
        known.append(np.asarray(inputs.gather(np.sort(free)).dense(), dtype=np.float64))
    if given.offset is not None:
        known += [given.offset[:, None], loss.mean(given.offset[:, None])]

    def decide(train: Rows, test: Rows, values: Any, order: Rows | None) -> Array:
        features = source.features
        if order is not None:
            features = replace(features, X=X[order])
        mine = target if values is None else replace(target, values=values)
        design = _design(replace(source, features=features), plan)
        again = fit(design, mine, train, plan, Watch(quiet=True), given)
        return again.decisions(design, test)

    return Trial(
        decide,
        cast(Task, target.task),
        target.values,
        loss.name in LONG_TAILED,
        np.hstack(known) if known else None,
        inputs if listed else None,
        rng=plan.seed,
        repeats=listed and way.time_limit is None,
        say=way.say,
        **given.dependence,
    )


def _write(folder: Path, source: Source, fitted: Fitted, content: Content) -> list[str]:
    """Write the files, each as a whole; return the names of those written."""
    write_selected_csv(folder / "selected.csv", content)
    write_model(folder / "model.json", model_of(source, fitted))
    write_summary(folder / "summary.json", content)
    written = ["selected.csv", "model.json", "summary.json"]
    try:
        write_report(folder / "report.html", content)
        written.append("report.html")
    except ReportUnavailable as error:
        print(f"atomlearn: {error}; the other files are written", file=sys.stderr)
    return written
