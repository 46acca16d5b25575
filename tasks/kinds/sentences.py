"""Inputs of one or two texts, for classification and regression: truncation, and views of long single texts.

Shape letters: N examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reader.batches.fields import Batch, Field
from reader.tokenization.tokenizer import Tokenizer
from tasks.data.features import Features, Float32s, Int64s
from tasks.kinds.checked_values import Reading, text_of
from tasks.kinds.settings import InputSettings
from tasks.kinds.token_table import Ranges, joined, tokenize_texts
from tasks.layouts.rows import Row

# Of 510 tokens, upstream meant to read the first 128 and the last 382.
HEAD_SHARE = (128, 510)


class TextExample(Protocol):
    """An example of one text or, unless `text_b` is None, of two."""

    @property
    def text_a(self) -> str: ...

    @property
    def text_b(self) -> str | None: ...


def truncated_pair(first: Int64s, second: Int64s, room: Int64s) -> tuple[Int64s, Int64s]:
    """Return how many tokens of two texts remain if the longer one loses tokens until both fit into `room`.

    One token is removed at a time; the second text loses one if both are equally long, as in BERT.
    """
    kept = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    return kept, np.minimum(second, room - kept)


def texts_of_row(row: Row, reading: Reading) -> tuple[str, str | None]:
    """Return one or two texts. Every row of a file without labels needs a prediction, also one with an empty text."""
    may_be_empty = reading.task.empty_texts or not reading.labelled
    text_a = text_of(row.values.get("text_a"), "text_a", may_be_empty)
    text_b = text_of(row.values["text_b"], "text_b", may_be_empty) if "text_b" in row.values else None
    if not text_a.strip() or (text_b is not None and not text_b.strip()):
        reading.notes["rows with an empty text"] += 1
    return text_a, text_b


@dataclass(frozen=True, eq=False)
class SentenceFeatures(Features):
    """Each sample is one input and one unit.

    Attributes:
        targets: [S], the gold values, in the dtype of `field`; None without labels.
        field: the batch field of the gold values.
    """

    targets: np.ndarray | None
    field: Field

    def sample_fields(self, samples: Int64s, width: int) -> Batch:
        """Return the gold values, if there are any."""
        return {} if self.targets is None else {self.field.name: self.targets[samples]}


def encode_sentences(
    examples: Sequence[TextExample],
    targets: Sequence[float] | None,
    field: Field,
    tokenizer: Tokenizer,
    settings: InputSettings,
    training: bool,
) -> SentenceFeatures:
    """Return the features of examples of one or two texts.

    Args:
        targets: the gold value of each example, for the batch field `field`; None without labels.
    """
    has_second = np.array([example.text_b is not None for example in examples], np.int64)
    texts = [example.text_a for example in examples] + [example.text_b or "" for example in examples]
    table = tokenize_texts(tokenizer, texts)
    count = len(examples)
    a, b = table.ranges.take(np.arange(count)), table.ranges.take(np.arange(count, 2 * count))
    room = settings.max_seq_len - 2 - has_second
    is_long = a.lengths + b.lengths > room
    kept_a, kept_b = truncated_pair(a.lengths, b.lengths, room)
    views = _views(a, kept_a, is_long & (has_second == 0), settings, training)
    example_of = np.concatenate([view.examples for view in views])
    # Stable: the views of an example stay in their order.
    order = np.argsort(example_of, kind="stable")
    head = joined([view.head for view in views]).take(order)
    tail = joined([view.tail for view in views]).take(order)
    example_of = example_of[order]
    second = b.take(example_of).first(kept_b[example_of])
    inputs = table.assemble([head, tail], [second], has_second[example_of])
    samples = np.arange(len(example_of) + 1)
    return SentenceFeatures(
        inputs=inputs,
        input_offsets=samples,
        unit_offsets=samples,
        example_of=example_of,
        account={"examples longer than an input": int(is_long.sum())},
        targets=None if targets is None else np.array(targets, field.dtype)[example_of],
        field=field,
    )


def example_means(values: Float32s, features: Features) -> Float32s:
    """Return the mean of the rows of each example's samples, [N, width]. Every example has at least one sample."""
    firsts = np.flatnonzero(np.diff(features.example_of, prepend=-1))
    if len(firsts) == len(values):
        return values
    counts = np.diff(np.append(firsts, len(values)))
    return (np.add.reduceat(values, firsts) / counts[:, np.newaxis]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _View:
    """An input for some examples: two ranges of tokens of the first text, of which one may be empty."""

    examples: Int64s
    head: Ranges
    tail: Ranges


def _views(texts: Ranges, kept: Int64s, is_long: np.ndarray, settings: InputSettings, training: bool) -> list[_View]:
    """Return the views of all examples: one, or three for long single texts in evaluation (`is_long`, bool [N])."""
    everyone = np.arange(len(kept))
    nothing = texts.first(np.zeros_like(kept))
    head = _View(everyone, texts.first(kept), nothing)
    if settings.long_text == "head" or not is_long.any():
        return [head]
    share, whole = HEAD_SHARE
    head_lengths = np.where(is_long, kept * share // whole, kept)
    both = _View(everyone, texts.first(head_lengths), texts.last(kept - head_lengths))
    if training or settings.long_text == "head_tail":
        return [both]
    long = np.flatnonzero(is_long)
    few, none = texts.take(long), nothing.take(long)
    return [
        _View(long, few.first(kept[long]), none),
        _View(long, few.last(kept[long]), none),
        both,
    ]
