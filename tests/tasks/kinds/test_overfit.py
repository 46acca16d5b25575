"""Each kind learns a few examples by heart with a tiny model, through the programs of training and prediction.

Predictions are made in batches of one, three and the remaining samples.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.distributed.world import World
from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.optimization import set_learning_rate
from ernie_gram.training.program import build_training
from tasks.kinds.base import Kind, Predictions
from tasks.kinds.catalog import kind_of
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import HeadSettings, InputSettings, KindSettings
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.kinds.tagging import TaggingExample
from tasks.layouts.rows import CharSpan
from tasks.metrics.entities import entities_of, to_iob2
from tasks.training.network import SCORES, TaskNetwork, build_prediction
from tests.support.further_cases import only
from tests.support.own_tasks import KNOWN
from tests.support.static_programs import fresh_scope
from tests.tasks.kinds.tiny import MODEL, PLACE, tokenizer


def labelled(labels: Sequence[Any], count: int, texts: str = "a b c d") -> list[SentenceExample]:
    """Return pairs of texts, of which no two are alike, with these labels in turn."""
    return [
        SentenceExample(str(i), texts[: 1 + 2 * (i % 4)], "xyz"[i // 4], labels[i % len(labels)], PLACE)
        for i in range(count)
    ]


def choices() -> list[MultipleChoiceExample]:
    return [
        MultipleChoiceExample(f"high{i}", "a b c", "d _ ?" if i % 2 else "e", tuple("fghi"[: 2 + i % 3]), i % 2, PLACE)
        for i in range(8)
    ]


def questions(with_impossible: bool) -> list[SpanExample]:
    examples = []
    for i in range(8):
        context = " ".join("abcdefghijklm"[i:] + "wxyz"[: i % 4])
        impossible = with_impossible and i % 3 == 0
        start = 2 * (i % 4)
        answers = () if impossible else (Answer(context[start : start + 3], CharSpan(start, start + 3)),)
        examples.append(SpanExample(f"q{i}", context, "xy z"[: 1 + i % 4], answers, impossible, PLACE))
    return examples


def sentences() -> list[TaggingExample]:
    words = ("ab", "c", "def", "g", "hi", "j", "klm")
    tag_of = dict(zip(words, ("B-PER", "I-PER", "O", "B-LOC", "O", "I-LOC", "O"), strict=True))
    examples = []
    for i in range(8):
        tokens = (words[i % 7 :] + words[: i % 7])[: 2 + i % 6]
        tags = to_iob2([tag_of[token] for token in tokens])
        examples.append(TaggingExample(str(i), tokens, " ", tags, entities_of(tags), PLACE))
    return examples


CLS = {"head": HeadSettings(sentence_output="cls", dropout=0.0)}
MOODS = [("glad",), (), ("sad", "calm"), ("calm",), ("glad", "calm")]
# Task -> settings, examples, options of the training, and a score with its least value. Spans and tags are in windows.
CASES: dict[str, tuple[dict[str, Any], Any, dict[str, Any], str, float]] = {
    "mnli": ({}, labelled(("contradiction", "entailment", "neutral"), 8), {}, "accuracy", 1.0),
    "moods": (CLS, labelled(MOODS, 10), {"steps": 80}, "accuracy", 1.0),
    "stsb": (CLS, labelled([i * 0.6 for i in range(8)], 8), {"steps": 80}, "pearson", 0.99),
    "race": ({"head": HeadSettings(option_loss_weight=0.5)}, choices(), {}, "accuracy", 1.0),
    "squad1": (
        {"input": InputSettings(max_seq_len=14, max_query_len=4, doc_stride=3)},
        questions(with_impossible=False),
        {"steps": 120, "has_lm_transform": True},
        "exact_match",
        100.0,
    ),
    "squad2": (
        {"head": HeadSettings(lm_transform=False)},
        questions(with_impossible=True),
        {"steps": 100, "has_lm_transform": True},
        "exact",
        100.0,
    ),
    "conll2003": (
        {"input": InputSettings(max_seq_len=8, max_query_len=4, doc_stride=2)},
        sentences(),
        {"steps": 100},
        "f1",
        100.0,
    ),
}


RATE = 4e-3


def overfit(
    kind: Kind[Any, Any], examples: Sequence[Any], steps: int = 60, has_lm_transform: bool = False
) -> tuple[Predictions, list[float], list[str]]:
    """Train on all examples in every step; return their predictions, the losses of the steps, and the parameters.

    The training ends at a loss below 0.05.
    """
    # As processes get them from the check of their launcher.
    kind, features = pickle.loads(pickle.dumps((kind, kind.encode(examples, tokenizer(), training=True))))
    network = TaskNetwork(kind, MODEL, has_lm_transform)
    settings = OptimizerConfig(learning_rate=RATE, warmup_steps=0, weight_decay=0.0)
    with fresh_scope() as executor:
        program = build_training(network, settings, World(0, 1, executor.place))
        prediction = build_prediction(network)
        paddle.seed(1)
        executor.run(program.startup)
        losses = []
        batch = features.batch(np.arange(len(features)))
        for _ in range(steps):
            set_learning_rate(RATE)
            losses.append(float(program.run(executor, batch)["loss"]))
            if losses[-1] < 0.05:
                break
        features = kind.encode(examples, tokenizer(), training=False)
        scores = np.full((features.num_units, kind.width), np.nan, np.float32)
        for samples in np.split(np.arange(len(features)), [1, 4, 7]):
            if len(samples):
                scores[features.unit_rows(samples)] = prediction.run(executor, features.batch(samples))[SCORES]
        assert np.isfinite(scores).all()
    return kind.decode(scores, features, examples), losses, program.parameters


@pytest.mark.parametrize("task", only([each for each in CASES if each != "squad2"], [*CASES]))
def test_a_kind_learns_its_examples(task: str) -> None:
    settings, examples, options, score, least = CASES[task]
    kind = kind_of(KNOWN[task], KindSettings(**settings))
    predictions, losses, parameters = overfit(kind, examples, **options)
    assert kind.evaluate(predictions)[score] >= least
    assert losses[-1] < 0.2 < losses[0]
    assert {f"{kind.output}_w", f"{kind.output}_b"} <= {*parameters}
    assert ("pooled_fc.w_0" in parameters) == (task in ("mnli", "race"))
    assert ("mask_lm_trans_fc.w_0" in parameters) == (task == "squad1")
    assert "mask_lm_trans_layer_norm_scale" not in parameters
    if task == "squad2":
        assert [answer == "" for answer in predictions.answers] == [i % 3 == 0 for i in range(8)]
