"""Changes of a tired programmer: another comparison, sign or constant, or a line left out."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum",
         "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}  # fmt: skip


#: Whose fields are sizes from which another way is quicker: no answer shows their change.
SETTINGS = re.compile(r"\b(TUNING|LIMITS|BELIEVED|PIECE)\b")


class _Site(ast.NodeTransformer):
    """Counts the places where a change is possible; makes the one that is ``chosen``.

    It is ``slight`` where it moves a setting and nothing else: a size from which another way is
    quicker is met by one more or less, or a number that stands alone under its name, a constant of
    a module or a field of a class, becomes larger by a quarter of itself at most.
    """

    def __init__(self, chosen: int, rng: random.Random) -> None:
        self.chosen, self.count, self.rng, self.line = chosen, 0, rng, 0
        self.slight = self._named = False

    def _is_it(self, node: ast.AST, slight: bool = False) -> bool:
        self.count += 1
        if self.count - 1 == self.chosen:
            self.line, self.slight = getattr(node, "lineno", 0), slight
            return True
        return False

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._with_names(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._with_names(node)

    def _with_names(self, node: ast.Module | ast.ClassDef) -> ast.AST:
        for number, part in enumerate(node.body):
            self._named = isinstance(part, (ast.Assign, ast.AnnAssign))
            node.body[number] = self.visit(part)
            self._named = False
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        order = isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        at_a_size = order and bool(SETTINGS.search(ast.unparse(node)))
        if type(node.ops[0]) in SWAPS and self._is_it(node, at_a_size):
            node.ops[0] = SWAPS[type(node.ops[0])]()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) in SWAPS and self._is_it(node):
            node.op = SWAPS[type(node.op)]()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._is_it(node):
            node.op = SWAPS[type(node.op)]()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Not, ast.USub)) and self._is_it(node):
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        if self._is_it(node, self._named and node.value >= 4):
            return ast.copy_location(ast.Constant(node.value + 1 if node.value != 1 else 0), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in NAMES and self._is_it(node):
            node.attr = NAMES[node.attr]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in NAMES and isinstance(node.ctx, ast.Load) and self._is_it(node):
            node.id = NAMES[node.id]
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        # Messages are not what is tested here; that something is refused is.
        return ast.copy_location(ast.Pass(), node) if self._is_it(node) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Pass(), node) if self._is_it(node) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node


def changed(path: Path, rng: random.Random) -> tuple[str, int, str]:
    """Return the source of a file after one change, the line, and that line as it is then.

    The line is 0 where there is none, or the change is slight.
    """
    source = path.read_text(encoding="utf-8")
    sites = _Site(-1, rng)
    sites.visit(ast.parse(source))
    if not sites.count:
        return source, 0, ""
    tree = ast.parse(source)
    site = _Site(rng.randrange(sites.count), rng)
    site.visit(tree)
    before, after = ast.unparse(ast.parse(source)).splitlines(), ast.unparse(tree).splitlines()
    new = next((b for a, b in zip(before, after, strict=False) if a != b), "")
    line = 0 if site.slight else site.line
    return ast.unparse(ast.fix_missing_locations(tree)), line, new.strip()
