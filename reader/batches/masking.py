"""Masking the units of a sequence: contiguously or explicitly (paper, sections 3.1 and 3.2; figure 1).

The functions are pure. The masked units and the end of a sequence depend only on (seed, epoch, sequence index), so
workers, ranks and restarts do not change them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.batches.fields import FINE_LABELS, FINE_ROWS, QUERY_RANKS, QUERY_SLOTS, Batch
from reader.batches.sampler import unit_keys
from reader.batches.sequences import SequenceLimits, sequence_length
from reader.corpus.memmap import Corpus
from reader.system.arrays import Bools, Int32s, Int64s, UInt64s, range_indices
from reader.system.compiled import numba


class SpecialIds(NamedTuple):
    """IDs of the special tokens that masking writes, and F (`num_tokens`)."""

    pad: int
    cls: int
    sep: int
    mask: int
    num_tokens: int


class MaskedSequences(NamedTuple):
    """Masked sequences, padded to the longest, by the names in fields.py: B sequences, L slots, M predicted slots,
    U masked units.

    input_ids: int64 [B, L], token IDs; lengths: int64 [B], number of slots without padding.
    slots: int64 [M], indices b * L + l of the predicted slots.
    labels: int64 [M], the masked unit's identity (explicit) or the masked token's ID (contiguous).
    slot_units: int64 [M], index of the masked unit of each predicted slot, 0..U-1.
    unit_ids: int64 [U], identities of the masked units, in order of occurrence.
    """

    input_ids: Int64s
    lengths: Int64s
    slots: Int64s
    labels: Int64s
    slot_units: Int64s
    unit_ids: Int64s


@numba.njit(cache=True, nogil=True)
def num_masked(num_units: int, fraction: float) -> int:
    """Return the number of units to mask: `fraction` of `num_units`, rounded half up, at least one."""
    return min(num_units, max(1, int(np.floor(fraction * num_units + 0.5))))


@numba.njit(cache=True, nogil=True)
def _smallest(numbers: UInt64s, k: int) -> np.uint64:
    """Return the number at index k of the sorted numbers; changes their order (Hoare's quickselect).

    Numba takes six seconds to compile np.partition.
    """
    low, high = 0, len(numbers) - 1
    while low < high:
        pivot, left, right = numbers[k], low, high
        while left <= right:
            while numbers[left] < pivot:
                left += 1
            while numbers[right] > pivot:
                right -= 1
            if left <= right:
                numbers[left], numbers[right] = numbers[right], numbers[left]
                left, right = left + 1, right - 1
        low, high = left if right < k else low, right if k < left else high
    return numbers[k]


@numba.njit(cache=True, nogil=True)
def choose_units(keys: UInt64s, fraction: float, reserve: np.uint64) -> Bools:
    """Sample the units of a sequence to mask, without replacement: those with the lowest keys; bool [n].

    Args:
        keys: uint64 [n], distinct pseudo-random key of each unit (see `unit_keys`).
        reserve: see SequenceLimits. It does not change the result: almost always, the keys below it are enough, and the
            search among them takes less than half the time.
    """
    last = num_masked(len(keys), fraction) - 1
    lowest, found = np.empty_like(keys), 0
    for key in keys:
        lowest[found] = key
        found += key < reserve
    largest = _smallest(lowest[:found] if found > last else keys.copy(), last)
    chosen = np.empty(len(keys), np.bool_)
    for u in range(len(keys)):
        chosen[u] = keys[u] <= largest
    return chosen


@numba.njit(cache=True, nogil=True)
def mask_sequences(
    units: np.ndarray,
    starts: Int64s,
    ends: Int64s,
    indices: Int64s,
    epochs: Int64s,
    seed: int,
    fraction: float,
    explicit: bool,
    limits: SequenceLimits,
    unit_tokens: Int32s,
    ngram_offsets: Int64s,
    ngram_tokens: Int32s,
    special_ids: SpecialIds,
) -> MaskedSequences:
    """Cut and mask a batch of sequences, and add [CLS], [SEP] and padding.

    Explicit masking replaces a masked unit by a single [MASK] slot; the following slots move up (section 3.2,
    equation 2). Contiguous masking replaces each token of a masked unit by [MASK] (section 3.1, equation 1). Both mask
    the same units of the same sequences.

    Args:
        units: identities of the whole corpus.
        starts, ends: int64 [B], index of the first unit of each sequence, and the index at which its document ends.
        indices, epochs: int64 [B], sequence indices and epochs. With `seed`, they determine masks and lengths.
        fraction: share of the units to mask (see `num_masked`).
        explicit: explicit masking if true, contiguous masking if false.
        limits: where sequences end (see sequences.py).
        unit_tokens: int32 [C], number of tokens of each identity.
        ngram_offsets, ngram_tokens: the tokens of all n-grams (see Corpus).
    """
    rows = len(indices)
    chosen = np.zeros((rows, limits.max_tokens), np.bool_)
    counts = np.zeros(rows, np.int64)
    lengths = np.zeros(rows, np.int64)
    num_predicted = num_chosen = width = 0
    for b in range(rows):
        # A unit has at least one token, so no sequence has more than max_tokens units.
        window = units[starts[b] : min(ends[b], starts[b] + limits.max_tokens)]
        keys = unit_keys(len(window), seed, epochs[b], indices[b])
        counts[b] = sequence_length(window, keys, unit_tokens, limits)
        masked = choose_units(keys[: counts[b]], fraction, limits.reserve)
        lengths[b] = 2
        for u in range(counts[b]):
            chosen[b, u] = masked[u]
            slots = 1 if explicit and chosen[b, u] else unit_tokens[window[u]]
            lengths[b] += slots
            num_predicted += slots if chosen[b, u] else 0
            num_chosen += chosen[b, u]
        width = max(width, lengths[b])
    input_ids = np.full((rows, width), special_ids.pad, np.int64)
    slots = np.empty(num_predicted, np.int64)
    labels = np.empty(num_predicted, np.int64)
    slot_units = np.empty(num_predicted, np.int64)
    unit_ids = np.empty(num_chosen, np.int64)
    m = 0
    masked_unit = -1
    for b in range(rows):
        input_ids[b, 0] = special_ids.cls
        l = 1
        for u in range(counts[b]):
            unit = np.int64(units[starts[b] + u])
            ngram = unit - special_ids.num_tokens
            if chosen[b, u]:
                masked_unit += 1
                unit_ids[masked_unit] = unit
            if chosen[b, u] and explicit:
                input_ids[b, l] = special_ids.mask
                slots[m], labels[m], slot_units[m] = b * width + l, unit, masked_unit
                m += 1
                l += 1
                continue
            first = ngram_offsets[ngram] if ngram >= 0 else 0
            last = ngram_offsets[ngram + 1] if ngram >= 0 else 1
            for t in range(first, last):
                token = np.int64(ngram_tokens[t]) if ngram >= 0 else unit
                input_ids[b, l] = token
                if chosen[b, u]:
                    input_ids[b, l] = special_ids.mask
                    slots[m], labels[m], slot_units[m] = b * width + l, token, masked_unit
                    m += 1
                l += 1
        input_ids[b, l] = special_ids.sep
    return MaskedSequences(input_ids, lengths, slots, labels, slot_units, unit_ids)


def query_rows(masked: MaskedSequences, corpus: Corpus) -> Batch:
    """Return query rows [M1]..[Mk] for every masked unit of k tokens, one row per token (paper, section 3.3).

    They are padded to the largest number in a sequence; fields.py has their shapes and meanings. The sequences are
    masked explicitly.
    """
    batch_size, width = masked.input_ids.shape
    sizes = corpus.unit_tokens[masked.labels]
    units = np.repeat(np.arange(len(sizes)), sizes)
    ranks = range_indices(np.zeros_like(sizes), sizes)
    sequences, slots = np.divmod(masked.slots[units], width)
    counts = np.bincount(sequences, minlength=batch_size)
    shape = batch_size, counts.max()
    rows = range_indices(np.arange(batch_size) * shape[1], counts)
    padded_slots, padded_ranks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    padded_slots.flat[rows], padded_ranks.flat[rows] = slots, ranks
    labels = masked.labels[units]
    is_ngram = labels >= corpus.info.num_tokens
    firsts = corpus.ngram_offsets[labels[is_ngram] - corpus.info.num_tokens]
    labels[is_ngram] = corpus.ngram_tokens[firsts + ranks[is_ngram]]
    names = (each.name for each in (QUERY_SLOTS, QUERY_RANKS, FINE_ROWS, FINE_LABELS))
    return dict(zip(names, (padded_slots, padded_ranks, rows, labels), strict=True))
