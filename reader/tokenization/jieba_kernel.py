"""A compiled implementation of jieba's word segmentation. It gives the same words as jieba, many times faster.

The dictionary and the probabilities are those of jieba. Numbers are added in the same order as in jieba, and ties are
resolved in the same way; otherwise the result would differ where two alternatives are almost equal. jieba selects the
most probable path through the words of its dictionary. Where this path contains consecutive single characters, a hidden
Markov model (HMM) combines them into words.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.system.compiled import numba
from reader.tables.string_table import PackedStrings, take_strings
from reader.tables.trie import NO_SEQUENCE, Trie, build_trie, edge_key, find_slot

UInt8s = npt.NDArray[np.uint8]
Float64s = npt.NDArray[np.float64]

# The range of characters that jieba combines into words. Every other character is a word of its own.
FIRST_CODE, LAST_CODE = 0x4E00, 0x9FD5
STATES = "BMES"  # HMM states: the character begins a word, is inside it, ends it, or is a word of its own
BEGIN, MIDDLE, END, SINGLE = range(4)
LINE_FEED = 10


class Tables(NamedTuple):
    """The dictionary, and the parameters of the hidden Markov model.

    trie: the words of the dictionary. The symbol of a character is its code point minus FIRST_CODE.
    weights: float64 [words], the natural logarithm of the probability of each word.
    unknown_weight: the weight of a single character from which no dictionary word starts.
    initial: float64 [4], ln P(state) at the beginning; transition: float64 [4, 4], ln P(to | from) at [from, to];
    emission: float64 [characters, 4], ln P(character | state).
    """

    trie: Trie
    weights: Float64s
    unknown_weight: float
    initial: Float64s
    transition: Float64s
    emission: Float64s


@cache
def load_tables() -> Tables:
    """Return the tables of the installed version of jieba."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a module that jieba imports causes a warning
        import jieba
        from jieba import finalseg

    with jieba.dt.get_dict_file() as file:
        fields = file.read().decode("utf-8").split()
    # The fields are: word, count, part of speech, word, count, ...
    words, (counts, count_ids) = fields[::3], np.unique([*map(int, fields[1::3])], return_inverse=True)
    log_total = math.log(counts[count_ids].sum())
    weights = np.array([math.log(max(1, count)) - log_total for count in counts])[count_ids]
    codes = np.frombuffer("".join(words).encode("utf-32-le"), np.int32)
    all_words = PackedStrings(np.cumsum([0, *map(len, words)]), codes - FIRST_CODE)
    # Words with other characters are never looked up. jieba ignores words with a count of 0.
    is_in_range = np.logical_and.reduceat((codes >= FIRST_CODE) & (codes <= LAST_CODE), all_words.offsets[:-1])
    kept = np.flatnonzero(is_in_range & (counts[count_ids] > 0))
    offsets, characters = take_strings(all_words, kept)
    emission = np.full((LAST_CODE - FIRST_CODE + 1, len(STATES)), finalseg.MIN_FLOAT)
    for state, name in enumerate(STATES):
        for character, value in finalseg.emit_P[name].items():
            if FIRST_CODE <= ord(character) <= LAST_CODE:
                emission[ord(character) - FIRST_CODE, state] = value
    return Tables(
        trie=build_trie(characters, offsets, LAST_CODE - FIRST_CODE + 1),
        weights=weights[kept],
        unknown_weight=0.0 - log_total,
        initial=np.array([finalseg.start_P[state] for state in STATES]),
        transition=np.array([[finalseg.trans_P[a].get(b, finalseg.MIN_FLOAT) for b in STATES] for a in STATES]),
        emission=emission,
    )


