"""Tokenize the texts of a split, each distinct text once, and assemble inputs from ranges of their tokens.

A text that is longer than an input is read in windows. A token may be in several of them. It belongs to the window in
which it has the most context, as in BERT's code for SQuAD: the window that maximizes
min(tokens to its left, tokens to its right) + 0.01 * length; the first of equal ones.

Shape letters: T tokens of all distinct texts; N inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from reader.system.arrays import Int32s, Int64s, offsets_of
from reader.system.progress import progress
from reader.tokenization.vocabulary import Vocabulary
from tasks.kinds.features import Inputs, gather_ranges

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding, Tokenizer

# Texts per call of the tokenizer; bounds the number of small arrays that exist at the same time.
GROUP = 4096


@dataclass(frozen=True, eq=False)
class Ranges:
    """One range of tokens for each of N inputs: [start, start + length); both are int64 [N]."""

    starts: Int64s
    lengths: Int64s

    def first(self, lengths: Int64s) -> Ranges:
        """Return the first tokens of each range."""
        return Ranges(self.starts, lengths)

    def last(self, lengths: Int64s) -> Ranges:
        """Return the last tokens of each range."""
        return Ranges(self.starts + self.lengths - lengths, lengths)

    def take(self, indices: Int64s) -> Ranges:
        """Return the ranges with these indices."""
        return Ranges(self.starts[indices], self.lengths[indices])


def joined(parts: Sequence[Ranges]) -> Ranges:
    """Return the ranges of several records, one after another."""
    return Ranges(np.concatenate([part.starts for part in parts]), np.concatenate([part.lengths for part in parts]))


@dataclass(frozen=True, eq=False)
class TokenTable:
    """The tokens of distinct texts.

    Attributes:
        ids: int32 [T + 2], the tokens of one text after another, then [CLS] and [SEP].
        starts, ends: int32 [T], the characters of each token in its text (see Encoding); empty if not asked for.
        words: int32 [T], the index of the word of each token in its text; empty if not asked for.
        offsets: int64, where the tokens of each distinct text begin, and where the last ones end.
        rows: int64, the index of the distinct text of each text.
        pad: ID of [PAD].
    """

    ids: Int32s
    starts: Int32s
    ends: Int32s
    words: Int32s
    offsets: Int64s
    rows: Int64s
    pad: int

    @property
    def ranges(self) -> Ranges:
        """The tokens of each text, in the order in which the texts were given."""
        return Ranges(self.offsets[self.rows], self.offsets[self.rows + 1] - self.offsets[self.rows])

    def encoding(self, text: int) -> Encoding:
        """Return the tokens of a text with their characters, without words; `starts` and `ends` must have been kept."""
        from reader.tokenization.tokenizer import Encoding  # it loads numba, which takes most of a second

        row = self.rows[text]
        part = slice(self.offsets[row], self.offsets[row + 1])
        return Encoding(self.ids[part], self.starts[part], self.ends[part], self.words[:0])

    def assemble(
        self, first: Sequence[Ranges], second: Sequence[Ranges] = (), has_second: Int64s | None = None
    ) -> Inputs:
        """Return inputs [CLS] first [SEP], or [CLS] first [SEP] second [SEP].

        Args:
            first, second: the ranges that make up each segment, one after another; each has N ranges.
            has_second: int64 [N], 1 for inputs with a second segment and otherwise 0; None means all or none, depending
                on `second`.
        """
        count = len(first[0].starts)
        if has_second is None:
            has_second = np.full(count, int(len(second) > 0))
        one, end = np.ones(count, np.int64), len(self.ids)
        cls, sep = Ranges(np.full(count, end - 2), one), Ranges(np.full(count, end - 1), one)
        columns = [cls, *first, sep, *second, sep.first(has_second)]
        starts = np.stack([column.starts for column in columns], axis=1)
        lengths = np.stack([column.lengths for column in columns], axis=1)
        seconds = lengths[:, : len(first) + 2].sum(1).astype(np.int32)
        tokens = gather_ranges(self.ids, starts.ravel(), lengths.ravel())
        return Inputs(tokens, offsets_of(lengths.sum(1)), seconds, self.pad)


def tokenize_texts(tokenizer: Tokenizer, texts: Iterable[str], with_spans: bool = False) -> TokenTable:
    """Return the tokens of texts, each distinct text tokenized once.

    Args:
        with_spans: whether to keep the characters of the tokens.
    """
    index: dict[str, int] = {}
    rows = np.array([index.setdefault(text, len(index)) for text in texts], np.int64)
    distinct = list(index)
    groups = (tokenizer.encode_batch(distinct[i : i + GROUP]) for i in range(0, len(distinct), GROUP))
    return _table(groups, rows, tokenizer.vocabulary, with_spans, with_words=False)


def tokenize_sentences(tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> TokenTable:
    """Return the tokens of sentences that are split into words (see Tokenizer.encode_words_batch), with their words."""
    groups = (tokenizer.encode_words_batch(sentences[i : i + GROUP]) for i in range(0, len(sentences), GROUP))
    return _table(groups, np.arange(len(sentences)), tokenizer.vocabulary, with_spans=False, with_words=True)


def _table(
    groups: Iterable[list[Encoding]], rows: Int64s, vocabulary: Vocabulary, with_spans: bool, with_words: bool
) -> TokenTable:
    ids, starts, ends, words, lengths = ([] for _ in range(5))  # type: ignore[var-annotated]
    with progress("splitting texts into tokens", rows.max(initial=-1) + 1, " texts") as bar:
        for group in groups:
            lengths += map(len, group)
            ids.append(_joined([encoding.ids for encoding in group]))
            starts.append(_joined([encoding.starts for encoding in group if with_spans]))
            ends.append(_joined([encoding.ends for encoding in group if with_spans]))
            words.append(_joined([encoding.word_ids for encoding in group if with_words]))
            bar.update(len(group))
    special = np.array([vocabulary.cls, vocabulary.sep], np.int32)
    return TokenTable(
        ids=_joined([*ids, special]),
        starts=_joined(starts),
        ends=_joined(ends),
        words=_joined(words),
        offsets=offsets_of(np.array(lengths, np.int64)),
        rows=rows,
        pad=vocabulary.pad,
    )


def _joined(arrays: Sequence[Int32s]) -> Int32s:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


LENGTH_WEIGHT = 0.01


class Windows(NamedTuple):
    """Windows of one text or of several; all arrays are int64 and have one number for each window.

    starts, lengths: the tokens [start, start + length) of the text; own_starts, own_stops: the tokens that belong to
    the window, numbered in the text: [own_start, own_stop).
    """

    starts: Int64s
    lengths: Int64s
    own_starts: Int64s
    own_stops: Int64s

    def take(self, which: npt.NDArray[np.bool_] | slice) -> Windows:
        """Return the windows that an index of the arrays selects."""
        return Windows(*(numbers[which] for numbers in self))


@lru_cache(maxsize=4096)
def windows_of(num_tokens: int, room: int, stride: int) -> Windows:
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
    return Windows(
        starts,
        lengths,
        np.searchsorted(owners, np.arange(count), "left"),
        np.searchsorted(owners, np.arange(count), "right"),
    )


def windows_of_texts(num_tokens: Int64s, rooms: Int64s, stride: int) -> tuple[Int64s, Windows]:
    """Return the windows of several texts, in their order; and int64, the index of the text of each window."""
    found = [windows_of(*sizes, stride) for sizes in zip(num_tokens.tolist(), rooms.tolist(), strict=True)]
    text_of = np.repeat(np.arange(len(found)), [len(windows.starts) for windows in found])
    nothing = np.zeros((len(Windows._fields), 0), np.int64)
    return text_of, Windows(*np.concatenate([nothing, *map(np.stack, found)], axis=1))
