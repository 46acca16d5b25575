"""Score a file of predictions for a split of a task as the official scorer does.

    ernie-gram score mrpc MRPC.tsv --data glue/MRPC
    ernie-gram score squad2 predictions.json --data squad --na_prob na_prob.json

The file has the form that the benchmark takes, as `ernie-gram predict` and runs write it. The right answers are those
of the task's official files.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.score")

import argparse
import json
from dataclasses import replace
from pathlib import Path

from ernie_gram.config.checks import require
from reader.errors import InputError, OneLineParser, located, print_warning
from tasks.files.official import add_bad_row_option, add_data_option, labelled_split, load_split, with_labels
from tasks.files.submissions import read_predictions
from tasks.kinds.catalog import checked, kind_of
from tasks.kinds.settings import KindSettings
from tasks.layouts.lines import read_json
from tasks.metrics.catalog import METRICS
from tasks.registry import find_task


def read_probabilities(path: Path) -> dict[str, float]:
    """Return a number for each ID; raises InputError unless the file is a JSON object of numbers."""
    values = read_json(path)
    if not isinstance(values, dict) or not all(type(value) in (int, float) for value in values.values()):
        raise InputError(f'{path}: not a JSON object of numbers {{"ID": number, ...}}')
    return values


def main() -> None:
    metrics = "\n".join(f"  {metric.name:19} {metric.description}" for metric in METRICS.values())
    parser = OneLineParser(
        description=__doc__, epilog=f"metrics:\n{metrics}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", metavar="TASK", help="name, or .yaml file")
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="file to score")
    add_data_option(parser)
    parser.add_argument("--split", help="a split with labels (default: the first dev split)")
    parser.add_argument("--metric", help="another metric of the task's kind (default: the task's)")
    add_bad_row_option(parser)
    parser.add_argument(
        "--na_prob", type=Path, help="squad_v2: JSON file with the probability of no answer by ID; adds best thresholds"
    )
    parser.add_argument(
        "--threshold", type=float, help="squad_v2: a prediction with a higher na_prob counts as no answer (default 1.0)"
    )
    arguments = parser.parse_args()
    task = find_task(arguments.task)
    if arguments.metric:
        task = checked(replace(task, metric=arguments.metric))
    split = labelled_split(task, arguments.split)
    options = {name: value for name in ("na_prob", "threshold") if (value := getattr(arguments, name)) is not None}
    for name in options:
        if name not in METRICS[task.metric].options:
            raise InputError(f"--{name} has no effect on the metric {task.metric}; leave it out")
    if "threshold" in options:
        require("na_prob" in options, "--threshold", "needs --na_prob")
    if "na_prob" in options:
        options["na_prob"] = read_probabilities(options["na_prob"])
    kind = kind_of(with_labels(task, arguments.data, arguments.on_bad_row), KindSettings())
    examples, report = load_split(kind.task, arguments.data, split, arguments.on_bad_row)
    predictions = read_predictions(arguments.predictions, kind, examples, len(report.omitted) + len(report.bad))
    for line in report.lines()[1:]:
        print_warning(f"{report.files[0]}: {line.strip()}")
    with located(arguments.predictions):
        scores = kind.evaluate(replace(predictions, options=options))
    print(json.dumps(scores, ensure_ascii=False, indent=1))
