"""Best subsets of real data: the gap after a minute, and how far others are from the proved bound.

Columns have mean 0 and standard deviation 1 (sparse ones keep their zeros), and the ridge is the
one of ``solve_subset`` where none is given: 0.1 times the curvature of the loss along a usual
column. Numbers have the squared loss, classes the logistic one. Of each other method the k columns
are re-fitted with this very ridge, so that all are compared by one objective.

Each line is saved when it is known; what is there already is not run again.

    PYTHONPATH=folder-with-abess python -m benchmarks.subsets.real_sets --minutes 4
    python -m benchmarks.subsets.real_sets --write     # the table of docs/subsets.md
"""

from __future__ import annotations

import argparse
import csv
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import io, sparse

from atomlearn import FeatureGenerator
from atomlearn.paths import NumberOfFeatures, path
from benchmarks.harness.real_data import data_file, load
from benchmarks.quality_data import (
    Table,
    array_file,
    digits,
    labeled,
    newsgroups,
    numbers,
    pathways,
    two_classes,
)
from tests.oracles.subset_sums import subset_sum

OUT = Path("benchmarks/results/subset_real_sets.csv")
PAGE = Path("docs/subsets.md")
#: Entries up to which others get a dense copy of sparse data.
MOST_DENSE = 50_000_000


def mice(trait: str) -> Table:
    """Return genotypes of mice and one of their traits, of those that have it."""
    file = array_file("gwas_mice_bglr/mice_geno.npz")
    traits = pd.read_csv(data_file("gwas_mice_bglr/mice_pheno.csv.gz"), index_col="SUBJECT.NAME")
    y = traits[trait].reindex(file["ids"].astype(str)).to_numpy(dtype=np.float64)
    known = np.isfinite(y)
    return Table(file["G"][known].astype(np.float64), y[known], False)


def tumours(subtype: str) -> Table:
    """Return genes, small RNA and proteins of breast tumours: are they of this subtype?"""
    file = array_file("tcga/breast_tcga.npz")
    X = np.hstack([file[f"train_{part}"] for part in ("mrna", "mirna", "protein")])
    return Table(X, (file["train_subtype"] == subtype).astype(float), True)


def matlab(name: str) -> Table:
    """Return a data set of two classes of scikit-feature."""
    data = io.loadmat(data_file(f"skfeature/{name}.mat"))
    X = data["X"].toarray() if sparse.issparse(data["X"]) else data["X"]
    return Table(X.astype(np.float64), (data["Y"].ravel() == 2).astype(float), True)


def letters(kind: str) -> Table:
    """Return one column a letter and place of DNA around splice sites: is it one of this kind?"""
    file = array_file("splice_uci/splice_uci.npz")
    X = np.hstack([file["seq"] == ord(letter) for letter in "ACGT"]).astype(np.float64)
    return Table(X, (file["y"] == kind).astype(float), True)


def stored(path: str, y: Callable[[Any], Any], rows: int | None = None) -> Table:
    """Return the first rows of a sparse data set."""
    file = array_file(path)
    data = np.ones(file["indices"].size) if file["data"].size == 1 else file["data"]
    whole = (data.astype(np.float64), file["indices"], file["indptr"])
    X = sparse.csc_array(sparse.csr_array(whole, shape=tuple(file["shape"]))[:rows])
    target = np.asarray(y(file), dtype=np.float64)[:rows]
    return Table(X, target, np.unique(target).size == 2)


def one_class(name: str, label: str) -> Table:
    """Return one class of a data set against its others."""
    data = load(name)
    return Table(np.asarray(data.X, dtype=np.float64), (data.y == label).astype(float), True)


def signed(file: Any) -> Any:
    """Return the classes -1 and 1 of a file as 0 and 1."""
    return file["y"] > 0


