"""Read the files of tasks as training and prediction would, and print how many rows are used and left out.

    ernie-gram check-files mrpc my_task.yaml --data FOLDER

reads every split whose files exist; without names, those of every task of the registry. An error in one task does not
stop the others: all errors are printed at the end.
"""

from __future__ import annotations

from reader.errors import InputError, OneLineParser, print_error
from tasks.files.official import (
    add_bad_row_option,
    add_data_option,
    available_splits,
    find_files,
    load_split,
    with_labels,
)
from tasks.kinds.task import TRAIN
from tasks.registry import TASKS, find_task


def main() -> None:
    parser = OneLineParser(description="Read the files of tasks and count rows.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names, or .yaml files (default: all that are there)")
    add_data_option(parser)
    add_bad_row_option(parser)
    arguments = parser.parse_args()
    names = arguments.tasks or [name for name, task in TASKS.items() if available_splits(task, arguments.data)]
    if not names:
        raise InputError(f"{arguments.data}: has the files of no task; ernie-gram tasks shows their names")
    bad = []
    for task in [find_task(name) for name in names]:
        try:
            splits = available_splits(task, arguments.data)
            if not splits:
                find_files(task, arguments.data, TRAIN)  # raises the error that names the files
            labelled = with_labels(task, arguments.data, arguments.on_bad_row)
            for split in splits:
                report = load_split(labelled, arguments.data, split, arguments.on_bad_row).report
                print("\n".join(report.lines()), flush=True)
        except InputError as error:
            bad.append(f"{task.name}: {error}")
    for message in bad[:-1]:
        print_error(message)
    if bad:
        raise InputError(bad[-1])
