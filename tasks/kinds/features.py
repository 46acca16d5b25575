"""From texts to what the model reads: tokens, windows of long texts, inputs, and batches of any selection of samples.

A text that is longer than an input is read in windows. A token may be in several of them. It belongs to the window in
which it has the most context, as in BERT's code for SQuAD: the window that maximizes
min(tokens to its left, tokens to its right) + 0.01 * length; the first of equal ones.

Shape letters: T tokens of all texts or inputs; N inputs; S samples; B inputs of a batch; L slots, the maximum over the
batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, SLOTS, Batch
from reader.system.arrays import Int32s, Int64s, offsets_of, range_indices
from reader.system.progress import progress
from reader.tokenization.vocabulary import Vocabulary

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding


@dataclass(frozen=True, eq=False)
class Inputs:
    """The sequences that the encoder reads: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

    Attributes:
        tokens: int32 [T], token IDs.
        offsets: int64 [N + 1], where each input begins in `tokens`.
        seconds: int32 [N], the slot at which the second segment begins; the input's length if there is none.
        pad: ID of [PAD].
    """

    tokens: Int32s
    offsets: Int64s
    seconds: Int32s
    pad: int

    def __len__(self) -> int:
        """Return the number of inputs, N."""
        return len(self.seconds)

    @property
    def lengths(self) -> Int64s:
        """The number of slots of each input, int64 [N]."""
        return np.diff(self.offsets)

    def batch(self, rows: Int64s) -> Batch:
        """Return the fields of the encoder for the inputs with the indices `rows`, padded to the longest of them."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        slots_1L = np.arange(lengths.max(initial=1))[np.newaxis]
        filled_BL = slots_1L < lengths[:, np.newaxis]
        ids_BL = np.full(filled_BL.shape, self.pad, np.int64)
        ids_BL[filled_BL] = self.tokens[range_indices(starts, lengths)]
        sentences_BL = (filled_BL & (slots_1L >= self.seconds[rows, np.newaxis])).astype(np.int64)
        return {INPUT_IDS.name: ids_BL, LENGTHS.name: lengths, SENTENCE_IDS.name: sentences_BL}


class InputsBuilder:
    """Puts inputs together, one after another."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._special, self._pad = np.array([[vocabulary.cls], [vocabulary.sep]], np.int32), vocabulary.pad
        self._tokens, self._lengths, self._seconds = array("i"), array("q"), array("i")

    def add(self, first: Sequence[Int32s], second: Sequence[Int32s] | None = None) -> None:
        """Add [CLS] first [SEP], or [CLS] first [SEP] second [SEP]; each segment is the tokens of some parts."""
        cls, sep = self._special
        segments = np.concatenate([cls, *first, sep])
        self._seconds.append(len(segments))
        if second is not None:
            segments = np.concatenate([segments, *second, sep])
        self._lengths.append(len(segments))
        self._tokens.frombytes(segments.tobytes())

    def inputs(self) -> Inputs:
        """Return the inputs that were added."""
        offsets = offsets_of(np.array(self._lengths, np.int64))
        return Inputs(np.array(self._tokens, np.int32), offsets, np.array(self._seconds, np.int32), self._pad)


@dataclass(frozen=True, eq=False)
class Features:
    """The samples of a split. The size of a batch is its number of samples.

    A sample is one input, except in multiple choice, where it is a question with one input for each option. An example
    has one sample, except if its text is read as several windows.

    The network computes one row of numbers, its scores, for each unit of a sample: a unit is the sample itself
    (classification, regression), an option, a slot that may begin or end an answer, or a word. The number of units is
    known beforehand, so the scores of a split are one array, float32 [U, width], in which every batch, on any rank,
    fills the rows `unit_rows`.

    Attributes:
        inputs: the inputs of all samples in order.
        input_offsets: int64 [S + 1]; the inputs of sample i are input_offsets[i] .. input_offsets[i + 1] - 1.
        unit_offsets: int64 [S + 1]; the same for units.
        example_of: int64 [S], the index of the example of each sample, in ascending order.
        gold: the gold values of the samples by batch field, [S, ...]; empty without them.
        counts: description -> number, of what was done to the examples, such as truncated inputs.
        slots: int32 [U], the slot of each unit in its input, for the field `slots`; None if the kind does not read it.
        unit_gold: the gold values of the units by batch field, [U]; empty without them.
    """

    inputs: Inputs
    input_offsets: Int64s
    unit_offsets: Int64s
    example_of: Int64s
    gold: Mapping[str, np.ndarray]
    counts: Mapping[str, int]
    slots: Int32s | None = None
    unit_gold: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of samples, S."""
        return len(self.example_of)

    @property
    def lengths(self) -> Int64s:
        """The number of slots of the longest input of each sample, int64 [S], for batches of similar length."""
        lengths = self.inputs.lengths
        return np.maximum.reduceat(lengths, self.input_offsets[:-1]) if len(self) else lengths

    @property
    def num_units(self) -> int:
        """The number of units of all samples, U."""
        return int(self.unit_offsets[-1])

    def batch(self, samples: Int64s) -> Batch:
        """Return the batch of the samples with these indices (at least one), in this order.

        It has the fields that the kind of task declares; those with gold values only if the examples have them.
        """
        batch = self.inputs.batch(_members(self.input_offsets, samples))
        batch |= {name: values[samples] for name, values in self.gold.items()}
        if self.slots is not None:
            units, counts = self.unit_rows(samples), self.unit_offsets[samples + 1] - self.unit_offsets[samples]
            begins = np.arange(len(samples)) * batch[INPUT_IDS.name].shape[1]
            batch[SLOTS.name] = np.repeat(begins, counts) + self.slots[units]
            batch |= {name: values[units] for name, values in self.unit_gold.items()}
        return batch

    def unit_rows(self, samples: Int64s) -> Int64s:
        """Return the rows of the scores of a split that belong to the units of these samples, in this order."""
        return _members(self.unit_offsets, samples)