#: The cheap ones first.
SETS: dict[str, Callable[[], Table]] = {
    "South African hearts": lambda: two_classes("saheart"),
    "birth weight below 2.5 kg": lambda: labeled("groups/birthwt.npz", "low", True),
    "birth weight": lambda: labeled("groups/birthwt.npz", "bwt", False),
    "Bardet-Biedl genes": lambda: labeled("groups/bardet.npz", "y", False),
    "houses in California": lambda: numbers("california"),
    "colon, 100 columns": lambda: labeled("groups/gglasso_colon.npz", "y", True),
    "splice sites, donor": lambda: letters("EI"),
    "splice sites, acceptor": lambda: letters("IE"),
    "breast tumours, LumA": lambda: tumours("LumA"),
    "breast tumours, Her2": lambda: tumours("Her2"),
    "riboflavin": lambda: numbers("riboflavin"),
    "colon (alon)": lambda: two_classes("alon"),
    "leukemia, 3051 genes": lambda: two_classes("leukemia3051"),
    "leukemia (golub)": lambda: two_classes("golub"),
    "tumours of children, EWS": lambda: one_class("khan", "EWS"),
    "tumours of children, RMS": lambda: one_class("khan", "RMS"),
    "p53 mutated": pathways,
    "breast (west)": lambda: two_classes("west"),
    "lymphoma (shipp)": lambda: two_classes("shipp"),
    "prostate, 6033 genes": lambda: two_classes("prostate6033"),
    "prostate (singh)": lambda: two_classes("singh"),
    "madelon": lambda: two_classes("madelon"),
    "digits 4 and 9": lambda: digits(4, 9, 2000),
    "newsgroups on religion": newsgroups,
    "newsgroups, BASEHOCK": lambda: matlab("BASEHOCK"),
    "newsgroups, PCMAC": lambda: matlab("PCMAC"),
    "newsgroups, RELATHE": lambda: matlab("RELATHE"),
    "news (rcv1)": lambda: stored("rcv1_small/rcv1_small.npz", signed),
    "drugs (dorothea)": lambda: stored("dorothea/dorothea.npz", signed),
    "incomes (a9a), 20,000 rows": lambda: stored("a9a/a9a.npz", signed, 20_000),
    "ratings of films, 10,000 rows": lambda: stored(
        "imdb/imdb_counts.npz", lambda file: file["rating"], 10_000
    ),
    "mice, body mass": lambda: mice("Obesity.BMI"),
    "mice, body length": lambda: mice("Obesity.BodyLength"),
    "mice, HDL": lambda: mice("Biochem.HDL"),
    "mice, glucose": lambda: mice("Biochem.Glucose"),
}


