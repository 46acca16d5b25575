"""Where the sequences of a corpus start and end. Their lengths do not depend on the tokens that masking hides.

Explicit masking collapses a masked n-gram to one slot (paper, section 3.2). If every sequence were filled with the
same number of tokens before masking, its length after masking would reveal how many tokens its masks hide, and the
model would learn to read that number from the position of [SEP].

Therefore, a sequence starts at a fixed unit of the corpus, and ends where its visible tokens fill a fixed number of
slots. A random subset of the units is reserved for masks, and a reserved unit counts as one slot, whatever its length.
Nearly all masked units are reserved (see `SequenceLimits.reserve`), so another unit in place of a masked one would not
change where the sequence ends. `max_slots` leaves room for the hidden tokens, because a sequence must not have more
than `max_tokens` tokens before masking. More units are reserved than masked, because the number of masked units is
exact, and is known only when the end of the sequence is known.

Each epoch draws new keys, so the ends change from epoch to epoch. The starts are `max_slots` tokens apart. A sequence
always holds that many, so no text is left out; neighbouring sequences overlap by the hidden tokens of their reserved
units, about 5 % of the text. If the starts were as far apart as the mean sequence is long, text with few n-grams would
have gaps, at the same places in every epoch. As the starts are fixed, any sample of any epoch can be computed directly,
and all rungs of an ablation on the same corpus have the same sequences.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reader.batches.sampler import unit_keys
from reader.corpus.memmap import SPECIALS_PER_SEQUENCE, Corpus
from reader.errors import InputError
from reader.system.arrays import Int32s, Int64s, UInt64s
from reader.system.compiled import numba

# Increase it whenever sequences change: a run must continue with the sequences that it started with. Version 1 filled
# each sequence with max_seq_len tokens before masking.
CUT_VERSION = 2
# Places in the corpus at which the number of slots is measured.
SAMPLES = 10_000
# Share of these places at which max_tokens tokens fill fewer than max_slots slots. There, a sequence ends at its
# token limit, so its length depends on hidden tokens. With a smaller share, all sequences become shorter.
TOKEN_LIMITED = 0.003
# Standard deviations by which the expected number of reserved units exceeds the number of masked units.
RESERVE_DEVIATIONS = 2


class SequenceLimits(NamedTuple):
    """The limits at which sequences end, without [CLS] and [SEP].

    max_tokens: number of tokens before masking; max_slots: number of slots, counting one for each reserved unit.
    reserve: units with a key below it are reserved, uint64. The masked units are those with the lowest keys. They are
        all reserved unless a sequence happens to have few reserved units (see RESERVE_DEVIATIONS).
    """

    max_tokens: int
    max_slots: int
    reserve: np.uint64


def find_sequences(
    corpus: Corpus, max_seq_len: int, fraction: float, pack_documents: bool
) -> tuple[Int64s, Int64s, SequenceLimits]:
    """Return the sequences of a corpus: `starts`, `documents` and `limits` of a Feeder.

    Args:
        max_seq_len: maximum number of tokens in a sequence before masking, including [CLS] and [SEP].
        fraction: share of the units of a sequence that are masked.
        pack_documents: whether a sequence continues with the next document; the whole corpus is then one document.

    Raises InputError if `max_seq_len` is too short for the longest unit.
    """
    longest = int(corpus.unit_tokens.max())
    max_tokens = max_seq_len - SPECIALS_PER_SEQUENCE
    if max_tokens < longest:
        raise InputError(
            f"data.max_seq_len: {max_seq_len} is too short: a unit of {corpus.path} has {longest} tokens, "
            f"and [CLS] and [SEP] take {SPECIALS_PER_SEQUENCE}"
        )
    limits = _measure_limits(corpus, max_tokens, fraction)
    documents = corpus.documents[[0, -1]] if pack_documents else np.asarray(corpus.documents)
    starts = cut_pieces(np.asarray(corpus.units), documents, corpus.unit_tokens, limits.max_slots)
    return starts, documents, limits


@numba.njit(cache=True, nogil=True)
def cut_pieces(units: np.ndarray, documents: Int64s, unit_tokens: Int32s, max_tokens: int) -> Int64s:
    """Cut units into pieces of at most `max_tokens` tokens, and return where they start.

    Each piece takes as many whole units as fit, and at least one. A document begins a new piece.

    Args:
        units: identities; documents: int64, index of the first unit of each document, then the number of units.
        unit_tokens: int32 [C], number of tokens of each identity.

    Returns:
        int64 [pieces + 1], index of the first unit of each piece, then the number of units.
    """
    starts = [np.int64(0)]
    for document in range(len(documents) - 1):
        used = 0
        for i in range(documents[document], documents[document + 1]):
            tokens = unit_tokens[units[i]]
            if used and used + tokens > max_tokens:
                starts.append(np.int64(i))
                used = 0
            used += tokens
        starts.append(documents[document + 1])
    return np.array(starts)


def _measure_limits(corpus: Corpus, max_tokens: int, fraction: float) -> SequenceLimits:
    """Return the limits of sequences; the number of slots is measured at places spread evenly over the corpus.

    The keys of these places have a fixed seed, so all runs on a corpus have the same limits.
    """
    num_masked = fraction * max_tokens * corpus.info.units / corpus.info.tokens
    share = fraction * (1 + RESERVE_DEVIATIONS * math.sqrt((1 - fraction) / num_masked))
    reserve = np.uint64(min(int(share * 2**64), 2**64 - 1))
    places = np.arange(SAMPLES) * max(1, corpus.info.units - max_tokens) // SAMPLES
    no_slot_limit = SequenceLimits(max_tokens, max_tokens, reserve)
    slots = _count_slots(np.asarray(corpus.units), places, corpus.unit_tokens, no_slot_limit)
    return SequenceLimits(max_tokens, int(np.sort(slots)[int(TOKEN_LIMITED * SAMPLES)]), reserve)


@numba.njit(cache=True, nogil=True)
def _count_slots(units: np.ndarray, places: Int64s, unit_tokens: Int32s, limits: SequenceLimits) -> Int64s:
    """Return the number of slots of the sequences that start at some units; reserved units count as one slot."""
    slots = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        window = units[places[i] : places[i] + limits.max_tokens]
        keys = unit_keys(len(window), 0, 0, i)
        for u in range(sequence_length(window, keys, unit_tokens, limits)):
            slots[i] += 1 if keys[u] < limits.reserve else unit_tokens[window[u]]
    return slots


@numba.njit(cache=True, nogil=True)
def sequence_length(units: np.ndarray, keys: UInt64s, unit_tokens: Int32s, limits: SequenceLimits) -> int:
    """Return the number of units of a sequence: as many as the limits allow, and at least one.

    Args:
        units: identities, from the first unit of the sequence to the end of its document, or at least `max_tokens`.
        keys: uint64, key of each of these units.
        unit_tokens: int32 [C], number of tokens of each identity.
    """
    tokens = slots = 0
    for u in range(len(units)):
        size = unit_tokens[units[u]]
        tokens += size
        slots += 1 if keys[u] < limits.reserve else size
        if tokens > limits.max_tokens or (slots > limits.max_slots and u > 0):
            return u
    return len(units)
