"""Find the tokens of the n-grams in a text, and measure whether they attend to each other more than other tokens do.

Shape letters: A heads, n tokens of a text with [CLS] and [SEP].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ernie_gram.inference.texts import TextEncoder
from reader.corpus.units import UnitCutter
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.arrays import Int64s

Floats = npt.NDArray[np.floating]


class TokenSpan(NamedTuple):
    """The tokens [start, end) of a text, counted with [CLS]."""

    start: int
    end: int


class InsideAttention(NamedTuple):
    """The attention inside n-grams, and the attention at the same distances outside of n-grams.

    Attributes:
        inside: the mean weight over all pairs of different tokens (query, key) of the same n-gram.
        expected: the mean over the same pairs of the mean weight at the same distance, with its sign, between two
            tokens that are in no n-gram.
        pairs: the number of these pairs.
        left_out: the number of pairs without a value, because their distances do not occur outside of n-grams.
    """

    inside: Floats
    expected: Floats
    pairs: int
    left_out: int


def inside_attention(weights: Floats, spans: Sequence[TokenSpan]) -> InsideAttention:
    """Return the attention inside n-grams; `inside` and `expected` have the axes of `weights` except the last two.

    [CLS] and [SEP] are in no pair. Without any pair, both values are NaN.

    Args:
        weights: [..., n, n], of each key (last axis) for each query.
        spans: of the n-grams.
    """
    size = weights.shape[-1]
    inside = np.zeros((size, size), bool)
    is_outside = np.ones(size, bool)
    is_outside[[0, -1]] = False
    for start, end in spans:
        inside[start:end, start:end] = True
        is_outside[start:end] = False
    distances = np.arange(size) - np.arange(size)[:, None]
    inside &= distances != 0
    outside = np.outer(is_outside, is_outside)
    sums = np.zeros((2, *weights.shape[:-2]))
    pairs = left_out = 0
    for distance in np.unique(distances[inside]):
        at_distance = distances == distance
        ours, others = inside & at_distance, outside & at_distance
        if not others.any():
            left_out += int(ours.sum())
            continue
        count = int(ours.sum())
        pairs += count
        sums += weights[..., ours].sum(-1), count * weights[..., others].mean(-1)
    means = sums / pairs if pairs else np.full_like(sums, np.nan)
    return InsideAttention(means[0], means[1], pairs, left_out)


def pooled(found: Sequence[InsideAttention]) -> InsideAttention:
    """Return the means over the pairs of several texts; NaN if there are none."""
    counted, left_out = [each for each in found if each.pairs], sum(each.left_out for each in found)
    if not counted:
        return found[0]._replace(left_out=left_out)
    pairs = [each.pairs for each in counted]
    inside, expected = (np.average([each[i] for each in counted], axis=0, weights=pairs) for i in range(2))
    return InsideAttention(inside, expected, sum(pairs), left_out)


def phrase_spans(texts: TextEncoder, text: str, phrases: Sequence[str]) -> list[TokenSpan]:
    """Return every occurrence of phrases as whole words of a text, in the order of the text.

    Raises InputError for a phrase that does not occur, or that the vocabulary cannot spell.
    """
    ids, spans = texts.encode((text,)).ids.tolist(), set[TokenSpan]()
    for phrase in phrases:
        wanted = texts.encode((phrase,)).ids[1:-1].tolist()
        if texts.vocabulary.unk in wanted:
            raise InputError(f"{phrase!r} has a word that the vocabulary cannot spell ([UNK]), so it cannot be found")
        starts = range(1, len(ids) - len(wanted))
        found = {
            TokenSpan(start, start + len(wanted))
            for start in starts
            if ids[start : start + len(wanted)] == wanted and _begins_word(texts, ids[start + len(wanted)])
        }
        if not found:
            raise InputError(f"{phrase!r} does not occur as whole words of the text")
        spans |= found
    return sorted(spans)


def _begins_word(texts: TextEncoder, token: int) -> bool:
    """Return whether a token does not continue the word of the token before it."""
    return token == texts.vocabulary.sep or texts.vocabulary.spelling(token)[1]


def ngram_cutter(texts: TextEncoder, lexicon: Lexicon) -> UnitCutter:
    """Return the cutter for `lexicon_spans`; raises InputError if the lexicon was made with another vocabulary."""
    if lexicon.info.vocabulary != texts.vocabulary.fingerprint:
        raise InputError("the lexicon was made with another vocabulary than that of the model")
    return UnitCutter(texts.vocabulary, lexicon)


def lexicon_spans(texts: TextEncoder, text: str, cutter: UnitCutter) -> list[TokenSpan]:
    """Return the n-grams of a lexicon in a text, cut with the fewest segments as a corpus is.

    For a text that is too long, only n-grams in the part that fits are returned. Raises InputError if the lexicon
    splits Chinese into other words than the model, which changes the tokens of a SentencePiece vocabulary.
    """
    encoded = texts.encode((text,), truncate=True)
    units: Int64s = cutter.cut(text.encode()).units.astype(np.int64)
    is_ngram = units >= cutter.num_tokens
    lengths = np.ones(len(units), np.int64)
    lengths[is_ngram] = np.diff(cutter.ngram_offsets)[units[is_ngram] - cutter.num_tokens]
    ends = 1 + np.cumsum(lengths)
    if len(encoded) < texts.max_tokens and ends[-1] != len(encoded) - 1:
        raise InputError("the lexicon splits the text into other tokens than the model; give the model's own lexicon")
    spans = (TokenSpan(int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True) if length > 1)
    return [span for span in spans if span.end < len(encoded)]
