"""The tables of docs/ksupport.md, from what the experiment and the real data gave."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

SHOWN = ("lasso", "elastic net", "ridge", "k-support", "k-support, three times five folds")
REAL = (
    "l1", "elastic net", "k-support, k searched", "ridge", "linear SVM", "random forest",
    "gradient boosting",
)  # fmt: skip
Rows = list[dict[str, str]]


def write(results: Path, page: Path) -> None:
    """Put each table in its place in the page: after the comment with its name."""
    tables = {
        "regression": bunches(kept(results / "ksupport.csv")),
        "classes": bunches(kept(results / "ksupport_classes.csv")),
        "cost": cost(kept(results / "ksupport_cost.csv")),
        "real": real(kept(results / "quality.csv")),
    }
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        mark = f"% table: {name}\n"
        whole = re.compile(re.escape(mark) + r"\n(?:(?:\||\*).*\n)*", re.MULTILINE)
        text = whole.sub(lambda _, new=mark + "\n" + table: new, text)  # type: ignore[misc]
    page.write_text(text, encoding="utf-8")


def kept(path: Path) -> Rows:
    """Return the rows of a file, none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def bunches(rows: Rows) -> str:
    """Return a line a setting: score, share of the true ones found, number of others."""
    if not rows:
        return ""
    found: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        numbers = [float(row[name]) for name in ("score", "found", "false")]
        found[row["setting"]][row["method"]][row["draw"]] = numbers
    shown = [m for m in SHOWN if any(m in methods for methods in found.values())]
    lines = ["| data | draws | " + " | ".join(shown) + " | best fixed k |"]
    lines.append("|---" * (len(shown) + 3) + "|")
    for setting, methods in found.items():
        fixed = [m for m in methods if m.startswith("k = ")]
        # Draws that all methods have.
        draws = set.intersection(*(set(methods[m]) for m in [*shown, *fixed] if m in methods))
        means = {m: np.mean([methods[m][d] for d in draws], axis=0) for m in methods if m in shown}
        means |= {m: np.mean([methods[m][d] for d in draws], axis=0) for m in fixed}
        best = max(fixed, key=lambda m: means[m][0])
        cells = [cell(means[m]) for m in shown] + [f"{cell(means[best])} ({best})"]
        lines.append(f"| {setting} | {len(draws)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(means: np.ndarray) -> str:
    """Return score / share of the true ones found / number of others."""
    return f"{means[0]:.3f} / {means[1]:.2f} / {means[2]:.0f}"


def cost(rows: Rows) -> str:
    """Return seconds of both searches and how many times the second takes those of the first."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    lines += ["| " + " | ".join(row[name] for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def real(rows: Rows) -> str:
    """Return the mean score of each method on each real data set that all of them had."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["method"] in REAL and row["score"]:
            found[row["data"]][row["method"]].append(float(row["score"]))
    lines = ["| data | " + " | ".join(REAL) + " |", "|---" * (len(REAL) + 1) + "|"]
    for data, methods in found.items():
        if set(methods) >= set(REAL):
            means = {m: float(np.mean(methods[m])) for m in REAL}
            best = max(means.values())
            cells = [f"**{v:.3f}**" if v >= best - 5e-4 else f"{v:.3f}" for v in means.values()]
            lines.append(f"| {data} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""
