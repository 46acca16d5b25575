"""Tokenize the texts of a split, each distinct text once; and the windows in which long texts are read.

A text that is longer than an input is read in windows. A token may be in several of them. It belongs to the window in
which it has the most context, as in BERT's code for SQuAD: the window that maximizes
min(tokens to its left, tokens to its right) + 0.01 * length; the first of equal ones.

Shape letters: T tokens of all distinct texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reader.system.arrays import Int32s, Int64s, offsets_of
from reader.system.progress import progress

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding, Tokenizer

# Texts per call of the tokenizer; bounds the number of small arrays that exist at the same time.
GROUP = 4096


@dataclass(frozen=True, eq=False)
class TokenTable:
    """The tokens of some texts.

    Attributes:
        tokens: int32 [T], those of one distinct text after another.
        starts, ends: int32 [T], the characters of each token in its text (see Encoding); empty if not asked for.
        words: int32 [T], the index of the word of each token in its text; empty if not asked for.
        offsets: int64, where the tokens of each distinct text begin, and where the last ones end.
        rows: int64, the index of the distinct text of each text.
    """

    tokens: Int32s
    starts: Int32s
    ends: Int32s
    words: Int32s
    offsets: Int64s
    rows: Int64s

    def _slice(self, text: int) -> slice:
        row = self.rows[text]
        return slice(self.offsets[row], self.offsets[row + 1])

    def __getitem__(self, text: int) -> Int32s:
        """Return the tokens of the text with this number, counted from 0 in the order in which they were given."""
        return self.tokens[self._slice(text)]

    def encoding(self, text: int) -> Encoding:
        """Return the tokens of a text with what else was kept of them."""
        from reader.tokenization.tokenizer import Encoding  # it loads numba, which takes most of a second

        part = self._slice(text)
        return Encoding(self.tokens[part], self.starts[part], self.ends[part], self.words[part])


def tokenize_texts(tokenizer: Tokenizer, texts: Iterable[str], with_spans: bool = False) -> TokenTable:
    """Return the tokens of texts, each distinct text tokenized once.

    Args:
        with_spans: whether to keep the characters of the tokens.
    """
    index: dict[str, int] = {}
    rows = np.array([index.setdefault(text, len(index)) for text in texts], np.int64)
    distinct = list(index)
    groups = (tokenizer.encode_batch(distinct[i : i + GROUP]) for i in range(0, len(distinct), GROUP))
    return _table(groups, rows, with_spans, with_words=False)


def tokenize_sentences(tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> TokenTable:
    """Return the tokens of sentences that are split into words (see Tokenizer.encode_words_batch), with their words."""
    groups = (tokenizer.encode_words_batch(sentences[i : i + GROUP]) for i in range(0, len(sentences), GROUP))
    return _table(groups, np.arange(len(sentences)), with_spans=False, with_words=True)


def _table(groups: Iterable[list[Encoding]], rows: Int64s, with_spans: bool, with_words: bool) -> TokenTable:
    kept = {"ids": True, "starts": with_spans, "ends": with_spans, "word_ids": with_words}
    columns: dict[str, list[Int32s]] = {name: [np.zeros(0, np.int32)] for name in kept}
    lengths: list[int] = []
    with progress("splitting texts into tokens", rows.max(initial=-1) + 1, " texts") as bar:
        for group in groups:
            lengths += map(len, group)
            for name in (name for name, is_kept in kept.items() if is_kept):
                columns[name].append(np.concatenate([getattr(encoding, name) for encoding in group]))
            bar.update(len(group))
    tokens, starts, ends, words = map(np.concatenate, columns.values())
    return TokenTable(tokens, starts, ends, words, offsets_of(np.array(lengths, np.int64)), rows)


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
