"""Define the options of each command and their help texts, without importing NumPy."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from atomlearn import __version__
from atomlearn.cli.options import (
    Count,
    CountOrAuto,
    Fraction,
    Place,
    Positive,
    PositiveOrAuto,
    Seed,
    Share,
    Size,
    Times,
    add_option,
    add_options,
    given_to,
)
from atomlearn.storage.intake.columns import ROLES
from atomlearn.storage.intake.reading import Reading

_EXAMPLES = """\
examples:
  atomlearn demo                                            see it work on bundled data
  atomlearn select patients.csv --target outcome --n-features 50 --out selected/
  atomlearn select patients.csv --target age --norm ksupport --out selected/
  atomlearn predict selected/model.json new_patients.csv --out predictions.csv
  atomlearn verify selected/model.json patients.csv
  atomlearn convert counts.svm.gz counts.store              for data larger than memory
"""

_SELECT = """\
examples:
  The 50 features that predict `outcome` best together:
    atomlearn select patients.csv --target outcome --n-features 50 --out selected/
  The lasso, its weight chosen by cross-validation:
    atomlearn select houses.csv --target price --norm l1 --cv --out selected/
  One class against all others:
    atomlearn select words.npz --target y --positive 3,4 --n-features 200 --out selected/
  All pairwise interactions of the columns as features, too:
    atomlearn select patients.csv --target outcome --interactions --out selected/
  A curve for each of the 10 columns that explain the target best together:
    atomlearn select houses.csv --target price --additive --n-features 10 --out selected/

what happens:
  The rows are split. A model is selected on one part and scored on the held-out part. Then the
  same selection is made on ALL rows, with the same alpha or C, and that is the model in the files.
  The scores belong to the model of the first part. --test-fraction 0 leaves the split out: there
  are no scores.
  Ctrl-C keeps the best model found so far, writes the files, and ends with exit code 130.

files written:
  selected.csv   the features with their coefficients
  model.json     the model, for `atomlearn predict` and `verify`: names and numbers only, no pickle
  summary.json   verdict, scores, counts and warnings, for other programs
  report.html    one self-contained page (needs pip install matplotlib jinja2)
  markers.csv    of more than two classes: each class with the coefficients of the features
  groups.csv     with --groups: the groups that were selected
  enrichment.csv with --enrichment: sets with selected members, and their p-values
  score.tsv      of genotypes: weights for `plink2 --score score.tsv header-read`
  components.tsv with --pcs: loadings of the variants, by which `predict` projects new people
"""

_PREDICT = """\
example:
  atomlearn predict selected/model.json new.csv --out predictions.csv

Columns of tables are found by name, in any order; others are ignored.
"""

_VERIFY = """\
The model file carries a claim: the objective, the proved gap, and a dual point that bounds the
objective of all other models from below. `verify` reads the data once, as `select` did, computes
both again in code that shares nothing with the solvers, with a bound on every rounding, and prints
what is proved, or what is wrong. It returns 0 if the claim holds, and 1 if it does not.

examples:
  atomlearn verify selected/model.json patients.csv
  atomlearn verify selected patients.csv --full        (best subsets, knockoffs, stability)
"""
_INSPECT = """\
example:
  atomlearn inspect patients.csv --target outcome --out schema.json
  then edit `use` in the schema, for `atomlearn select --schema schema.json`
"""

_CONVERT = """\
examples:
  atomlearn convert counts.svm.gz counts.store --memory 500M
  atomlearn convert patients.csv patients.store --target outcome --drop id
  atomlearn convert study.bed study.store
  atomlearn convert reviews.csv words.store --text review --target stars
  atomlearn select patients.store --n-features 50 --out selected/

