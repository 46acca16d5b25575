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


class RunWords(NamedTuple):
    """The word IDs of several runs: those of run i are words[offsets[i]:offsets[i + 1]].

    words: int32; offsets: int64 [runs + 1].
    """

    words: Int32s
    offsets: Int64s


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
def split_bytes(
    text: UInt8s,
    state: Int64s,
    character_classes: UInt8s,
    lowercase: bool,
    word_bytes: UInt8s,
    item_ends: Int64s,
    item_kinds: Int8s,
    run_bytes: UInt8s,
    run_ends: Int64s,
    han_bytes: UInt8s,
) -> tuple[int, int, int, int]:
    """Split a text into items until the text or the capacity of the output arrays is exhausted.

    Args:
        text: UTF-8; ends with a line feed.
        state: int64 [2], the position of the next byte, and whether the current line is not blank so far. Updated.
        character_classes: uint8 [65536], the class of each character of the Basic Multilingual Plane.
        lowercase: whether to convert ASCII letters to lower case.
        word_bytes, item_ends, item_kinds, run_bytes, run_ends, han_bytes: outputs, see word_index._SplitBuffers.
    Returns:
        The number of items, the number of RUN_ITEMs among them, the number of bytes in `han_bytes`, and why splitting
        stopped: 0 at the end of the text, the number of bytes of the next run if it exceeds the remaining capacity, or
        1 if a line end used up the capacity.
    """
    position, is_nonblank = state[0], state[1]
    capacity = len(item_kinds)
    num_items = num_runs = han_size = word_size = run_size = used_capacity = 0
    next_run_size = 0
    while position < len(text):
        byte = text[position]
        if _is_space(byte):
            position += 1
            if byte == LINE_FEED:
                item_kinds[num_items] = LINE_END if is_nonblank else DOCUMENT_END
                num_items += 1
                item_ends[num_items] = word_size
                used_capacity += 1
                is_nonblank = 0
                if used_capacity >= capacity:
                    next_run_size = 1
                    break
            continue
        end = position
        all_bits = 0
        while not _is_space(text[end]):
            all_bits |= text[end]
            end += 1
        # n bytes of text give at most n items and n bytes of words.
        if used_capacity + end - position >= capacity:
            next_run_size = end - position
            break
        used_capacity += end - position
        if all_bits >= 0x80:
            is_complex = False
            i = position
            while i < end and not is_complex:
                a = np.int64(text[i])
                code_point = _code_point(a, np.int64(text[min(i + 1, end)]), np.int64(text[min(i + 2, end)]))
                is_complex = code_point < 0 or character_classes[code_point] == COMPLEX
                i += _width(a)
            if is_complex:
                for i in range(position, end):
                    run_bytes[run_size] = text[i]
                    run_size += 1
                num_runs += 1
                run_ends[num_runs] = run_size
                item_kinds[num_items] = RUN_ITEM
                num_items += 1
                item_ends[num_items] = word_size
                is_nonblank = 1
                position = end
                continue
        in_word = in_han = False
        while position < end:
            a = np.int64(text[position])
            if a < 0x80 and character_classes[a] == LETTER and not in_han:
                # Fast path for consecutive ASCII letters, the most frequent case. White space follows the run, so that
                # the loop ends there at the latest.
                while a < 0x80 and character_classes[a] == LETTER:
                    word_bytes[word_size] = a + 32 if lowercase and 65 <= a <= 90 else a
                    word_size += 1
                    position += 1
                    a = np.int64(text[position])
                in_word = True
                is_nonblank = 1
                continue
            if a < 0x80:
                code_point, width = a, 1
            else:
                code_point = _code_point(a, np.int64(text[position + 1]), np.int64(text[min(position + 2, end)]))
                width = _width(a)
            character_class = character_classes[code_point]
            if character_class in (DROPPED, DROPPED_SPACE):
                is_nonblank |= character_class == DROPPED
                position += width
                continue
            if in_word and character_class != LETTER:
                item_kinds[num_items] = WORD_ITEM
                num_items += 1
                item_ends[num_items] = word_size
                in_word = False
            if in_han and character_class != HAN:
                han_bytes[han_size] = LINE_FEED
                han_size += 1
                item_kinds[num_items] = HAN_ITEM
                num_items += 1
                item_ends[num_items] = word_size
                in_han = False
            is_nonblank |= character_class != SPACE
            if character_class == HAN:
                for i in range(width):
                    han_bytes[han_size] = text[position + i]
                    han_size += 1
                in_han = True
            elif character_class != SPACE:
                if width == 1:
                    word_bytes[word_size] = code_point + 32 if lowercase and 65 <= code_point <= 90 else code_point
                    word_size += 1
                else:
                    for i in range(width):
                        word_bytes[word_size] = text[position + i]
                        word_size += 1
                if character_class == LETTER:
                    in_word = True
                else:
                    item_kinds[num_items] = WORD_ITEM
                    num_items += 1
                    item_ends[num_items] = word_size
            position += width
        if in_word or in_han:
            item_kinds[num_items] = WORD_ITEM
            if in_han:
                han_bytes[han_size] = LINE_FEED
                han_size += 1
                item_kinds[num_items] = HAN_ITEM
            num_items += 1
            item_ends[num_items] = word_size
    state[0], state[1] = position, is_nonblank
    return num_items, num_runs, han_size, next_run_size


@numba.njit(cache=True, nogil=True)
def insert_run_words(stream: Int32s, item_kinds: Int8s, run_words: RunWords, han_run_words: RunWords) -> Int32s:
    """Return the stream with the words of each run in place of its item.

    The i-th RUN_ITEM is replaced by the words of the i-th run, the i-th HAN_ITEM by those of the i-th run of Han
    characters.
    """
    words, offsets = run_words
    han_words, han_offsets = han_run_words
    out = np.empty(len(stream) - (len(offsets) - 1) - (len(han_offsets) - 1) + len(words) + len(han_words), np.int32)
    filled = next_run = next_han = 0
    for i in range(len(stream)):
        if item_kinds[i] == RUN_ITEM:
            for j in range(offsets[next_run], offsets[next_run + 1]):
                out[filled] = words[j]
                filled += 1
            next_run += 1
        elif item_kinds[i] == HAN_ITEM:
            for j in range(han_offsets[next_han], han_offsets[next_han + 1]):
                out[filled] = han_words[j]
                filled += 1
            next_han += 1
        else:
            out[filled] = stream[i]
            filled += 1
    return out
