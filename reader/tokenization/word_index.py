"""Convert text to word IDs at high speed: a compiled pass for simple text, and Python code for the remaining runs.

The words are those of `basic_tokenizer.split_words`, the plain implementation of the rules. Here, a table contains the
class of every character of Unicode's Basic Multilingual Plane whose treatment does not depend on its context. A run (a
sequence of characters without white space) that contains another character, such as an accent to remove, is split by
the plain implementation, once for each distinct run.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from reader.system.arrays import Int8s, Int32s, Int64s, UInt8s
from reader.tables.string_table import (
    PackedStrings,
    empty_table,
    find_or_add_strings,
    list_strings,
    pack_strings,
    unpack_strings,
)
from reader.tokenization.basic_tokenizer import fold, is_dropped, is_han, is_punctuation, segmenter, split_run
from reader.tokenization.word_kernel import (
    COMPLEX,
    DOCUMENT_END,
    DROPPED,
    DROPPED_SPACE,
    HAN,
    LETTER,
    PUNCTUATION,
    SPACE,
    RunWords,
    insert_run_words,
    split_bytes,
)

_BUFFER_BYTES = 1 << 20  # bytes of text that the compiled pass splits per call
# Most short runs of a text repeat. Long ones, such as lines without spaces, would fill the memory.
MAX_CACHED_RUNS, MAX_CACHED_CHARACTERS = 1 << 16, 32


@cache
def _character_classes(lowercase: bool) -> UInt8s:
    """Return the class of every character of the Basic Multilingual Plane, uint8 [65536]."""
    characters = [chr(code) for code in range(1 << 16)]
    # All characters are folded in one call, separated by line feeds. No character becomes a line feed by folding. The
    # line feed itself (code 10) and the control characters before it are left out.
    folded = fold("\n".join(characters[11:])).split("\n") if lowercase else characters[11:]
    return np.array([*map(_character_class, characters, characters[:11] + folded)], np.uint8)


def _character_class(character: str, folded: str) -> int:
    if character in " \t\r\n":
        return SPACE
    if is_dropped(character):
        return DROPPED_SPACE if character.isspace() else DROPPED
    if character.isspace():
        return SPACE
    is_capital = "A" <= character <= "Z"  # the compiled pass folds these
    if unicodedata.combining(character) or (folded != character and not is_capital):
        return COMPLEX
    if is_han(character):
        return HAN
    return PUNCTUATION if is_punctuation(character) else LETTER


def cut_runs(name: str, text: UInt8s) -> PackedStrings:
    """Return the words of several runs of Han characters, with "" after the last word of each run.

    Args:
        name: of a segmenter.
        text: uint8, the runs in UTF-8, each followed by a line feed.
    """
    if name != "char":
        cut = segmenter(name)
        runs = text.tobytes().decode("utf-8").split("\n")[:-1]
        return pack_strings([word for run in runs for word in (*cut(run), "")])
    # In one step, which is ten times as fast. Words end at the last byte of each character, which no continuation byte
    # follows.
    is_in_word = text != ord("\n")
    ends = np.cumsum(is_in_word)[np.append((text[1:] & 0xC0) != 0x80, True)]
    return PackedStrings(np.concatenate([[0], ends]), text[is_in_word])


class _SplitBuffers(NamedTuple):
    """The output arrays of `split_bytes`, with capacity for `size` bytes of text.

    word_bytes: uint8 [size], the concatenated words; item_ends: int64 [size + 1], where each item ends in them.
    item_kinds: int8 [size], the kind of each item. A line end and a run have no bytes in `word_bytes`.
    run_bytes: uint8 [size], the concatenated runs to split in Python; run_ends: int64 [size + 1], where each run ends.
    han_bytes: uint8 [2 * size], the runs of Han characters to segment, each followed by a line feed.
    """

    word_bytes: UInt8s
    item_ends: Int64s
    item_kinds: Int8s
    run_bytes: UInt8s
    run_ends: Int64s
    han_bytes: UInt8s

    @classmethod
    def allocate(cls, size: int) -> _SplitBuffers:
        return cls(
            word_bytes=np.empty(size, np.uint8),
            item_ends=np.zeros(size + 1, np.int64),
            item_kinds=np.empty(size, np.int8),
            run_bytes=np.empty(size, np.uint8),
            run_ends=np.zeros(size + 1, np.int64),
            han_bytes=np.empty(2 * size, np.uint8),
        )


class WordIndex:
    """Assigns consecutive IDs to distinct words, in order of first occurrence.

    Args:
        lowercase: whether words are converted to lower case and stripped of accents.
        han: the segmenter for Han characters, see basic_tokenizer.py.
    """

    def __init__(self, lowercase: bool, han: str = "char") -> None:
        self.lowercase = lowercase
        self.table = empty_table()
        self._han, cut_han = han, segmenter(han)

        def split(run: str) -> list[str]:
            return [*split_run(run, lowercase, cut_han), ""]

        cached = lru_cache(MAX_CACHED_RUNS)(split)
        self._split_run = lambda run: (cached if len(run) <= MAX_CACHED_CHARACTERS else split)(run)
        self._buffers = _SplitBuffers.allocate(_BUFFER_BYTES)

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return int(self.table.used[0])

    def words(self, first: int = 0) -> list[str]:
        """Return the words with IDs from `first` on."""
        return list_strings(self.table, first)

    def add(self, words: Sequence[str]) -> Int32s:
        """Return the IDs of words, int32 [len(words)]. New words are added."""
        self.table, ids = find_or_add_strings(self.table, pack_strings(words))
        return ids

    def encode(self, text: bytes) -> Int32s:
        """Return the word IDs of a text in UTF-8, int32, with LINE_END or DOCUMENT_END at the end of each line.

        The last line needs no line feed. Raises UnicodeDecodeError for text that is not UTF-8.
        """
        data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
        classes = _character_classes(self.lowercase)
        parts: list[Int32s] = []
        state = np.zeros(2, np.int64)  # position of the next byte; whether the current line is not blank so far
        while state[0] < len(data):
            num_items, num_runs, han_size, next_run_size = split_bytes(
                data, state, classes, self.lowercase, *self._buffers
            )
            parts.append(self._word_ids(num_items, num_runs, han_size))
            if next_run_size >= len(self._buffers.item_kinds):
                self._buffers = _SplitBuffers.allocate(2 * next_run_size)
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def _word_ids(self, num_items: int, num_runs: int, han_size: int) -> Int32s:
        """Return the stream of word IDs for the items in the buffers. The arguments are results of `split_bytes`."""
        buffers = self._buffers
        item_words = PackedStrings(buffers.item_ends[: num_items + 1], buffers.word_bytes)
        self.table, stream = find_or_add_strings(self.table, item_words)
        item_kinds = buffers.item_kinds[:num_items]
        stream[item_kinds == DOCUMENT_END] = DOCUMENT_END
        if not num_runs and not han_size:
            return stream
        runs = unpack_strings(PackedStrings(buffers.run_ends[: num_runs + 1], buffers.run_bytes))
        run_words = pack_strings([*chain.from_iterable(map(self._split_run, runs))])
        # Runs of Han characters are not cached, because they seldom repeat.
        han_words = cut_runs(self._han, buffers.han_bytes[:han_size]) if han_size else pack_strings([])
        return insert_run_words(stream, item_kinds, self._add_run_words(run_words), self._add_run_words(han_words))

    def _add_run_words(self, words: PackedStrings) -> RunWords:
        """Return the IDs of the words of several runs. In `words`, "" (which has the ID -1) follows each run."""
        self.table, ids = find_or_add_strings(self.table, words)
        run_ends = np.flatnonzero(ids < 0)
        return RunWords(ids[ids >= 0], np.concatenate([[0], run_ends - np.arange(len(run_ends))]))
