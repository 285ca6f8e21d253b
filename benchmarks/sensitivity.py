"""What each number that decides is worth: every constant of the package at half and at double.

A number is a module constant in capitals or the numeric default of a field of a class. Each is
changed as its module is loaded, in a process of its own, which then runs the ordinary cases of its
room. A row gives processor seconds over those of the package as it is (the geometric mean of the
cases, and the worst), and the cases whose passes or answers changed. Numbers whose rows are all
near one have no business being there.

    python -m benchmarks.sensitivity [--smoke] [--only PART ...] [--jobs N] [--out FOLDER]

    --only : paths of files, or parts of them, whose numbers are tried; --jobs : at a time, one a
    core of an idle machine
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.machinery
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.options import Options, add_options
from benchmarks.harness.table import Table

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "atomlearn"
FACTORS = {"half": 0.5, "double": 2.0}
#: A case returns what it found and how many passes it took.
Case = Callable[[], tuple[float, float]]


@dataclass(frozen=True)
class Number:
    """file : relative to the package; name : of the constant, or Class.field; text : its value."""

    file: str
    name: str
    text: str


def numbers() -> Iterator[Number]:
    """Yield every number that decides, in the order of files."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = str(path.relative_to(PACKAGE))
        for name, node in assigned(ast.parse(path.read_text(encoding="utf-8"))):
            yield Number(file, name, ast.unparse(node.value))  # type: ignore[arg-type]


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """Yield the assignments of numbers: constants of the module, fields of its classes."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names and names[0].strip("_").isupper() and holds_a_number(node):
            yield names[0], node  # type: ignore[misc]
    for kind in ast.walk(tree):
        for node in kind.body if isinstance(kind, ast.ClassDef) else []:
            named = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            if named and not isinstance(node.value, ast.Call) and holds_a_number(node):
                yield f"{kind.name}.{node.target.id}", node  # type: ignore[union-attr]


def holds_a_number(node: Any) -> bool:
    constants = [each.value for each in ast.walk(node.value or ast.Pass())
                 if isinstance(each, ast.Constant)]  # fmt: skip
    return any(type(value) in (int, float) for value in constants)


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or each of several, times a factor; shares stay below one."""
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    if isinstance(value, dict):
        return {key: scaled(each, factor) for key, each in value.items()}
    if type(value) is int:
        return max(round(value * factor), min(value, 1))
    if type(value) is float:
        return min(value * factor, 0.999) if 0.0 < value < 1.0 else value * factor
    return value


def change(file: str, name: str, factor: float) -> None:
    """Have the module of this file loaded with another number."""
    loader: Any = importlib.machinery.SourceFileLoader
    usual = loader.get_code
    builtins._scaled = scaled  # type: ignore[attr-defined]

    def get_code(self: Any, module: str) -> Any:
        if Path(self.path) != PACKAGE / file:
            return usual(self, module)
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        for found, node in assigned(tree):
            if found == name:
                call = ast.parse(f"_scaled(0, {factor})", mode="eval").body
                call.args[0] = node.value  # type: ignore[attr-defined]
                node.value = call
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    loader.get_code = get_code


# --- the ordinary cases ----------------------------------------------------------------------


