"""Compiled hash tables: of 64-bit keys; and one that assigns consecutive IDs to byte strings, by first occurrence.

They use open addressing with linear probing. A string of at most seven bytes is its own key, so that most lookups
read a single cache line. Longer strings are hashed and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reader.system.arrays import Int32s, Int64s, UInt8s, UInt64s, offsets_of, range_indices
from reader.system.compiled import numba

SHORT_BYTES = 7  # the longest string that fits into a 64-bit key together with its length
_LONG = np.uint64(0xFF << 56)
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@numba.njit(cache=True, nogil=True)
def hash_to_slot(key: np.uint64, num_slots: int) -> int:
    """Return the slot where the search for a key begins (Fibonacci hashing). The next slots follow (linear probing).

    `num_slots` must be a power of two.
    """
    hashed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(num_slots - 1))


@numba.njit(inline="always")
def find_slot(keys: UInt64s, key: np.uint64) -> int:
    """Return the slot of a key, which is not 0, or the free slot (keys[slot] is 0) where it would be inserted.

    Numba inlines this function. Otherwise it would update the reference count of `keys` around each call.
    """
    slot = hash_to_slot(key, len(keys))
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


class KeyTable(NamedTuple):
    """Hash table from keys to their indices in the array it was built from: open addressing, at most half full.

    keys: uint64 [slots], key + 1, or 0 in a free slot; indices: int32 [slots].
    """

    keys: UInt64s
    indices: Int32s


@numba.njit(cache=True, nogil=True)
def build_key_table(keys: UInt64s) -> KeyTable:
    """Build the table of distinct keys."""
    slots = 16
    while slots < 2 * len(keys):
        slots *= 2
    table, indices = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    for i in range(len(keys)):
        key = keys[i] + np.uint64(1)
        slot = find_slot(table, key)
        table[slot], indices[slot] = key, i
    return KeyTable(table, indices)


class StringTable(NamedTuple):
    """A hash table of distinct strings with a fixed capacity.

    slots: uint64 [2 * S], S a power of two. Slot s holds a key (0 if free) at 2 * s and a string ID at 2 * s + 1.
    offsets: int64 [capacity + 1]; arena: uint8 [capacity in bytes]. String i is arena[offsets[i]:offsets[i + 1]].
    used: int64 [1], the number of strings.
    """

    slots: UInt64s
    offsets: Int64s
    arena: UInt8s
    used: Int64s

    @property
    def strings(self) -> PackedStrings:
        """The strings, in the order of their IDs."""
        return PackedStrings(self.offsets[: int(self.used[0]) + 1], self.arena)


def empty_table(num_strings: int = 1 << 12, num_bytes: int = 1 << 15) -> StringTable:
    """Return a table with a capacity of `num_strings` strings and `num_bytes` bytes in total."""
    slots = 4 << max(4, num_strings.bit_length())  # two entries per slot; at most half of the slots are in use
    return StringTable(
        np.zeros(slots, np.uint64),
        np.zeros(num_strings + 1, np.int64),
        np.zeros(num_bytes, np.uint8),
        np.zeros(1, np.int64),
    )


def unpack_strings(strings: PackedStrings) -> list[str]:
    """Return packed strings as Python strings; raise UnicodeDecodeError if they are not UTF-8."""
    start = int(strings.offsets[0])
    content = strings.arena[start : strings.offsets[-1]].tobytes()
    bounds = (strings.offsets - start).tolist()
    return [content[a:b].decode("utf-8") for a, b in pairwise(bounds)]


def pack_strings(strings: Sequence[str]) -> PackedStrings:
    """Return Python strings packed as UTF-8."""
    encoded = [string.encode("utf-8") for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return PackedStrings(offsets, np.frombuffer(b"".join(encoded) or b"\0", np.uint8))


class PackedStrings(NamedTuple):
    """Strings laid out in one array: string i is arena[offsets[i]:offsets[i + 1]].

    offsets: int64 [n + 1]; arena: uint8 [at least offsets[n]]. `take_strings` accepts an arena of any dtype.
    """

    offsets: Int64s
    arena: np.ndarray


def find_or_add_strings(table: StringTable, strings: PackedStrings) -> tuple[StringTable, Int32s]:
    """Look up strings, and add those that are not in the table.

    Returns:
        The table, which replaces the given one, and the ID of each string, int32 [n]. An empty string has the ID -1.
    """
    ids = np.empty(len(strings.offsets) - 1, np.int32)
    done = _look_up(*strings, *table, True, 0, ids)
    while done < len(ids):
        # The capacity at least doubles each time, so that growing costs little compared with adding.
        old, next_size = table.strings, int(strings.offsets[done + 1] - strings.offsets[done])
        used, used_bytes = len(old.offsets) - 1, int(old.offsets[-1])
        table = empty_table(2 * (used + (1 << 12)), 2 * (used_bytes + max(next_size, 1 << 16)))
        _look_up(*old, *table, True, 0, np.empty(used, np.int32))
        done = _look_up(*strings, *table, True, done, ids)
    return table, ids


def find_strings(table: StringTable, strings: PackedStrings) -> Int32s:
    """Return the ID of each string, int32 [n]; -1 for a string that is empty or not in the table."""
    ids = np.empty(len(strings.offsets) - 1, np.int32)
    _look_up(*strings, *table, False, 0, ids)
    return ids


def take_strings(strings: PackedStrings, indices: Int32s | Int64s) -> PackedStrings:
    """Return the strings at the given indices, in the order of the indices."""
    sizes = np.diff(strings.offsets)[indices]
    return PackedStrings(offsets_of(sizes), strings.arena[range_indices(strings.offsets[indices], sizes)])


@numba.njit(cache=True, nogil=True)
def _look_up(
    text_offsets: Int64s,
    text: UInt8s,
    slots: UInt64s,
    offsets: Int64s,
    arena: UInt8s,
    used: Int64s,
    add: bool,
    done: int,
    ids: Int32s,
) -> int:
    """Look up strings from index `done` on, and write their IDs to `ids`.

    Return the number of strings that are done: all of them, or fewer if the table has no capacity for the next one.
    The loop makes no call that takes an array, because Numba would update reference counts around each such call, which
    costs ten times as much as the call itself.
    """
    num_slots = len(slots) // 2
    for i in range(done, len(ids)):
        first, last = text_offsets[i], text_offsets[i + 1]
        size = last - first
        if size == 0:
            ids[i] = -1
            continue
        key = np.uint64(size) << np.uint64(56)
        if size <= SHORT_BYTES and first + 8 <= len(text):
            # Read eight bytes (the compiler emits a single load), then clear the bytes after the end of the string.
            eight = (
                np.uint64(text[first])
                | np.uint64(text[first + 1]) << np.uint64(8)
                | np.uint64(text[first + 2]) << np.uint64(16)
                | np.uint64(text[first + 3]) << np.uint64(24)
                | np.uint64(text[first + 4]) << np.uint64(32)
                | np.uint64(text[first + 5]) << np.uint64(40)
                | np.uint64(text[first + 6]) << np.uint64(48)
                | np.uint64(text[first + 7]) << np.uint64(56)
            )
            key |= eight & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
        elif size <= SHORT_BYTES:
            for j in range(size):
                key |= np.uint64(text[first + j]) << np.uint64(8 * j)
        else:
            hashed = _FNV_START
            for j in range(first, last):
                hashed = (hashed ^ np.uint64(text[j])) * _FNV_PRIME
            key = _LONG | (hashed ^ (hashed >> np.uint64(29)))
        slot = hash_to_slot(key, num_slots)
        found = -1
        while slots[2 * slot] != 0:
            if slots[2 * slot] == key:
                found = np.int64(slots[2 * slot + 1])
                if size <= SHORT_BYTES:
                    break
                start = offsets[found]
                same = offsets[found + 1] - start == size
                for j in range(size if same else 0):
                    if arena[start + j] != text[first + j]:
                        same = False
                        break
                if same:
                    break
                found = -1
            slot += 1
            if slot == num_slots:
                slot = 0
        if found < 0 and add:
            found = used[0]
            start = offsets[found]
            if found + 2 > len(offsets) or start + size > len(arena):
                return i
            for j in range(size):
                arena[start + j] = text[first + j]
            offsets[found + 1] = start + size
            slots[2 * slot], slots[2 * slot + 1] = key, found
            used[0] = found + 1
        ids[i] = found
    return len(ids)
