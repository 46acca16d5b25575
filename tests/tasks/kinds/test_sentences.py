"""Inputs of one and two texts: truncation token by token, views of long texts, and the mean over views."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

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


def views(words: list[str], long_text: str, training: bool) -> list[list[str]]:
    """Return the texts that stand for one text, for max_seq_len 12."""
    room = 10
    if len(words) <= room:
        return [words]
    head, tail = words[:room], words[-room:]
    both = words[:2] + words[len(words) - 8 :]  # 10 * 128 // 510 is 2
    if long_text == "head":
        return [head]
    return [both] if training or long_text == "head_tail" else [head, tail, both]


@pytest.mark.parametrize("long_text", ["head", "head_tail", "views"])
def test_a_long_text_is_read_as_the_setting_says(long_text: str) -> None:
    rng = random.Random(2)
    texts = [random_words(rng, 30) for _ in range(60)]
    kind = kind_of(TASKS["sst2"], KindSettings(InputSettings(12, long_text, max_query_len=4)))
    examples = [SentenceExample(str(i), " ".join(text), None, "1", PLACE) for i, text in enumerate(texts)]
    for training in (True, False):
        features = kind.encode(examples, tokenizer(), training)
        expected = [
            (i, ["[CLS]", *view, "[SEP]"]) for i, text in enumerate(texts) for view in views(text, long_text, training)
        ]
        found = [(int(i), tokens_of_input(features, row)) for row, i in enumerate(features.example_of)]
        assert found == expected
        assert not features.batch(np.arange(len(features)))["sentence_ids"].any()


def test_head_and_tail_of_510_tokens_are_128_and_382() -> None:
    text = " ".join([LETTERS[i % 26] for i in range(700)])
    kind = kind_of(TASKS["imdb"], KindSettings(InputSettings(long_text="head_tail")))
    features = kind.encode([SentenceExample("0", text, None, "pos", PLACE)], tokenizer(), training=True)
    letters = text.split()
    assert tokens_of_input(features, 0) == ["[CLS]", *letters[:128], *letters[-382:], "[SEP]"]


def test_probabilities_are_averaged_over_views_and_scores_as_well() -> None:
    settings = KindSettings(InputSettings(8, "views", max_query_len=2))
    long, short = "a b c d e f g h i j", "a"
    examples = [SentenceExample(str(i), text, None, None, PLACE) for i, text in enumerate([short, long, short])]
    kind = kind_of(TASKS["sst2"], settings)
    features = kind.encode(examples, tokenizer(), training=False)
    assert features.example_of.tolist() == [0, 1, 1, 1, 2]
    assert set(features.batch(np.array([0]))) == {field.name for field in kind.input_fields}
    # One view is certain of label 0, the two others lean towards label 1: the mean of probabilities decides.
    scores = np.array([[0, 1], [9, 0], [0, 0.5], [0, 0.5], [1, 1]], np.float32)
    predictions = kind.decode(scores, features, examples)
    assert predictions.for_metric == predictions.answers == ["1", "0", "0"]
    lean = np.exp(0.5) / (1 + np.exp(0.5))
    expected = (1 / (1 + np.exp(9)) + 2 * lean) / 3
    assert predictions.details[1]["probabilities"]["1"] == pytest.approx(expected, rel=1e-6)
    regression = kind_of(replace(TASKS["stsb"]), settings)
    scored = [SentenceExample(each.id, each.text_a, None, None, PLACE) for each in examples]
    features = regression.encode(scored, tokenizer(), training=False)
    predictions = regression.decode(np.array([[7], [1], [2], [6], [-1]], np.float32), features, scored)
    assert predictions.for_metric == [7.0, 3.0, -1.0]  # not clipped to 0..5
    assert regression.records(predictions)[1] == {"id": 1, "score": 3.0}
