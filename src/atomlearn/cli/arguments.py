"""The options of each command, with help that reads on its own. Imports nothing heavy."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from atomlearn import __version__
from atomlearn.cli import values
from atomlearn.cli.data_arguments import add_genotypes, add_offset, add_reading, add_roles, add_text

_EXAMPLES = """\
examples:
  atomlearn demo                                            see it work on bundled data
  atomlearn select patients.csv --target outcome --n-features 50 --out selected/
  atomlearn select patients.csv --target age --norm ksupport:k=20 --cv --out selected/
  atomlearn predict selected/model.json new_patients.csv --out predictions.csv
  atomlearn convert counts.svm.gz counts.store              for data larger than memory
"""

_SELECT_EXAMPLES = """\
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
  The rows are split. The model is selected on one part and scored on the held-out part; then the
  same selection is made on ALL rows, and that is the model in the files. The scores belong to the
  model of the first part. --test-fraction 0 leaves the split out.
  Ctrl-C keeps the best model found so far, writes the files, and ends with exit code 130.

files written:
  selected.csv   the features with their coefficients
  model.json     the model, for `atomlearn predict`: names and numbers only, no pickle
  report.html    one self-contained page (needs pip install "atomlearn[report]")
"""


_DATA = (
    "CSV, TSV and other text (also .gz, .bz2, .xz), Parquet, Arrow, Excel, libsvm, .npz, .npy, "
    ".mat; a column store, PLINK .bed or .pgen, AnnData .h5ad"
)


class _Parser(argparse.ArgumentParser):
    """argparse, with errors in our form."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"atomlearn: error: {message}; see `{self.prog} --help`\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="atomlearn",
        description="Select the few features, out of very many, that explain a target, and get a "
        "sparse linear model with a proof of how close to optimal it is.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"atomlearn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_select(commands)
    _add_predict(commands)
    _add_inspect(commands)
    _add_convert(commands)
    _add_demo(commands)
    shells = commands.add_parser("completion", help="print a script for the shell to complete")
    shells.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def _add_select(commands: Any) -> None:
    parser = commands.add_parser(
        "select",
        help="select features from a file, fit a model on them, prove its accuracy",
        description="Select features of a data file, fit a model on them, prove its accuracy.",
        epilog=_SELECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument(
        "--out", required=True, type=values.place, metavar="DIR", help="folder for the results"
    )
    _add_data(parser.add_argument_group("the data"))
    add_genotypes(parser.add_argument_group("genotypes"))
    _add_model(parser.add_argument_group("the model"))
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--test-fraction",
        type=values.fraction,
        default=0.25,
        metavar="F",
        help="share of rows held out for the scores (default: 0.25; 0: none)",
    )
    run.add_argument("--seed", type=values.seed, help="seed of the split (default: 0)")
    run.add_argument("--gap", type=values.positive, help="relative gap to prove (default: 1e-6)")
    run.add_argument("--time-limit", type=values.positive, metavar="S", help="seconds for all fits")
    run.add_argument(
        "--checkpoint",
        type=values.place,
        metavar="DIR",
        help="keep the state of all fits here; killed anywhere, the same command goes on from it",
    )
    run.add_argument("--jobs", type=values.count, metavar="N", help="threads to use (default: all)")
    run.add_argument(
        "--memory-limit", type=values.size, metavar="SIZE", help="as 8G; larger data stay on disk"
    )
    run.add_argument(
        "--config", metavar="FILE", help="summary.json of an earlier run, to repeat it"
    )
    run.add_argument("--json", action="store_true", help="print the result as JSON")
    run.add_argument("--quiet", action="store_true", help="no progress; only the result and errors")


def _add_data(data: Any) -> None:
    add_reading(data)
    add_roles(data)
    data.add_argument("--task", choices=("auto", "classification", "regression"), default="auto")
    data.add_argument(
        "--positive",
        metavar="LABEL[,LABEL...]",
        help="predict whether the target is one of these labels (one against the rest)",
    )
    data.add_argument(
        "--interactions",
        action="store_true",
        help="add all squares and all products of two columns, named a^2 and a:b",
    )
    data.add_argument(
        "--additive",
        nargs="?",
        const="splines",
        choices=("splines", "intersection", "gaussian"),
        metavar="KIND",
        help="fit a curve for each selected column instead of a line: splines (the default), "
        "intersection (steps) or gaussian; the report draws them",
    )
    data.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="divide each feature by its standard deviation while selecting (default: yes); "
        "results are in the units of the data either way",
    )


def _add_model(model: Any) -> None:
    model.add_argument(
        "--n-features",
        type=values.count_or_auto,
        metavar="N",
        help="select exactly N features (or auto: the fewest within a standard error of the best "
        "in cross-validation; feature generation, the default, with N = 50); with more "
        "than two classes N for each class, where FeatureGenerator(n_features=N) shares them",
    )
    model.add_argument(
        "--norm",
        metavar="NAME[:k=K]",
        help="instead: fit with this norm: l1, l2, linf, ksupport:k=20, elasticnet:k=20, "
        "chains:length=5; with groups (of --groups, or of categories): groups, latentgroups, "
        "ksupport:k=3, latentksupport:k=3. Several values, as "
        "in k=5,10, are chosen among",
    )
    model.add_argument(
        "--fdr",
        type=values.share,
        metavar="Q",
        help="instead: by knockoffs, with at most a share Q of false features on average (0.1)",
    )
    model.add_argument(
        "--stability",
        action="store_true",
        help="instead: select what most random halves of the rows select",
    )
    model.add_argument(
        "--alpha",
        type=values.positive_or_auto,
        metavar="A",
        help="weight of the norm against the mean loss (with --norm); auto, the default: chosen "
        "by cross-validation",
    )
    model.add_argument(
        "--one-se",
        action="store_true",
        help="in cross-validation take the sparsest within one standard error of the best",
    )
    _add_groups(model)
    _add_fit(model)


