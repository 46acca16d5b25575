"""From counted n-grams to a lexicon: which of them it takes."""

from __future__ import annotations

import numpy as np

from reader.lexicon.extraction import CountingResult, Settings
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo
from reader.tokenization.piece_table import PieceTable
from reader.tokenization.vocabulary import Vocabulary


def make_lexicon(result: CountingResult, vocabulary: Vocabulary, settings: Settings, max_ngram_tokens: int) -> Lexicon:
    """Return the lexicon of the counted n-grams, without those of more than `max_ngram_tokens` sub-word tokens.

    N-grams of a single sub-word token are also left out: a word of Han characters may be a token of sentencepiece, and
    such a word needs no second identity.
    """
    best = result.best
    table = PieceTable(vocabulary)
    table.extend(best.words)
    ends = np.concatenate([[0], np.cumsum(np.diff(table.offsets)[best.word_ids])])
    tokens = np.diff(ends[best.offsets])
    kept = best.select((tokens > 1) & (tokens <= max_ngram_tokens))
    info = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        han=settings.segmenter,
        text=result.text,
        totals={str(order): total for order, total in result.totals.items()},
        top={str(order): k for order, k in settings.top.items()},
        max_ngram_tokens=max_ngram_tokens,
        min_count=settings.min_count,
        left_out=len(best.counts) - len(kept.counts),
    )
    return Lexicon(kept, info)
