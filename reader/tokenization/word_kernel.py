"""The compiled part of splitting: one pass over bytes. splitting.py says what for."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

UInt8s = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

# In a stream of words: where a line ends, and where a blank one does, which also ends a document.
LINE_END, DOCUMENT_END = -1, -2
# In what `split` finds, beside these two: a word; a run that the rule has to split; Han characters to be segmented.
WORD, RUN, HAN_RUN = 0, 1, 2

# What the rule makes of a character.
SPACE, LETTER, SINGLE, HAN, DROPPED, DROPPED_SPACE, COMPLEX = range(7)
# What becomes of Han characters: each is a word, those in a row are a word, or those in a row go to a segmenter.
EACH, WHOLE, SEGMENT = 0, 1, 2

LINE_FEED = 10


class Runs(NamedTuple):
    """The words of several runs: those of run i are words[offsets[i]:offsets[i + 1]].

    words: int32; offsets: int64 [runs + 1].
    """

    words: Int32s
    offsets: Int64s


@numba.njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 9 or byte == 13


@numba.njit(cache=True, nogil=True)
def _width(byte: int) -> int:
    """Bytes of the character that begins with this one, if it is of the first plane."""
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3


@numba.njit(cache=True, nogil=True)
def _code_point(a: int, b: int, c: int) -> int:
    """The code point that bytes begin with; -1 if it is not of the first plane, or they are not UTF-8 at all."""
    if a < 0x80:
        return a
    if 0xC2 <= a < 0xE0 and b & 0xC0 == 0x80:
        return (a & 0x1F) << 6 | (b & 0x3F)
    if 0xE0 <= a < 0xF0 and b & 0xC0 == 0x80 and c & 0xC0 == 0x80:
        code = (a & 0x0F) << 12 | (b & 0x3F) << 6 | (c & 0x3F)
        if code >= 0x800 and not 0xD800 <= code < 0xE000:
            return code
    return -1


@numba.njit(cache=True, nogil=True)
def split(
    text: UInt8s,
    state: Int64s,
    kinds: UInt8s,
    lowercase: bool,
    han_mode: int,
    letters: UInt8s,
    ends: Int64s,
    what: Int8s,
    run_letters: UInt8s,
    run_ends: Int64s,
    han_letters: UInt8s,
) -> tuple[int, int, int, int]:
    """Split `text`, which ends with a line feed, into words from state[0] on until it or the room ends.

    Returns the number of items, of runs among them, the bytes of Han runs, and the bytes of the run that no longer
    found room (0 at the text's end). Words and line ends are items; a line end has no letters, a run has them apart.
    """
    at, seen = state[0], state[1]
    room = len(what)
    items = runs = han = size = run_size = used = 0
    longest = 0
    while at < len(text):
        byte = text[at]
        if _is_space(byte):
            at += 1
            if byte == LINE_FEED:
                what[items] = LINE_END if seen else DOCUMENT_END
                items += 1
                ends[items] = size
                used += 1
                seen = 0
                if used >= room:
                    longest = 1
                    break
            continue
        last = at
        every = 0
        while not _is_space(text[last]):
            every |= text[last]
            last += 1
        # Of as many bytes as were read come at most as many items and letters.
        if used + last - at >= room:
            longest = last - at
            break
        used += last - at
        if every >= 0x80:
            is_complex = False
            i = at
            while i < last and not is_complex:
                a = np.int64(text[i])
                code = _code_point(a, np.int64(text[min(i + 1, last)]), np.int64(text[min(i + 2, last)]))
                is_complex = code < 0 or kinds[code] == COMPLEX
                i += _width(a)
            if is_complex:
                for i in range(at, last):
                    run_letters[run_size] = text[i]
                    run_size += 1
                runs += 1
                run_ends[runs] = run_size
                what[items] = RUN
                items += 1
                ends[items] = size
                seen = 1
                at = last
                continue
        in_word = in_han = False
        while at < last:
            a = np.int64(text[at])
            if a < 0x80 and kinds[a] == LETTER and not in_han:
                # Most of most text: ASCII letters in a row. The white space behind the run ends them at the latest.
                while a < 0x80 and kinds[a] == LETTER:
                    letters[size] = a + 32 if lowercase and 65 <= a <= 90 else a
                    size += 1
                    at += 1
                    a = np.int64(text[at])
                in_word = True
                seen = 1
                continue
            if a < 0x80:
                code, width = a, 1
            else:
                code = _code_point(a, np.int64(text[at + 1]), np.int64(text[min(at + 2, last)]))
                width = _width(a)
            kind = kinds[code]
            if kind in (DROPPED, DROPPED_SPACE):
                seen |= kind == DROPPED
                at += width
                continue
            if in_word and kind != LETTER:
                what[items] = WORD
                items += 1
                ends[items] = size
                in_word = False
            if in_han and kind != HAN:
                if han_mode == SEGMENT:
                    han_letters[han] = LINE_FEED
                    han += 1
                    what[items] = HAN_RUN
                else:
                    what[items] = WORD
                items += 1
                ends[items] = size
                in_han = False
            seen |= kind != SPACE
            if kind == HAN and han_mode == SEGMENT:
                for i in range(width):
                    han_letters[han] = text[at + i]
                    han += 1
                in_han = True
            elif kind != SPACE:
                if width == 1:
                    letters[size] = code + 32 if lowercase and 65 <= code <= 90 else code
                    size += 1
                else:
                    for i in range(width):
                        letters[size] = text[at + i]
                        size += 1
                if kind == LETTER:
                    in_word = True
                elif kind == HAN and han_mode == WHOLE:
                    in_han = True
                else:
                    what[items] = WORD
                    items += 1
                    ends[items] = size
            at += width
        if in_word or in_han:
            what[items] = WORD
            if in_han and han_mode == SEGMENT:
                han_letters[han] = LINE_FEED
                han += 1
                what[items] = HAN_RUN
            items += 1
            ends[items] = size
    state[0], state[1] = at, seen
    return items, runs, han, longest


@numba.njit(cache=True, nogil=True)
def expand(stream: Int32s, what: Int8s, chosen: Int32s, runs: Runs, han_runs: Runs) -> Int32s:
    """Put the words of runs in their places: of the i-th RUN those of run chosen[i], of the i-th HAN_RUN its own."""
    run_words, run_offsets = runs
    han_words, han_offsets = han_runs
    total = len(stream) - len(chosen) - (len(han_offsets) - 1) + len(han_words)
    for run in chosen:
        total += run_offsets[run + 1] - run_offsets[run]
    out = np.empty(total, np.int32)
    filled = next_run = next_han = 0
    for i in range(len(stream)):
        if what[i] == RUN:
            run = chosen[next_run]
            next_run += 1
            for j in range(run_offsets[run], run_offsets[run + 1]):
                out[filled] = run_words[j]
                filled += 1
        elif what[i] == HAN_RUN:
            for j in range(han_offsets[next_han], han_offsets[next_han + 1]):
                out[filled] = han_words[j]
                filled += 1
            next_han += 1
        else:
            out[filled] = stream[i]
            filled += 1
    return out
