"""Several splits: the threshold for "no answer" and the score that chooses the best evaluation are of the first one."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ernie_gram.distributed.world import World
from reader.errors import InputError
from tasks.files.official import Report
from tasks.kinds.base import Float32s
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.span import SpanFeatures
from tasks.kinds.tagging import TaggingExample
from tasks.metrics.entities import entities_of
from tasks.registry import TASKS
from tasks.training.config import EvaluationConfig, FinetuneConfig
from tasks.training.data import SplitData, selection_metric
from tests.tasks.kinds.test_span import example_of, span_kind
from tests.tasks.kinds.tiny import PLACE, tokenizer

REPORT = Report("squad2", "dev", (), 0, 0, (), (), {})
WORLD: Any = World


def test_the_threshold_is_chosen_on_the_first_split_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.training.network import Predictor

    rng = random.Random(3)
    kind = span_kind("squad2")

    def split(name: str, impossible: bool) -> SplitData:
        examples: list[Any] = [example_of(rng, f"{name}{i}", impossible) for i in range(30)]
        return SplitData(name, examples, kind.encode(examples, tokenizer(), training=False), REPORT)

    def scores(self: Predictor, executor: Any, features: SpanFeatures, world: World) -> Float32s:
        return np.random.default_rng(features.num_units).normal(size=(features.num_units, 2)).astype(np.float32)

    monkeypatch.setattr(Predictor, "scores", scores)
    network: Any = SimpleNamespace(kind=kind)
    dev, test = split("dev", impossible=False), split("test", impossible=True)
    (_, first), (_, second) = Predictor(network, 4).predict(WORLD, (dev, test), WORLD)
    assert first.null_threshold == second.null_threshold
    assert second.options["threshold"] == first.null_threshold
    # On the second split alone, the best threshold gives no question an answer.
    ((_, alone),) = Predictor(network, 4).predict(WORLD, (test,), WORLD)
    assert {*alone.answers} == {""} != {*second.answers}


@pytest.mark.parametrize("metric", ["conlleval", "cluener"])
def test_the_score_of_a_type_must_be_one_of_the_first_dev_split_and_may_lack_in_others(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.training.job import TaskEvaluator, headline
    from tasks.training.network import Predictor

    task = replace(TASKS["conll2003"], labels=("LOC", "PER"), metric=metric)
    kind = kind_of(task, KindSettings())

    def split(name: str, *tags: str) -> SplitData:
        example = TaggingExample("0", ("a", "b"), " ", tags, entities_of(tags), PLACE)
        return SplitData(name, [example], kind.encode([example], tokenizer(), training=False), REPORT)

    def scores(self: Predictor, executor: Any, features: Any, world: World) -> Float32s:
        # The last tag is O.
        return np.tile(np.arange(kind.width, dtype=np.float32), (features.num_units, 1))

    def chosen(name: str) -> str:
        config = FinetuneConfig(evaluation=EvaluationConfig(metric=name))
        return selection_metric(config, kind, [dev, other], [])

    monkeypatch.setattr(Predictor, "scores", scores)
    dev, other = split("dev", "B-PER", "O"), split("other", "B-LOC", "O")
    # A count is no score.
    for name in ("LOC_f1", "tokens"):
        with pytest.raises(InputError, match=f"^evaluation.metric: '{name}'"):
            chosen(name)
    network: Any = SimpleNamespace(kind=kind)
    found = TaskEvaluator(kind, Predictor(network, 4), (dev, other), chosen("PER_f1"))(WORLD, WORLD)
    assert found["score"] == 0
    assert [name for name in found if name.startswith("other_")] == ["other_f1"]
    assert headline({"f1": 1.0, "tokens": 2, "PER_f1": 0.5}, "PER_f1", "f1") == {"PER_f1": 0.5, "f1": 1.0}
