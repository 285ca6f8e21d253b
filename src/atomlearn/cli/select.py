"""``atomlearn select``: a file in; selected features, a model and a report out."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from atomlearn._support import write_together
from atomlearn.cli.assembly import assemble_content, saved_model, test_sentence
from atomlearn.cli.command_line import memory
from atomlearn.cli.genotypes import components_text, score_text
from atomlearn.cli.intervals import check_intervals, interval_estimates
from atomlearn.cli.options import CommandError
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.proofs import proof_of_selection
from atomlearn.cli.scoring import ScoredSelection, fit_and_score, fit_halves
from atomlearn.cli.settings import LARGE, SelectionSettings, read_settings
from atomlearn.cli.source import Dataset, read_source
from atomlearn.findings.conditional import FeatureTests, p_values
from atomlearn.findings.intervals import Estimates
from atomlearn.reports.content import Content
from atomlearn.reports.html import ReportUnavailable, report_html
from atomlearn.reports.model import SavedModel
from atomlearn.reports.model_file import model_text
from atomlearn.reports.tables import (
    enrichment_csv,
    files_of_run,
    groups_csv,
    markers_csv,
    selected_csv,
    summary_lines,
    summary_text,
)


def select(options: argparse.Namespace) -> int:
    """Run ``atomlearn select``; return 0, or 130 after Ctrl-C, which still writes all files.

    ``options`` is the parsed command line.
    """
    settings = read_settings(options)
    progress = ProgressPrinter(quiet=options.quiet, verbose=options.verbose)
    times = {"to start": time.perf_counter() - options.began}
    with output_folder(options.out) as folder, progress:
        with timed(times, "to read"):
            progress.line(f"reading {options.data}")
            source = read_source(options, settings, progress)
            settings = settings.with_groups(source.roles.groups, source.roles.overlap)
        with timed(times, "to select and test"):
            content, scored = _select(source, settings, options, progress)
        with timed(times, "to verify"):
            progress.stage("verifying the model")
            proof, verified = proof_of_selection(source, scored, options)
        # The hash of the model file is part of the report, so the model is made first.
        with timed(times, "to write"):
            model = replace(saved_model(source, scored.fitted), proof=proof)
            text = model_text(model, str(folder / "model.json"))
            digest = json.loads(text)["sha256"]
            lines = (("Verified", verified), ("sha256 of model.json", digest))
            content = replace(content, details=(*content.details, *lines))
            written = _write(folder, model, content, source)
    _print_result(content, folder, written, options, verified)
    if not options.quiet:
        step_times = ", ".join(f"{seconds:.1f} s {step}" for step, seconds in times.items())
        print(f"{step_times}; {memory()}", file=sys.stderr)
    return 130 if scored.interrupted else 0


@contextmanager
def timed(times: dict[str, float], step: str) -> Iterator[None]:
    """Record the seconds of the block as ``times[step]``."""
    began = time.perf_counter()
    yield
    times[step] = time.perf_counter() - began


def _print_result(
    content: Content, folder: Path, written: list[str], options: argparse.Namespace, verified: str
) -> None:
    """Print the summary and the file names to stdout, and the notes to stderr.

    ``content`` is the content of the report, ``folder`` the folder of the results, ``written`` are
    the names of its files, and ``verified`` is a sentence on the proof. ``options`` is the parsed
    command line.
    """
    if options.json:
        print((folder / "summary.json").read_text(encoding="utf-8"), end="")
    else:
        print(f"{content.data}: {content.headline}\n")
        print("\n".join(summary_lines(content)))
        print(f"  {verified}")
        print(f"\n  {', '.join(written)} in {folder}/")
        if "report.html" in written:
            print(f"  open in a browser: {(folder / 'report.html').resolve().as_uri()}")
    for note in content.notes:
        print(f"note: {note}", file=sys.stderr)


@contextmanager
def output_folder(out: str) -> Iterator[Path]:
    """Yield the folder of the results, which is created before the fit if it does not exist.

    Only files that an earlier selection wrote are replaced. If the block fails, folders that were
    created and are empty are removed. ``out`` is the text of --out.
    """
    folder = Path(out)
    missing_folders = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out {out} is a file; give a folder, which is made where needed")
    files_of_run(folder)  # raises ValueError if files of the user would be replaced
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # a folder that is not empty stays
            for parent in missing_folders:
                parent.rmdir()
        raise


def _select(
    source: Dataset,
    settings: SelectionSettings,
    options: argparse.Namespace,
    progress: ProgressPrinter,
) -> tuple[Content, ScoredSelection]:
    """Fit, score and test the selection; return the report content and the scored selection.

    Halves, p-values and intervals are computed if they are requested or cheap enough, and not after
    Ctrl-C. ``source`` is the data that was read, ``settings`` are the options of the selection, and
    ``progress`` is the printer of progress.
    """
    if settings.intervals:
        check_intervals(source, settings)
    began = time.perf_counter()
    limits = options.time_limit, options.checkpoint
    scored = fit_and_score(source, settings, progress, options.test_fraction, *limits)
    seconds = time.perf_counter() - began
    # Optional parts: halves, p-values and intervals.
    halves = []
    skips_halves = scored.interrupted or options.time_limit or source.roles.on_disk
    if not skips_halves and not settings.controls:
        progress.stage("selecting from halves of the rows")
        halves = fit_halves(source, settings, scored.fitted)
    tests = None
    if settings.p_values and not scored.interrupted:
        progress.stage("testing each column given all others")
        tests = _test_columns(source, settings)
        scored.notes.append(test_sentence(source, scored.fitted, tests))
    intervals = dict[str, Estimates]()
    if settings.intervals and not scored.interrupted:
        progress.stage("estimating with intervals")
        intervals = interval_estimates(source, settings, scored.fitted)
        scored.notes.extend(
            f"95% intervals of {quantity} hold {interval.condition}"
            for quantity, interval in intervals.items()
        )
    content = assemble_content(source, settings, scored, seconds, halves, tests, intervals.values())
    return content, scored


def _test_columns(source: Dataset, settings: SelectionSettings) -> FeatureTests:
    """Return conditional p-values of all columns, computed on all rows.

    The dummy columns of one category are tested together and share a p-value. ``source`` is the
    data that was read and ``settings`` are the options of the selection.
    """
    n_rows, n_columns = source.X.shape
    roles = source.roles
    if n_rows * n_columns > LARGE:
        raise CommandError(
            f"--p-values holds all columns in memory, and {n_rows:,} x {n_columns:,} are too many; "
            "leave it out"
        )
    groups = None if roles.group_names else roles.groups
    loss = settings.loss_for(source.target.task)
    return p_values(source.X, source.target.values, groups=groups, loss=loss, rng=settings.seed)


#: Maps each file name to the function that makes its text; an empty text is not written. The
#: summary comes first, because the next run reads in it which files it may replace.
_TABLES: dict[str, Callable[[Content, SavedModel, Dataset], str]] = {
    "summary.json": lambda content, _, __: summary_text(content),
    "selected.csv": lambda content, _, __: selected_csv(content),
    "markers.csv": lambda content, _, __: markers_csv(content),
    "groups.csv": lambda content, _, __: groups_csv(content) if content.groups else "",
    "enrichment.csv": lambda content, _, __: enrichment_csv(content),
    "score.tsv": lambda _, model, __: score_text(model),
    "components.tsv": lambda _, __, source: components_text(source.components),
}


def _write(folder: Path, model: SavedModel, content: Content, source: Dataset) -> list[str]:
    """Write all files of the selection and return their names.

    They replace the files of an earlier run all at once, or none is written. ``folder`` is the
    folder of the results, ``model`` the saved model, ``content`` the content of the report, and
    ``source`` the data that was read.
    """
    texts = {name: make(content, model, source) for name, make in _TABLES.items()}
    files = {name: text for name, text in texts.items() if text}
    files["model.json"] = model_text(model, str(folder / "model.json"))
    try:
        files["report.html"] = report_html(replace(content, files=tuple(files)))
    except ReportUnavailable as error:
        print(f"atomlearn: {error}; the other files are written", file=sys.stderr)
    # The summary lists all files, the page included.
    files["summary.json"] = summary_text(replace(content, files=tuple(files)))
    write_together(folder, files, files_of_run(folder))
    return list(files)
