"""A kind of task that the packages do not know, ordinal regression: this file and an entry of KINDS are all.

It has a gold value, a batch field, a head, a loss and a record of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.model.config import ModelConfig
from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ENCODER_FIELDS, Predictions
from tasks.kinds.catalog import KINDS
from tasks.kinds.checked_values import Reading, score_of
from tasks.kinds.networks import MASKED_LOGIT, KindHead, mean_term, output_layer
from tasks.kinds.sentences import SentenceExample, SentenceFeatures, SentenceKind, read_sentences
from tasks.kinds.settings import HeadSettings
from tasks.layouts.rows import ID, Role, Row
from tests.support.task_files import write, write_json, write_lines
from tests.support.tiny_task import LETTERS, finetune
from tests.tasks.test_predict import predict, records

# The grade of a text is how many of these letters it has, from 0 to 3.
COUNTED = "abc"
GOLD = Field(
    "steps", "SG", "float32", "1 for each step, from 0 to 1, 1 to 2, 2 to 3, that the grade of a sample is above"
)


class Ordinal(SentenceKind):
    """The scores of a sample are logits of each step by itself; the grade is the number of steps that are likely."""

    name = "ordinal"
    roles = (Role("text_a"), Role("grade", is_gold=True), ID)
    metrics = ("accuracy",)
    head = f"{__name__}.OrdinalHead"
    output = "cls_grade_out"
    paddlenlp_class = None
    training_fields = (*ENCODER_FIELDS, GOLD)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        grade = int(score_of(row.values.get("grade"), (0, len(COUNTED)))) if reading.labelled else None
        return read_sentences(row, default_id, reading, grade)

    @property
    def width(self) -> int:
        return len(COUNTED)

    @property
    def has_pooler(self) -> bool:
        return False

    def target(self, gold: int) -> list[bool]:
        return [gold > step for step in range(self.width)]

    def answer_of(self, value: Any, example: SentenceExample) -> int:
        return int(value)

    def decode(self, scores: Float32s, features: SentenceFeatures, examples: Sequence[SentenceExample]) -> Predictions:
        answers = [int((row > 0).sum()) for row in scores]
        return self.predictions(examples, answers, [{"steps": row.tolist()} for row in scores])

    @staticmethod
    def record(example: SentenceExample, answer: int, detail: Mapping[str, Any]) -> dict[str, Any]:
        return {"grade": answer, **detail}


class OrdinalHead(KindHead):
    """The greatest of the encoder's outputs over the slots of an input -> linear layer."""

    def __init__(self, kind: Ordinal, config: ModelConfig, has_lm_transform: bool) -> None:
        super().__init__()
        self.hidden_size = config.hidden_size
        self.output = output_layer(kind.output, config.hidden_size, kind.width, config)

    def forward(self, hidden_NH: Any, feeds: Mapping[str, Any]) -> Any:
        length = paddle.shape(feeds["input_ids"])[1]
        is_padding_BL = (paddle.arange(length).unsqueeze(0) >= feeds["lengths"].unsqueeze(1)).astype("float32")
        hidden_BLH = hidden_NH.reshape([-1, length, self.hidden_size]) + (MASKED_LOGIT * is_padding_BL).unsqueeze(2)
        return self.output(hidden_BLH.max(1))

    @staticmethod
    def losses(scores_SG: Any, feeds: Mapping[str, Any], settings: HeadSettings) -> list[Any]:
        each_SG = F.binary_cross_entropy_with_logits(scores_SG, feeds[GOLD.name], reduction="none")
        return [mean_term("steps", each_SG.sum(1))]


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, Ordinal.name, Ordinal)
        yield


def grade_of(text: str) -> int:
    return sum(letter in text for letter in COUNTED)


@pytest.fixture(scope="module")
def folder(tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data/task.yaml and its files, and with the model of the tiny task."""
    folder = tmp_path_factory.mktemp("ordinal")
    (folder / "model").symlink_to(tiny_task / "model")
    random = np.random.default_rng(1)
    for name, count in (("train", 160), ("dev", 30), ("test", 6)):
        texts = [" ".join(random.choice(list(LETTERS), 3)) for _ in range(count)]
        rows = ({"text": text, **({} if name == "test" else {"grade": grade_of(text)})} for text in texts)
        write_lines(folder / "data" / f"{name}.jsonl", *rows)
    task = {
        "kind": "ordinal",
        "language": "en",
        "layout": "json_lines",
        "columns": {"text_a": "text", "grade": "grade"},
        "files": {name: f"{name}.jsonl" for name in ("train", "dev", "test")},
        "unlabelled": ["test"],
        "metric": "accuracy",
    }
    write_json(folder / "data" / "task.yaml", task)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    """The folder of a finished fine-tuning."""
    done = finetune(folder, folder / "run", "--optimizer.epochs=8")
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_it_is_trained_evaluated_and_saved(folder: Path, run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    gold = [json.loads(line)["grade"] for line in (folder / "data" / "dev.jsonl").read_text().splitlines()]
    lines = (run / "predictions_dev.tsv").read_text().splitlines()[1:]
    right = [int(line.split("\t")[1]) == grade for line, grade in zip(lines, gold, strict=True)]
    assert result["score"] == pytest.approx(np.mean(right))
    assert result["score"] > 0.8
    assert {*gold} == {0, 1, 2, 3}


def test_it_predicts_a_submission_and_own_texts(folder: Path, run: Path, tmp_path: Path) -> None:
    done = predict(run, "--data", folder / "data", "--split", "test", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "task_test.tsv").read_text().splitlines()) == 7
    texts = ["a d e", "b c", "g h"]
    own = write(tmp_path / "own.txt", "".join(f"{text}\n" for text in texts))
    found = records(run, "--input", own, "--layout", "lines", output=tmp_path / "answers.jsonl")
    assert [record["grade"] for record in found] == [grade_of(text) for text in texts]
    assert set(found[0]) == {"id", "grade", "steps"}
