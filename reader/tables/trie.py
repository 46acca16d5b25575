"""A prefix tree (trie) stored in one hash table. It holds the n-grams of a lexicon, which are sequences of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.system.arrays import Bools, Int32s, Int64s, UInt64s
from reader.system.compiled import numba
from reader.tables.hashing import find_slot

NO_SEQUENCE = -1


class Trie(NamedTuple):
    """A prefix tree of sequences of symbols. Its edges are stored in one hash table with open addressing.

    Symbols are integers in [0, num_symbols); a larger integer is in no sequence. A node is a prefix of at least one
    sequence. Node s, for s < num_symbols, is the prefix that consists of the symbol s alone.

    keys: uint64 [slots], (node << 32 | symbol) + 1, or 0 where free; children: int32 [slots].
    sequence_ids: int32 [nodes], the index of the sequence that ends at a node, or NO_SEQUENCE.
    has_children: bool [nodes], whether a node is a proper prefix of a sequence.
    """

    keys: UInt64s
    children: Int32s
    sequence_ids: Int32s
    has_children: Bools
    num_symbols: int


@numba.njit(cache=True, nogil=True)
def edge_key(node: int, symbol: int) -> np.uint64:
    return (np.uint64(node) << np.uint64(32) | np.uint64(symbol)) + np.uint64(1)


@numba.njit(cache=True, nogil=True)
def build_trie(symbols: Int32s, offsets: Int64s, num_symbols: int) -> Trie:
    """Return the prefix tree of the sequences symbols[offsets[i]:offsets[i + 1]].

    If several sequences are equal, the tree holds the index of the last one.
    """
    max_edges = len(symbols) - len(offsets) + 1  # a sequence of length n adds at most n - 1 edges
    num_slots = 16
    while num_slots < 2 * max_edges:
        num_slots *= 2
    keys, children = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.int32)
    sequence_ids = np.full(num_symbols + max_edges, NO_SEQUENCE, np.int32)
    has_children = np.zeros(num_symbols + max_edges, np.bool_)
    num_nodes = num_symbols
    for i in range(len(offsets) - 1):
        node = np.int64(symbols[offsets[i]])
        for j in range(offsets[i] + 1, offsets[i + 1]):
            key = edge_key(node, np.int64(symbols[j]))
            slot = find_slot(keys, key)
            if keys[slot] == 0:
                keys[slot] = key
                children[slot] = num_nodes
                has_children[node] = True
                num_nodes += 1
            node = np.int64(children[slot])
        sequence_ids[node] = i
    return Trie(keys, children, sequence_ids[:num_nodes].copy(), has_children[:num_nodes].copy(), num_symbols)
