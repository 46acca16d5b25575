"""Cutting a line of words into units: lexicon n-grams and single words, in as few segments as possible."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.tables.trie import NO_SEQUENCE, Trie, edge_key, find_slot
from reader.tokenization.word_kernel import DOCUMENT_END

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Units(NamedTuple):
    """What lines of words were cut into.

    units: int32 [n], identities; starts: int64 [lines + 1], where each line's begin; documents: int64, where in
    `units` a document ends.
    """

    units: Int32s
    starts: Int64s
    documents: Int64s


@numba.njit(cache=True, nogil=True)
def cut_lines(stream: Int32s, trie: Trie, piece_offsets: Int64s, pieces: Int32s, num_tokens: int) -> Units:
    """Cut lines of words into units: a matched n-gram is one unit, a single word one unit per piece.

    Of all ways to cut a line into n-grams and single words it is one with the fewest segments; of several such, the
    one whose first segment is longest, then its second, and so on (paper, section 3.2 "N-gram boundary extraction").

    Args:
        stream: int32, word ids, and where a line ends LINE_END or DOCUMENT_END (see splitting.py).
        piece_offsets, pieces: the token ids of word w are pieces[piece_offsets[w]:piece_offsets[w + 1]].
        num_tokens: F; n-gram i has identity F + i.
    """
    keys, children, ngram_of, goes_on, num_words = trie
    most = lines = documents = longest = start = 0
    for i in range(len(stream)):
        word = stream[i]
        if word >= 0:
            most += piece_offsets[word + 1] - piece_offsets[word]
        else:
            lines += 1
            documents += word == DOCUMENT_END
            longest = max(longest, i - start)
            start = i + 1
    units = np.empty(most, np.int32)
    starts = np.zeros(lines + 1, np.int64)
    document_ends = np.empty(documents, np.int64)
    # From each word of a line on: the fewest segments, the words of the first of them, and its n-gram or NO_SEQUENCE.
    best = np.empty(longest + 1, np.int32)
    length = np.empty(longest, np.int32)
    ngram = np.empty(longest, np.int32)
    filled = line = documents = start = 0
    for end in range(len(stream)):
        if stream[end] >= 0:
            continue
        n = end - start
        best[n] = 0
        for i in range(n - 1, -1, -1):
            node = np.int64(stream[start + i])
            best[i] = best[i + 1] + 1
            length[i] = 1
            ngram[i] = ngram_of[node] if node < num_words else NO_SEQUENCE
            last = i + 1
            while node < num_words or last > i + 1:
                if not goes_on[node] or last == n:
                    break
                word = np.int64(stream[start + last])
                if word >= num_words:
                    break
                at = find_slot(keys, edge_key(node, word))
                if keys[at] == 0:
                    break
                node = np.int64(children[at])
                last += 1
                # "<=": an equally short cut with a longer first segment wins.
                if ngram_of[node] != NO_SEQUENCE and best[last] + 1 <= best[i]:
                    best[i] = best[last] + 1
                    length[i] = last - i
                    ngram[i] = ngram_of[node]
        i = 0
        while i < n:
            if ngram[i] != NO_SEQUENCE:
                units[filled] = num_tokens + ngram[i]
                filled += 1
            else:
                word = np.int64(stream[start + i])
                for p in range(piece_offsets[word], piece_offsets[word + 1]):
                    units[filled] = pieces[p]
                    filled += 1
            i += length[i]
        line += 1
        starts[line] = filled
        if stream[end] == DOCUMENT_END:
            document_ends[documents] = filled
            documents += 1
        start = end + 1
    return Units(units[:filled].copy(), starts, document_ends)
