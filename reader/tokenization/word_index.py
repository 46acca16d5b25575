"""Convert text to word IDs at high speed: a compiled pass for simple text, and Python code for the remaining runs.

The words are those of `basic_tokenizer.split_words`, the plain implementation of the rules. Here, a table contains the
class of every character of Unicode's Basic Multilingual Plane whose treatment does not depend on its context. A run (a
sequence of characters without white space) that contains another character, such as an accent to remove, is split by
the plain implementation, once for each distinct run.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache, partial

import numpy as np

from reader.system.arrays import Int32s, UInt8s
from reader.system.hash_tables import (
    PackedStrings,
    empty_table,
    find_or_add_strings,
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
    HAN_ITEM,
    LETTER,
    PUNCTUATION,
    SPACE,
    WORD_ITEM,
    Items,
    insert_run_words,
    split_bytes,
)

_BUFFER_BYTES = 1 << 20  # about as many bytes of text are split by one call of the compiled pass
_SPACE = re.compile(rb"[ \t\r\n]")
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


class WordIndex:
    """Assigns consecutive IDs to distinct words: each word has a larger one than those of earlier calls.

    Args:
        lowercase: whether words are converted to lower case and stripped of accents.
        han: the segmenter for Han characters, see basic_tokenizer.py.
    """

    def __init__(self, lowercase: bool, han: str = "char") -> None:
        self.lowercase = lowercase
        self.table = empty_table()
        self._cut_han = segmenter(han)
        classes = _character_classes(lowercase)
        self._classes = np.where(classes == HAN, np.uint8(PUNCTUATION), classes) if han == "char" else classes
        split = partial(split_run, lowercase=lowercase, cut_han=self._cut_han)
        cached = lru_cache(MAX_CACHED_RUNS)(split)
        self._split_run = lambda run: (cached if len(run) <= MAX_CACHED_CHARACTERS else split)(run)

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return int(self.table.used[0])

    def words(self, first: int = 0) -> list[str]:
        """Return the words with IDs from `first` on."""
        offsets, arena = self.table.strings
        return unpack_strings(PackedStrings(offsets[first:], arena))

    def add(self, words: Sequence[str]) -> Int32s:
        """Return the IDs of words, int32 [len(words)]. New words are added."""
        self.table, ids = find_or_add_strings(self.table, pack_strings(words))
        return ids

    def encode(self, text: bytes) -> Int32s:
        """Return the word IDs of a text in UTF-8, int32, with LINE_END or DOCUMENT_END at the end of each line.

        The last line needs no line feed. Raises UnicodeDecodeError for text that is not UTF-8.
        """
        text = text if text.endswith(b"\n") else text + b"\n"
        parts: list[Int32s] = []
        start, is_nonblank = 0, False
        while start < len(text):
            # No run is cut: a block ends with white space.
            space = _SPACE.search(text, start + _BUFFER_BYTES)
            block = np.frombuffer(text, np.uint8)[start : space.end() if space else len(text)]
            items, is_nonblank = split_bytes(block, is_nonblank, self._classes, self.lowercase)
            parts.append(self._word_ids(items))
            start += len(block)
        return np.concatenate(parts)

    def _word_ids(self, items: Items) -> Int32s:
        """Return the stream of word IDs for some items."""
        self.table, stream = find_or_add_strings(self.table, PackedStrings(items.ends, items.words))
        stream[items.kinds == DOCUMENT_END] = DOCUMENT_END
        if not len(items.runs):
            return stream
        runs = items.runs.tobytes().decode().split("\n")[:-1]
        are_han = (items.kinds[items.kinds > WORD_ITEM] == HAN_ITEM).tolist()
        # Runs of Han characters are not cached, because they seldom repeat. "", which has the ID -1, follows each run.
        cut = (self._cut_han if is_han else self._split_run for is_han in are_han)
        words = [word for run, words in zip(runs, cut, strict=True) for word in (*words(run), "")]
        return insert_run_words(stream, items.kinds, self.add(words))
