"""Cutting lines of words into lexicon n-grams and single words, with the fewest segments (paper, section 3.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.system.arrays import Bools, Int32s, Int64s
from reader.system.compiled import numba
from reader.system.hash_tables import KeyTable, build_key_table, find_slot
from reader.tokenization.word_kernel import DOCUMENT_END

NO_NGRAM = -1


class Trie(NamedTuple):
    """The n-grams of a lexicon as a prefix tree (trie). A node is a prefix of at least one n-gram.

    Words are integers in [0, num_words); a larger one is in no n-gram. Node w, for w < num_words, is the word w alone.

    edges: node << 32 | word -> the node that follows, less num_words.
    ngram_of: int32 [nodes], the n-gram that ends at a node, or NO_NGRAM.
    has_children: bool [nodes], whether a node is the beginning of a longer n-gram.
    """

    edges: KeyTable
    ngram_of: Int32s
    has_children: Bools
    num_words: int


def build_trie(words: Int32s, offsets: Int64s, num_words: int) -> Trie:
    """Return the prefix tree of the n-grams words[offsets[i]:offsets[i + 1]]; of equal ones, it holds the last."""
    firsts, lengths = offsets[:-1], np.diff(offsets)
    nodes, edges = words[firsts].astype(np.int64), [np.zeros(0, np.int64)]
    num_nodes = num_words
    for depth in range(1, lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > depth)
        keys, indices = np.unique(nodes[longer] << 32 | words[firsts[longer] + depth], return_inverse=True)
        nodes[longer] = num_nodes + indices
        num_nodes += len(keys)
        edges.append(keys)
    ngram_of, has_children = np.full(num_nodes, NO_NGRAM, np.int32), np.zeros(num_nodes, np.bool_)
    ngram_of[nodes] = np.arange(len(nodes))
    keys = np.concatenate(edges)
    has_children[keys >> 32] = True
    return Trie(build_key_table(keys.astype(np.uint64)), ngram_of, has_children, num_words)


class Units(NamedTuple):
    """The units of some lines of words.

    units: int32 [n], identities.
    starts: int64 [lines + 1], index of the first unit of each line, then n.
    documents: int64, index in `units` at which each document ends.
    """

    units: Int32s
    starts: Int64s
    documents: Int64s


@numba.njit(cache=True, nogil=True)
def cut_lines(stream: Int32s, trie: Trie, piece_offsets: Int64s, pieces: Int32s, num_tokens: int) -> Units:
    """Cut lines of words into units: a matched n-gram is one unit, a single word is one unit per sub-word token.

    Among all segmentations of a line into n-grams and single words, the result has the fewest segments. Ties are
    broken by the longest first segment, then the longest second segment, and so on (paper, section 3.5, n-gram
    boundaries). The algorithm is dynamic programming from the end of the line to its start.

    Args:
        stream: int32, word IDs, and LINE_END or DOCUMENT_END at the end of a line (see word_kernel.py).
        trie: the lexicon's n-grams as sequences of word IDs.
        piece_offsets, pieces: the token IDs of word w are pieces[piece_offsets[w]:piece_offsets[w + 1]].
        num_tokens: F; n-gram i has identity F + i.
    """
    (edges, children), ngram_of, has_children, num_words = trie
    max_units = lines = documents = longest = start = 0
    for i in range(len(stream)):
        word = stream[i]
        if word >= 0:
            max_units += piece_offsets[word + 1] - piece_offsets[word]
        else:
            lines += 1
            documents += word == DOCUMENT_END
            longest = max(longest, i - start)
            start = i + 1
    units = np.empty(max_units, np.int32)
    starts = np.zeros(lines + 1, np.int64)
    document_ends = np.empty(documents, np.int64)
    # For the rest of a line from each word on: the smallest number of segments, and the length in words and the n-gram
    # (or NO_NGRAM) of the first segment.
    fewest = np.empty(longest + 1, np.int32)
    length = np.empty(longest, np.int32)
    ngram = np.empty(longest, np.int32)
    filled = line = documents = start = 0
    for end in range(len(stream)):
        if stream[end] >= 0:
            continue
        n = end - start
        fewest[n] = 0
        for i in range(n - 1, -1, -1):
            node = np.int64(stream[start + i])
            fewest[i] = fewest[i + 1] + 1
            length[i] = 1
            ngram[i] = ngram_of[node] if node < num_words else NO_NGRAM
            stop = i + 1
            while node < num_words or stop > i + 1:
                if not has_children[node] or stop == n:
                    break
                word = np.int64(stream[start + stop])
                if word >= num_words:
                    break
                slot = find_slot(edges, (np.uint64(node) << np.uint64(32) | np.uint64(word)) + np.uint64(1))
                if edges[slot] == 0:
                    break
                node = num_words + np.int64(children[slot])
                stop += 1
                # "<=": among segmentations with equally few segments, the one with the longest first segment wins.
                if ngram_of[node] != NO_NGRAM and fewest[stop] + 1 <= fewest[i]:
                    fewest[i] = fewest[stop] + 1
                    length[i] = stop - i
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