def _add_groups(model: Any) -> None:
    model.add_argument(
        "--groups",
        metavar="FILE",
        help="groups to select whole: a .gmt file, or lines of a name and its columns, patterns "
        "(x_*) or regions (chr:start-end); windows:500kb for genotypes",
    )
    model.add_argument(
        "--class-weight",
        metavar="balanced|LABEL=W,...",
        help="weights of the classes (classification)",
    )
    model.add_argument(
        "--cv",
        action="store_true",
        help="choose alpha by cross-validation (what --norm does without --alpha)",
    )


def _add_fit(model: Any) -> None:
    model.add_argument(
        "--form",
        choices=("penalized", "squared"),
        help="how the norm enters (with --norm; default: squared for ksupport, else penalized)",
    )
    model.add_argument(
        "--loss",
        metavar="NAME",
        help="name of a loss, such as squared_hinge (default: squared for regression, logistic "
        "for classification); one for regression settles that numbers are no classes",
    )
    model.add_argument(
        "--C",
        type=values.positive,
        metavar="C",
        help="weight of the loss with --n-features (default: 10)",
    )
    model.add_argument(
        "--batch",
        type=values.count,
        metavar="B",
        help="features taken in at a time with --n-features (default: N / 10, at most 10, but "
        "N / 50 where that is more)",
    )


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict new rows with a model file",
        description="Predict the rows of a data file with a model of `atomlearn select`. Columns "
        "of CSV files are found by name, in any order; others are left alone.",
        epilog="example:\n  atomlearn predict selected/model.json new.csv --out predictions.csv\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="model.json of `atomlearn select`, or its folder"
    )
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument("--out", metavar="FILE", help="CSV file to write (default: the terminal)")
    parser.add_argument(
        "--explain",
        metavar="FILE",
        nargs="?",
        const="explanation.csv",
        help="CSV file (explanation.csv unless named) for what each feature adds to each score, "
        "against the mean over these rows: base and contributions sum to the score, exactly",
    )
    parser.add_argument("--id", metavar="NAME", help="column of row names to copy to the CSV")
    parser.add_argument("--covar", metavar="FILE", help="covariates, joined by FID and IID")
    add_offset(parser)
    add_text(parser)


def _add_inspect(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="say what the columns of a file are, and what `select` would make of them",
        description="Read a data file, print what each column is and what `select` would make of "
        "it; with --out, write a schema that says the same: edit it for `select --schema`.",
        epilog="example:\n  atomlearn inspect patients.csv --target outcome --out schema.json\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help=_DATA)
    parser.add_argument("--out", metavar="FILE", help="schema file to write (none by default)")
    add_reading(parser)
    add_roles(parser)
    parser.add_argument("--json", action="store_true", help="print the schema instead of a table")


def _add_convert(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="make a column store of a data file, to work on from disk",
        description="Make a column store of a data file, in one pass over it and in the memory "
        "allowed. `select`, `predict` and every estimator take the store in place of data, and "
        "read it as they go: it may be larger than memory. Killed, the command goes on where it "
        "was when it is started again.",
        epilog="examples:\n"
        "  atomlearn convert counts.svm.gz counts.store --memory 500M\n"
        "  atomlearn convert patients.csv patients.store --target outcome --drop id\n"
        "  atomlearn convert study.bed study.store\n"
        "  atomlearn convert reviews.csv words.store --text review --target stars\n"
        "  atomlearn select patients.store --n-features 50 --out selected/\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="IN",
        help="libsvm, CSV, TSV (also .gz, .bz2, .xz), Parquet, .npz, .npy, PLINK .bed, .h5ad",
    )
    parser.add_argument("out", metavar="OUT", help="folder of the store, which must not exist")
    add_reading(parser)
    parser.add_argument(
        "--dtype",
        choices=("auto", "float64", "float32", "float16", "int8", "genotype"),
        default="auto",
        help="type of the values (default: as in the file); genotype: 0, 1, 2 and missing in two "
        "bits",
    )
    parser.add_argument(
        "--memory",
        type=values.size,
        default=2**30,
        metavar="SIZE",
        help="memory to work in, such as 500M or 4G (default: 1G)",
    )
    parser.add_argument("--quiet", action="store_true", help="errors only")


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="select 20 of 495 features of real data that scikit-learn bundles",
        description="Select 20 features among the 30 measurements of the breast cancer data that "
        "scikit-learn bundles, their squares and all their pairs: 495 features in all.",
    )
    parser.add_argument(
        "--out", default="atomlearn-demo", metavar="DIR", help="folder for the results"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, the result only")
