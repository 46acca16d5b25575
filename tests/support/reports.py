"""Reports for tests: the folder of a run that is made by hand, its page as it is read, and its curves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree

import yaml
from matplotlib.figure import Figure

from ernie_gram.report import main
from ernie_gram.reporting.charts import svg_text
from ernie_gram.run.run_log import RunLog
from tests.support.commands import Done, call


class Table(NamedTuple):
    """The rows of a table: the text of each cell, and what is shown when the pointer is over it."""

    rows: list[list[str]]
    titles: list[list[str]]

    def row(self, first: str) -> dict[str, str]:
        """Return the cells of the first row that begins with a text, by the heading of their column."""
        return dict(zip(self.rows[0], next(row for row in self.rows[1:] if row[0] == first), strict=True))

    def exact(self, first: str) -> dict[str, str]:
        """Return the exact values of the same cells."""
        number = next(i for i, row in enumerate(self.rows) if i and row[0] == first)
        return dict(zip(self.rows[0], self.titles[number], strict=True))


class Page:
    """A parsed page: its elements, its tables in order, and all text outside of styles.

    An element that is not closed fails, but for those that HTML does not close.
    """

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>")
        self.root = ElementTree.fromstring(re.sub(r"<((?:meta|input)\b.*?)( checked)?>", r"<\1/>", text))
        for element in self.root.iter():
            if element.tag.endswith("style"):
                element.text = None
        self.text = "".join(self.root.itertext())
        self.tables = []
        for table in self.root.iter("table"):
            rows = [[*row] for row in table.iter("tr")]
            texts = [["".join(cell.itertext()) for cell in row] for row in rows]
            self.tables.append(Table(texts, [[cell.get("title", "") for cell in row] for row in rows]))

    def table_with(self, *heads: str) -> Table:
        """Return the first table that has these columns."""
        return next(table for table in self.tables if {*heads} <= {*table.rows[0]})


Curves = dict[str, dict[str, list[tuple[float, float]]]]


def report(tmp_path: Path, *arguments: str | Path, examples: int = 0) -> tuple[Page, Done, Curves]:
    """Run the command; return its page, what it printed, and the points of each curve by title of chart and label."""
    target, figures = tmp_path / "report.html", list[Figure]()
    with patch("ernie_gram.reporting.charts.svg_text", lambda figure: figures.append(figure) or svg_text(figure)):
        options = ("--output", str(target), "--examples", str(examples), "--overwrite")
        done = call(main, *map(str, arguments), *options).ok()
    curves = {
        figure.axes[0].get_title(): {
            line.get_label(): list(map(tuple, line.get_xydata())) for line in figure.axes[0].lines
        }
        for figure in figures
    }
    return Page(target), done, curves


def made_run(folder: Path, evaluations: dict[int, dict[str, Any]], **settings: Any) -> Path:
    """Write the folder of a pre-training with some evaluations, and a record of training before each."""
    folder.mkdir(parents=True)
    tree = {"seed": 1, "paths": {"output": str(folder)}, "data": {"batch_size": 8}, "trainer": {"max_steps": 20}}
    (folder / "config.yaml").write_text(yaml.safe_dump(tree | settings), encoding="utf-8")
    (folder / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    log = RunLog(folder, True, visualdl=False, start=0, max_steps=20)
    for step, values in evaluations.items():
        log.record("train", step, {"loss": 5.0 - step / 10, "explicit": 1.0, "learning_rate": 0.1})
        log.record("eval", step, values)
    log.close()
    return folder


def perplexities(units: float, ngrams: float) -> dict[int, dict[str, float]]:
    """Return the evaluations of a run whose perplexities end with the given ones."""
    return {
        0: {"perplexity": 2 * units, "ngram_perplexity": 9.5},
        20: {"perplexity": units, "ngram_perplexity": ngrams},
    }


def assert_self_contained(page: Page) -> None:
    """Check that a page loads and runs nothing."""
    for element in page.root.iter():
        name, attributes = element.tag.rpartition("}")[2], element.attrib
        assert name not in ("script", "img", "link", "iframe", "object", "embed", "base", "form", "a"), name
        assert "src" not in attributes
        assert not attributes.get("href", "")
        assert attributes.get("{http://www.w3.org/1999/xlink}href", "#").startswith("#")
        assert not [key for key in attributes if key.startswith("on")]
        assert "url(" not in attributes.get("style", "")
    [policy] = [each.attrib["content"] for each in page.root.iter("meta") if "http-equiv" in each.attrib]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
