"""Masking the units of a sequence: contiguously or explicitly (paper, sections 3.1 and 3.2; figure 1).

The functions are pure. The choice of masked units depends only on (seed, epoch, sequence index), so workers, ranks and
restarts do not change it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class SpecialIds(NamedTuple):
    """IDs of the special tokens that masking writes, and F (`num_tokens`)."""

    pad: int
    cls: int
    sep: int
    mask: int
    num_tokens: int


class MaskedSequences(NamedTuple):
    """Masked sequences, padded to the longest: B sequences, L slots, M predicted slots, U masked units.

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
def mix_bits(x: np.uint64) -> np.uint64:
    """Return the SplitMix64 finalizer of `x`: pseudo-random bits that pass statistical tests (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _random_state(seed: int, epoch: int, index: int) -> np.uint64:
    """Return the initial state of the random generator for one sequence in one epoch."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    state = mix_bits(np.uint64(seed) + golden)
    state = mix_bits((state ^ np.uint64(epoch)) + golden)
    return mix_bits((state ^ np.uint64(index)) + golden)


@numba.njit(cache=True, nogil=True)
def num_masked(num_units: int, fraction: float) -> int:
    """Return the number of units to mask: `fraction` of `num_units`, rounded half up, at least one."""
    return min(num_units, max(1, int(np.floor(fraction * num_units + 0.5))))


@numba.njit(cache=True, nogil=True)
def choose_units(num_units: int, fraction: float, seed: int, epoch: int, index: int) -> Bools:
    """Sample the units of a sequence to mask, without replacement; bool [num_units].

    The algorithm is a partial Fisher-Yates shuffle.

    Args:
        seed, epoch, index (of the sequence): determine the sample.
    """
    order = np.arange(num_units)
    chosen = np.zeros(num_units, np.bool_)
    state = _random_state(seed, epoch, index)
    for i in range(num_masked(num_units, fraction)):
        state += np.uint64(0x9E3779B97F4A7C15)
        # The modulo introduces a bias of less than num_units / 2^64.
        j = i + np.int64(mix_bits(state) % np.uint64(num_units - i))
        order[i], order[j] = order[j], order[i]
        chosen[order[i]] = True
    return chosen


@numba.njit(cache=True, nogil=True)
def mask_sequences(
    units: Int64s,
    starts: Int64s,
    indices: Int64s,
    epochs: Int64s,
    seed: int,
    fraction: float,
    explicit: bool,
    ngram_offsets: Int64s,
    ngram_tokens: Int32s,
    special_ids: SpecialIds,
) -> MaskedSequences:
    """Mask a batch of sequences, and add [CLS], [SEP] and padding.

    Explicit masking replaces a masked unit by a single [MASK] slot; the following slots move up (section 3.2,
    equation 2). Contiguous masking replaces each token of a masked unit by [MASK] (section 3.1, equation 1).

    Args:
        units: int64 [n], identities of all sequences, concatenated.
        starts: int64 [B + 1], index of the first unit of each sequence, then n.
        indices, epochs: int64 [B], sequence indices and epochs, which determine the masks together with `seed`.
        fraction: share of the units to mask (see `num_masked`).
        explicit: explicit masking if true, contiguous masking if false.
        ngram_offsets, ngram_tokens: the tokens of all n-grams (see Corpus).
    """
    rows = len(indices)
    chosen = np.zeros(len(units), np.bool_)
    lengths = np.zeros(rows, np.int64)
    num_predicted = 0
    for b in range(rows):
        first, last = starts[b], starts[b + 1]
        chosen[first:last] = choose_units(last - first, fraction, seed, epochs[b], indices[b])
        lengths[b] = 2
        for u in range(first, last):
            ngram = units[u] - special_ids.num_tokens
            tokens = ngram_offsets[ngram + 1] - ngram_offsets[ngram] if ngram >= 0 else 1
            slots = 1 if explicit and chosen[u] else tokens
            lengths[b] += slots
            num_predicted += slots if chosen[u] else 0
    width = lengths.max()
    input_ids = np.full((rows, width), special_ids.pad, np.int64)
    slots = np.empty(num_predicted, np.int64)
    labels = np.empty(num_predicted, np.int64)
    slot_units = np.empty(num_predicted, np.int64)
    m = 0
    masked_unit = -1
    for b in range(rows):
        input_ids[b, 0] = special_ids.cls
        l = 1
        for u in range(starts[b], starts[b + 1]):
            ngram = units[u] - special_ids.num_tokens
            masked_unit += chosen[u]
            if chosen[u] and explicit:
                input_ids[b, l] = special_ids.mask
                slots[m], labels[m], slot_units[m] = b * width + l, units[u], masked_unit
                m += 1
                l += 1
                continue
            first = ngram_offsets[ngram] if ngram >= 0 else 0
            last = ngram_offsets[ngram + 1] if ngram >= 0 else 1
            for t in range(first, last):
                token = np.int64(ngram_tokens[t]) if ngram >= 0 else units[u]
                input_ids[b, l] = token
                if chosen[u]:
                    input_ids[b, l] = special_ids.mask
                    slots[m], labels[m], slot_units[m] = b * width + l, token, masked_unit
                    m += 1
                l += 1
        input_ids[b, l] = special_ids.sep
    return MaskedSequences(input_ids, lengths, slots, labels, slot_units, units[chosen])