@numba.njit(cache=True, nogil=True)
def cut_runs(text: UInt8s, tables: Tables) -> PackedStrings:
    """Return the words of several runs of Han characters, with "" after the last word of each run.

    `text` is uint8: the runs in UTF-8, each followed by a line feed.
    """
    trie, weights, unknown_weight, initial, transition, emission = tables
    keys, children, word_ids, has_children, _ = trie
    out_bytes, word_ends = np.empty(len(text), np.uint8), np.zeros(len(text) + 1, np.int64)
    capacity = len(text) // 2 + 2
    # For the sequence of known characters that is being segmented: their symbols, and the offsets in `out_bytes` at
    # which each character begins and the last one ends.
    symbols, byte_positions = np.empty(capacity, np.int32), np.empty(capacity, np.int64)
    # For each character: ln P of the most probable path from there to the end, and the end of the first word on it.
    # For the HMM: the best previous state for each state of each character, and the state of each character.
    best_score, first_word_end = np.empty(capacity), np.empty(capacity, np.int32)
    back_pointers, states = np.empty((capacity, 4), np.int8), np.empty(capacity, np.int8)
    scores = np.empty(4)
    num_words = num_bytes = num_symbols = position = 0
    while position < len(text):
        byte = np.int64(text[position])
        code_point, width = byte, 1
        if byte >= 0xF0:
            code_point, width = -1, 4
        elif byte >= 0xE0:
            second, third = np.int64(text[position + 1]) & 0x3F, np.int64(text[position + 2]) & 0x3F
            code_point, width = (byte & 0x0F) << 12 | second << 6 | third, 3
        is_known = FIRST_CODE <= code_point <= LAST_CODE
        if is_known:
            symbols[num_symbols], byte_positions[num_symbols] = code_point - FIRST_CODE, num_bytes
            num_symbols += 1
        if byte != LINE_FEED:
            for j in range(position, position + width):
                out_bytes[num_bytes] = text[j]
                num_bytes += 1
        position += width
        if is_known and position < len(text):
            continue

        # Find the most probable path through the dictionary, from the last character backwards. If two paths are
        # equally probable, the one with the longer first word is preferred.
        byte_positions[num_symbols] = num_bytes if is_known or byte == LINE_FEED else num_bytes - width
        best_score[num_symbols] = 0.0
        for i in range(num_symbols - 1, -1, -1):
            best_score[i], first_word_end[i] = -np.inf, 0
            node, end = np.int64(symbols[i]), i + 1
            while True:
                word_id = word_ids[node]
                if word_id != NO_SEQUENCE and weights[word_id] + best_score[end] >= best_score[i]:
                    best_score[i], first_word_end[i] = weights[word_id] + best_score[end], end
                if end == num_symbols or not has_children[node]:
                    break
                slot = find_slot(keys, edge_key(node, np.int64(symbols[end])))
                if keys[slot] == 0:
                    break
                node = np.int64(children[slot])
                end += 1
            if first_word_end[i] == 0:
                best_score[i], first_word_end[i] = unknown_weight + best_score[i + 1], i + 1

        # Follow the path. Collect consecutive single characters from `singles_start` on, until a longer word follows.
        i = singles_start = 0
        while num_symbols:
            if i < num_symbols and first_word_end[i] == i + 1:
                i += 1
                continue
            num_singles = i - singles_start
            is_word = num_singles < 2
            if not is_word:
                # If the single characters together form a dictionary word, they still remain separate words, because
                # the path prefers them.
                node, end = np.int64(symbols[singles_start]), singles_start + 1
                while end < i and has_children[node]:
                    slot = find_slot(keys, edge_key(node, np.int64(symbols[end])))
                    if keys[slot] == 0:
                        break
                    node = np.int64(children[slot])
                    end += 1
                is_word = end == i and word_ids[node] != NO_SEQUENCE
            if is_word:
                for j in range(singles_start, i):
                    num_words += 1
                    word_ends[num_words] = byte_positions[j + 1]
            else:
                # The Viterbi algorithm. Among equal scores, jieba prefers the state with the later letter: S, M, E, B.
                for state in range(4):
                    scores[state] = initial[state] + emission[symbols[singles_start], state]
                for j in range(singles_start + 1, i):
                    symbol = symbols[j]
                    from_end = scores[2] + transition[2, 0] + emission[symbol, 0]
                    from_single = scores[3] + transition[3, 0] + emission[symbol, 0]
                    next_0, back_pointers[j, 0] = (from_single, 3) if from_single >= from_end else (from_end, 2)
                    from_begin = scores[0] + transition[0, 1] + emission[symbol, 1]
                    from_middle = scores[1] + transition[1, 1] + emission[symbol, 1]
                    next_1, back_pointers[j, 1] = (from_middle, 1) if from_middle >= from_begin else (from_begin, 0)
                    from_begin = scores[0] + transition[0, 2] + emission[symbol, 2]
                    from_middle = scores[1] + transition[1, 2] + emission[symbol, 2]
                    next_2, back_pointers[j, 2] = (from_middle, 1) if from_middle >= from_begin else (from_begin, 0)
                    from_end = scores[2] + transition[2, 3] + emission[symbol, 3]
                    from_single = scores[3] + transition[3, 3] + emission[symbol, 3]
                    next_3, back_pointers[j, 3] = (from_single, 3) if from_single >= from_end else (from_end, 2)
                    scores[0], scores[1], scores[2], scores[3] = next_0, next_1, next_2, next_3
                states[i - 1] = SINGLE if scores[3] >= scores[2] else END
                for j in range(i - 1, singles_start, -1):
                    states[j - 1] = back_pointers[j, states[j]]
                for j in range(singles_start, i):
                    if states[j] == END or states[j] == SINGLE:
                        num_words += 1
                        word_ends[num_words] = byte_positions[j + 1]
            if i == num_symbols:
                break
            num_words += 1
            word_ends[num_words] = byte_positions[first_word_end[i]]
            i = singles_start = np.int64(first_word_end[i])
        num_symbols = 0
        if not is_known:
            # Emit the unknown character as a word of its own, or "" at the end of a run.
            num_words += 1
            word_ends[num_words] = num_bytes
    return PackedStrings(word_ends[: num_words + 1].copy(), out_bytes)
