"""jieba's way of cutting Han characters into words, compiled: the same words, at many times its speed.

The dictionary and the probabilities are jieba's own, and so is the order in which numbers are added and equal ones
preferred; otherwise near ties would be cut differently. jieba takes the likeliest path through the words of its
dictionary; where that leaves single characters in a row, a hidden Markov model finds words among them.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.tables.string_table import Strings, chosen
from reader.tables.trie import NOTHING, Trie, build_trie, edge_key, slot_of

UInt8s = npt.NDArray[np.uint8]
Float64s = npt.NDArray[np.float64]

# The characters that jieba makes words of; any other stands alone.
FIRST, LAST = 0x4E00, 0x9FD5
STATES = "BMES"  # a character begins a word, is in its middle, ends it, or is one alone
BEGIN, MIDDLE, END, SINGLE = range(4)
LINE_FEED = 10


class Tables(NamedTuple):
    """What is known of words and characters.

    trie: the dictionary, over characters numbered from FIRST on.
    weights: float64 [words], ln of each word's probability.
    unknown: that of a character that begins no word of the dictionary.
    start: float64 [4], ln P(state) at the beginning; change: float64 [4, 4], ln P(to | from); emit: float64
    [characters, 4], ln P(character | state).
    """

    trie: Trie
    weights: Float64s
    unknown: float
    start: Float64s
    change: Float64s
    emit: Float64s


@cache
def load_tables() -> Tables:
    """Those of the jieba that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a module that jieba imports
        import jieba
        from jieba import finalseg

    with jieba.dt.get_dict_file() as file:
        fields = file.read().decode("utf-8").split()
    # A word, its count, and its part of speech, by turns.
    words, (counts, count_of) = fields[::3], np.unique([*map(int, fields[1::3])], return_inverse=True)
    log_total = math.log(counts[count_of].sum())
    weights = np.array([math.log(max(1, count)) - log_total for count in counts])[count_of]
    codes = np.frombuffer("".join(words).encode("utf-32-le"), np.int32)
    all_words = Strings(np.cumsum([0, *map(len, words)]), codes - FIRST)
    # Others are never looked up; to jieba a word with a count of 0 is none.
    known = np.logical_and.reduceat((codes >= FIRST) & (codes <= LAST), all_words.offsets[:-1])
    kept = np.flatnonzero(known & (counts[count_of] > 0))
    offsets, characters = chosen(all_words, kept)
    emit = np.full((LAST - FIRST + 1, len(STATES)), finalseg.MIN_FLOAT)
    for state, name in enumerate(STATES):
        for character, value in finalseg.emit_P[name].items():
            if FIRST <= ord(character) <= LAST:
                emit[ord(character) - FIRST, state] = value
    return Tables(
        trie=build_trie(characters, offsets, LAST - FIRST + 1),
        weights=weights[kept],
        unknown=0.0 - log_total,
        start=np.array([finalseg.start_P[state] for state in STATES]),
        change=np.array([[finalseg.trans_P[a].get(b, finalseg.MIN_FLOAT) for b in STATES] for a in STATES]),
        emit=emit,
    )


