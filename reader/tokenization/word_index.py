"""Text as bytes -> words as numbers, fast: a compiled pass for what is simple, Python once for each distinct rest.

The words are those of `tokenization.split_words`, the rule written plainly. Here a table says of every character of
Unicode's first plane what that rule makes of it wherever it stands; a run without white space that holds another
one (an accent to fold, say) is split by the rule itself, each distinct run once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.tables.string_table import ByteTable, Strings, empty_table, number, packed, strings_of
from reader.tokenization.basic_tokenizer import fold, is_dropped, is_han, is_punctuation, split_run
from reader.tokenization.chinese_segmentation import cut_runs, segmenter
from reader.tokenization.word_kernel import (
    COMPLEX,
    DOCUMENT_END,
    DROPPED,
    DROPPED_SPACE,
    EACH,
    HAN,
    LETTER,
    SEGMENT,
    SINGLE,
    SPACE,
    WHOLE,
    Runs,
    expand,
    split,
)

UInt8s = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_HAN_MODES = {"char": EACH, "space": WHOLE}
_ROOM = 1 << 20  # bytes of text split at a time
# More bytes of runs that the rule had to split are not remembered: text repeats itself, but memory is bounded.
MAX_RUN_BYTES = 1 << 24


@cache
def _kinds(lowercase: bool) -> UInt8s:
    """What the rule makes of every character of the first plane, uint8 [65536]."""
    characters = [chr(code) for code in range(1 << 16)]
    # At once, with what no character folds into between them.
    folded = fold("\n".join(characters[11:])).split("\n") if lowercase else characters[11:]
    return np.array([*map(_kind, characters, characters[:11] + folded)], np.uint8)


def _kind(character: str, folded: str) -> int:
    if character in " \t\r\n":
        return SPACE
    if is_dropped(character):
        return DROPPED_SPACE if character.isspace() else DROPPED
    if character.isspace():
        return SPACE
    is_capital = "A" <= character <= "Z"  # folded on the way
    if unicodedata.combining(character) or (folded != character and not is_capital):
        return COMPLEX
    if is_han(character):
        return HAN
    return SINGLE if is_punctuation(character) else LETTER


class _Split(NamedTuple):
    """Room for what `split` finds in `size` bytes of text.

    letters: uint8 [size], the words one after the other; ends: int64 [size + 1], where each item's end in them;
    what: int8 [size], the kind of each item. The same two for the runs: of Han characters a line feed behind each.
    """

    letters: UInt8s
    ends: Int64s
    what: Int8s
    run_letters: UInt8s
    run_ends: Int64s
    han_letters: UInt8s

    @classmethod
    def room(cls, size: int) -> _Split:
        letters = (np.empty(factor * size, np.uint8) for factor in (1, 1, 2))
        ends = (np.zeros(size + 1, np.int64) for _ in range(2))
        return cls(next(letters), next(ends), np.empty(size, np.int8), next(letters), next(ends), next(letters))


def _no_runs() -> tuple[ByteTable, Runs]:
    return empty_table(), Runs(np.zeros(0, np.int32), np.zeros(1, np.int64))


class WordIndex:
    """Numbers the distinct words of a text in the order in which it meets them.

    Args:
        lowercase: whether words are folded.
        han: how words of Han characters are found, see segmenters.py.
    """

    def __init__(self, lowercase: bool, han: str = "char") -> None:
        self.lowercase = lowercase
        self.table = empty_table()
        self._han, self._cut = han, segmenter(han)
        self._han_mode = _HAN_MODES.get(han, SEGMENT)
        self._room = _Split.room(_ROOM)
        # Runs that the rule had to split, and what came of them.
        self._run_table, self._runs = _no_runs()

    def __len__(self) -> int:
        """How many distinct words there are."""
        return int(self.table.used[0])

    def words(self, first: int = 0) -> list[str]:
        """The words from number `first` on."""
        return strings_of(self.table, first)

    def add(self, words: Sequence[str]) -> Int32s:
        """The numbers of some words, int32; new ones are added."""
        self.table, numbers = number(self.table, packed(words))
        return numbers

    def encode(self, text: bytes) -> Int32s:
        """The words of a text in UTF-8 as numbers, int32, with LINE_END or DOCUMENT_END where each line ends.

        The last line ends with the text. Raises UnicodeDecodeError for what is not UTF-8.
        """
        data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
        kinds = _kinds(self.lowercase)
        parts: list[Int32s] = []
        state = np.zeros(2, np.int64)  # where to go on, and whether the line so far is blank (0) or not
        while state[0] < len(data):
            items, runs, han, longest = split(data, state, kinds, self.lowercase, self._han_mode, *self._room)
            parts.append(self._numbered(items, runs, han))
            if longest >= len(self._room.what):
                self._room = _Split.room(2 * longest)
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def _numbered(self, items: int, runs: int, han: int) -> Int32s:
        """The stream of what the room holds: so many items, so many of them runs, so many bytes of Han runs."""
        room = self._room
        self.table, stream = number(self.table, Strings(room.ends[: items + 1], room.letters))
        what = room.what[:items]
        stream[what == DOCUMENT_END] = DOCUMENT_END
        if not runs and not han:
            return stream
        chosen = np.zeros(0, np.int32)
        if runs:
            if self._run_table.offsets[self._run_table.used[0]] > MAX_RUN_BYTES:
                self._run_table, self._runs = _no_runs()
            known = int(self._run_table.used[0])
            self._run_table, chosen = number(self._run_table, Strings(room.run_ends[: runs + 1], room.run_letters))
            try:
                new_runs = strings_of(self._run_table, known)
            except UnicodeDecodeError:
                self._run_table, self._runs = _no_runs()
                raise
            words: list[str] = []
            for run in new_runs:
                words += split_run(run, self.lowercase, self._cut)
                words.append("")
            new = self._number_runs(packed(words))
            self._runs = Runs(
                np.concatenate([self._runs.words, new.words]),
                np.concatenate([self._runs.offsets, self._runs.offsets[-1] + new.offsets[1:]]),
            )
        # Han characters in a row seldom come again: they are not remembered.
        han_runs = self._number_runs(cut_runs(self._han, room.han_letters[:han]) if han else packed([]))
        return expand(stream, what, chosen, self._runs, han_runs)

    def _number_runs(self, words: Strings) -> Runs:
        """Number the words of several runs, each run's followed by "" (which has the number -1)."""
        self.table, numbers = number(self.table, words)
        ends = np.flatnonzero(numbers < 0)
        return Runs(numbers[numbers >= 0], np.concatenate([[0], ends - np.arange(len(ends))]))
