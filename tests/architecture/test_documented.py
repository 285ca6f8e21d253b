"""Every public class says where it comes from and shows how it is used."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import unicodedata
from pathlib import Path

import atomlearn
from atomlearn import interfaces
from tests.oracles.sources import PACKAGE, nodes, trees

DOORS = (
    "designs",
    "losses",
    "masters",
    "norms",
    "papers",
    "paths",
    "problem",
    "reports",
    "solvers",
)
#: Classes of ``interfaces`` from which people make parts.
BASES = ("ArrayScores", "DenseBlock", "End", "FeatureMap", "Forwarding", "MappedDesign")
BASES += ("SparseBlock",)
#: Rooms whose classes hold data, or what a run tells: no paper to name.
NO_PAPER = (
    "core.data",
    "core.interfaces",
    "core.paths",
    "core.problem",
    "core.solvers.checkpoint",
    "core.solvers.progress",
    "maps.feature_map",
    "maps.pairs",
    "maps.terms",
    "matrices.designs",
    "storage",
)
#: Rooms and classes that people get and never make: values, blocks, errors.
RECEIVED = {
    "core.data.lifted": "made by a problem whose norm lifts",
    "core.interfaces.scores": "what designs answer with",
    "core.paths.cross_validation": "what cross_validate returns",
    "core.problem.proof": "what prove returns",
    "maps.additive.AdditiveMap": "the map of an Additive",
    "maps.anova.AnovaMap": "the map of an Anova",
    "maps.feature_map.MappedDesign": "a base class; FeatureMap has the Example",
    "maps.kernels.KernelMaps": "the map of Kernels",
    "maps.pairs": "the map and the scores of a Polynomial",
    "maps.terms": "what Additive gathers",
    "reports.displays": "figures: no paper to name",
    "reports.structure_displays": "figures: no paper to name",
    "reports.content": "values that a report is made of",
    "reports.html": "an error",
    "reports.model": "values that a model file holds",
    "reports.data_displays": "figures: no paper to name",
    "storage.device.on_device.RecheckedScores": "what OnDevice answers with",
    "storage.spread.waiting.LostDataError": "an error",
    "storage.store.plink.Variants": "what read_variants returns",
    "storage.store.store_file": "an error",
}
BIBLIOGRAPHY = Path(__file__).resolve().parents[2] / "docs" / "bibliography.md"
SOURCES = Path(__file__).resolve().parents[2] / "src"


def public_classes() -> list[type]:
    found: dict[str, type] = {}
    for door in DOORS:
        module = importlib.import_module(f"atomlearn.{door}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value):
                found.setdefault(f"{value.__module__}.{value.__name__}", value)
    for name in BASES:
        value = getattr(interfaces, name)
        found.setdefault(f"{value.__module__}.{value.__name__}", value)
    for name in atomlearn.__all__:
        value = getattr(atomlearn, name)
        if inspect.isclass(value):
            found.setdefault(f"{value.__module__}.{value.__name__}", value)
    return list(found.values())


def shown(value: type) -> str:
    return f"{value.__module__.removeprefix('atomlearn.')}.{value.__name__}"


def missing(value: type) -> set[str]:
    name, prose = shown(value), inspect.getdoc(value) or ""
    found = set()
    received = any(name.startswith(plain) for plain in RECEIVED)
    if "References" not in prose and not received and not name.startswith(NO_PAPER):
        found.add("References")
    if ">>> " not in prose and not received:
        found.add("Examples")
    return found


def test_public_classes_say_where_they_come_from_and_how_they_are_used() -> None:
    classes = public_classes()
    assert len(classes) > 100
    lacking = {shown(value): missing(value) for value in classes}
    assert not {name: found for name, found in lacking.items() if found}


def test_letters_are_in_the_bibliography() -> None:
    """[A], [V] and their likes are keys that a reader can look up."""
    keys = set(re.findall(r"\*\*\[([A-Z])\]\*\*", BIBLIOGRAPHY.read_text(encoding="utf-8")))
    for path in PACKAGE.rglob("*.py"):
        used = set(re.findall(r"(?<![\w\]\[])\[([A-Z])\](?!\w)", path.read_text(encoding="utf-8")))
        assert used <= keys, (path, used)


def test_authors_and_years_are_in_the_bibliography() -> None:
    """Each year that a References section names stands beside one of its authors there, too."""
    entries = [words(entry) for entry in BIBLIOGRAPHY.read_text(encoding="utf-8").split("\n- ")]
    lost = []
    found = [
        (path, ast.get_docstring(node) or "")
        for path, found in nodes().items()
        if "References\n" in path.read_text(encoding="utf-8")
        for node in found
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    assert len(found) > 100
    for path, prose in found:
        section = re.search(r"References\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", prose, re.DOTALL)
        text = re.sub(r"doi:\S+", "", section[1] if section else "")
        for before, year in re.findall(r"(.*?)\b((?:19|20)\d\d)\b(?![-\d])", text, re.DOTALL):
            authors = {word for word in words(before) if word[0].isupper() and len(word) > 2}
            if not any(year in entry and authors & entry for entry in entries):
                lost.append((path.name, before.strip(), year))
    assert not lost


def words(text: str) -> set[str]:
    """Return the words and numbers of a text, without accents."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return set(re.findall(r"[A-Za-z]+|\d{4}", letters))


#: Structures of numbers that no timing chose: what is refused, how much is looked at, how it looks.
BOUNDS = {
    "cli/plan.py": "what messages and guesses hold",
    "storage/formats/held.py": "what is believed of a file",
    "storage/conversion/journal.py": "memory, and what a kill may cost",
    "storage/intake/columns.py": "what columns are taken for",
}


def test_settings_say_what_measured_them() -> None:
    """Each structure of numbers names a script that is there, or is one of bounds."""
    for path, tree in trees().items():
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            made = ast.unparse(value).removesuffix("()") if isinstance(value, ast.Call) else ""
            if made not in classes or str(path.relative_to(SOURCES / "atomlearn")) in BOUNDS:
                continue
            prose = ast.get_docstring(classes[made]) or ""
            scripts = re.findall(r"``(benchmarks/[\w/.]+)``", prose)
            root = SOURCES.parent
            assert scripts, (path, made)
            assert all((root / script).exists() for script in scripts), (path, scripts)
