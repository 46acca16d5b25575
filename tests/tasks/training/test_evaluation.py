"""Predictions of several splits: the threshold for "no answer" is chosen on the first one."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ernie_gram.distributed.world import World
from tasks.kinds.base import Float32s
from tasks.kinds.span.kind import SpanFeatures
from tasks.reading.load import Report
from tasks.training.splits import SplitData
from tests.tasks.kinds.test_span import example_of, span_kind
from tests.tasks.kinds.tiny import tokenizer

REPORT = Report("squad2", "dev", (), 0, 0, (), (), {})
WORLD: Any = World


def test_the_threshold_is_chosen_on_the_first_split_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.training.evaluation import Predictor

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
