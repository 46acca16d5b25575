"""Score a file of predictions for a split of a task as the official scorer does.

    ernie-gram score mrpc MRPC.tsv --data glue/MRPC

The file has the form that the benchmark takes, as `ernie-gram predict` and runs write it. The right answers are those
of the task's official files.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from reader.errors import OneLineParser, first_line, located, print_warning
from tasks.files.official import add_bad_row_option, add_data_option, labelled_split, load_split, with_labels
from tasks.files.submissions import read_predictions
from tasks.kinds.catalog import checked, kind_of
from tasks.kinds.settings import KindSettings
from tasks.metrics.catalog import METRICS
from tasks.registry import find_task


def main() -> None:
    meanings = {name: first_line(metric.function.__doc__).removeprefix("Return ") for name, metric in METRICS.items()}
    metrics = "\n".join(f"  {name:19} {meaning}" for name, meaning in meanings.items())
    parser = OneLineParser(
        description=__doc__, epilog=f"metrics:\n{metrics}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", metavar="TASK", help="name, or .yaml file")
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="file to score")
    add_data_option(parser)
    parser.add_argument("--split", help="a split with labels (default: the first dev split)")
    parser.add_argument("--metric", help="another metric of the task's kind (default: the task's)")
    add_bad_row_option(parser)
    arguments = parser.parse_args()
    task = find_task(arguments.task)
    if arguments.metric:
        task = checked(replace(task, metric=arguments.metric))
    split = labelled_split(task, arguments.split)
    kind = kind_of(with_labels(task, arguments.data, arguments.on_bad_row), KindSettings())
    examples, report = load_split(kind.task, arguments.data, split, arguments.on_bad_row)
    predictions = read_predictions(arguments.predictions, kind, examples, len(report.omitted) + len(report.bad))
    for line in report.lines()[1:]:
        print_warning(f"{report.files[0]}: {line.strip()}")
    with located(arguments.predictions):
        scores = kind.evaluate(predictions)
    print(json.dumps(scores, ensure_ascii=False, indent=1))
