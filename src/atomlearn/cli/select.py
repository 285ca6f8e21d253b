"""``atomlearn select``: a file in; selected features, a model and a report out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from atomlearn.cli.assembly import content_of_fit, model_of, tested
from atomlearn.cli.command_line import memory
from atomlearn.cli.fitting import Fitted, fit, with_baseline
from atomlearn.cli.genotypes import score_text
from atomlearn.cli.options import CommandError
from atomlearn.cli.plan import LARGE, Plan, read_plan
from atomlearn.cli.source import Dataset, Given, read_source
from atomlearn.cli.targets import Target
from atomlearn.cli.watching import Watch
from atomlearn.core import (
    Array,
    Deadline,
    Design,
    Fold,
    Rows,
    Task,
    as_design,
    as_loss,
    as_norm,
    dense_part,
    is_sparse,
    log_probabilities,
    part_of,
    write_together,
)
from atomlearn.estimators.dependent_rows import held_out as held_out_rows
from atomlearn.estimators.prediction_sets import drift_along, held_out_errors, score_of
from atomlearn.estimators.survival import StepFunction
from atomlearn.findings.conditional import FeatureTests, p_values
from atomlearn.findings.held_out import fits_of
from atomlearn.findings.trials import A_FIT, LOOSE_GAP, Trial
from atomlearn.findings.verdict import LONG_TAILED
from atomlearn.maps.additive import Additive
from atomlearn.reports.content import Content, HeldOut
from atomlearn.reports.halves import Half, fitted_halves
from atomlearn.reports.held_out import told_of_rows
from atomlearn.reports.html import ReportUnavailable, report_html
from atomlearn.reports.model import SavedModel
from atomlearn.reports.model_file import model_text
from atomlearn.reports.suspects import drifting
from atomlearn.reports.tables import (
    files_of_run,
    groups_csv,
    selected_csv,
    summary_lines,
    summary_text,
)


def select(options: argparse.Namespace) -> int:
    """Run the command; return 0, or 130 after Ctrl-C (the files are written then, too)."""
    plan = read_plan(options)
    watch = Watch(quiet=options.quiet, verbose=options.verbose)
    times = {"to start": time.perf_counter() - options.began}
    with output_folder(options.out) as folder, watch:
        with timed(times, "to read"):
            watch.line(f"reading {options.data}")
            source = read_source(options, plan, watch)
            plan = plan.with_groups(source.given.groups, source.given.overlap)
        with timed(times, "to select and test"):
            content, fitted, interrupted = _selected(source, plan, options, watch)
        with timed(times, "to write"):
            written = _write(folder, model_of(source, fitted), content)
    _printed(content, folder, written, options)
    if not options.quiet:
        parts = ", ".join(f"{seconds:.1f} s {what}" for what, seconds in times.items())
        print(f"{parts}; {memory()}", file=sys.stderr)
    return 130 if interrupted else 0


@contextmanager
def timed(times: dict[str, float], what: str) -> Iterator[None]:
    """Note how long it took."""
    began = time.perf_counter()
    yield
    times[what] = time.perf_counter() - began


def _printed(
    content: Content, folder: Path, written: list[str], options: argparse.Namespace
) -> None:
    """Print the result, where it is, and what there is to know."""
    if options.json:
        print((folder / "summary.json").read_text(encoding="utf-8"), end="")
    else:
        print(f"{content.data}: {content.headline}\n")
        print("\n".join(summary_lines(content)))
        print(f"\n  {', '.join(written)} in {folder}/")
        if "report.html" in written:
            print(f"  open in a browser: {(folder / 'report.html').resolve().as_uri()}")
    for note in content.notes:
        print(f"note: {note}", file=sys.stderr)


@contextmanager
def output_folder(out: str) -> Iterator[Path]:
    """Yield the folder, made where needed: before the fit, so that no result has no place.

    An earlier selection in it is replaced, but no file of someone else. Where nothing was written
    to it in the end, what was made goes again.
    """
    folder = Path(out)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out {out} is a file; give a folder, which is made where needed")
    files_of_run(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # not empty: something is in it
            for place in made:
                place.rmdir()
        raise


def _selected(
    source: Dataset, plan: Plan, options: argparse.Namespace, watch: Watch
) -> tuple[Content, Fitted, bool]:
    """Select, score and refit on all rows; return what there is to tell, and if Ctrl-C came."""
    began = time.perf_counter()
    fitted, held_out, notes, interrupted = _fits(source, plan, options, watch)
    seconds = time.perf_counter() - began
    again: list[Half] = []
    if not (interrupted or options.time_limit or plan.controls or source.given.on_disk):
        watch.stage("selecting from halves of the rows")
        again = _halves(source, plan, fitted)
    tests = None
    if plan.p_values and not interrupted:
        watch.stage("testing each column given all others")
        tests = _tests(source, plan)
        notes.append(tested(source, fitted, tests))
    content = content_of_fit(source, plan, fitted, held_out, notes, seconds, again, tests)
    return content, fitted, interrupted


def _tests(source: Dataset, plan: Plan) -> FeatureTests:
    """Return p-values of all columns, of all rows; the columns of a category are one."""
    (n_rows, n_columns) = source.X.shape
    given = source.given
    if n_rows * n_columns > LARGE:
        raise CommandError(
            f"--p-values holds all columns in memory, and {n_rows:,} x {n_columns:,} are too many; "
            "leave it out"
        )
    groups = None if given.group_names else given.groups
    loss = plan.loss_for(source.target.task)
    return p_values(source.X, source.target.values, groups=groups, loss=loss, rng=plan.seed)


def split(target: Target, fraction: float, seed: int, given: Given) -> tuple[Rows, Rows]:
    """Return rows to fit on and rows to hold out, increasing, or those that a column holds out."""
    if given.test_rows is not None:
        return np.flatnonzero(~given.test_rows), np.flatnonzero(given.test_rows)
    n_samples = target.values.size
    if fraction == 0:
        return np.arange(n_samples), np.arange(0)
    codes = target.codes
    train, test = held_out_rows(n_samples, fraction, seed, codes, **given.dependence)
    if test.size == 0:
        raise CommandError(
            f"--test-fraction {fraction} of {n_samples} rows holds out none, for each class keeps "
            "a row, or a group of rows; give a larger one, more rows, or --test-fraction 0 for no "
            "held-out scores"
        )
    if codes is not None and np.unique(codes[train]).size < np.unique(codes).size:
        raise CommandError(
            "a class is in the end of the series only, which is held out; give a smaller "
            "--test-fraction, or leave --order out"
        )
    return train, test


def _fits(
    source: Dataset, plan: Plan, options: argparse.Namespace, watch: Watch
) -> tuple[Fitted, HeldOut | None, list[str], bool]:
    """Return the final model, its held-out scores, what should be noted, and if Ctrl-C came."""
    target = source.target
    given = source.given
    limit = options.time_limit or np.inf
    whole = Deadline.after(limit)
    with whole.kept():
        design = _design(source, plan)
    train, test = split(target, options.test_fraction, plan.seed, given)
    everything = np.arange(target.values.size)
    folder = None if options.checkpoint is None else Path(options.checkpoint)

    def one(rows: Rows, chosen: Plan, share: float) -> Fitted:
        deadline = Deadline.after(share * whole.left)
        mine = replace(watch, deadline=deadline, checkpoint=folder, alpha=None)
        return with_baseline(fit(design, target, rows, chosen, mine, given), design, rows, given)

    if test.size == 0:
        watch.stage(f"fitting on all {everything.size:,} rows; no rows are held out")
        final = one(everything, plan, 1.0)
        return final, None, [], final.interrupted
    watch.stage(f"fitting on {train.size:,} rows; {test.size:,} are held out for the scores")
    final = first = one(train, plan.for_refits(), 0.5)
    trial = _trial(source, plan, first, watch.stage)
    if not first.interrupted:
        watch.stage(f"fitting on all {everything.size:,} rows: the model that is written")
        with suppress(KeyboardInterrupt):
            final = one(everything, _refit_plan(plan, first), 1.0)
    notes = []
    if interrupted := final is first or final.interrupted:
        final = first
        notes = [f"interrupted: this model was fitted to the {train.size:,} training rows only"]
    decisions = first.decisions(design, test, given.offset)
    if interrupted or options.time_limit:
        trial = replace(trial, work=np.inf)
    held_out = _held_out(source, design, (train, test), first, final, trial, decisions)
    if target.task == "regression" or "baseline_score" in first.settings.keys() & final.settings:
        risk = decisions[:, 0] - first.settings.get("baseline_score", 0.0)
        weight = np.ones(test.size) if given.weight is None else given.weight[test]
        loss = as_loss(first.settings["loss"])
        errors = held_out_errors(loss, target.values[test], risk, weight)
        if given.order is not None and target.task == "regression":
            places = np.argsort(given.order[test], kind="stable")
            far = score_of(loss, loss.mean(risk), target.values[test])[places]
            notes += drifting(drift_along(far))
        final = replace(final, settings=final.settings | errors)
    return final, held_out, notes, interrupted


def _design(source: Dataset, plan: Plan) -> Design:
    design = source.design()
    if not plan.additive:
        return design
    return Additive(design, plan.additive, normalize=plan.standardize)


def _halves(source: Dataset, plan: Plan, final: Fitted) -> list[Half]:
    """Return what the same selection makes of halves of the rows, without a word."""
    target = source.target
    chosen = _refit_plan(plan, final)
    # The selection does not depend on a smaller gap.
    chosen = chosen.for_refits(1e-3)
    design = _design(source, plan)

    def of_half(rows: Rows) -> Half:
        found = fit(design, target, rows, chosen, Watch(quiet=True), source.given)
        return Half(found.map, found.columns, found.coefficients)

    y = target.values if target.codes is None else target.codes
    entries = target.values.size * source.map.n_columns
    more = {"fits": fits_of(final.model), **source.given.dependence}
    return fitted_halves(y, entries, plan.seed, of_half, **more)


def _refit_plan(plan: Plan, first: Fitted) -> Plan:
    """Return the plan for all rows: what cross-validation chose is kept."""
    if first.chosen is None:
        return plan
    norm, alpha = first.chosen
    return replace(plan, norms=(norm,), alpha=alpha, chosen_by=first.settings["alpha_chosen_by"])


def _held_out(
    source: Dataset,
    design: Design,
    parts: Fold,
    first: Fitted,
    final: Fitted,
    trial: Trial,
    decisions: Array,
) -> HeldOut:
    """Return the verdict, and scores of the same rows by the same models."""
    (train, test) = parts
    known = trial.copies(*parts)
    verdict = trial.verdict(train, test, decisions)
    scored = trial.parts(verdict, train, test)
    told = dict[str, Any]()
    if verdict.n_folds:
        rows, found = trial.decisions(scored)
    else:
        rows = [test[~known]]
        found = [decisions[~known]]
    if sum(part.size for part in rows):
        trained = train if len(scored) == 1 else np.arange(source.target.values.size)
        told = _told(source.target, trained, rows, found, first)
        if trial.known is not None:
            alone = [_of_covariates(source, design, *part, first) for part in scored]
            theirs = _told(source.target, trained, rows, alone, first)
            told["scores"] = tuple(
                replace(ours, baseline=other.value, baseline_name="the covariates alone, linearly")
                for ours, other in zip(told["scores"], theirs["scores"], strict=True)
            )
    return HeldOut.of(
        train.size,
        trial.across(train, test),
        first.terms,
        final.terms,
        refitted=final is not first,
        verdict=verdict,
        **told,
    )


def _of_covariates(
    source: Dataset, design: Design, train: Rows, test: Rows, first: Fitted
) -> Array:
    """Return the decisions of the model of covariates and offset, where it has no other column."""
    given = source.given
    free = np.array(given.covariates, dtype=np.int64)
    over = part_of(design, columns=free if free.size else np.arange(1))
    lone = Plan(norms=(as_norm("l1"),), alpha=1e6, loss=first.settings["loss"], n_features=None)
    mine = replace(given, covariates=tuple(range(free.size)), groups=None, center=False)
    alone = fit(over, source.target, train, lone, Watch(quiet=True), mine)
    return alone.decisions(over, test, given.offset)


def _told(
    target: Target, trained: Rows, rows: list[Rows], decisions: list[Array], fitted: Fitted
) -> dict[str, Any]:
    """Return what is told of held-out rows, of numbers on the scale of the target."""
    task = cast(Task, target.task)
    loss = as_loss(fitted.settings["loss"])
    shares = None
    every = np.concatenate(rows)
    scores = np.concatenate(decisions)
    if loss.has_probabilities:
        shares = np.exp(log_probabilities(loss, scores, fitted.together))
    told = loss.mean(scores) if task == "regression" else scores
    parts = (target.values[trained], target.values[every])
    left = None
    if "baseline_times" in fitted.settings and len(rows) == 1:
        left = partial(_left, fitted.settings, scores[:, 0])
    sizes = [part.size for part in rows]
    return told_of_rows(task, *parts, told, target.outputs, None, shares, left, sizes)


def _left(settings: dict[str, Any], risk: Array, time: float) -> Array:
    """Return the share of rows of this risk that have no event until then, by the baseline."""
    hazard = StepFunction(settings["baseline_times"], settings["baseline_hazard"], 0.0)(time)
    return np.asarray(np.exp(-hazard * np.exp(risk - settings["baseline_score"])))


def _trial(source: Dataset, plan: Plan, fitted: Fitted, say: Callable[[str], None]) -> Trial:
    """Return how this selection is judged, with what a guess knows: covariates and offsets."""
    given = source.given
    target = source.target
    X = source.X
    inputs = as_design(X)
    loss = as_loss(fitted.settings["loss"])
    plan = plan.for_refits(LOOSE_GAP)
    free = np.array(given.covariates, dtype=np.int64)
    known = list[Array]()
    if free.size:
        known.append(dense_part(inputs, np.sort(free)))
    if given.offset is not None:
        known += [given.offset[:, None], loss.mean(given.offset[:, None])]

    def decide(train: Rows, test: Rows, values: Any, order: Rows | None) -> Array:
        mine = target if values is None else replace(target, values=values)
        design = _design(source if order is None else replace(source, X=X[order]), plan)
        again = fit(design, mine, train, plan, Watch(quiet=True), given)
        return again.decisions(design, test, given.offset)

    entries = X.nnz if is_sparse(X) else float(X.shape[0]) * source.map.n_columns
    return Trial(
        decide,
        cast(Task, target.task),
        target.values,
        plan.seed,
        loss.name in LONG_TAILED,
        np.hstack(known) if known else None,
        None if given.on_disk else inputs,
        repeated=given.repeated,
        work=np.inf if given.on_disk else (entries + A_FIT) * fits_of(fitted.model),
        say=say,
        **given.dependence,
    )


#: Tables that a selection writes beside its model and its page; an empty one is left out. The
#: summary first: by it the next run knows the other files as ours.
_TEXTS: dict[str, Callable[[Content, SavedModel], str]] = {
    "summary.json": lambda content, _: summary_text(content),
    "selected.csv": lambda content, _: selected_csv(content),
    "groups.csv": lambda content, _: groups_csv(content) if content.groups else "",
    "score.tsv": lambda _, model: score_text(model),
}


def _write(folder: Path, model: SavedModel, content: Content) -> list[str]:
    """Write the files in place of those of an earlier run, all or none; return their names."""
    files = {name: text for name, of in _TEXTS.items() if (text := of(content, model))}
    files["model.json"] = model_text(model, str(folder / "model.json"))
    try:
        files["report.html"] = report_html(replace(content, files=tuple(files)))
    except ReportUnavailable as error:
        print(f"atomlearn: {error}; the other files are written", file=sys.stderr)
    files["summary.json"] = summary_text(replace(content, files=tuple(files)))
    write_together(folder, files, files_of_run(folder))
    return list(files)
