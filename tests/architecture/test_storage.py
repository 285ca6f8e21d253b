"""Storage never leaks: only the rooms that hold data know that sparse matrices exist.

import-linter holds the other arrows (``.importlinter``); it sees no deeper than ``scipy`` in
packages of others, hence this test.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "atomlearn"
#: Rooms that hold or make data; the conformance suites make it for tests.
MAY_KNOW_STORAGE = {
    "core/data",
    "maps",
    "storage",
    "matrices/designs",
    "_kernels",
    "datasets",
    "testing",
}
#: Files that use sparse matrices as algebra, with the reason. None of them may look at X.
SPARSE_ALGEBRA = {
    "core/interfaces/proximal.py": "the low-rank factors of a prox Jacobian, one column a group",
    "core/norms/base.py": "makes those factors",
    "core/interfaces/lift.py": "the map L of a lifted norm",
    "core/solvers/atoms.py": "the atoms in use, which have few entries each",
    "estimators/coefficients.py": "coefficients without their zeros, for pickles",
    "lifting/operators.py": "the matrices of which L is made",
    "lifting/value.py": "projections onto L u = w",
    "lifting/trees.py": "which cell of features lies in which set",
    "core/norms/partition.py": "reads sets from membership matrices",
    "core/losses/multinomial.py": "the low-rank part of a Hessian, one column a row of predictions",
    "core/losses/free_columns.py": "couplings of a Newton system, a column a free column",
    "findings/precision.py": "a precision matrix with few entries a column, of columns in memory",
    "core/norms/user.py": "reads the sparse vector that a person's oracle may return",
}


def is_storage(module: str) -> bool:
    """Return whether this module is scipy.sparse; its iterative solvers store nothing."""
    inside = module == "scipy.sparse" or module.startswith("scipy.sparse.")
    return inside and not module.startswith("scipy.sparse.linalg")


def names_scipy_sparse(source: str) -> list[int]:
    """Return the lines that import scipy.sparse, or reach it as an attribute of scipy."""
    if "sparse" not in source:
        return []
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = any(is_storage(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            from_scipy = module == "scipy" and any(a.name == "sparse" for a in node.names)
            found = node.level == 0 and (is_storage(module) or from_scipy)
        elif isinstance(node, ast.Attribute):
            owner = node.value
            found = node.attr == "sparse" and isinstance(owner, ast.Name) and owner.id == "scipy"
        else:
            continue
        if found:
            lines.append(node.lineno)
    return lines


def rooms_of(path: Path) -> list[str]:
    """Return the folders this file lies in, outermost first: core, core/data."""
    return [parent.as_posix() for parent in path.relative_to(PACKAGE).parents]


def guarded_files() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not any(room in rooms_of(path) for room in MAY_KNOW_STORAGE)
        and path.relative_to(PACKAGE).as_posix() not in SPARSE_ALGEBRA
    ]


def test_no_sparse_matrices_outside_the_rooms_that_hold_data() -> None:
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in guarded_files()
        if (lines := names_scipy_sparse(path.read_text(encoding="utf-8")))
    }
    assert not found, f"{found} use scipy.sparse: ask the design for scores, columns or a block"


@pytest.mark.parametrize(
    "source",
    [
        "import scipy.sparse",
        "import scipy.sparse.csgraph as graph",
        "from scipy import sparse",
        "from scipy.sparse import csr_matrix",
        "def f():\n    from scipy.sparse import issparse",
        "import scipy\nscipy.sparse.eye(3)",
    ],
)
def test_the_search_sees_every_way_to_import_it(source: str) -> None:
    assert names_scipy_sparse(source)


@pytest.mark.parametrize(
    "source",
    [
        "from scipy import optimize\nimport scipy.linalg\nx.sparse",
        "from scipy.sparse.linalg import cg",
    ],
)
def test_the_search_leaves_the_rest_of_scipy_alone(source: str) -> None:
    assert not names_scipy_sparse(source)


@pytest.mark.parametrize("name", sorted(SPARSE_ALGEBRA))
def test_no_exception_outlives_its_reason(name: str) -> None:
    assert names_scipy_sparse((PACKAGE / name).read_text(encoding="utf-8"))
