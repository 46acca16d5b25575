"""A prefix tree in one hash table: of a lexicon's n-grams, over words; of a dictionary's words, over characters."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.tables.hashing import first_slot

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

NOTHING = -1


class Trie(NamedTuple):
    """Sequences of numbers below `size` as a prefix tree, its edges in one open-addressing hash table.

    A node is a prefix of some sequence. Node w (w < size) is the prefix of the single number w; a number from `size`
    on is in no sequence.

    keys: uint64 [slots], (node << 32 | number) + 1, 0 where free; children: int32 [slots].
    ends: int32 [nodes], the sequence that ends at a node, or NOTHING; goes_on: bool [nodes], whether longer ones do.
    """

    keys: UInt64s
    children: Int32s
    ends: Int32s
    goes_on: Bools
    size: int


@numba.njit(cache=True, nogil=True)
def edge_key(node: int, number: int) -> np.uint64:
    return (np.uint64(node) << np.uint64(32) | np.uint64(number)) + np.uint64(1)


@numba.njit(inline="always")
def slot_of(keys: UInt64s, key: np.uint64) -> int:
    """Where an edge is in the table, or would be: keys[slot] is 0 if there is none.

    Put in place of each call by Numba, which would otherwise count references to `keys` around it.
    """
    slot = first_slot(key, len(keys))
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@numba.njit(cache=True, nogil=True)
def build_trie(numbers: Int32s, offsets: Int64s, size: int) -> Trie:
    """The tree of sequences numbers[offsets[i]:offsets[i + 1]]; of several that are equal, the last is found."""
    most = len(numbers) - len(offsets) + 1  # edges: of every sequence as many as it is long, but one
    slots = 16
    while slots < 2 * most:
        slots *= 2
    keys, children = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    ends, goes_on = np.full(size + most, NOTHING, np.int32), np.zeros(size + most, np.bool_)
    nodes = size
    for i in range(len(offsets) - 1):
        node = np.int64(numbers[offsets[i]])
        for j in range(offsets[i] + 1, offsets[i + 1]):
            key = edge_key(node, np.int64(numbers[j]))
            at = slot_of(keys, key)
            if keys[at] == 0:
                keys[at] = key
                children[at] = nodes
                goes_on[node] = True
                nodes += 1
            node = np.int64(children[at])
        ends[node] = i
    return Trie(keys, children, ends[:nodes].copy(), goes_on[:nodes].copy(), size)
