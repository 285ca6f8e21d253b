"""Options that say what is in the data: shared by the commands that read it."""

from __future__ import annotations

from typing import Any


def add_text(data: Any) -> None:
    """Add how a file is written, where that is not found out."""
    data.add_argument("--sheet", metavar="NAME", help="sheet of a workbook (default: the first)")
    data.add_argument(
        "--transpose",
        action="store_true",
        help="samples are columns, for example a table with a gene in each row",
    )
    data.add_argument("--delimiter", default="", help="of text (default: found out); tab for tabs")
    data.add_argument(
        "--decimal", choices=(".", ","), default="", help="decimal mark (default: found out)"
    )
    data.add_argument(
        "--encoding", default="", help="of text, such as latin-1 (default: UTF-8, else cp1252)"
    )
    data.add_argument(
        "--no-header", action="store_true", help="the first line is data; columns are x0, x1, ..."
    )
    data.add_argument(
        "--na",
        action="append",
        default=[],
        metavar="TEXT[,TEXT...]",
        help="cells that stand for no value, beside empty ones, NA, NaN, null, ? and .",
    )


def add_reading(data: Any) -> None:
    """Add what columns are, and what becomes of them."""
    data.add_argument(
        "--target", metavar="NAME", help="column to predict (libsvm and .npz: y by default)"
    )
    data.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="columns to leave out; x_* means all that begin so (may be repeated)",
    )
    data.add_argument("--id", metavar="NAME", help="column of row names; it is no feature")
    data.add_argument(
        "--missing",
        choices=("refuse", "median", "indicator", "drop"),
        default="refuse",
        help="missing values: refuse (the default); median: fill them in (categories: the most "
        "frequent value); indicator: and add a 0/1 column that is selected together with the "
        "value; drop: leave rows out. Rows without a target are left out in any case",
    )
    data.add_argument("--schema", metavar="FILE", help="what columns are, as `inspect` writes it")
    data.add_argument(
        "--text", action="append", default=[], metavar="NAME", help="free text to make words of"
    )
    data.add_argument(
        "--dates",
        choices=("parts", "elapsed"),
        help="use dates: year, month, day and weekday, or days since the first date",
    )
    data.add_argument(
        "--categories",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="columns of numbers that are labels",
    )
    data.add_argument("--names", metavar="FILE", help="names of columns, one a line (libsvm, .npy)")
    add_text(data)


def add_roles(data: Any) -> None:
    """Add which columns are something else than features, and files beside the data."""
    data.add_argument(
        "--covariates",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="columns that are in the model in any case, without penalty",
    )
    data.add_argument("--weights", metavar="NAME", help="column of sample weights")
    add_offset(data)
    data.add_argument("--time", metavar="NAME", help="column of times until an event (survival)")
    data.add_argument("--event", metavar="NAME", help="column that says if it happened (0 or 1)")
    data.add_argument(
        "--split-column",
        dest="split",
        metavar="NAME",
        help="column that says which rows are train and which test (validation counts as train)",
    )
    data.add_argument(
        "--rows-of",
        metavar="NAME",
        help="column of whom rows are, as patient_id: rows of one are held out, folded and halved "
        "together (default: an identifier that repeats; none: each row is taken by itself)",
    )
    data.add_argument(
        "--order",
        metavar="NAME",
        help="column of dates or positions of a series: its end is held out, not random rows",
    )
    data.add_argument(
        "--pheno", metavar="FILE", help="table of targets, joined by sample (FID and IID, or --id)"
    )
    data.add_argument("--pheno-name", metavar="NAME", help="column of --pheno to predict")
    data.add_argument(
        "--covar", metavar="FILE", help="table of covariates, joined the same way, unpenalized"
    )


def add_offset(data: Any) -> None:
    """Add which column moves the scores."""
    data.add_argument("--offset", metavar="NAME", help="column that is added to Xw + b")
    data.add_argument(
        "--exposure", metavar="NAME", help="column whose logarithm is the offset (counts)"
    )


def add_genotypes(data: Any) -> None:
    """Add what is asked of genotypes."""
    data.add_argument(
        "--maf", type=float, metavar="F", help="leave out variants rarer than this share"
    )
    data.add_argument(
        "--geno", type=float, metavar="F", help="leave out variants missing in more than this share"
    )
    data.add_argument(
        "--hwe",
        type=float,
        metavar="P",
        help="leave out variants with a smaller p of the exact test of Hardy and Weinberg",
    )
    data.add_argument(
        "--pcs", type=int, metavar="K", help="add K principal components as covariates"
    )


def reading_options(options: Any) -> dict[str, Any]:
    """Return what ``datasets.read`` takes, from the options of a command line."""
    from dataclasses import fields

    from atomlearn.storage.intake.cells import TextForm
    from atomlearn.storage.intake.columns import ROLES
    from atomlearn.storage.intake.genotypes import Filters
    from atomlearn.storage.intake.reading import Reading, read_schema

    given = {name: value for name, value in vars(options).items() if value}
    named = {"target", "id"}
    roles = {role: given[role] for role in ROLES if role in given and role not in named}
    if roles.get("rows_of") == "none":
        roles["rows_of"] = ""
    own = {each.name for each in fields(Reading)} - {"target"}
    found = {name: value for name, value in given.items() if name in own}
    delimiters = {"tab": "\t", "\\t": "\t", "space": " "}
    form = TextForm(
        delimiter=delimiters.get(options.delimiter, options.delimiter),
        decimal=options.decimal,
        encoding=options.encoding,
        header=not options.no_header,
        missing=frozenset(
            part.strip().casefold() for text in options.na for part in [text, *text.split(",")]
        ),
    )
    if "schema" in given:
        found["schema"] = read_schema(options.schema)
    filters = Filters(*(vars(options).get(name) for name in ("maf", "geno", "hwe")))
    return {**found, "roles": roles, "form": form, "filters": filters}
