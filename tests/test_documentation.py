"""The documentation refers to files, functions, tests and commands that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.commands import ROOT

PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "tests/benchmarks/README.md"]
ROWS = [line.strip("|").split("|") for line in PAPER.splitlines() if line.startswith("| ")][1:]
ITEMS = [
    *(f"Equation {number}" for number in range(1, 7)),
    "Algorithm 1",
    *(f"Section {number}" for number in ("3.1", "3.2", "3.3", "3.4", "3.5", "4.1", "4.2", "4.7", "4.8")),
    *(f"Appendix {letter}" for letter in "ABCD"),
    *(f"Figure {number}" for number in range(1, 6)),
]


def names_in(path: Path) -> set[str]:
    """Return the names of the functions and classes that a file defines at its top level."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_every_item_of_the_paper_has_a_row_without_empty_cells() -> None:
    firsts = [row[0].strip() for row in ROWS]
    for item in ITEMS:
        assert any(first.startswith(f"{item}:") for first in firsts), item
    for row in ROWS:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row


def test_every_reference_in_the_table_exists() -> None:
    references = re.findall(r"`([\w/]+\.py)::(\w+)`", PAPER)
    assert len(references) > 40
    for file, name in references:
        assert name in names_in(ROOT / file), f"{file}::{name}"


def test_every_equation_is_in_the_name_or_id_of_a_test() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "ernie_gram").rglob("test_*.py"))
    for number in range(1, 7):
        assert re.search(rf"equations?(_\d_and|_\d)*_{number}\b|equations?(_\d)*_{number}_", text), number


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_commands_refer_to_existing_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for module in re.findall(r"python -m ((?:reader|ernie_gram|tests)[\w.]*)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), module
    for file in re.findall(r"`((?:conf|reader|ernie_gram|tests|docs)/[\w/.]+\.\w+)`", text):
        assert (ROOT / file).is_file(), file


def test_the_readme_names_the_python_versions_that_the_package_accepts() -> None:
    found = re.search(r'python_requires=">=3\.(\d+),<3\.(\d+)"', (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert found is not None
    first, last = int(found[1]), int(found[2]) - 1
    for page in ("README.md", "Makefile"):
        assert f"Python 3.{first} to 3.{last}" in (ROOT / page).read_text(encoding="utf-8")
