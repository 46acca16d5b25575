"""The documentation refers to files, functions, tests and commands that exist.

The READMEs have the same sections and commands, and those of the ten minutes work.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from reader.console_script import MODULES
from tests.support.commands import ROOT, shell
from tests.support.further_cases import FURTHER
from tests.support.import_graph import PACKAGES
from tests.support.task_files import write
from tests.support.ten_minutes import script, sections

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
        defined = rf"^(?:(?:def|class) )?{name}\b"
        assert re.search(defined, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file}::{name}"


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


ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"

# Commands, options and numbers; and those that only one of the READMEs has.
WORD = re.compile(r"ernie-gram [a-z-]+|\./run_\w+\.sh|make [a-z-]+|--[a-z][\w.]*|\b\d[\w:,.-]*")
DIFFERENT = {"--input", "--model.vocab_size", "--grid", "--vary", "3e-5", "5e-5", "1e-4"}

# Less of everything, so that the commands end within seconds.
SMALLER = {
    "--trainer.max_steps 1000 --optimizer.warmup_steps 100": "--trainer.max_steps 6 --optimizer.warmup_steps 2",
    "cat > output/first/order.yaml": "sed -i -n 1~10p output/first/train.tsv\ncat > output/first/order.yaml",
    "--optimizer.epochs 3": "--optimizer.epochs 1",
}


def test_both_readmes_have_the_same_sections_and_commands() -> None:
    english, chinese = sections(ENGLISH), sections(CHINESE)
    assert len(english) > 8
    assert [each[:2] for each in chinese] == [each[:2] for each in english]
    different = set()
    for (_, anchor, ours), (_, _, theirs) in zip(english, chinese, strict=True):
        assert len(ours) == len(theirs), anchor
        for one, other in zip(ours, theirs, strict=True):
            different |= {*WORD.findall(one)} ^ {*WORD.findall(other)}
    assert different == DIFFERENT


@FURTHER
@pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=lambda page: page.name)
def test_the_ten_minutes_can_be_typed(page: Path, tmp_path: Path) -> None:
    words, draw = ["房间", "服务员", "早餐", "干净", "很", "热情", "前台", "的", "位置", "方便"], random.Random(0)
    lines = ["".join(draw.choices(words, k=12)) + "。" + "\n" * (1 + (i % 3 == 2)) for i in range(1800)]
    write(tmp_path / "texts" / "酒店.txt", "".join(lines))
    texts = {"demo-text": "demo-text --max_size 700000"}
    if page == CHINESE:
        texts = {"--input texts": f"--input {tmp_path / 'texts'}"}
    typed = script(page, tmp_path / "first", SMALLER | texts)
    done = shell("bash", "-c", typed, timeout=500, NPROC="1").ok()
    answers = [json.loads(line) for line in done.stdout.splitlines()[-2:]]
    assert all(answer["label"] in answer["probabilities"] for answer in answers)
    assert set(answers[0]["probabilities"]) == {"original", "swapped"}
