"""Choose sentences of a held-out corpus, and an n-gram and a word in each that are to be masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reader.corpus.memmap import Corpus
from reader.tokenization.vocabulary import Vocabulary

# A sentence ends with one of these tokens, and has at least and at most so many units.
ENDS = ".!?。！？"
SHORTEST, LONGEST = 8, 24
# Units between the two masks of a sentence, at least.
DISTANCE = 2


@dataclass(frozen=True, order=True)
class Sentence:
    """Units of a corpus, of which some are to be masked.

    Attributes:
        units: identities.
        masked: places of the units to be masked, in order.
    """

    units: tuple[int, ...]
    masked: tuple[int, ...]


def chosen_sentences(corpus: Corpus, number: int, max_tokens: int) -> list[Sentence]:
    """Return sentences of at most `max_tokens` tokens from all over a corpus, each with a masked n-gram and word.

    Sentences without n-grams are taken if there are not enough others; then only a word is masked.
    """
    vocabulary, num_tokens = corpus.vocabulary, corpus.info.num_tokens
    ends = [i for i, token in enumerate(vocabulary.tokens) if vocabulary.text([i]).strip() in tuple(ENDS)]
    places = np.flatnonzero(np.isin(corpus.units, ends))
    starts, stops = places[:-1] + 1, places[1:] + 1
    # The whole sentence is in one document.
    same = np.searchsorted(corpus.documents, starts, "right") == np.searchsorted(corpus.documents, stops - 1, "right")
    fits = np.flatnonzero(same & (stops - starts >= SHORTEST) & (stops - starts <= LONGEST))
    found, without = list[tuple[int, Sentence]](), list[tuple[int, Sentence]]()
    # A fixed seed, so that all pages show the same sentences.
    for index in np.random.default_rng(0).permutation(fits).tolist():
        units = corpus.units[starts[index] : stops[index]].tolist()
        sentence = _masked(units, vocabulary, num_tokens)
        if sentence and corpus.unit_tokens[units].sum() <= max_tokens:
            (found if len(sentence.masked) > 1 or not corpus.info.num_ngrams else without).append((index, sentence))
        if len(found) == number:
            break
    return [sentence for _, sentence in sorted([*found, *without][:number])]


def _masked(units: list[int], vocabulary: Vocabulary, num_tokens: int) -> Sentence | None:
    """Return a sentence with the masks nearest to its middle; None if no word can be masked, and for [UNK]."""
    if vocabulary.unk in units:
        return None
    middle = len(units) / 2
    by_distance = sorted(range(1, len(units) - 1), key=lambda place: abs(place - middle))
    ngram = next((place for place in by_distance if units[place] >= num_tokens), None)
    word = next(
        (
            place
            for place in by_distance
            if _is_word(units, place, vocabulary, num_tokens) and (ngram is None or abs(place - ngram) > DISTANCE)
        ),
        None,
    )
    if word is None:
        return None
    return Sentence(tuple(units), tuple(sorted([word, *([] if ngram is None else [ngram])])))


def _is_word(units: list[int], place: int, vocabulary: Vocabulary, num_tokens: int) -> bool:
    """Return whether a unit is a token that is a whole word of letters."""
    unit, after = units[place], units[place + 1]
    if unit >= num_tokens:
        return False
    _, begins = vocabulary.spelling(unit)
    following, ends = vocabulary.spelling(after) if after < num_tokens else ("", True)
    text = vocabulary.text([unit])
    # In a SentencePiece vocabulary, punctuation marks do not begin a word.
    return begins and (ends or not following.isalnum()) and text.isalpha() and (len(text) > 3 or not text.isascii())


def tokens_of(corpus: Corpus, unit: int) -> list[int]:
    """Return the tokens of a unit."""
    if unit < corpus.info.num_tokens:
        return [unit]
    first, last = corpus.ngram_offsets[unit - corpus.info.num_tokens :][:2]
    found: list[int] = corpus.ngram_tokens[first:last].tolist()
    return found


def text_of(corpus: Corpus, units: Sequence[int]) -> str:
    """Return some units as text."""
    return corpus.vocabulary.text([token for unit in units for token in tokens_of(corpus, unit)])


def masked_tokens(
    sentence: Sentence, corpus: Corpus, mask: int, is_explicit: bool
) -> tuple[list[int], list[list[int]]]:
    """Return the tokens of a sentence with masks, and the identities behind each mask.

    Args:
        is_explicit: whether an n-gram is one [MASK] and one identity, or else one of each for each of its tokens.
    """
    ids, gold = list[int](), list[list[int]]()
    for place, unit in enumerate(sentence.units):
        tokens = tokens_of(corpus, unit)
        if place in sentence.masked:
            gold.append([unit] if is_explicit else tokens)
            tokens = [mask] * len(gold[-1])
        ids += tokens
    return ids, gold