One pass over the file, in the memory allowed. `select`, `predict` and every estimator take the
store in place of data, and read it as they go: it may be larger than memory. Killed, the command
resumes if it is started again.
"""

_DATA = """CSV, TSV and other text (also .gz, .bz2, .xz, .zip), Excel, Parquet, Arrow, Stata,
SPSS, SAS, ARFF, JSON lines, BIOM, series matrices of GEO, libsvm, .npz,
.npy, .mat; a column store, PLINK .bed or .pgen, AnnData .h5ad or .zarr, 10x .h5"""

#: Fields of ``Reading`` that describe the format of a file, and fields that describe its columns.
_WRITTEN = ("sheet", "transpose", "form")
_COLUMNS = (
    *("target", "drop", "id", "missing", "schema", "text", "dates", "categories", "keep_codes"),
    *("reference", "names"),
)
_JOINED = ("covariates", "pheno", "pheno_name", "covar")
_GENOTYPES = ("maf", "geno", "pcs")
_ANNDATA = ("layer", "pseudobulk")


@dataclass
class TargetOptions:
    """The target and the features.

    task : word
        Kind of the target (default: guessed from its values).
    positive : labels
        Predict whether the target is one of these labels: LABEL[,LABEL...] (one against the rest).
    class_weight : text
        Weights of the classes: balanced, or LABEL=WEIGHT by commas.
    interactions : bool
        Add all squares and all products of two columns, named a^2 and a:b.
    standardize : bool
        Divide each feature by its standard deviation while selecting (default: yes; estimators in
        Python need standardize=True); results are in the units of the data either way.
    """

    task: Literal["auto", "classification", "regression"] = "auto"
    positive: str | None = None
    class_weight: str | None = None
    interactions: bool = False
    standardize: bool | None = None


@dataclass
class ModelOptions:
    """The model and how its features are selected.

    n_features : number
        Select exactly N features (the default way, with N = 50), or auto: cross-validation chooses,
        the least number that does as well as the best. More than two classes share their features.
    best_subset : bool
        With --n-features: search for the best N features of all subsets, and bound how much better
        any other subset can be.
    within : share
        With --best-subset: also list all subsets whose objective is at most this share above the
        best one, such as 0.05, and the range of each coefficient over them (default: 0.01).
    norm : text
        Instead of --n-features: fit with the norm NAME, or NAME:k=K. Of columns: l1, l2, linf,
        ksupport, elasticnet, chains:length=5. Of groups (--groups, or categories): groups,
        latentgroups, ksupport, latentksupport:k=3. Cross-validation chooses among several k, as in
        ksupport:k=5,10, and among all where ksupport or elasticnet has none.
    fdr : share
        Instead of --n-features: select by knockoffs, with at most this share of false features on
        average, such as 0.1, where rows are independent and columns jointly normal.
    power : bool
        With --fdr: also say how large an effect must be to be found, by targets made up on
        these data.
    p_values : bool
        Also test whether each selected feature has an effect given all other columns: p_value in
        selected.csv, p_adjusted for the number of columns, and both on the page, with their
        condition.
    intervals : bool
        Also estimate the covariates, as columns that were named before the data was seen, with 95%
        intervals: in selected.csv and on the page, as hazard, odds or mean ratios if there are any.
        Without covariates: the features that half of the rows select, from the other rows.
    stability : bool
        Instead of --n-features: select the features that most random halves of the rows select.
    alpha : number
        Weight of the norm against the mean loss (with --norm; default: chosen by
        cross-validation).
    cv : bool
        Choose alpha by cross-validation (what --norm does without --alpha).
    one_se : bool
        In cross-validation, take the model with the fewest features within one standard error of
        the best.
    groups : file
        Groups to select whole: a .gmt file, or a file with a group in each line: its name, then
        columns, patterns (x_*) or regions (chr:start-end). Of genotypes also windows:500kb.
    enrichment : file
        After the selection: a .gmt file, or one as for --groups, whose sets are tested for more
        selected members than chance gives them (enrichment.csv).
    form : word
        How the norm enters (with --norm; default: squared for ksupport, else penalized).
    loss : name
        Name of a loss, such as squared_hinge (default: squared for regression, logistic for
        classification). With a loss for regression, a target of few numbers is no set of classes.
    C : number
        Weight of the loss with --n-features (default: auto: cross-validation chooses it, for
        selecting and for the coefficients).
    batch : number
        How many features join at a time with --n-features (default: N / 10, but at most 10, or
        N / 25 if that is more).
    """

    n_features: CountOrAuto = None
    best_subset: bool = False
    within: Positive = None
    norm: str | None = None
    fdr: Share = None
    power: bool = False
    p_values: bool = False
    intervals: bool = False
    stability: bool = False
    alpha: Positive = None
    cv: bool = False
    one_se: bool = False
    groups: str | None = None
    enrichment: Place = None
    form: Literal["penalized", "squared"] | None = None
    loss: str | None = None
    C: PositiveOrAuto = None
    batch: Count = None


@dataclass
class RunOptions:
    """How a selection is run.

    test_fraction : share
        Share of rows held out for the scores (default: a quarter; 0: none).
    seed : number
        Seed of the split (default: 0).
    gap : number
        Relative gap to prove (default: 1e-6; 1e-4 with --best-subset).
    time_limit : seconds
        Most seconds for all fits together; the best model found by then is written.
    checkpoint : folder
        Keep the state of all fits here. If the command is killed, the same command resumes.
    jobs : number
        Threads to use (default: all).
    memory_limit : size
        Most memory to use, such as 8G. Of larger data make a column store: atomlearn convert.
    json : bool
        Print the result as JSON.
    verbose : bool
        Print each pass over the data, its proved gap, and the chosen parameters.
    quiet : bool
        No progress; only the result and errors.
    """

    test_fraction: Fraction = 0.25
    seed: Seed = None
    gap: Positive = None
    time_limit: Positive = None
    checkpoint: Place = None
    jobs: Count = None
    memory_limit: Size = None
    json: bool = False
    verbose: bool = False
    quiet: bool = False


@dataclass
class ConvertOptions:
    """How a store is made.

    dtype : word
        Type of the values (default: as in the file); genotype: 0, 1, 2 and missing in two bits.
    memory : size
        Memory to work in, such as 500M or 4G (default: 1G).
    quiet : bool
        Errors only.
    """

    dtype: Literal["auto", "float64", "float32", "float16", "int8", "genotype"] = "auto"
    memory: Size = 2**30
    quiet: bool = False


class _Parser(argparse.ArgumentParser):
    """An argument parser that prints an error in one line and exits with code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the message as ``atomlearn: error: ...`` and exit with code 2."""
        self.exit(2, f"atomlearn: error: {message}; see `{self.prog} --help`\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the argument parser of the ``atomlearn`` command with all subcommands."""
    parser = _Parser(
        prog="atomlearn",
        description="Select the few features, out of very many, that explain a target.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"atomlearn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    def command(name: str, does: str, epilog: str = "") -> argparse.ArgumentParser:
        """Add a subcommand and return its parser.

        ``does`` is its help text, and ``epilog`` follows its options.
        """
        formatter = argparse.RawDescriptionHelpFormatter
        parser: argparse.ArgumentParser = commands.add_parser(
            name, help=does, description=does, epilog=epilog, formatter_class=formatter
        )
        return parser

    _add_select(command("select", "select features of a data file and fit a model", _SELECT))
    _add_predict(command("predict", "predict the rows of a data file with a model", _PREDICT))
    _add_verify(command("verify", "prove again that a model is the best on its data", _VERIFY))
    _add_inspect(command("inspect", "say what `select` would make of a data file", _INSPECT))
    _add_convert(command("convert", "make a column store, to work on from disk", _CONVERT))
    demo = command("demo", "select 6 of 30 measurements of tumors, and write a report")
    demo.add_argument("--out", default="atomlearn-demo", metavar="DIR", help="for the results")
    demo.add_argument("--quiet", action="store_true", help="no progress, the result only")
    return parser


def _add_roles(parser: Any, roles: dict[str, str]) -> None:
    """Add options that assign a column a role other than feature, such as weights or offset.

    ``roles`` maps each role to its help text; roles without a text are internal and get no option.
    ``parser`` is the argument parser.
    """
    # The role "split" has the option --split-column.
    for role, text in roles.items():
        if text:
            add_option(parser, "split_column" if role == "split" else role, str, None, text, "str")


def _add_select(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``atomlearn select`` to its parser, in groups."""
    parser.add_argument("data", metavar="DATA", help=_DATA)
    add_option(parser, "out", Place, None, "Folder for the results.", "folder", required=True)
    data = parser.add_argument_group("the data")
    add_options(data, Reading, _COLUMNS + _WRITTEN + _JOINED)
    _add_roles(data, ROLES)
    add_options(data, TargetOptions)
    data.add_argument(
        "--additive",
        nargs="?",
        const="splines",
        choices=("splines", "intersection", "gaussian"),
        help="fit a curve for each selected column instead of a line (splines by default)",
    )
    text = "With --time: times at which risks are predicted and checked on held-out rows."
    add_option(data, "at", Times, None, text, "times")
    _add_competing(data)
    add_options(parser.add_argument_group("genotypes"), Reading, _GENOTYPES)
    add_options(parser.add_argument_group("single cells (AnnData)"), Reading, _ANNDATA)
    add_options(parser.add_argument_group("the model"), ModelOptions)
    add_options(parser.add_argument_group("the run"), RunOptions)


def _add_competing(parser: Any) -> None:
    """Add the option that names competing events, after which the modeled one cannot occur.

    ``parser`` is the argument parser.
    """
    parser.add_argument(
        "--competing",
        nargs="?",
        const="all",
        metavar="LABEL[,LABEL...]",
        help="""with --event NAME=LABEL: other events, after which that one cannot happen. Hazard
        ratios and risks are those of the subdistribution (Fine and Gray), in place of censoring
        these rows (all other events unless named)""",
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``atomlearn predict`` to its parser."""
    parser.add_argument("model", metavar="MODEL", help="model.json of `select`, or its folder")
    parser.add_argument("data", metavar="DATA", help=_DATA)
    add_option(parser, "out", Place, None, "CSV file to write (default: the terminal).", "file")
    parser.add_argument(
        "--explain",
        metavar="FILE",
        nargs="?",
        const="explanation.csv",
        help="""CSV file (explanation.csv unless named) for what each feature adds to each score,
        against the mean over these rows: base and contributions sum to the score, exactly""",
    )
    text = """Also tell between which numbers this share of targets lies, such as 0.9 (of survival
        times: which one this share of events come after): those of rows that come from where the
        held-out rows come from, by the errors on these."""
    add_option(parser, "interval", Share, None, text, "share")
    text = """Of survival times: also the risk of an event by each of these times, such as 365,1825
        (default: those of select --at)."""
    add_option(parser, "at", Times, None, text, "times")
    add_options(parser, Reading, ("id", "covar", "layer", *_WRITTEN))
    parser.add_argument(
        "--missing",
        choices=("refuse", "drop", "median"),
        help="""samples that --covar lacks, or without a value in it: refuse them (the default),
        drop them from the predictions, or fill in as the model was fitted (--missing median)""",
    )
    _add_roles(parser, {role: ROLES[role] for role in ("offset", "exposure")})


def _add_verify(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``atomlearn verify`` to its parser."""
    parser.add_argument("model", metavar="MODEL", help="model.json of `select`, or its folder")
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument(
        "--full",
        action="store_true",
        help="""select again by the options and the seed in the file, and compare: for best
        subsets, knockoffs and stability selection, whose choice is no single convex problem""",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--select-options",
        default="",
        metavar="TEXT",
        help="""options of `select` that are other than when the model was made, in one text, such
        as "--covar elsewhere/covariates.csv"; all others are read in the model file""",
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``atomlearn inspect`` to its parser."""
    parser.add_argument("data", metavar="DATA", help=_DATA)
    add_option(parser, "out", Place, None, "Schema file to write (none by default).", "file")
    add_options(parser, Reading, _COLUMNS + _WRITTEN + _JOINED + _GENOTYPES + _ANNDATA)
    _add_roles(parser, ROLES)
    add_options(parser, TargetOptions, ("task", "positive"))
    _add_competing(parser)
    parser.add_argument("--json", action="store_true", help="print the schema, not a table")


def _add_convert(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``atomlearn convert`` to its parser."""
    parser.add_argument("source", metavar="IN", help=_DATA)
    parser.add_argument("out", metavar="OUT", help="folder of the store, which must not exist")
    add_options(parser, Reading, (*_COLUMNS, *_WRITTEN, "layer"))
    add_options(parser, ConvertOptions)


def event_column(text: str) -> tuple[str, list[str] | None]:
    """Return the column and the labels of --event NAME, NAME=LABEL or NAME=LABEL,LABEL.

    The labels are None if only a column is named.
    """
    name, value, labels = text.partition("=")
    return name, [label.strip() for label in labels.split(",")] if value else None


def reading_of(options: argparse.Namespace) -> Reading:
    """Return the ``Reading``, which says how to read the data file, of these options."""
    values = vars(options)
    # A role without a help text has no option. ``given_to`` returns the fields that options set.
    roles = {role: values.get("split_column" if role == "split" else role) for role in ROLES}
    columns_of_roles = {role: name for role, name in roles.items() if name and ROLES[role]}
    if "event" in columns_of_roles:
        columns_of_roles["event"] = event_column(columns_of_roles["event"])[0]
    seed = values.get("seed") or 0
    return Reading(**given_to(Reading, options), roles=columns_of_roles, rng=seed)