def drawn(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated columns and a target of ten of them."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1)))
    return X, X[:, :10].sum(axis=1) + rng.standard_normal(n)


def solving(X: Any, y: Any, **arguments: Any) -> Case:
    from tests.oracles.sums import solve_sum

    def case() -> tuple[float, float]:
        found = solve_sum(X, y, **arguments)
        return float(found.objective), float(found.passes)

    return case


def fitting(model: Any, X: Any, y: Any) -> Case:
    def case() -> tuple[float, float]:
        model.fit(X, y)
        return float(np.sum(np.abs(model.coef_))), float(model.n_passes_)

    return case


def solves(scale: int) -> dict[str, Case]:
    """Return single fits: losses, norms and forms over dense and sparse columns."""
    import scipy.sparse as sp

    from atomlearn import norms

    n, p = 60 * scale, 500 * scale
    X, y = drawn(n, p)
    signs, counts = np.sign(y), np.random.default_rng(1).poisson(np.exp(0.2 * y))
    thin = sp.random_array((4 * n, p), density=0.02, rng=np.random.default_rng(1), format="csc")
    target = thin[:, :10].sum(axis=1) + 0.1 * np.random.default_rng(2).standard_normal(4 * n)
    logistic: dict[str, Any] = {"loss": "logistic", "level": 0.02 * n, "fit_intercept": True}
    groups = norms.Groups(np.arange(p) // 5)
    support = {"norm": norms.KSupport(10), "form": "squared"}
    return {
        "l1": solving(X, y, level=0.1 * n),
        "l1 logistic": solving(X, signs, **logistic),
        "l1 Poisson": solving(X, counts, loss="poisson", level=0.1 * n, fit_intercept=True),
        "l1 Huber": solving(X, y, loss="huber", level=0.1 * n),
        "l1 quantile": solving(X[:, :n], y, loss="quantile", level=0.1 * n, tol=1e-4),
        "l1 radius": solving(X, y, radius=5.0, form="constrained"),
        "l1 sparse": solving(thin, target, level=0.2, fit_intercept=True),
        "l1 free columns": solving(X, y, level=0.1 * n, fit_intercept=True, unpenalized=[0, 1, 2]),
        "k-support": solving(X, y, level=5.0, **support),
        "k-support logistic": solving(X, signs, loss="logistic", level=0.01, **support),
        "elastic net": solving(X, y, norm=norms.ElasticNetNorm(10), level=5.0, form="squared"),
        "groups": solving(X, y, norm=groups, level=0.1 * n),
        "groups logistic": solving(X, signs, norm=groups, **logistic),
    }


def searches(scale: int) -> dict[str, Case]:
    """Return paths and cross-validations."""
    from atomlearn import AtomicClassifierCV, AtomicRegressorCV, norms, paths

    X, y = drawn(60 * scale, 300 * scale)

    def path(norm: Any, form: str) -> Case:
        def case() -> tuple[float, float]:
            found = paths.path(
                X, y, norm=norm, form=form, n_alphas=20, alpha_ratio=0.02, fit_intercept=False
            )
            return float(sum(each.objective for each in found.results)), float(found.passes)

        return case

    return {
        "path": path("l1", "penalized"),
        "k-support path": path(norms.KSupport(10), "squared"),
        "cross-validation": fitting(AtomicRegressorCV("l1", cv=5, n_alphas=20), X, y),
        "classes": fitting(AtomicClassifierCV("l1", cv=5, n_alphas=10), X, np.digitize(y, [-2, 2])),
    }


def lifted(scale: int) -> dict[str, Case]:
    """Return overlapping groups, chains, and a hierarchy of products."""
    from atomlearn import designs, norms

    X, y = drawn(30 * scale, 60 * scale)
    overlapping = norms.LatentGroups([range(j, j + 6) for j in range(0, 50 * scale, 3)])
    products = designs.Polynomial.interactions(X[:, : 20 * scale])
    return {
        "latent groups": solving(X, y, norm=overlapping, level=0.2 * len(y)),
        "chains": solving(X, y, norm=norms.Chains(4), level=0.2 * len(y)),
        "hierarchy": solving(products, y, norm=norms.Hierarchy("weak"), level=0.5 * len(y)),
    }


def mapped(scale: int) -> dict[str, Case]:
    """Return products never formed, curves and surfaces."""
    import scipy.sparse as sp

    from atomlearn import FeatureGenerator, designs, norms

    X, y = drawn(40 * scale, 60 * scale)
    thin = sp.random_array((100 * scale, 200 * scale), density=0.05,
                           rng=np.random.default_rng(1), format="csc")  # fmt: skip
    target = np.random.default_rng(2).standard_normal(100 * scale)
    curves = designs.Additive(designs.as_design(X[:, :20]), "splines")
    return {
        "products": solving(designs.Polynomial.interactions(X), y, norm=norms.L1(), level=40.0),
        "sparse products": solving(designs.Polynomial.interactions(thin), target, level=2.0),
        "curves": solving(curves, y, norm=norms.Groups(curves.groups), level=2.0),
        "generation": fitting(FeatureGenerator(20, standardize=True), X, np.sign(y)),
    }


def matrices(scale: int) -> dict[str, Case]:
    """Return a completion, low rank plus sparse, and sparse principal components."""
    from atomlearn import SparseLowRank, SparsePCA, designs, norms

    rng, side = np.random.default_rng(0), 40 * scale
    M = rng.standard_normal((side, 3)) @ rng.standard_normal((3, side))
    rows, columns = np.divmod(rng.permutation(side * side)[: side * side // 4], side)
    spikes = M + 10.0 * (rng.random(M.shape) < 0.02)
    small = M[:12, :12] + rng.standard_normal((12, 12))

    def of(model: Any, data: Any) -> Case:
        def case() -> tuple[float, float]:
            model.fit(data)
            return float(model.objective_), 0.0

        return case

    seen = designs.Entries(rows, columns, (side, side))
    return {
        "completion": solving(seen, M[rows, columns], norm=norms.TraceNorm(), level=3.0, tol=1e-4),
        "low rank and sparse": of(SparseLowRank(), spikes),
        "sparse components": of(SparsePCA(n_components=2), small),
    }


def commands(scale: int) -> dict[str, Case]:
    """Return the command line on a table, and a column store made and solved on."""
    from atomlearn.cli.command_line import main
    from atomlearn.datasets import convert
    from atomlearn.designs import OnDisk

    X, y = drawn(600 * scale, 30 * scale)
    folder = Path(tempfile.mkdtemp())
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
    np.savetxt(folder / "t.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="")
    np.save(folder / "X.npy", X)

    def select() -> tuple[float, float]:
        arguments = ["select", str(folder / "t.csv"), "--target", "y", "--norm", "l1", "--quiet"]
        code = main([*arguments, "--out", str(folder / "out")])
        told = json.loads((folder / "out" / "summary.json").read_text())
        return float(code + told["n_selected"]), 0.0

    def store() -> tuple[float, float]:
        place = Path(tempfile.mkdtemp(dir=folder)) / "store"
        convert(folder / "X.npy", place)
        return solving(OnDisk(place), y, level=20.0)()

    return {"select": select, "column store": store}


GROUPS = {
    "solves": solves, "searches": searches, "lifted": lifted, "mapped": mapped,
    "matrices": matrices, "commands": commands,
}  # fmt: skip
#: Which cases tell of the numbers in a folder; the first that fits.
ROOMS = {
    "core/paths": ("searches",),
    "core": ("solves", "searches"),
    "lifting": ("lifted",),
    "maps": ("mapped",),
    "papers": ("mapped", "solves"),
    "matrices": ("matrices",),
    "_kernels": ("solves", "mapped"),
    "survival": ("solves",),
    "": ("commands",),
}


def groups_of(file: str) -> tuple[str, ...]:
    return next(groups for room, groups in ROOMS.items() if file.startswith(room))


# --- running ----------------------------------------------------------------------------------


def serve(asked: dict[str, Any]) -> None:
    """Run the cases of these groups, with one number changed; print times and answers."""
    if asked["number"]:
        change(*asked["number"])
    warnings.simplefilter("ignore")
    found = {}
    for group in asked["groups"]:
        for name, case in GROUPS[group](asked["scale"]).items():
            seconds = []
            try:
                for _ in range(asked["repeats"]):
                    began = time.process_time()
                    answer, passes = case()
                    seconds.append(time.process_time() - began)
            except Exception as error:  # a number may be refused, which is told
                found[name] = {"refused": f"{type(error).__name__}: {error}"}
                continue
            found[name] = {"seconds": min(seconds), "answer": answer, "passes": passes}
    print(json.dumps(found))


def measured(
    number: tuple[str, str, float] | None, groups: tuple[str, ...], options: Options
) -> Any:
    """Return what a process finds with this number changed; None where it does not even start."""
    scale = 1 if options.smoke else 2
    asked = {"number": number, "groups": groups, "scale": scale, "repeats": options.times(3)}
    command = [sys.executable, "-m", "benchmarks.sensitivity", "--serve", json.dumps(asked)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600,
                              env=environment, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def compared(usual: Any, other: Any) -> dict[str, Any]:
    """Return the ratios of seconds, and the cases whose passes or answers changed."""
    if other is None:
        return {"mean": math.inf, "worst": math.inf, "changed": "does not run"}
    ratios, changed = [], []
    for name, before in usual.items():
        after = other[name]
        if "refused" in before:
            continue
        if "refused" in after:
            changed.append(f"{name} (refused)")
            continue
        ratios.append(after["seconds"] / max(before["seconds"], 1e-9))
        if after["passes"] != before["passes"]:
            changed.append(f"{name} ({before['passes']:g} -> {after['passes']:g} passes)")
        elif abs(after["answer"] - before["answer"]) > 1e-5 * abs(before["answer"]):
            changed.append(f"{name} (another answer)")
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else math.inf
    worst = max(ratios, key=lambda ratio: abs(math.log(ratio)), default=math.inf)
    return {"mean": round(mean, 3), "worst": round(worst, 2), "changed": "; ".join(changed)}


def main() -> None:
    """Try every number, or serve one process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(json.loads(given.serve))
        return
    options = Options(given.smoke, given.repeats, given.out)
    tried = [n for n in numbers() if any(part in n.file for part in given.only)]
    usual = {g: measured(None, g, options) for g in {groups_of(n.file) for n in tried}}

    def rows(number: Number) -> list[dict[str, Any]]:
        groups = groups_of(number.file)
        found = {
            name: measured((number.file, number.name, factor), groups, options)
            for name, factor in FACTORS.items()
        }
        told = {"file": number.file, "number": number.name, "value": number.text}
        return [told | {"at": name} | compared(usual[groups], found[name]) for name in found]

    with Table("sensitivity", options) as table, ThreadPoolExecutor(given.jobs) as pool:
        for each in pool.map(rows, tried):
            for row in each:
                table.add(**row)


if __name__ == "__main__":
    main()
