"""From the units of a sequence to a masked example (paper, section 3.1 and 3.2; figure 1).

Pure functions. Which units are masked depends on (seed, epoch, sequence index) and on nothing else, so neither
workers, ranks nor a restart can change them.
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


class Specials(NamedTuple):
    """Ids of the special tokens that masking writes, and F."""

    pad: int
    cls: int
    sep: int
    mask: int
    num_tokens: int


class MaskedSequences(NamedTuple):
    """Masked sequences, padded to the longest (B sequences, L slots, M predicted slots, U masked units).

    input_ids: int64 [B, L]; lengths: int64 [B], slots that are not padding.
    slots: int64 [M], predicted slots as b * L + l; labels: int64 [M], what each hid: the unit's identity
    (explicit) or the token's id (contiguous); slot_units: int64 [M], which masked unit a slot belongs to.
    unit_ids: int64 [U], the identities of the masked units, in order of appearance.
    """

    input_ids: Int64s
    lengths: Int64s
    slots: Int64s
    labels: Int64s
    slot_units: Int64s
    unit_ids: Int64s


@numba.njit(cache=True, nogil=True)
def mix(x: np.uint64) -> np.uint64:
    """A 64-bit finalizer whose output passes for random (Steele et al. 2014, SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _key(seed: int, epoch: int, index: int) -> np.uint64:
    golden = np.uint64(0x9E3779B97F4A7C15)
    key = mix(np.uint64(seed) + golden)
    key = mix((key ^ np.uint64(epoch)) + golden)
    return mix((key ^ np.uint64(index)) + golden)


@numba.njit(cache=True, nogil=True)
def num_masked(units: int, fraction: float) -> int:
    """How many of a sequence's units are masked: `fraction` of them rounded (half up), at least one."""
    return min(units, max(1, int(np.floor(fraction * units + 0.5))))


@numba.njit(cache=True, nogil=True)
def choose_units(units: int, fraction: float, seed: int, epoch: int, index: int) -> Bools:
    """Draw the units of a sequence to mask, without replacement; bool [units]."""
    order = np.arange(units)
    chosen = np.zeros(units, np.bool_)
    state = _key(seed, epoch, index)
    for i in range(num_masked(units, fraction)):
        state += np.uint64(0x9E3779B97F4A7C15)
        # The remainder is biased by less than units / 2^64.
        j = i + np.int64(mix(state) % np.uint64(units - i))
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
    specials: Specials,
) -> MaskedSequences:
    """Mask a batch of sequences.

    explicit: a masked unit leaves one [MASK] slot, and the slots after it move up (equation 2).
    contiguous: a masked unit keeps its tokens, each replaced by [MASK] (equation 1).

    Args:
        units: int64 [n], identities of all sequences, one after the other; starts: int64 [B + 1].
        indices, epochs: int64 [B], from which the masks are drawn.
        ngram_offsets, ngram_tokens: the tokens of n-gram i (see Corpus).
    """
    rows = len(indices)
    chosen = np.zeros(len(units), np.bool_)
    lengths = np.zeros(rows, np.int64)
    predicted = 0
    for b in range(rows):
        first, last = starts[b], starts[b + 1]
        chosen[first:last] = choose_units(last - first, fraction, seed, epochs[b], indices[b])
        lengths[b] = 2
        for u in range(first, last):
            ngram = units[u] - specials.num_tokens
            tokens = ngram_offsets[ngram + 1] - ngram_offsets[ngram] if ngram >= 0 else 1
            slots = 1 if explicit and chosen[u] else tokens
            lengths[b] += slots
            predicted += slots if chosen[u] else 0
    width = lengths.max()
    input_ids = np.full((rows, width), specials.pad, np.int64)
    slots = np.empty(predicted, np.int64)
    labels = np.empty(predicted, np.int64)
    slot_units = np.empty(predicted, np.int64)
    m = 0
    masked = -1
    for b in range(rows):
        input_ids[b, 0] = specials.cls
        l = 1
        for u in range(starts[b], starts[b + 1]):
            ngram = units[u] - specials.num_tokens
            masked += chosen[u]
            if chosen[u] and explicit:
                input_ids[b, l] = specials.mask
                slots[m], labels[m], slot_units[m] = b * width + l, units[u], masked
                m += 1
                l += 1
                continue
            first = ngram_offsets[ngram] if ngram >= 0 else 0
            last = ngram_offsets[ngram + 1] if ngram >= 0 else 1
            for t in range(first, last):
                token = np.int64(ngram_tokens[t]) if ngram >= 0 else units[u]
                input_ids[b, l] = token
                if chosen[u]:
                    input_ids[b, l] = specials.mask
                    slots[m], labels[m], slot_units[m] = b * width + l, token, masked
                    m += 1
                l += 1
        input_ids[b, l] = specials.sep
    return MaskedSequences(input_ids, lengths, slots, labels, slot_units, units[chosen])


class QueryRows(NamedTuple):
    """Query rows, padded to the most in a sequence (B sequences, K query rows, Q rows that are not padding).

    slots: int64 [B, K], slot of the same sequence that a row asks about; ranks: int64 [B, K], i - 1 for row [Mi];
    both 0 in padding. rows: int64 [Q], the others as b * K + k; labels: int64 [Q], the tokens they ask for.
    """

    slots: Int64s
    ranks: Int64s
    rows: Int64s
    labels: Int64s


@numba.njit(cache=True, nogil=True)
def query_rows(
    slots: Int64s,
    labels: Int64s,
    batch_rows: int,
    width: int,
    ngram_offsets: Int64s,
    ngram_tokens: Int32s,
    num_tokens: int,
) -> QueryRows:
    """Rows [M1]..[Mk] for every masked unit of k tokens (paper, section 3.3): one for each token it hides.

    Args:
        slots, labels: int64 [M], of an explicitly masked batch, see MaskedSequences.
        batch_rows, width: B and L of that batch.
        ngram_offsets, ngram_tokens: the tokens of n-gram i (see Corpus).
        num_tokens: F.
    """
    counts = np.zeros(batch_rows, np.int64)
    for m in range(len(slots)):
        ngram = labels[m] - num_tokens
        counts[slots[m] // width] += ngram_offsets[ngram + 1] - ngram_offsets[ngram] if ngram >= 0 else 1
    most = counts.max()
    row_slots = np.zeros((batch_rows, most), np.int64)
    ranks = np.zeros((batch_rows, most), np.int64)
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
            rows[q] = b * most + k
            tokens[q] = np.int64(ngram_tokens[t]) if ngram >= 0 else labels[m]
            counts[b] += 1
            q += 1
    return QueryRows(row_slots, ranks, rows, tokens)
