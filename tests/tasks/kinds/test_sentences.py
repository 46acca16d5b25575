"""Inputs of one and two texts: truncation token by token, and predictions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tasks.kinds.catalog import kind_of
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import InputSettings, KindSettings
from tasks.registry import TASKS
from tests.tasks.kinds.tiny import LETTERS, PLACE, tokenizer, tokens_of_input


def random_words(rng: random.Random, limit: int) -> list[str]:
    return [rng.choice(LETTERS) for _ in range(rng.randint(1, limit))]


def reference_pair(a: list[str], b: list[str], max_seq_len: int, option: Sequence[str] = ()) -> list[str]:
    """Remove one token at a time from the longer text, as BERT does; from a question before the option that follows."""
    a, b, c = [*a], [*b], [*option]
    while len(a) + len(b) + len(c) > max_seq_len - 3:
        (a if len(a) > len(b) + len(c) else b or c).pop()
    return ["[CLS]", *a, "[SEP]", *b, *c, "[SEP]"]


def test_pairs_are_truncated_one_token_at_a_time_from_the_longer_text() -> None:
    rng = random.Random(1)
    for max_seq_len in (8, 9, 16):
        pairs = [(random_words(rng, 20), random_words(rng, 20)) for _ in range(200)]
        kind = kind_of(TASKS["rte"], KindSettings(InputSettings(max_seq_len, max_query_len=2)))
        examples = [
            SentenceExample(str(i), " ".join(a), " ".join(b), "entailment", PLACE) for i, (a, b) in enumerate(pairs)
        ]
        features = kind.encode(examples, tokenizer(), training=True)
        expected = [reference_pair(a, b, max_seq_len) for a, b in pairs]
        assert [tokens_of_input(features, i) for i in range(len(features))] == expected
        assert features.counts["examples longer than an input"] == sum(
            len(a) + len(b) > max_seq_len - 3 for a, b in pairs
        )
        assert features.lengths.tolist() == [len(tokens) for tokens in expected]
        batch = features.batch(np.array([7, 3]))
        assert batch["labels"].tolist() == [0, 0]
        width = max(len(expected[7]), len(expected[3]))
        for row, index in enumerate((7, 3)):
            first = expected[index].index("[SEP]") + 1
            sentences = [int(first <= slot < len(expected[index])) for slot in range(width)]
            assert batch["sentence_ids"][row].tolist() == sentences
            assert batch["lengths"][row] == len(expected[index])
            assert (batch["input_ids"][row, len(expected[index]) :] == 0).all()
        assert {name: value.dtype for name, value in batch.items()} == dict.fromkeys(batch, np.dtype(np.int64))


def test_a_long_text_is_cut_and_the_most_probable_label_or_the_score_is_predicted() -> None:
    settings = KindSettings(InputSettings(8, max_query_len=2))
    examples = [SentenceExample(str(i), text, None, None, PLACE) for i, text in enumerate(["a", "a b c d e f g h i"])]
    kind = kind_of(TASKS["sst2"], settings)
    features = kind.encode(examples, tokenizer(), training=False)
    assert set(features.batch(np.array([0]))) == {field.name for field in kind.input_fields}
    assert tokens_of_input(features, 1) == ["[CLS]", *"abcdef", "[SEP]"]
    assert features.counts == {"examples longer than an input": 1}
    predictions = kind.decode(np.array([[0, 1], [2, 2]], np.float32), features, examples)
    assert predictions.for_metric == predictions.answers == ["1", "0"]
    assert predictions.details[0]["probabilities"]["1"] == pytest.approx(np.e / (1 + np.e), rel=1e-6)
    regression = kind_of(TASKS["stsb"], settings)
    predictions = regression.decode(np.array([[7], [-1]], np.float32), features, examples)
    assert predictions.for_metric == [7.0, -1.0]  # not clipped to 0..5
    assert regression.records(predictions)[1] == {"id": 1, "score": -1.0}
