"""The compiled part of splitting text into words: one pass over the bytes. word_index.py explains its purpose.

A run is a sequence of characters without white space. The output consists of items: line ends, words, sequences of Han
characters for a segmenter, and whole runs that this module cannot split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.system.arrays import Int8s, Int32s, Int64s, UInt8s
from reader.system.compiled import numba

# Values in a stream of word IDs: the end of a line, and the end of a blank line, which also ends a document.
LINE_END, DOCUMENT_END = -1, -2
# Other kinds of items: a word; a run that basic_tokenizer.split_run must split; Han characters for the segmenter.
WORD_ITEM, RUN_ITEM, HAN_ITEM = 0, 1, 2

# Classes of characters by their treatment in basic_tokenizer. A PUNCTUATION character is a word of its own.
# DROPPED_SPACE: the character is dropped and str.isspace() is true, so that a line of such characters is blank. A run
# that contains a COMPLEX character must be split by basic_tokenizer.split_run.
SPACE, LETTER, PUNCTUATION, HAN, DROPPED, DROPPED_SPACE, COMPLEX = range(7)

LINE_FEED = 10


class Items(NamedTuple):
    """The items of a text.

    kinds: int8 [n], the kind of each item. A line end and a run have no bytes in `words`.
    words: uint8, the concatenated words; ends: int64 [n + 1], 0 and where each item ends in them.
    runs: uint8, the runs to split in Python, each followed by a line feed.
    """

    kinds: Int8s
    words: UInt8s
    ends: Int64s
    runs: UInt8s


@numba.njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 9 or byte == 13


@numba.njit(cache=True, nogil=True)
def _width(byte: int) -> int:
    """Return the number of bytes of a character by its first byte. It must be in the Basic Multilingual Plane."""
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3


@numba.njit(cache=True, nogil=True)
def _code_point(a: int, b: int, c: int) -> int:
    """Return the code point of the character that begins at byte `a`, followed by the bytes `b` and `c`.

    Return -1 if it is not in the Basic Multilingual Plane, or if the bytes are not UTF-8.
    """
    if a < 0x80:
        return a
    if 0xC2 <= a < 0xE0 and b & 0xC0 == 0x80:
        return (a & 0x1F) << 6 | (b & 0x3F)
    if 0xE0 <= a < 0xF0 and b & 0xC0 == 0x80 and c & 0xC0 == 0x80:
        code_point = (a & 0x0F) << 12 | (b & 0x3F) << 6 | (c & 0x3F)
        if code_point >= 0x800 and not 0xD800 <= code_point < 0xE000:
            return code_point
    return -1


@numba.njit(cache=True, nogil=True)
def split_bytes(text: UInt8s, is_nonblank: bool, character_classes: UInt8s, lowercase: bool) -> tuple[Items, bool]:
    """Split a text into items; return them, and whether the last line is not blank so far.

    Args:
        text: UTF-8; ends with white space.
        is_nonblank: whether the line that the text continues is not blank so far.
        character_classes: uint8 [65536], the class of each character of the Basic Multilingual Plane.
        lowercase: whether to convert ASCII letters to lower case.
    """
    item_kinds, item_ends = np.empty(len(text), np.int8), np.zeros(len(text) + 1, np.int64)
    word_bytes, run_bytes = np.empty(len(text), np.uint8), np.empty(len(text), np.uint8)
    position = num_items = word_size = run_size = 0
    while position < len(text):
        end = position
        all_bits = 0
        while not _is_space(text[end]):
            all_bits |= text[end]
            end += 1
        is_complex = False
        i = position
        while all_bits >= 0x80 and i < end and not is_complex:
            a = np.int64(text[i])
            code_point = _code_point(a, np.int64(text[min(i + 1, end)]), np.int64(text[min(i + 2, end)]))
            is_complex = code_point < 0 or character_classes[code_point] == COMPLEX
            i += _width(a)
        if is_complex:
            for i in range(position, end):
                run_bytes[run_size] = text[i]
                run_size += 1
            run_bytes[run_size] = LINE_FEED
            run_size += 1
            item_kinds[num_items] = RUN_ITEM
            num_items += 1
            item_ends[num_items] = word_size
            is_nonblank = True
            position = end
        open_class = SPACE  # the class of the characters of the item that is not finished, or SPACE without one
        while position <= end:  # the white space behind the run finishes its last item
            a = np.int64(text[position])
            code_point, width = a, 1
            if a >= 0x80:
                code_point = _code_point(a, np.int64(text[position + 1]), np.int64(text[min(position + 2, end)]))
                width = _width(a)
            character_class = character_classes[code_point]
            if character_class in (DROPPED, DROPPED_SPACE):
                is_nonblank |= character_class == DROPPED
                position += width
                continue
            if open_class != SPACE and (open_class == PUNCTUATION or open_class != character_class):
                item_kinds[num_items] = WORD_ITEM
                if open_class == HAN:
                    run_bytes[run_size] = LINE_FEED
                    run_size += 1
                    item_kinds[num_items] = HAN_ITEM
                num_items += 1
                item_ends[num_items] = word_size
            open_class = character_class
            if character_class == SPACE:
                position += width
                continue
            is_nonblank = True
            if a < 0x80 and character_class == LETTER:
                # The most frequent case. White space follows the run, so that the loop ends there at the latest.
                while a < 0x80 and character_classes[a] == LETTER:
                    word_bytes[word_size] = a + 32 if lowercase and 65 <= a <= 90 else a
                    word_size += 1
                    position += 1
                    a = np.int64(text[position])
                continue
            for i in range(position, position + width):
                if character_class == HAN:
                    run_bytes[run_size] = text[i]
                    run_size += 1
                else:
                    word_bytes[word_size] = text[i]
                    word_size += 1
            position += width
        if text[end] == LINE_FEED:
            item_kinds[num_items] = LINE_END if is_nonblank else DOCUMENT_END
            num_items += 1
            item_ends[num_items] = word_size
            is_nonblank = False
    items = Items(item_kinds[:num_items], word_bytes, item_ends[: num_items + 1], run_bytes[:run_size])
    return items, is_nonblank


@numba.njit(cache=True, nogil=True)
def insert_run_words(stream: Int32s, item_kinds: Int8s, words: Int32s) -> Int32s:
    """Return the stream with the words of each run in place of its item.

    `words` has the word IDs of all runs, and a negative number after those of each run.
    """
    out = np.empty(len(stream) + len(words), np.int32)
    filled = next_word = 0
    for i in range(len(stream)):
        if item_kinds[i] <= WORD_ITEM:
            out[filled] = stream[i]
            filled += 1
            continue
        while words[next_word] >= 0:
            out[filled] = words[next_word]
            filled += 1
            next_word += 1
        next_word += 1
    return out[:filled]
