r"""Tables: the TSV files of GLUE, and files with one token a line.

GLUE's file has the header `index<TAB>prediction` and one row for each row of the test file; the index is the number of
the row, counted from 0. The files of the eleven sets are submitted as one zip archive. Source: the program that writes
submissions in github.com/nyu-mll/jiant, which refers to gluebenchmark.com/faq.
"""

from __future__ import annotations

from collections.abc import Iterable

from tasks.kinds.base import Predictions
from tasks.kinds.task import Task

# The end of GLUE's file name for splits that are not called "test" or "dev".
GLUE_SUFFIXES = {"matched": "-m", "mismatched": "-mm"}
DIAGNOSTIC = "diagnostic"


def glue_file_name(task: Task, split: str) -> str:
    """Return GLUE's name of the file, for example MNLI-mm.tsv."""
    if split == DIAGNOSTIC:
        return "AX.tsv"
    return f"{task.title}{GLUE_SUFFIXES.get(split.partition('_')[2], '')}.tsv"


def table_file_name(task: Task, split: str) -> str:
    """Return TASK_SPLIT.tsv."""
    return f"{task.name}_{split}.tsv"


def index_and_prediction(predictions: Predictions) -> bytes:
    """Return GLUE's table: labels in the official spelling, or scores with all their digits."""
    return index_table((example.id, answer) for example, answer in predictions.pairs()).encode()


def index_table(rows: Iterable[tuple[object, object]]) -> str:
    """Return the header and one row for each index and prediction."""
    return "index\tprediction\n" + "".join(f"{index}\t{prediction}\n" for index, prediction in rows)


def columns_file_name(task: Task, split: str) -> str:
    """Return TASK_SPLIT.txt."""
    return f"{task.name}_{split}.txt"


def tag_columns(predictions: Predictions) -> bytes:
    """Return a line for each token, and a blank line after each sentence, in IOB2.

    The columns are the token, the gold tag, if there is one, and the predicted tag, separated by spaces: what conlleval
    reads. White space in a token becomes `_`, because it would separate columns.
    """
    lines: list[str] = []
    for example, detail in zip(predictions.examples, predictions.details, strict=True):
        columns = [map(_one_word, example.tokens), *([example.tags] if example.tags else []), detail["tags"]]
        lines += [" ".join(row) for row in zip(*columns, strict=True)]
        lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()


def _one_word(token: str) -> str:
    return "".join("_" if character.isspace() else character for character in token)