@numba.njit(cache=True, nogil=True)
def cut_runs(text: UInt8s, tables: Tables) -> Strings:
    """The words of runs of Han characters, in UTF-8, each run followed by a line feed; "" where a run ends."""
    trie, weights, unknown, start, change, emit = tables
    keys, children, word_at, goes_on, _ = trie
    letters, ends = np.empty(len(text), np.uint8), np.zeros(len(text) + 1, np.int64)
    room = len(text) // 2 + 2
    # Of the characters in a row that are being cut: numbers, and where in `letters` each begins and the last ends.
    numbers, places = np.empty(room, np.int32), np.empty(room, np.int64)
    # From each on: ln P of the likeliest path, and where the first word of it ends. Of each, the state before it.
    best, word_end = np.empty(room), np.empty(room, np.int32)
    before, states = np.empty((room, 4), np.int8), np.empty(room, np.int8)
    here = np.empty(4)
    found = filled = n = at = 0
    while at < len(text):
        byte = np.int64(text[at])
        code, width = byte, 1
        if byte >= 0xF0:
            code, width = -1, 4
        elif byte >= 0xE0:
            code = (byte & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | (np.int64(text[at + 2]) & 0x3F)
            width = 3
        is_known = FIRST <= code <= LAST
        if is_known:
            numbers[n], places[n] = code - FIRST, filled
            n += 1
        if byte != LINE_FEED:
            for j in range(at, at + width):
                letters[filled] = text[j]
                filled += 1
        at += width
        if is_known and at < len(text):
            continue

        # The likeliest path through the dictionary, from the last character back; of equal ones the longer word.
        places[n] = filled if is_known or byte == LINE_FEED else filled - width
        best[n] = 0.0
        for i in range(n - 1, -1, -1):
            best[i], word_end[i] = -np.inf, 0
            node, last = np.int64(numbers[i]), i + 1
            while True:
                word = word_at[node]
                if word != NOTHING and weights[word] + best[last] >= best[i]:
                    best[i], word_end[i] = weights[word] + best[last], last
                if last == n or not goes_on[node]:
                    break
                slot = slot_of(keys, edge_key(node, np.int64(numbers[last])))
                if keys[slot] == 0:
                    break
                node = np.int64(children[slot])
                last += 1
            if word_end[i] == 0:
                best[i], word_end[i] = unknown + best[i + 1], i + 1

        # Along it: single characters in a row are gathered, from `first` on, until a longer word comes.
        i = first = 0
        while n:
            if i < n and word_end[i] == i + 1:
                i += 1
                continue
            alone = i - first
            is_word = alone < 2
            if not is_word:
                # Characters that the path has parted though together they are in the dictionary stay so.
                node, last = np.int64(numbers[first]), first + 1
                while last < i and goes_on[node]:
                    slot = slot_of(keys, edge_key(node, np.int64(numbers[last])))
                    if keys[slot] == 0:
                        break
                    node = np.int64(children[slot])
                    last += 1
                is_word = last == i and word_at[node] != NOTHING
            if is_word:
                for j in range(first, i):
                    found += 1
                    ends[found] = places[j + 1]
            else:
                # Viterbi. Of equals, jieba takes the state whose letter comes later: S, M, E, B.
                for state in range(4):
                    here[state] = start[state] + emit[numbers[first], state]
                for j in range(first + 1, i):
                    c = numbers[j]
                    from_end, from_single = here[2] + change[2, 0] + emit[c, 0], here[3] + change[3, 0] + emit[c, 0]
                    next_0, before[j, 0] = (from_single, 3) if from_single >= from_end else (from_end, 2)
                    from_begin, from_middle = here[0] + change[0, 1] + emit[c, 1], here[1] + change[1, 1] + emit[c, 1]
                    next_1, before[j, 1] = (from_middle, 1) if from_middle >= from_begin else (from_begin, 0)
                    from_begin, from_middle = here[0] + change[0, 2] + emit[c, 2], here[1] + change[1, 2] + emit[c, 2]
                    next_2, before[j, 2] = (from_middle, 1) if from_middle >= from_begin else (from_begin, 0)
                    from_end, from_single = here[2] + change[2, 3] + emit[c, 3], here[3] + change[3, 3] + emit[c, 3]
                    next_3, before[j, 3] = (from_single, 3) if from_single >= from_end else (from_end, 2)
                    here[0], here[1], here[2], here[3] = next_0, next_1, next_2, next_3
                states[i - 1] = SINGLE if here[3] >= here[2] else END
                for j in range(i - 1, first, -1):
                    states[j - 1] = before[j, states[j]]
                for j in range(first, i):
                    if states[j] == END or states[j] == SINGLE:
                        found += 1
                        ends[found] = places[j + 1]
            if i == n:
                break
            found += 1
            ends[found] = places[word_end[i]]
            i = first = np.int64(word_end[i])
        n = 0
        if not is_known:
            # A character that stands alone, or the end of a run.
            found += 1
            ends[found] = filled
    return Strings(ends[: found + 1].copy(), letters)
