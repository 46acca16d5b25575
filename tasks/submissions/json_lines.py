"""JSON lines: the files of CLUE, one object for each row of the test file, in its order.

Sources: CLUE's rules of 2021-09-04 ("CLUE benchmark 任务提交说明") for names, versions and forms; they do not give the
form of C3 nor the names of OCNLI and CMNLI, which are those of github.com/bojone/CLUE-bert4keras (src/) and
PaddlePaddle/PaddleNLP (examples/benchmark/clue/); CLUEbenchmark/CLUENER2020 (pytorch_version/run_ner_crf.py) for
CLUENER. The scorer compares the labels line by line.
"""

from __future__ import annotations

from tasks.data.examples import json_id
from tasks.kinds.base import Predictions
from tasks.kinds.task import Task
from tasks.registry.clue import TEST_1_0
from tasks.submissions.form import json_bytes


def clue_file_name(task: Task, split: str) -> str:
    """Return TASK_predict.json, or TASK11_predict.json and TASK10_predict.json for sets with two test files."""
    version = ("10" if split == TEST_1_0 else "11") if TEST_1_0 in task.splits else ""
    return f"{task.submission_name or task.name}{version}_predict.json"


def labelled_lines(predictions: Predictions) -> bytes:
    """Return {"id": ID, "label": label} for each row.

    The label is a text in the official spelling, which is a number in some sets. For C3 it is the index of the option,
    counted from 0. In CLUENER's file it is {type: {surface: [[first, last], ...]}}, in characters, **last inclusive**.
    """
    return b"".join(json_bytes({"id": json_id(example), "label": answer}) for example, answer in predictions.pairs())
