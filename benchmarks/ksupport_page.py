"""The tables of docs/ksupport.md, from what the experiments and the real data gave."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

#: Methods of the first table, and rules that choose k and level, by their names in the CSV.
METHODS = (
    "lasso", "elastic net", "as the estimators do", "as the estimators do, three times five folds",
    "best fixed k",
)  # fmt: skip
REAL = (
    "l1", "elastic net", "k-support, k searched", "ridge", "linear SVM", "random forest",
    "gradient boosting",
)  # fmt: skip
Rows = list[dict[str, str]]


def write(results: Path, page: Path) -> None:
    """Put each table in its place in the page: after the comment with its name."""
    rules = kept(results / "ksupport_rules_penalized.csv")
    tables = {
        "regression": settings(rules),
        "rules": losses(rules),
        "estimators": draws(kept(results / "ksupport.csv")),
        "classes": draws(kept(results / "ksupport_classes.csv")),
        "cost": plain(kept(results / "ksupport_cost.csv")),
        "real": real(kept(results / "quality.csv")),
    }
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        mark = f"% table: {name}\n"
        whole = re.compile(re.escape(mark) + r"\n(?:(?:\|.*\n)+\n)?")
        new = mark + "\n" + (table and table + "\n")
        text = whole.sub(lambda _, new=new: new, text)  # type: ignore[misc]
    page.write_text(text, encoding="utf-8")


def kept(path: Path) -> Rows:
    """Return the rows of a file, none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines(head: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    found = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in found)


def settings(rows: Rows) -> str:
    """Return a line a setting: score / share of the true ones found / number of others."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        k = f" (k = {row['k']})" if row["k"] else ""
        score, share = float(row["score"]), float(row["found"])
        found[row["setting"]][row["rule"]] = f"{score:.3f} / {share:.2f} / {row['false']}{k}"
    head = ["data", "lasso", "elastic net", "k-support", "three times five folds", "best fixed k"]
    return lines(head, [[name, *(cells[m] for m in METHODS)] for name, cells in found.items()])


def losses(rows: Rows) -> str:
    """Return how far each rule is below the best fixed k: mean and worst of the settings."""
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        scores[row["rule"]][row["setting"]] = float(row["score"])
    best = scores["best fixed k"]
    found = []
    for rule, of in scores.items():
        below = [1000 * (best[name] - of[name]) for name in best]
        if rule != "best fixed k":
            found.append([rule, f"{np.mean(below):.1f}", f"{max(below):.1f}"])
    return lines(["rule", "mean of the settings", "worst setting"], found)


def draws(rows: Rows) -> str:
    """Return a line a setting, over the draws that all methods have."""
    if not rows:
        return ""
    found: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["method"].startswith("k = ") or row["method"] == "elastic net norm":
            continue  # the latter has two draws
        numbers = [float(row[name]) for name in ("score", "found", "false")]
        found[row["setting"]][row["method"]][row["draw"]] = numbers
    methods = max((list(of) for of in found.values()), key=len)
    told = []
    for setting, of in found.items():
        shared = set.intersection(*(set(of[m]) for m in methods))
        if shared:
            means = [np.mean([of[m][d] for d in shared], axis=0) for m in methods]
            cells = [f"{m[0]:.3f} / {m[1]:.2f} / {m[2]:.1f}" for m in means]
            told.append([setting, str(len(shared)), *cells])
    return lines(["data", "draws", *methods], told)


def plain(rows: Rows) -> str:
    """Return the rows as they are."""
    return lines(list(rows[0]), [list(row.values()) for row in rows]) if rows else ""


def real(rows: Rows) -> str:
    """Return the mean score of each method on each real data set that all of them had."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        # Of the first repeat, which all methods have.
        if row["method"] in REAL and row["score"] and row["repeat"] == "0":
            found[row["data"]][row["method"]].append(float(row["score"]))
    told = []
    for data, methods in found.items():
        if set(methods) >= set(REAL):
            means = [float(np.mean(methods[m])) for m in REAL]
            told.append([data, *(f"**{v:.3f}**" if v == max(means) else f"{v:.3f}" for v in means)])
    return lines(["data", *REAL], told) if told else ""
