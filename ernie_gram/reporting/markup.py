"""Build HTML; every text is escaped unless it is `Html` already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

VOID = ("input", "meta", "wbr")


class Html(str):
    """Text that is HTML already; any other text is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(content: str) -> Html:
    """Return a text as HTML; quotes are escaped too, so that it may be the value of an attribute."""
    return content if isinstance(content, Html) else Html(html.escape(content))


def joined(parts: Iterable[str], separator: str = "") -> Html:
    """Return some parts, each escaped, as one piece of HTML."""
    return Html(escaped(separator).join(escaped(part) for part in parts))


def element(name: str, /, *children: str, **attributes: str | int | float | bool) -> Html:
    """Return an element.

    Args:
        attributes: a final underscore of a name is removed (`class_`), other ones become hyphens. True gives an
            attribute without a value; False and "" leave it out.
    """
    opened = f"<{name}"
    for key, value in attributes.items():
        key = key.removesuffix("_").replace("_", "-")
        if value is True:
            opened += f" {key}"
        elif value is not False and value != "":
            opened += f' {key}="{html.escape(str(value))}"'
    return Html(f"{opened}>" if name in VOID else f"{opened}>{joined(children)}</{name}>")


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        content: what is shown.
        exact: what is shown when the pointer is over it.
        style: classes of CSS.
        style_value: a style attribute, such as a background.
    """

    content: str
    exact: str = ""
    style: str = ""
    style_value: str = ""


def numeric(*contents: str) -> list[Cell]:
    """Return cells that are aligned like numbers."""
    return [Cell(content, style="n") for content in contents]


# Of strings and Cells.
Row = Sequence[Any]


def table(head: Row, *bodies: Iterable[Row], caption: str = "") -> Html:
    """Return a table that scrolls sideways by itself if it is too wide; the first cell of a row is its heading."""
    header = [_cell("th", cell, scope="col") for cell in head]
    parts = [element("caption", caption)] if caption else []
    parts.append(element("thead", element("tr", *header)))
    for body in bodies:
        rows = [
            element("tr", *(_cell("td" if i else "th", cell, scope="" if i else "row") for i, cell in enumerate(row)))
            for row in body
        ]
        if rows:
            parts.append(element("tbody", *rows))
    return element("div", element("table", *parts), class_="scroll", tabindex=0)


def _cell(name: str, cell: str | Cell, scope: str) -> Html:
    if isinstance(cell, Cell):
        return element(name, cell.content, scope=scope, class_=cell.style, title=cell.exact, style=cell.style_value)
    return element(name, cell, scope=scope)


def folded(summary: str, *children: str) -> Html:
    """Return content that is hidden until its summary is clicked; this needs no script."""
    return element("details", element("summary", summary), *children)


def breakable(key: str) -> Html:
    """Return a dotted key or a path, which may be broken after its separators."""
    return Html(re.sub(r"([._/=,])", r"\1<wbr>", escaped(key)))


def section(title: str, anchor: str, *children: str, level: int = 2) -> Html:
    """Return a section with a heading that links may point to."""
    return element("section", element(f"h{level}", title), *children, id=anchor)
