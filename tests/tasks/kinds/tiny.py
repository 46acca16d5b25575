"""A tiny vocabulary and model, the inputs of features, and gold scores of spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reader.batches.fields import Batch
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.kinds.features import Features
from tasks.kinds.span import SpanFeatures
from tasks.kinds.span_answers import SpanExample, answer_tokens
from tasks.layouts.rows import Place
from tests.support import small_model

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PLACE = Place(Path("examples"), 1)
# Words of several letters are several tokens.
TOKENS = [*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *"0123456789.,?_", *"一二三四五六七八九十"]
MODEL = replace(
    small_model.MODEL,
    vocab_size=len(TOKENS),
    num_hidden_layers=1,
    initializer_range=0.2,
    use_sentence_embedding=True,
)


def tokenizer() -> Tokenizer:
    return Tokenizer(WordPieceVocabulary(TOKENS, True, "tiny"))


def tokens_of_input(features: Features, row: int) -> list[str]:
    """Return the tokens of an input."""
    inputs = features.inputs
    return [TOKENS[i] for i in inputs.tokens[inputs.offsets[row] : inputs.offsets[row + 1]]]


def checked_batch(features: Features, samples: np.ndarray, expected: Sequence[tuple[Any, ...]]) -> Batch:
    """Return a batch; each of its samples must have the expected index of its example, tokens and slots."""
    batch, chosen = features.batch(samples), [expected[sample] for sample in samples]
    found = [(features.example_of[sample], tokens_of_input(features, sample)) for sample in samples]
    assert found == [(index, tokens) for index, tokens, *_ in chosen]
    width, slots = batch["input_ids"].shape[1], batch.get("slots")
    assert slots is None or slots.tolist() == [
        row * width + slot for row, each in enumerate(chosen) for slot in each[2]
    ]
    return batch


def gold_scores(features: SpanFeatures, examples: Sequence[SpanExample]) -> np.ndarray:
    """Return scores that are 1 at the first and the last token of each example's first answer, and 0 elsewhere.

    For an unanswerable question they are 1 at [CLS]. The features are encoded with training=False.
    """
    scores = np.zeros((features.num_units, 2), np.float32)
    for sample, index in enumerate(features.example_of.tolist()):
        unit = features.unit_offsets[sample]
        if examples[index].is_impossible:
            scores[unit] = 1
            continue
        first, stop = answer_tokens(examples[index], features.context(index))
        start, length, _, _ = features.windows[sample]
        for column, token in ((0, first), (1, stop - 1)):
            if start <= token < start + length:
                scores[unit + 1 + token - start, column] = 1
    return scores