def scaled(X: Any) -> Any:
    """Return columns of standard deviation 1, those that vary, centered where they are dense."""
    if not sparse.issparse(X):
        X = X[:, X.std(axis=0) > 1e-9 * np.abs(X).max()]
        return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    mean = np.asarray(X.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
    # A word of one document alone is no column of use, and these are most of them.
    used = (np.diff(X.indptr) > 1) & (spread > 0.0)
    return sparse.csc_array(X[:, used] @ sparse.diags_array(1.0 / spread[used]))


def by_abess(X: Any, y: Any, k: int, loss: str, ridge: float) -> Iterator[Any]:
    """Give the subsets of abess: without a ridge, and with ours, whose half it takes of classes."""
    from abess import LinearRegression, LogisticRegression

    if X.shape[0] * X.shape[1] > MOST_DENSE:
        raise MemoryError("it holds a dense copy")
    X = X.toarray() if sparse.issparse(X) else X
    kind = LogisticRegression if loss == "logistic" else LinearRegression
    for alpha in (0.0, 0.5 * ridge if loss == "logistic" else ridge):
        yield np.flatnonzero(kind(support_size=k, alpha=alpha).fit(X, y).coef_)


def by_l1(X: Any, y: Any, k: int, loss: str, ridge: float) -> Iterator[Any]:
    """Give the k largest coefficients of the first level of an l1 path that has so many."""
    found = path(
        X, y, loss=loss, fit_intercept=True, tol=1e-3, alpha_ratio=1e-3, until=NumberOfFeatures(k)
    )
    last = found.results[-1]
    yield last.columns[np.argsort(-np.abs(last.weights))[:k]]


def by_generation(X: Any, y: Any, k: int, loss: str, ridge: float) -> Iterator[Any]:
    """Give the columns of feature generation, one a pass, with the same ridge."""
    model = FeatureGenerator(k, 1, 1.0 / ridge, loss, standardize=False, time_limit=60.0)
    yield model.fit(X, y).selected_


OTHERS = {"abess": by_abess, "l1": by_l1, "generation": by_generation}


def measured(name: str, data: Table, X: Any, k: int, seconds: float) -> dict[str, Any]:
    """Return one line of the table."""
    loss = "logistic" if data.classes else "squared"
    y = np.where(data.y > 0, 1.0, -1.0) if data.classes else data.y / data.y.std()
    spent = time.process_time()
    best = subset_sum(X, y, n_features=k, loss=loss, fit_intercept=True, time_limit=seconds)
    first = best.history[0]
    row = {
        "name": name, "loss": loss, "n": X.shape[0], "p": X.shape[1], "k": k,
        "ridge": f"{best.l2:.4g}", "status": best.status.name, "gap": f"{best.gap:.3e}",
        "objective": f"{best.objective:.8g}", "lower_bound": f"{best.lower_bound:.8g}",
        "root_gap": f"{1.0 - first.lower_bound / first.objective:.3e}",
        "first_worse": f"{first.objective / best.objective - 1.0:.4e}",
        "proved_in": best.proved_in.size, "proved_out": best.n_proved_out,
        "nodes": best.nodes, "passes": int(best.passes),
        "seconds": f"{best.seconds:.2f}", "cpu": f"{time.process_time() - spent:.2f}",
    }  # fmt: skip
    for method, subsets in OTHERS.items():
        spent, row[f"{method}_note"] = time.process_time(), ""
        objective = np.inf
        try:
            for columns in subsets(X, y, k, loss, best.l2):
                again = {"loss": loss, "fit_intercept": True, "ridge": best.l2}
                some = X[:, np.sort(columns)]
                fitted = subset_sum(some, y, n_features=columns.size, time_limit=10.0, **again)
                objective = min(objective, fitted.objective)
        except Exception as error:  # one that breaks is told as such
            row[f"{method}_note"] = f"{type(error).__name__}: {error}"[:80]
        known = np.isfinite(objective)
        row[f"{method}_off"] = f"{1.0 - best.lower_bound / objective:.4e}" if known else ""
        row[f"{method}_worse"] = f"{objective / best.objective - 1.0:.4e}" if known else ""
        row[f"{method}_cpu"] = f"{time.process_time() - spent:.2f}"
    return row


def share(text: str) -> str:
    """Return a share as a reader sees it."""
    if not text:
        return ""
    percent = 100.0 * float(text)
    return "0" if percent < 0.01 else f"{percent:.2g}%"


def table(rows: list[dict[str, str]]) -> str:
    """Return the table of the page, and what it comes to."""
    lines = [
        "| data | rows x columns | k | gap | proved out | seconds | abess | l1, re-fitted | "
        "feature generation |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        gap = "optimal" if row["status"] == "OPTIMAL" else share(row["gap"])
        worse = [share(row[f"{method}_worse"]) or "-" for method in OTHERS]
        worse = [f"+{each}" if each not in ("0", "-") else each for each in worse]
        out = f"{100.0 * int(row['proved_out']) / int(row['p']):.4g}%"
        size = f"{int(row['n']):,} x {int(row['p']):,}"
        cells = [row["name"], size, row["k"], gap, out, f"{float(row['seconds']):.2g}", *worse]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summed(rows: list[dict[str, str]]) -> str:
    """Return what the rows come to."""
    optimal = [row for row in rows if row["status"] == "OPTIMAL"]
    left = sorted(float(row["gap"]) for row in rows if row["status"] != "OPTIMAL")
    text = (
        f"{len({row['name'] for row in rows})} data sets or targets, {len(rows)} problems: "
        f"{len(optimal)} were proved optimal within a minute"
    )
    if left:
        text += (
            f"; of the other {len(left)} the gap was {100 * left[0]:.2g}% to {100 * left[-1]:.2g}%,"
            f" {100 * left[len(left) // 2]:.2g}% in the median"
        )
    first = sorted(float(row["first_worse"]) for row in rows)
    text += (
        ". The first subset, before any branch, was the best one found on "
        f"{sum(worse < 1e-9 for worse in first)} of {len(first)}, and {100 * first[-1]:.2g}% worse "
        "at the most"
    )
    parts = []
    for method, words in (
        ("abess", "abess"), ("l1", "l1 with a re-fit"), ("generation", "feature generation"),
    ):  # fmt: skip
        known = [row for row in rows if row[f"{method}_worse"]]
        same = sum(float(row[f"{method}_worse"]) < 1e-6 for row in known)
        off = sorted(float(row[f"{method}_off"]) for row in known)
        better = sum(float(row[f"{method}_worse"]) < -1e-6 for row in known)
        parts.append(
            f"- {words}: as good as ours on {same} of {len(known)}"
            + (f" (better on {better})" if better else "")
            + f"; from the proved bound it is {100 * off[len(off) // 2]:.2g}% in the median, "
            f"{100 * off[-1]:.2g}% at the most"
        )
    return text + ".\n\n" + ";\n".join(parts) + "."


def write() -> None:
    """Put the table between its marks in the page."""
    rows = list(csv.DictReader(OUT.open(encoding="utf-8")))
    text, made = PAGE.read_text(encoding="utf-8"), f"\n{summed(rows)}\n\n{table(rows)}\n\n"
    marks = "% real sets begin\n", "% real sets end"
    inside = re.compile(f"({re.escape(marks[0])}).*({re.escape(marks[1])})", re.DOTALL)
    PAGE.write_text(inside.sub(lambda found: found[1] + made + found[2], text), encoding="utf-8")


def kept() -> list[dict[str, Any]]:
    """Return the lines that are there."""
    return list(csv.DictReader(OUT.open(encoding="utf-8"))) if OUT.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing afterwards")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search")
    parser.add_argument("--only", default="", help="part of the names of data sets")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write:
        write()
        return
    began, rows = time.monotonic(), kept()
    known = {(row["name"], int(row["k"])) for row in rows}
    for name, make in SETS.items():
        wanted = [k for k in (5, 10) if (name, k) not in known]
        if given.only not in name or not wanted:
            continue
        data = make()
        X = scaled(data.X)
        for k in wanted:
            if k >= X.shape[1]:
                continue
            if time.monotonic() - began > 60.0 * given.minutes:
                raise SystemExit(3)  # there is more to run
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(measured(name, data, X, k, given.seconds))
            print(" ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
            with OUT.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
