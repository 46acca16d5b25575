"""Cutting a line of words into units: lexicon n-grams and single words, in as few segments as possible."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.counting import NO_WORD

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

NO_NGRAM = -1


class Trie(NamedTuple):
    """The lexicon as a prefix tree over word ids, its edges in one open-addressing hash table.

    A node is a prefix of some n-gram. Node w (w < words) is the prefix of the single word w.

    keys: uint64 [slots], (node << 32 | word) + 1, 0 where free; children: int32 [slots].
    ngram: int32 [nodes], the n-gram that ends at a node, or NO_NGRAM.
    """

    keys: UInt64s
    children: Int32s
    ngram: Int32s
    max_order: int


def build_trie(ngrams: list[tuple[int, ...]], num_words: int) -> Trie:
    """The prefix tree of n-grams (tuples of two or more word ids below `num_words`); n-gram i is ngrams[i]."""
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
    return Trie(keys, children, ngram_of, max(map(len, ngrams), default=1))


@numba.njit(cache=True, nogil=True)
def _key(node: int, word: int) -> np.uint64:
    return (np.uint64(node) << np.uint64(32) | np.uint64(word)) + np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _slot(keys: UInt64s, key: np.uint64) -> int:
    """The slot that holds `key`, or the free one where it belongs (Fibonacci hashing, linear probing)."""
    mask = np.uint64(len(keys) - 1)
    hashed = key * np.uint64(0x9E3779B97F4A7C15)
    at = (hashed ^ (hashed >> np.uint64(32))) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@numba.njit(cache=True, nogil=True)
def _insert(keys: UInt64s, children: Int32s, edges: Int64s, targets: Int32s) -> None:
    for i in range(len(targets)):
        key = _key(edges[i, 0], edges[i, 1])
        at = _slot(keys, key)
        keys[at] = key
        children[at] = targets[i]


@numba.njit(cache=True, nogil=True)
def fewest_segments(words: Int32s, trie: Trie, lengths: Int32s, ngrams: Int32s) -> int:
    """Cut one line into the fewest segments; of several ways, the one whose first segment is longest,
    then its second, and so on (paper, section 3.2 "N-gram boundary extraction").

    Args:
        words: int32 [n], ids as the trie knows them, NO_WORD for a word in no n-gram.
        lengths, ngrams: int32 [>= n], filled with each segment's words, and its n-gram or NO_NGRAM.
    Returns:
        The number of segments.
    """
    n = len(words)
    # From each position on: fewest segments, and the first of them.
    best = np.zeros(n + 1, np.int32)
    length = np.ones(n, np.int32)
    ngram = np.full(n, NO_NGRAM, np.int32)
    for i in range(n - 1, -1, -1):
        best[i] = best[i + 1] + 1
        node = words[i]
        if node == NO_WORD:
            continue
        for end in range(i + 1, min(n, i + trie.max_order)):
            if words[end] == NO_WORD:
                break
            key = _key(node, words[end])
            at = _slot(trie.keys, key)
            if trie.keys[at] == 0:
                break
            node = trie.children[at]
            # "<=": an equally short cut with a longer first segment wins.
            if trie.ngram[node] != NO_NGRAM and best[end + 1] + 1 <= best[i]:
                best[i] = best[end + 1] + 1
                length[i] = end + 1 - i
                ngram[i] = trie.ngram[node]
    segments = 0
    at = 0
    while at < n:
        lengths[segments] = length[at]
        ngrams[segments] = ngram[at]
        segments += 1
        at += length[at]
    return segments


@numba.njit(cache=True, nogil=True)
def cut_lines(
    words: Int32s,
    starts: Int64s,
    trie_words: Int32s,
    trie: Trie,
    piece_offsets: Int64s,
    pieces: Int32s,
    num_tokens: int,
) -> tuple[Int32s, Int64s]:
    """Cut lines of words into units: a matched n-gram is one unit, a single word one unit per piece.

    Args:
        words: int32 [n]; starts: int64 [lines + 1], where each line's words start.
        trie_words: int32 [distinct words], the trie's id of each word, or NO_WORD.
        piece_offsets, pieces: the token ids of word w are pieces[piece_offsets[w]:piece_offsets[w + 1]].
        num_tokens: F; n-gram i has identity F + i.
    Returns:
        Unit identities, int32 [units], and where each line's units start, int64 [lines + 1].
    """
    most = 0
    for word in words:
        most += piece_offsets[word + 1] - piece_offsets[word]
    units = np.empty(most, np.int32)
    unit_starts = np.zeros(len(starts), np.int64)
    lengths = np.empty(len(words), np.int32)
    ngrams = np.empty(len(words), np.int32)
    at = 0
    for line in range(len(starts) - 1):
        first, last = starts[line], starts[line + 1]
        segments = fewest_segments(trie_words[words[first:last]], trie, lengths, ngrams)
        position = first
        for s in range(segments):
            if ngrams[s] != NO_NGRAM:
                units[at] = num_tokens + ngrams[s]
                at += 1
            else:
                word = words[position]
                for p in range(piece_offsets[word], piece_offsets[word + 1]):
                    units[at] = pieces[p]
                    at += 1
            position += lengths[s]
        unit_starts[line + 1] = at
    return units[:at].copy(), unit_starts
