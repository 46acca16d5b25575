"""List the tasks of the registry: `ernie-gram tasks`.

Below each task are its files: commas separate the splits, `|` separates alternatives, of which the first that exists is
read, and `+` joins files that are read together.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.list")

from textwrap import TextWrapper

from reader.errors import OneLineParser
from tasks.registry import TASKS

HEAD = ("task", "title", "kind", "language", "metric", "files")
WIDTH, INDENT = 120, "    "


def table() -> list[tuple[str, ...]]:
    """Return a head and a row of cells for each task. The last cell has the names of the files."""
    rows: list[tuple[str, ...]] = [HEAD]
    for task in TASKS.values():
        splits = ([" + ".join(source.files) for source in split.sources] for split in task.splits.values())
        names = ", ".join(" | ".join(alternatives) for alternatives in splits)
        rows.append((task.name, task.title, task.kind, task.language, task.metric, names))
    return rows


def as_text(rows: list[tuple[str, ...]]) -> str:
    """Return rows of cells as lines with aligned columns, and the last cell of each row below it."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    wrapper = TextWrapper(WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)
    lines: list[str] = []
    for *cells, last in rows:
        aligned = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        lines += ["  ".join(aligned).rstrip(), *wrapper.wrap(last)]
    return "\n".join(lines)


def main() -> None:
    OneLineParser(description="List the tasks, their metrics and files.").parse_args()
    print(as_text(table()))
