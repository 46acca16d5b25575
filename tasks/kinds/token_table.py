"""Tokenize the texts of a split, each distinct text once, and assemble inputs from ranges of their tokens.

Shape letters: T tokens of all distinct texts; N inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reader.system.arrays import Int32s, Int64s, offsets_of
from reader.system.progress import progress
from reader.tokenization.vocabulary import Vocabulary
from tasks.data.features import Inputs, gather_ranges

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
