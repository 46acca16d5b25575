"""Cutting a line of words into units: lexicon n-grams and single words, in as few segments as possible."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.hashing import first_slot
from reader.split_kernel import DOCUMENT_END

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

NO_NGRAM = -1


class Trie(NamedTuple):
    """The lexicon as a prefix tree over word ids, its edges in one open-addressing hash table.

    A node is a prefix of some n-gram. Node w (w < num_words) is the prefix of the single word w; a word with a
    number from num_words on is in no n-gram.

    keys: uint64 [slots], (node << 32 | word) + 1, 0 where free; children: int32 [slots].
    ngram: int32 [nodes], the n-gram that ends at a node, or NO_NGRAM; goes_on: bool [nodes], whether longer ones do.
    """

    keys: UInt64s
    children: Int32s
    ngram: Int32s
    goes_on: Bools
    num_words: int


def build_trie(ngrams: list[tuple[int, ...]], num_words: int) -> Trie:
    """The prefix tree of n-grams (tuples of word ids below `num_words`); n-gram i is ngrams[i]."""
    edges: dict[tuple[int, int], int] = {}
    ends: dict[int, int] = {}
    nodes = num_words
    for index, ngram in enumerate(ngrams):
        node = ngram[0]
        for word in ngram[1:]:
            child = edges.setdefault((node, word), nodes)
            nodes += child == nodes
            node = child
        ends[node] = index
    slots = 1 << max(4, (2 * len(edges)).bit_length())
    keys = np.zeros(slots, np.uint64)
    children = np.zeros(slots, np.int32)
    edge_ends = np.fromiter((x for edge in edges for x in edge), np.int64, 2 * len(edges)).reshape(-1, 2)
    _insert(keys, children, edge_ends, np.fromiter(edges.values(), np.int32, len(edges)))
    ngram_of = np.full(nodes, NO_NGRAM, np.int32)
    ngram_of[list(ends)] = list(ends.values())
    goes_on = np.zeros(nodes, bool)
    goes_on[edge_ends[:, 0]] = True
    return Trie(keys, children, ngram_of, goes_on, num_words)


@numba.njit(cache=True, nogil=True)
def _key(node: int, word: int) -> np.uint64:
    return (np.uint64(node) << np.uint64(32) | np.uint64(word)) + np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _insert(keys: UInt64s, children: Int32s, edges: Int64s, targets: Int32s) -> None:
    for i in range(len(targets)):
        key = _key(edges[i, 0], edges[i, 1])
        at = first_slot(key, len(keys))
        while keys[at] != 0:
            at = (at + 1) & (len(keys) - 1)
        keys[at] = key
        children[at] = targets[i]


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
    slots = len(keys)
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
    # From each word of a line on: the fewest segments, the words of the first of them, and its n-gram or NO_NGRAM.
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
            ngram[i] = ngram_of[node] if node < num_words else NO_NGRAM
            last = i + 1
            while node < num_words or last > i + 1:
                if not goes_on[node] or last == n:
                    break
                word = np.int64(stream[start + last])
                if word >= num_words:
                    break
                key = _key(node, word)
                at = first_slot(key, slots)
                while keys[at] != key and keys[at] != 0:
                    at = (at + 1) & (slots - 1)
                if keys[at] == 0:
                    break
                node = np.int64(children[at])
                last += 1
                # "<=": an equally short cut with a longer first segment wins.
                if ngram_of[node] != NO_NGRAM and best[last] + 1 <= best[i]:
                    best[i] = best[last] + 1
                    length[i] = last - i
                    ngram[i] = ngram_of[node]
        i = 0
        while i < n:
            if ngram[i] != NO_NGRAM:
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
