"""Are models of the campaign proved again from their claims, and changed digits refused?

Each problem of ``drawn.py`` is solved, its claim is written as JSON, read back, and checked by
``atomlearn.verification.bounds``. It is *verified* if the gap that is proved, worst-case roundings
included, is at most that of the solver (and 1e-9 of the objective), *weaker* if it is larger, and
*unknown* if the loss or the norm has no claim yet, which one line says.

One digit of every tenth verified claim is then changed: of a coefficient, the dual point, the
objective, the gap, or the data. It must be refused by a hash. Then all hashes are computed again,
as a forger does. The claim is *refused* by arithmetic, or it is *still true*: with this digit, too,
the objective is the stated one to its roundings, and the stated gap is proved.

    python -m benchmarks.certificate.verified --problems 2000

It writes ``verified.csv`` (a line for each loss and form) and ``verified_changed.csv``.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.verification.bounds import check, claim_digest, data_digest
from atomlearn.verification.claims import Data, NoClaim
from atomlearn.verification.models import fit_of_result
from benchmarks.certificate.drawn import Task, draw

RESULTS = Path(__file__).parents[1] / "results"
#: What a digit is changed of.
PLACES = ("coefficient", "dual", "objective", "gap", "data")
ROUNDING = 1e-9
OUTCOMES = ("verified", "weaker", "unknown", "refused")


def claim_of_task(task: Task, tol: float) -> tuple[dict[str, Any], Data, float, float]:
    """Return the claim of a problem, its data, and the relative gap and objective of the solver."""
    result = task.run(tol)
    given = {name: task.arguments.get(name) for name in ("sample_weight", "offset")}
    claim, data = fit_of_result(result, task.X, task.y, **given).claim()
    return json.loads(json.dumps(claim)), data, result.relative_gap, result.objective


def judged(seed: int) -> tuple[tuple[str, str], str, str, Any]:
    """Return loss and form of a problem, its outcome, a note, and what changes need."""
    task = draw(seed)
    kind = task.loss.name, task.arguments["form"]
    tol = float(10.0 ** -np.random.default_rng([8, seed]).integers(2, 10))
    try:
        claim, data, gap, _ = claim_of_task(task, tol)
        found = check(claim, data.X, data.y, data.weight, data.offset)
    except NoClaim as error:
        return kind, "unknown", str(error), None
    except ValueError as error:
        return kind, "refused", str(error), None
    proved = found["relative_gap"]
    outcome = "verified" if proved <= gap * (1 + 1e-6) + ROUNDING else "weaker"
    return kind, outcome, f"{proved:.3g} > {gap:.3g}" if outcome == "weaker" else "", (claim, data)


def other_digit(text: str, rng: np.random.Generator) -> str:
    """Return the number with another one of its digits, leading zeros and exponents aside."""
    mantissa = text.partition("e")[0]
    first = next((at for at, mark in enumerate(mantissa) if mark in "123456789"), None)
    if first is None:
        return "1"
    places = [at for at in range(first, len(mantissa)) if mantissa[at].isdigit()]
    at = int(rng.choice(places))
    others = [digit for digit in "0123456789" if digit != text[at]]
    return text[:at] + str(rng.choice(others)) + text[at + 1 :]


def changed(claim: dict[str, Any], data: Data, place: str, rng: np.random.Generator) -> Any:
    """Return the claim and X with one digit changed; None if there is no such number."""
    claim = copy.deepcopy(claim)
    X = np.hstack([_dense(data.X[:, [column]]) for column in range(data.X.shape[1])])
    if place == "coefficient" and claim["coefficients"]:
        at = int(rng.integers(len(claim["coefficients"])))
        old = claim["coefficients"][at]
        while claim["coefficients"][at] == old:  # a last digit may be of the same float
            claim["coefficients"][at] = float(other_digit(repr(old), rng))
    elif place == "dual" and "dual" in claim:
        steps = claim["dual"]["steps"].split()
        at = int(rng.integers(len(steps)))
        steps[at] = other_digit(steps[at], rng)
        claim["dual"]["steps"] = " ".join(steps)
    elif place in ("objective", "gap"):
        old = claim[place]
        while claim[place] == old:
            claim[place] = float(other_digit(repr(old), rng))
    elif place == "data":
        row, column = (int(rng.integers(size)) for size in X.shape)
        old = float(X[row, column])
        while X[row, column] == old:
            X[row, column] = float(other_digit(repr(old), rng))
    else:
        return None
    return claim, X


def _dense(column: Any) -> np.ndarray:
    return np.asarray(column.toarray() if hasattr(column, "tocsc") else column, dtype=np.float64)


def refusals(claim: dict[str, Any], data: Data, place: str, seed: int) -> dict[str, Any] | None:
    """Return how a changed digit is refused: with the old hashes, and with forged ones."""
    found = changed(claim, data, place, np.random.default_rng([9, seed]))
    if found is None:
        return None
    other, X = found
    row = {"seed": seed, "place": place, "by_hash": "", "forged": ""}
    for column, forges in (("by_hash", False), ("forged", True)):
        if forges:
            offset = np.zeros((X.shape[0], other["outputs"]))
            offset += 0.0 if data.offset is None else data.offset
            other["data"] = data_digest(X, data.y, np.asarray(data.weight), offset, other["sparse"])
            other["sha256"] = claim_digest(other)
        try:
            check(other, X, data.y, data.weight, data.offset)
            row[column] = "still true"
        except ValueError as error:
            row[column] = f"refused: {str(error)[:90]}"
    return row


def main() -> None:
    """Run the campaign and write the two files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=200)
    options = parser.parse_args()
    began = time.process_time()
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    notes: dict[tuple[str, str], str] = {}
    rows: list[dict[str, Any]] = []
    n_verified = 0
    seed = options.seed
    while n_verified < options.problems:
        kind, outcome, note, more = judged(seed)
        counts[kind][outcome] += 1
        if outcome in ("weaker", "refused"):
            notes.setdefault(kind, f"seed {seed}: {note}"[:120])
            print(seed, *kind, outcome, note, flush=True)
        n_verified += outcome == "verified"
        if outcome == "verified" and len(rows) < options.changes and n_verified % 10 == 0:
            # A model without coefficients, or one of Cox, has no number in some places.
            order = [PLACES[(len(rows) + more_places) % len(PLACES)] for more_places in range(3)]
            tried = (refusals(*more, place, seed) for place in order)
            rows.append(next(row for row in tried if row is not None))
        seed += 1
    with (RESULTS / "verified.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["loss", "form", *OUTCOMES, "first_fault"])
        for kind in sorted(counts):
            numbers = [counts[kind][outcome] for outcome in OUTCOMES]
            table.writerow([*kind, *numbers, notes.get(kind, "")])
    with (RESULTS / "verified_changed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["seed", "place", "by_hash", "forged"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    total = sum(counts.values(), Counter())
    print(dict(total), f"{time.process_time() - began:.0f} s of processor")
    print(Counter((row["place"], row["by_hash"][:7], row["forged"][:7]) for row in rows))


if __name__ == "__main__":
    main()
