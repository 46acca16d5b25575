"""The documentation refers to files, functions, tests and commands that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from reader.console_script import MODULES
from tests.support.commands import ROOT
from tests.support.import_graph import PACKAGES

PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "tests/benchmarks/README.md"]
FOLDERS = "|".join([*PACKAGES, "tests", "conf", "docs"])
ITEMS = [
    *(f"Equation {number}" for number in range(1, 7)),
    "Algorithm 1",
    *(f"Section 3.{number}" for number in range(1, 6)),
    *(f"Section 4.{number}" for number in range(1, 9)),
    *(f"Appendix {letter}" for letter in "ABCD"),
    *(f"Figure {number}" for number in range(1, 8)),
]


def rows_of(page: str, first: str) -> list[list[str]]:
    """Return the cells of the rows of the table whose head begins with a cell."""
    tables = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    [table] = (table for table in tables if table.startswith(f"| {first} |"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def references_in(text: str) -> list[tuple[str, str]]:
    """Return the file and the name of every reference `file.py::name`."""
    return re.findall(r"`([\w/]+\.py)::(\w+)`", text)


@cache
def names_in(path: Path) -> set[str]:
    """Return the names of the functions, classes and tables that a file defines at its top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


ROWS = rows_of(PAPER, "Paper")


def test_every_item_of_the_paper_names_code_and_a_test_that_exist() -> None:
    for item in ITEMS:
        assert any(row[0].startswith(f"{item}:") for row in ROWS), item
    for _, code, proof, _ in ROWS:
        files, tests = references_in(code), references_in(proof)
        assert files
        assert tests
        assert all(file.startswith((*PACKAGES, "docs/studies")) for file, _ in files)
        assert all(file.startswith("tests/") and name.startswith("test_") for file, name in tests)
    for file, name in references_in(PAPER):
        assert name in names_in(ROOT / file), f"{file}::{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_commands_refer_to_existing_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", text):
        linked = (page.parent / target if target else page).read_text(encoding="utf-8")
        headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall("^#+ (.*)", linked, re.M))
        anchors = {*(heading.replace(" ", "-") for heading in headings), *re.findall('<a id="(.+)"></a>', linked)}
        assert anchor in anchors, f"{target}#{anchor}"
    for module in re.findall(rf"python -m ((?:{FOLDERS})[\w.]*)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), module
    for command in re.findall(r"ernie-gram ([a-z][\w-]*)", text):
        assert command in MODULES, command
    for file in re.findall(rf"`((?:{FOLDERS})/[\w/.]+\.\w+)`", text):
        assert (ROOT / file).is_file(), file
