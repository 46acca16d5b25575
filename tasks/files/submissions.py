"""The files that benchmarks accept: written from predictions, and read to be scored.

Sources:

- GLUE: the program that writes submissions in github.com/nyu-mll/jiant, which refers to gluebenchmark.com/faq. The
  index is the number of the row of the test file, counted from 0. The files of the eleven sets are submitted as one zip
  archive.
- SQuAD: evaluate-v2.0.py (predictions.json, na_prob.json). DuReader-robust:
  examples/machine_reading_comprehension/DuReader-robust of PaddlePaddle/PaddleNLP. CMRC 2018: cmrc2018_evaluate.py of
  github.com/ymcui/cmrc2018.
- CLUE: its rules of 2021-09-04 ("CLUE benchmark 任务提交说明") for names, versions and forms; they do not give the form
  of C3 nor the names of OCNLI and CMNLI, which are those of github.com/bojone/CLUE-bert4keras (src/) and
  PaddlePaddle/PaddleNLP (examples/benchmark/clue/); CLUEbenchmark/CLUENER2020 (pytorch_version/run_ner_crf.py) for
  CLUENER. The scorer compares the labels line by line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reader.errors import InputError, counted
from tasks.kinds.base import Example, Kind, Predictions, json_id
from tasks.kinds.catalog import KINDS
from tasks.kinds.checked_values import Reading
from tasks.kinds.task import Task
from tasks.layouts.lines import JsonLines, read_json
from tasks.layouts.rows import BadRow, Layout, Place, Role, Row, Wanted
from tasks.layouts.tables import Conll, Tsv

# Written beside the main file if questions may be unanswerable, see `no_answer_probabilities`.
NA_PROB = "na_prob.json"
# The end of GLUE's file name for splits that are not called "test" or "dev".
GLUE_SUFFIXES = {"matched": "-m", "mismatched": "-mm"}
# The old test files of the sets for which CLUE 1.1 has new ones.
TEST_1_0 = "test1.0"


@dataclass(frozen=True)
class Form:
    """A form of submission.

    Attributes:
        file_name: (task, split) -> the name that the benchmark asks for.
        content: predictions -> the content of the file.
        layout: reads such a file; a row has an `id` and an `answer`, or `tokens` and `tags`.
    """

    file_name: Callable[[Task, str], str]
    content: Callable[[Predictions], str]
    layout: Layout


def form_of(task: Task) -> Form:
    """Return the form of a task's submissions, or the form of its kind if its benchmark defines none."""
    return FORMS[task.submission or KINDS[task.kind].submission]


def read_predictions(path: Path, kind: Kind[Any, Any], examples: Sequence[Example], omitted: int) -> Predictions:
    """Read a submission of a task; return the predictions, as the task's metric takes them.

    Args:
        examples: the labelled examples of the split.
        omitted: number of rows of the split that are no examples, but may have a prediction.

    Raises InputError, with the line or key, for a file of another form and for an answer that the task does not have.
    It also raises InputError for an example without prediction and for a prediction without row, unless the metric
    takes answers by ID: as in official scorers, missing answers are then counted, and unknown IDs ignored.
    """
    answers: dict[str, Any] = {}
    tags = Reading(kind.task, labelled=True, training=False).tags
    unknown: list[tuple[Place, str]] = []
    by_id = {example.id: example for example in examples}
    for number, row in enumerate(form_of(kind.task).layout.rows([path], ANSWERS)):
        if not isinstance(row, Row):
            raise row
        if "tokens" in row.values:
            example = examples[number] if number < len(examples) else None
            key, value = example.id if example else str(number), row.values["tags"]
            if example and row.values["tokens"] != [_one_word(token) for token in getattr(example, "tokens", ())]:
                raise InputError(f"{row.place}: the tokens of this sentence are not those at {example.place}")
        else:
            key, value = str(row.values["id"]), row.values["answer"]
            example = by_id.get(key)
        if key in answers:
            raise InputError(f"{row.place}: the id {key!r} occurs twice")
        if example is None:
            unknown.append((row.place, key))
            continue
        try:
            answers[key] = kind.answer_of(tags.read(value) if "tokens" in row.values else value, example)
        except (BadRow, ValueError) as error:
            raise InputError(f"{row.place}: {error}") from error
    if not kind.is_scored_by_id and len(unknown) > omitted:
        place, key = unknown[0]
        raise InputError(f"{place}: the task's files have no row with the id {key!r} ({len(unknown)} in all)")
    if kind.is_scored_by_id:
        if not answers:
            raise InputError(f"{path}: has no id of the task's examples, such as {examples[0].id!r}")
        return Predictions(kind.task, examples, (), (), answers)
    missing = [example for example in examples if example.id not in answers]
    if missing:
        shown = f"the row at {missing[0].place} (id {missing[0].id!r})"
        raise InputError(f"{path}: no prediction for {shown}; {counted(len(missing), 'prediction')} missing")
    return Predictions(kind.task, examples, (), (), [answers[example.id] for example in examples])