class QueryRows(NamedTuple):
    """Query rows, padded to the largest number in a sequence: B sequences, K query rows, Q rows without padding.

    slots: int64 [B, K], slot of the row's masked unit in the same sequence, 0 in padding.
    ranks: int64 [B, K], i - 1 for row [Mi], 0 in padding.
    rows: int64 [Q], indices b * K + k of the rows that are not padding; labels: int64 [Q], the token IDs they predict.
    """

    slots: Int64s
    ranks: Int64s
    rows: Int64s
    labels: Int64s


@numba.njit(cache=True, nogil=True)
def query_rows(
    slots: Int64s,
    labels: Int64s,
    batch_size: int,
    width: int,
    ngram_offsets: Int64s,
    ngram_tokens: Int32s,
    num_tokens: int,
) -> QueryRows:
    """Return query rows [M1]..[Mk] for every masked unit of k tokens, one row per token (paper, section 3.3).

    Args:
        slots, labels: int64 [M], of an explicitly masked batch (see MaskedSequences).
        batch_size, width: B and L of that batch.
        ngram_offsets, ngram_tokens: the tokens of all n-grams (see Corpus).
        num_tokens: F.
    """
    counts = np.zeros(batch_size, np.int64)
    for m in range(len(slots)):
        ngram = labels[m] - num_tokens
        counts[slots[m] // width] += ngram_offsets[ngram + 1] - ngram_offsets[ngram] if ngram >= 0 else 1
    max_rows = counts.max()
    row_slots = np.zeros((batch_size, max_rows), np.int64)
    ranks = np.zeros((batch_size, max_rows), np.int64)
    rows = np.empty(counts.sum(), np.int64)
    tokens = np.empty(len(rows), np.int64)
    counts[:] = 0
    q = 0
    for m in range(len(slots)):
        b = slots[m] // width
        ngram = labels[m] - num_tokens
        first = ngram_offsets[ngram] if ngram >= 0 else 0
        last = ngram_offsets[ngram + 1] if ngram >= 0 else 1
        for t in range(first, last):
            k = counts[b]
            row_slots[b, k], ranks[b, k] = slots[m] % width, t - first
            rows[q] = b * max_rows + k
            tokens[q] = np.int64(ngram_tokens[t]) if ngram >= 0 else labels[m]
            counts[b] += 1
            q += 1
    return QueryRows(row_slots, ranks, rows, tokens)
