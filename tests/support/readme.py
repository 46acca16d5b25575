"""The parts of a README: its headings, and its blocks of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


class Heading(NamedTuple):
    """A heading: its level, from 1, its anchor, and the indented blocks below it, up to the next heading."""

    level: int
    anchor: str
    blocks: list[str]


def sections(path: Path) -> list[Heading]:
    """Return the headings of a page in their order. The anchor is the line before a heading, or made of its words."""
    found: list[Heading] = []
    anchor = ""
    for lines in _paragraphs(path.read_text(encoding="utf-8")):
        for line in lines:
            if marked := ANCHOR.fullmatch(line):
                anchor = marked[1]
            elif heading := re.match(r"(#+) (.+)", line):
                words = re.sub(r"[^\w\s-]", "", heading[2].lower()).replace(" ", "-")
                found.append(Heading(len(heading[1]), anchor or words, []))
                anchor = ""
        if lines[0].startswith("    "):
            found[-1].blocks.append("\n".join(line[4:] for line in lines))
    return found


def _paragraphs(page: str) -> Iterator[list[str]]:
    """Yield the lines between blank lines; no fenced blocks."""
    for text in re.split(r"\n\s*\n", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)):
        if lines := [line for line in text.split("\n") if line.strip()]:
            yield lines