def _members(offsets: Int64s, samples: Int64s) -> Int64s:
    starts = offsets[samples]
    return range_indices(starts, offsets[samples + 1] - starts)


# Texts per call of the tokenizer; bounds the number of small arrays that exist at the same time.
GROUP = 4096


# What an Encoding has of each token.
COLUMNS = ("ids", "starts", "ends", "word_ids")


@dataclass(frozen=True, eq=False)
class TokenTable:
    """The tokens of some texts.

    Attributes:
        columns: int32 [T] each, those of COLUMNS for one distinct text after another; empty if they were not kept.
        offsets: int64, where the tokens of each distinct text begin, and where the last ones end.
        rows: int64, the index of the distinct text of each text.
    """

    columns: Sequence[Int32s]
    offsets: Int64s
    rows: Int64s

    def __getitem__(self, text: int) -> Encoding:
        """Return the tokens of the text with this number, counted from 0, with what was kept of them."""
        from reader.tokenization.tokenizer import Encoding  # it loads numba, which takes most of a second

        row = self.rows[text]
        return Encoding(*(column[self.offsets[row] : self.offsets[row + 1]] for column in self.columns))


def tokenize(
    encode: Callable[[list[Any]], list[Encoding]], texts: Iterable[str | tuple[str, ...]], *kept: str
) -> TokenTable:
    """Return the tokens of texts, each distinct text tokenized once.

    Args:
        encode: Tokenizer.encode_batch; or encode_words_batch, for texts that are tuples of words.
        kept: what is kept of the tokens beside their IDs, of COLUMNS.
    """
    index: dict[str | tuple[str, ...], int] = {}
    rows = np.array([index.setdefault(text, len(index)) for text in texts], np.int64)
    distinct, lengths = list(index), list[int]()
    columns = {name: [np.zeros(0, np.int32)] for name in COLUMNS}
    with progress("splitting texts into tokens", len(distinct), " texts") as bar:
        for first in range(0, len(distinct), GROUP):
            group = encode(distinct[first : first + GROUP])
            lengths += map(len, group)
            for name in ("ids", *kept):
                columns[name].append(np.concatenate([getattr(encoding, name) for encoding in group]))
            bar.update(len(group))
    return TokenTable([*map(np.concatenate, columns.values())], offsets_of(np.array(lengths, np.int64)), rows)


LENGTH_WEIGHT = 0.01


class Window(NamedTuple):
    """A window of a text, in numbers of tokens.

    start, length: it has the tokens [start, start + length) of the text; own_start, own_stop: the tokens
    [own_start, own_stop) of the text belong to it.
    """

    start: int
    length: int
    own_start: int
    own_stop: int


@lru_cache(maxsize=4096)
def windows_of(num_tokens: int, room: int, stride: int) -> tuple[Window, ...]:
    """Return the windows of a text of `num_tokens` tokens, at least one, each of at most `room` > 0 tokens.

    The beginnings of two windows are `stride` > 0 tokens apart, or less, so that no token is left out.
    """
    step = min(stride, room)
    count = 1 + max(0, -(-(num_tokens - room) // step))
    starts = step * np.arange(count)
    lengths = np.minimum(room, num_tokens - starts)
    # near: int64 [tokens, windows that may contain a token], ascending; the last window may be repeated.
    tokens = np.arange(num_tokens)[:, np.newaxis]
    first = np.maximum(0, (tokens - room) // step + 1)
    near = np.minimum(first + np.arange(room // step + 2), np.minimum(tokens // step, count - 1))
    left = tokens - starts[near]
    right = lengths[near] - 1 - left
    # Compared as whole numbers, which have no rounding errors: argmax returns the first of equal ones.
    context = np.round(np.minimum(left, right) / LENGTH_WEIGHT).astype(np.int64) + lengths[near]
    best = np.where(right >= 0, context, np.iinfo(np.int64).min).argmax(1)
    owners = near[np.arange(num_tokens), best]
    # The owners are in ascending order, so each window owns consecutive tokens.
    own_starts, own_stops = (np.searchsorted(owners, np.arange(count), side) for side in ("left", "right"))
    return tuple(map(Window, *(numbers.tolist() for numbers in (starts, lengths, own_starts, own_stops))))
