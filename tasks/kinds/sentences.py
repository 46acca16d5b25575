"""Inputs of one or two texts, for classification and regression: truncation, and views of long single texts.

Shape letters: N examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reader.batches.fields import Batch, Field
from reader.system.arrays import Float32s, Int64s
from reader.tokenization.basic_tokenizer import has_words
from tasks.kinds.base import ENCODER_FIELDS, Kind
from tasks.kinds.checked_values import Reading, id_of, text_of
from tasks.kinds.features import Features
from tasks.kinds.settings import InputSettings
from tasks.kinds.tokens import Ranges, joined, tokenize_texts
from tasks.layouts.rows import Place, Row

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Tokenizer

# Of 510 tokens, upstream meant to read the first 128 and the last 382.
HEAD_SHARE = (128, 510)


@dataclass(frozen=True)
class SentenceExample:
    """One or two texts, and a gold value.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        text_b: None if the task has single texts.
        gold: a label in the official spelling, which is one of the task's labels; or a score.
        place: the file and line.
    """

    id: str
    text_a: str
    text_b: str | None
    gold: Any
    place: Place


def truncated_pair(first: Int64s, second: Int64s, room: Int64s) -> tuple[Int64s, Int64s]:
    """Return how many tokens of two texts remain if the longer one loses tokens until both fit into `room`.

    One token is removed at a time; the second text loses one if both are equally long, as in BERT.
    """
    kept = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    return kept, np.minimum(second, room - kept)


def read_sentences(row: Row, default_id: str, reading: Reading, gold: Any) -> SentenceExample:
    """Return an example of one or two texts; raises RowError.

    Empty texts are accepted in a benchmark's file without labels, because every row needs a prediction.
    """
    row_id = id_of(row.values, default_id)
    may_be_empty = not reading.own and (reading.task.empty_texts or not reading.labelled)
    text_a = text_of(row.values.get("text_a"), "text_a", may_be_empty)
    text_b = text_of(row.values["text_b"], "text_b", may_be_empty) if "text_b" in row.values else None
    if not has_words(text_a) or (text_b is not None and not has_words(text_b)):
        reading.notes["rows with an empty text"] += 1
    return SentenceExample(row_id, text_a, text_b, gold, row.place)


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


class SentenceKind(Kind[SentenceExample, SentenceFeatures]):
    """What the kinds of one or two texts share. The last one of `training_fields` holds the gold values."""

    submission = "table"
    paddlenlp_class = "ErnieGramForSequenceClassification"
    input_fields = ENCODER_FIELDS

    def target(self, gold: Any) -> Any:
        """Return a gold value as the batch field stores it: a number, or several numbers."""
        return gold

    def gold_value(self, example: SentenceExample) -> Any:
        """Return the label or the score."""
        return example.gold

    def encode(self, examples: Sequence[SentenceExample], tokenizer: Tokenizer, training: bool) -> SentenceFeatures:
        """Return the features; a long single text has three samples in evaluation (see InputSettings.long_text)."""
        targets = [self.target(example.gold) for example in examples if example.gold is not None]
        field, settings = self.training_fields[-1], self.settings.input
        has_second = np.array([example.text_b is not None for example in examples], np.int64)
        texts = [example.text_a for example in examples] + [example.text_b or "" for example in examples]
        table = tokenize_texts(tokenizer, texts)
        count = len(examples)
        a, b = table.ranges.take(np.arange(count)), table.ranges.take(np.arange(count, 2 * count))
        room = settings.max_seq_len - 2 - has_second
        is_long = a.lengths + b.lengths > room
        kept_a, kept_b = truncated_pair(a.lengths, b.lengths, room)
        views = _views(a, kept_a, is_long & (has_second == 0), settings, training)
        parts, heads, tails = zip(*views, strict=True)
        example_of = np.concatenate(parts)
        # A stable sort keeps the views of an example in their order.
        order = np.argsort(example_of, kind="stable")
        head, tail = joined(heads).take(order), joined(tails).take(order)
        example_of = example_of[order]
        second = b.take(example_of).first(kept_b[example_of])
        inputs = table.assemble([head, tail], [second], has_second[example_of])
        samples = np.arange(len(example_of) + 1)
        return SentenceFeatures(
            inputs=inputs,
            input_offsets=samples,
            unit_offsets=samples,
            example_of=example_of,
            counts={"examples longer than an input": int(is_long.sum())},
            targets=np.array(targets, field.dtype)[example_of] if len(targets) == count else None,
            field=field,
        )


def example_means(values: Float32s, features: Features) -> Float32s:
    """Return the mean of the rows of each example's samples, [N, width]. Every example has at least one sample."""
    firsts = np.flatnonzero(np.diff(features.example_of, prepend=-1))
    if len(firsts) == len(values):
        return values
    counts = np.diff(np.append(firsts, len(values)))
    return (np.add.reduceat(values, firsts) / counts[:, np.newaxis]).astype(np.float32)


def _views(
    texts: Ranges, kept: Int64s, is_long: np.ndarray, settings: InputSettings, training: bool
) -> list[tuple[Int64s, Ranges, Ranges]]:
    """Return the inputs of all examples: one, or three for long single texts in evaluation (`is_long`, bool [N]).

    Each element has the indices of some examples, and two ranges of tokens of their first texts; one may be empty.
    """
    everyone, nothing = np.arange(len(kept)), texts.first(np.zeros_like(kept))
    if settings.long_text == "head" or not is_long.any():
        return [(everyone, texts.first(kept), nothing)]
    share, whole = HEAD_SHARE
    head_lengths = np.where(is_long, kept * share // whole, kept)
    both = everyone, texts.first(head_lengths), texts.last(kept - head_lengths)
    if training or settings.long_text == "head_tail":
        return [both]
    long = np.flatnonzero(is_long)
    few, none = texts.take(long), nothing.take(long)
    return [(long, few.first(kept[long]), none), (long, few.last(kept[long]), none), both]
