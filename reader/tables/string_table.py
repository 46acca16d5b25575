"""A compiled hash table from byte strings to numbers: the first string met is 0, the next new one 1, and so on.

Open addressing with linear probing. A string of up to seven bytes is its own key, so that most words are found by
one look at one cache line; longer ones are hashed and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.tables.hashing import first_slot

UInt8s = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

SHORT = 7  # bytes that fit into a key beside the length
_LONG = np.uint64(0xFF << 56)
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class ByteTable(NamedTuple):
    """The arrays of a table with room for some strings; `with_room` gives one with more.

    slots: uint64 [2 * S], S a power of two: a key, 0 where free, and the number of its string, by turns.
    offsets: int64 [room + 1]; arena: uint8 [bytes of room]. String i is arena[offsets[i]:offsets[i + 1]].
    used: int64 [1], how many strings there are.
    """

    slots: UInt64s
    offsets: Int64s
    arena: UInt8s
    used: Int64s


def empty_table(strings: int = 1 << 12, size: int = 1 << 15) -> ByteTable:
    """A table with room for `strings` strings of `size` bytes in all."""
    slots = 4 << max(4, strings.bit_length())  # at most half full
    return ByteTable(
        np.zeros(slots, np.uint64), np.zeros(strings + 1, np.int64), np.zeros(size, np.uint8), np.zeros(1, np.int64)
    )


def with_room(table: ByteTable, strings: int, size: int) -> ByteTable:
    """The same table, with room for this many more strings of so many bytes; grown, it has room for twice as many."""
    used = int(table.used[0])
    filled = int(table.offsets[used])
    if used + strings < len(table.offsets) and filled + size <= len(table.arena):
        return table
    new = empty_table(2 * (used + strings), 2 * (filled + size))
    new.offsets[: used + 1] = table.offsets[: used + 1]
    new.arena[:filled] = table.arena[:filled]
    new.used[0] = used
    _rehash(table.slots, new.slots)
    return new


def strings_of(table: ByteTable, first: int = 0) -> list[str]:
    """The strings from number `first` on, which are UTF-8."""
    return unpacked(Strings(table.offsets[first : int(table.used[0]) + 1], table.arena))


def unpacked(strings: Strings) -> list[str]:
    """Packed strings as Python's; raises UnicodeDecodeError if they are not UTF-8."""
    start = int(strings.offsets[0])
    content = strings.arena[start : strings.offsets[-1]].tobytes()
    bounds = (strings.offsets - start).tolist()
    return [content[a:b].decode("utf-8") for a, b in pairwise(bounds)]


def packed(strings: Sequence[str]) -> Strings:
    """Python's strings, packed as UTF-8."""
    encoded = [string.encode("utf-8") for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Strings(offsets, np.frombuffer(b"".join(encoded) or b"\0", np.uint8))


class Strings(NamedTuple):
    """Many strings, packed: string i is arena[offsets[i]:offsets[i + 1]].

    offsets: int64 [n + 1]; arena: uint8 [at least offsets[n]], or, for `chosen`, of any type.
    """

    offsets: Int64s
    arena: np.ndarray


def number(table: ByteTable, strings: Strings, add: bool = True) -> tuple[ByteTable, Int32s]:
    """The number of every string, int32 [n], and the table, in which those that are new now are, if they may be added.

    An empty string has the number -1, and so has, without `add`, one that is not in the table.
    """
    numbers = np.empty(len(strings.offsets) - 1, np.int32)
    done = 0
    while True:
        done = _number(*strings, *table, add, done, numbers)
        if done == len(numbers):
            return table, numbers
        # Twice the room for what has been seen to come: growing costs little beside adding.
        left = strings.offsets[done + 1] - strings.offsets[done]
        table = with_room(table, 1 << 12, max(int(left), 1 << 16))


def chosen(strings: Strings, order: Int32s | Int64s) -> Strings:
    """Some of many strings, in the given order."""
    sizes = np.diff(strings.offsets)[order]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(strings.offsets[order] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Strings(offsets, strings.arena[at])


@numba.njit(cache=True, nogil=True)
def _number(
    text_offsets: Int64s,
    text: UInt8s,
    slots: UInt64s,
    offsets: Int64s,
    arena: UInt8s,
    used: Int64s,
    add: bool,
    done: int,
    numbers: Int32s,
) -> int:
    """Number strings from `done` on; returns how many are done when all are, or the table has no room for the next.

    One loop without a call that takes an array: Numba would count references around each, at ten times its cost.
    """
    num_slots = len(slots) // 2
    for i in range(done, len(numbers)):
        first, last = text_offsets[i], text_offsets[i + 1]
        size = last - first
        if size == 0:
            numbers[i] = -1
            continue
        key = np.uint64(size) << np.uint64(56)
        if size <= SHORT and first + 8 <= len(text):
            # Eight bytes at once (the compiler makes one load of it), and away with those behind the string.
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
        elif size <= SHORT:
            for j in range(size):
                key |= np.uint64(text[first + j]) << np.uint64(8 * j)
        else:
            hashed = _FNV_START
            for j in range(first, last):
                hashed = (hashed ^ np.uint64(text[j])) * _FNV_PRIME
            key = _LONG | (hashed ^ (hashed >> np.uint64(29)))
        at = first_slot(key, num_slots)
        found = -1
        while slots[2 * at] != 0:
            if slots[2 * at] == key:
                found = np.int64(slots[2 * at + 1])
                if size <= SHORT:
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
            at += 1
            if at == num_slots:
                at = 0
        if found < 0 and add:
            found = used[0]
            start = offsets[found]
            if found + 2 > len(offsets) or start + size > len(arena):
                return i
            for j in range(size):
                arena[start + j] = text[first + j]
            offsets[found + 1] = start + size
            slots[2 * at], slots[2 * at + 1] = key, found
            used[0] = found + 1
        numbers[i] = found
    return len(numbers)


@numba.njit(cache=True, nogil=True)
def _rehash(old: UInt64s, new: UInt64s) -> None:
    for slot in range(len(old) // 2):
        key = old[2 * slot]
        if key == 0:
            continue
        at = first_slot(key, len(new) // 2)
        while new[2 * at] != 0:
            at += 1
            if 2 * at == len(new):
                at = 0
        new[2 * at] = key
        new[2 * at + 1] = old[2 * slot + 1]
