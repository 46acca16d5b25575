"""The source files, and the modules that each imports."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.support.commands import ROOT

PACKAGES = ["reader", "ernie_gram", "tasks"]
Graph = dict[str, set[str]]


def sources() -> list[Path]:
    """Return all source files of the packages."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def module(path: Path) -> str:
    """Return the name of a source file's module; `__init__.py` has the name of its package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> set[str]:
    """Return every module that a source file imports, at the top or inside functions. Callers must not change it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; use the full name"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def import_graph() -> Graph:
    """Return for each module the modules that it imports, including those of other projects."""
    return {module(path): imports(path) for path in sources()}
