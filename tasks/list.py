"""List the tasks of the registry: `ernie-gram tasks [--data FOLDER]`.

Below each task are its files: commas separate the splits, `|` separates alternatives, of which the first that exists is
read, and `+` joins files that are read together. With a folder of official files, it also shows which splits exist.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.list")

from pathlib import Path
from textwrap import TextWrapper

from reader.errors import InputError, OneLineParser
from tasks.files.official import add_data_option, available_splits
from tasks.registry import TASKS

HEAD = ("task", "title", "kind", "language", "metric")
FILES, FOUND = "files", "found"
WIDTH, INDENT = 120, "    "


def table(data: Path | None) -> list[tuple[str, ...]]:
    """Return a head and a row of cells for each task. The last cell has the names of the files.

    With a folder, the cell before it has the splits whose files are in the folder.
    """
    rows: list[tuple[str, ...]] = [(*HEAD, *([FOUND] if data else []), FILES)]
    for task in TASKS.values():
        found = [" ".join(available_splits(task, data)) or "-"] if data else []
        splits = ([" + ".join(source.files) for source in split.sources] for split in task.splits.values())
        names = ", ".join(" | ".join(alternatives) for alternatives in splits)
        rows.append((task.name, task.title, task.kind, task.language, task.metric, *found, names))
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
    parser = OneLineParser(description="List the tasks, their metrics and files.")
    add_data_option(parser)
    data = parser.parse_args().data
    if data and not data.is_dir():
        raise InputError(f"--data: {data}: no such folder; give the folder with the files of the tasks")
    print(as_text(table(data)))
