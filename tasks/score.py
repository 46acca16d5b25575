"""Score a file of predictions: `ernie-gram score METRIC GOLD [PREDICTIONS]`. The scores are printed as JSON."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.score")

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from reader.errors import InputError, OneLineParser
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Metric
from tasks.reading.score_files import (
    answers_of,
    json_object,
    matched_values,
    span_labels,
    tag_columns,
    texts_of,
)

EPILOG = """files:
  accuracy, accuracy_f1, macro_f1, matthews, correlation, mean_squared_error:
                    GOLD is a TSV file, for example dev.tsv of GLUE, or JSON lines with "id" and "label", as CLUE's
                    (.json, .jsonl); PREDICTIONS a TSV file with the header "index<TAB>prediction", as GLUE's
                    submissions and the runs' predictions_SPLIT.tsv, or JSON lines, or one JSON object
                    {"ID": label, ...}, as predictions.json. The index is the "id" of a JSON line, the column of a
                    table that --id_column names, or else the number of the row, counted from 0. Rows of GOLD with the
                    label "-", and lines that are too short (QQP), need no prediction and are left out, which a warning
                    counts
  accuracy_by_id, race:
                    JSON files {"ID": label, ...}, as ChID's answer files are
  squad_v1, squad_v2, cmrc2018, dureader_robust:
                    GOLD is a JSON file in SQuAD's layout; PREDICTIONS a JSON file {"ID": "text", ...}
  conlleval:        GOLD has one token per line, the tag in the last column, a blank line between sentences; so has
                    PREDICTIONS. Without PREDICTIONS, the last two columns of GOLD are the gold and predicted tags.
                    Lines -DOCSTART- are left out
  cluener:          JSON lines with the key "label" in CLUENER's layout; line n of both files is the same text

metrics:
"""


def score_files(
    metric: Metric,
    gold: Path,
    predictions: Path | None,
    options: dict[str, Any],
    column: str | None = None,
    id_column: str | None = None,
) -> dict[str, float]:
    """Return the scores of a file of predictions; EPILOG describes the files of each metric.

    Args:
        options: arguments of the metric's function.
        column: where `gold` has the labels or scores; id_column: where it has the IDs (see `gold_values`).

    Raises InputError for files that cannot be read or that do not match each other.
    """
    if metric.kind == "tag_sequences":
        inputs: tuple[Any, Any] = tag_columns(gold, predictions)
    elif predictions is None:
        raise InputError(f"the metric {metric.name} needs a file of predictions after {gold}")
    elif metric.kind == "texts_by_id":
        inputs = answers_of(gold), texts_of(predictions)
    elif metric.kind == "labels_by_id":
        inputs = json_object(gold, (str, int), "a label"), json_object(predictions, (str, int), "a label")
    elif metric.kind == "spans":
        inputs = span_labels(gold), span_labels(predictions)
    else:
        inputs = matched_values(gold, predictions, column, id_column, metric.kind == "scores", _warn)
    try:
        return metric(*inputs, **options)
    except InputError as error:
        raise InputError(f"{gold}, {predictions or gold}: {error}") from error


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> None:
    descriptions = "\n".join(f"  {metric.name:19} {metric.description}" for metric in METRICS.values())
    parser = OneLineParser(
        description="Score a file of predictions as the official scorer does.",
        epilog=EPILOG + descriptions,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("metric", choices=METRICS, metavar="METRIC", help="one of the metrics below")
    parser.add_argument("gold", type=Path, metavar="GOLD", help="official file with the right answers")
    parser.add_argument("predictions", type=Path, nargs="?", metavar="PREDICTIONS", help="file to score")
    parser.add_argument(
        "--column",
        help="column of GOLD that holds the label: its name, or its number, counted from 1, in a file without a header "
        "(CoLA: 2); found by itself in GLUE's files with a header; or the key of JSON lines",
    )
    parser.add_argument(
        "--id_column",
        metavar="COLUMN",
        help="column of GOLD that holds the IDs of the rows, given as for --column; default: the key id of JSON lines, "
        "and otherwise the number of the row",
    )
    parser.add_argument(
        "--na_prob", type=Path, help="squad_v2: JSON file with the probability of no answer by ID; adds best thresholds"
    )
    parser.add_argument(
        "--threshold", type=float, help="squad_v2: a prediction with a higher na_prob counts as no answer (default 1.0)"
    )
    arguments = parser.parse_args()
    metric = METRICS[arguments.metric]
    options = {name: value for name in ("na_prob", "threshold") if (value := getattr(arguments, name)) is not None}
    for name in options:
        if name not in metric.options:
            raise InputError(f"--{name} has no effect on the metric {metric.name}; leave it out")
    columns = {name: value for name in ("column", "id_column") if (value := getattr(arguments, name)) is not None}
    for name in columns:
        if metric.kind not in ("labels", "scores"):
            raise InputError(f"--{name} has no effect on the metric {metric.name}; leave it out")
    if "threshold" in options and "na_prob" not in options:
        raise InputError("--threshold needs --na_prob")
    if "na_prob" in options:
        options["na_prob"] = json_object(options["na_prob"], (int, float), "a number")
    scores = score_files(metric, arguments.gold, arguments.predictions, options, **columns)
    print(json.dumps(scores, ensure_ascii=False, indent=1))
