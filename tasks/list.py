"""List the tasks of the registry: `ernie-gram tasks`.

Below each task are its files: commas separate the splits, `|` separates alternatives, of which the first that exists is
read, and `+` joins files that are read together.
"""

from __future__ import annotations

from textwrap import TextWrapper

from reader.errors import OneLineParser
from tasks.registry import TASKS

COLUMNS = "{:15}  {:25}  {:15}  {:8}  {}"
FILES = TextWrapper(120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def main() -> None:
    OneLineParser(description="List the tasks, their metrics and files.").parse_args()
    print(COLUMNS.format("task", "title", "kind", "language", "metric"), FILES.fill("files"), sep="\n")
    for task in TASKS.values():
        print(COLUMNS.format(task.name, task.title, task.kind, task.language, task.metric))
        splits = ([" + ".join(source.files) for source in split.sources] for split in task.splits.values())
        print(FILES.fill(", ".join(" | ".join(alternatives) for alternatives in splits)))
