"""A page of HTML as tests read it: its elements, its tables, and its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = ("meta", "input")


@dataclass
class Table:
    """The rows of a table: the text of each cell, and what is shown when the pointer is over it."""

    rows: list[list[str]] = field(default_factory=list)
    titles: list[list[str]] = field(default_factory=list)

    def row(self, first: str) -> dict[str, str]:
        """Return the cells of the first row that begins with a text, by the heading of their column."""
        return dict(zip(self.rows[0], next(row for row in self.rows[1:] if row[0] == first), strict=True))

    def exact(self, first: str) -> dict[str, str]:
        """Return the exact values of the same cells."""
        number = next(i for i, row in enumerate(self.rows) if i and row[0] == first)
        return dict(zip(self.rows[0], self.titles[number], strict=True))


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        elements: name and attributes of every element, in order.
        tables: in order; text: all text outside of styles; unclosed: names of elements that are still open.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[Table] = []
        self.text = ""
        self.unclosed: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.unclosed.append(tag)
        if tag == "table":
            self.tables.append(Table())
        elif tag == "tr":
            self.tables[-1].rows.append([])
            self.tables[-1].titles.append([])
        elif tag in ("td", "th"):
            self.tables[-1].rows[-1].append("")
            self.tables[-1].titles[-1].append(attributes.get("title", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.unclosed and self.unclosed[-1] != "style":
            self.text += data
        if {"td", "th"} & {*self.unclosed}:
            self.tables[-1].rows[-1][-1] += data

    def table_with(self, *heads: str) -> Table:
        """Return the first table that has these columns."""
        return next(table for table in self.tables if {*heads} <= {*table.rows[0]})
