"""A kind of task that the packages do not know, ordinal regression: this file and an entry of KINDS are all.

It has a gold value, a batch field, a head, a loss and a record of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.model.config import ModelConfig
from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ENCODER_FIELDS, Predictions
from tasks.kinds.catalog import KINDS
from tasks.kinds.checked_values import Reading, score_of
from tasks.kinds.features import Features
from tasks.kinds.networks import MASKED_LOGIT, KindHead, mean_term, output_layer
from tasks.kinds.sentences import SentenceExample, SentenceKind, read_sentences
from tasks.layouts.rows import ID, Role, Row
from tests.support import own_tasks
from tests.support.tiny_task import finetune
from tests.tasks.test_predict import records

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

    def decode(self, scores: Float32s, features: Features, examples: Sequence[SentenceExample]) -> Predictions:
        answers = [int((row > 0).sum()) for row in scores]
        return self.predictions(examples, answers, [{"steps": row.tolist()} for row in scores])

    def record(self, example: SentenceExample, answer: int, detail: Mapping[str, Any]) -> dict[str, Any]:
        return {"grade": answer, **detail}


class OrdinalHead(KindHead):
    """The greatest of the encoder's outputs over the slots of an input -> linear layer."""

    def __init__(self, kind: Ordinal, config: ModelConfig, has_lm_transform: bool) -> None:
        super().__init__(kind)
        self.hidden_size = config.hidden_size
        self.output = output_layer(kind.output, config.hidden_size, kind.width, config)

    def forward(self, hidden_NH: Any, feeds: Mapping[str, Any]) -> Any:
        length = paddle.shape(feeds["input_ids"])[1]
        is_padding_BL = (paddle.arange(length).unsqueeze(0) >= feeds["lengths"].unsqueeze(1)).astype("float32")
        hidden_BLH = hidden_NH.reshape([-1, length, self.hidden_size]) + (MASKED_LOGIT * is_padding_BL).unsqueeze(2)
        return self.output(hidden_BLH.max(1))

    def losses(self, scores_SG: Any, feeds: Mapping[str, Any]) -> list[Any]:
        each_SG = F.binary_cross_entropy_with_logits(scores_SG, feeds[self.gold], reduction="none")
        return [mean_term("steps", each_SG.sum(1))]


def test_it_is_trained_and_predicts(tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, Ordinal.name, Ordinal)
    monkeypatch.setitem(own_tasks.KINDS, Ordinal.name, ("accuracy", {"text_a": "a b c", "grade": 3}))
    monkeypatch.setitem(own_tasks.OTHER, "grade", 1)
    monkeypatch.setattr(own_tasks, "GOLD", ("grade",))
    task, run = own_tasks.own_task(tmp_path / "data", Ordinal.name), tmp_path / "run"
    # Without its letters, the other text has another grade.
    for path in task.parent.glob("*.jsonl"):
        path.write_text(path.read_text().replace('"a b c", "grade": 1', '"d a e", "grade": 1'))
    finetune(tiny_task, run, f"--task={task}", f"--paths.data={task.parent}", "--optimizer.epochs=16").ok()
    assert json.loads((run / "result.json").read_text())["score"] == 1
    answers = [line.split("\t")[1] for line in (run / "predictions_dev.tsv").read_text().splitlines()[1:]]
    assert answers == ["3", "1"] * 3
    found = records(run, "--input", task.parent / "own.jsonl", "--layout", "json", output=tmp_path / "answers.jsonl")
    assert [record["grade"] for record in found] == [3] * 5
    assert set(found[0]) == {"id", "grade", "steps"}