def glue_file_name(task: Task, split: str) -> str:
    """Return GLUE's name of the file, for example MNLI-mm.tsv."""
    if split == "diagnostic":
        return "AX.tsv"
    return f"{task.title}{GLUE_SUFFIXES.get(split.partition('_')[2], '')}.tsv"


def clue_file_name(task: Task, split: str) -> str:
    """Return TASK_predict.json, or TASK11_predict.json and TASK10_predict.json for sets with two test files."""
    version = ("10" if split == TEST_1_0 else "11") if TEST_1_0 in task.splits else ""
    return f"{task.submission_name or task.name}{version}_predict.json"


def index_table(predictions: Predictions) -> str:
    """Return GLUE's table: labels in the official spelling, or scores with all their digits.

    Of rows without gold scores, scores are limited to the range of the task, as in GLUE's baselines
    (nyu-mll/GLUE-baselines, src/evaluate.py).
    """
    low, high = predictions.task.score_range or (None, None)
    rows = (
        f"{example.id}\t{answer if low is None or example.gold is not None else min(max(answer, low), high)}\n"
        for example, answer in predictions.pairs()
    )
    return f"index\tprediction\n{''.join(rows)}"


def answers_by_id(predictions: Predictions) -> str:
    """Return the answers by ID: texts, which are "" for questions without answer, or indices of options."""
    return json_line({example.id: answer for example, answer in predictions.pairs()})


def labelled_lines(predictions: Predictions, key: str = "label") -> str:
    """Return {"id": ID, "label": label} for each row, with another key if one is given.

    The label is a text in the official spelling, which is a number in some sets. For C3 it is the index of the option,
    counted from 0. In CLUENER's file it is {type: {surface: [[first, last], ...]}}, in characters, **last inclusive**.
    """
    return "".join(json_line({"id": json_id(example), key: answer}) for example, answer in predictions.pairs())


def tag_columns(predictions: Predictions) -> str:
    """Return a line for each token, and a blank line after each sentence, in IOB2.

    The columns are the token, the gold tag, if there is one, and the predicted tag, separated by spaces: what conlleval
    reads. White space in a token becomes `_`, because it would separate columns.
    """
    lines: list[str] = []
    for example, detail in zip(predictions.examples, predictions.details, strict=True):
        columns = [map(_one_word, example.tokens), *([example.tags] if example.tags else []), detail["tags"]]
        lines += [" ".join(row) for row in zip(*columns, strict=True)]
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def no_answer_probabilities(predictions: Predictions) -> str:
    """Return the content of na_prob.json, for tasks whose questions may be unanswerable.

    A probability above 0.5 means no answer. It is the logistic function of the difference between the question's
    `na_score` and the threshold (see Span.decode). The answers in the main file are "" for the same questions, and no
    probability exceeds 1, the default threshold of the official script; so its scores for the main file do not change.
    """
    from scipy.special import expit  # imported late: it takes a second

    na_scores, threshold = predictions.options["na_prob"], predictions.options["threshold"]
    return json_line({key: float(expit(na_score - threshold)) for key, na_score in na_scores.items()})


def json_line(value: Any) -> str:
    """Return a JSON value on one line, which ends with a line feed."""
    return f"{json.dumps(value, ensure_ascii=False)}\n"


def _one_word(token: str) -> str:
    return "".join("_" if character.isspace() else character for character in token)


class JsonObject(Layout):
    """A JSON file with one object, {ID: answer}."""

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the ID and the answer of each key; raises InputError for another file."""
        values = read_json(path)
        if not isinstance(values, dict):
            raise InputError(f'{path}: not a JSON object {{"ID": value, ...}}')
        yield from ((Place(path, part=key), (key, value)) for key, value in values.items())

    def values(self, record: tuple[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the ID and the answer."""
        return dict(zip(("id", "answer"), record, strict=True))


# Whatever an answer is in a file, it is read as it is.
ANSWERS = {name: Role(name, is_gold=True) for name in ("id", "answer", "tags")}
TABLE, LINES = Tsv({"id": "index", "answer": "prediction"}), JsonLines({"id": "id", "answer": "label"})
FORMS = {
    "glue": Form(glue_file_name, index_table, TABLE),
    "squad": Form(lambda task, split: "predictions.json", answers_by_id, JsonObject()),
    "clue": Form(clue_file_name, labelled_lines, LINES),
    "json_object": Form(clue_file_name, answers_by_id, JsonObject()),
    "table": Form(lambda task, split: f"{task.name}_{split}.tsv", index_table, TABLE),
    "label_lists": Form(
        lambda task, split: f"{task.name}_{split}.jsonl",
        partial(labelled_lines, key="labels"),
        JsonLines({"id": "id", "answer": "labels"}),
    ),
    "tag_columns": Form(lambda task, split: f"{task.name}_{split}.txt", tag_columns, Conll()),
}
