"""How often the n-grams of a corpus occur in it: a model can only learn what it sees often enough."""

from __future__ import annotations

import numpy as np

from reader.corpus.memmap import Corpus

# With 130 occurrences and 15 % masked units, the identity of an n-gram is predicted about 20 times in an epoch. In our
# study of lexicon sizes, models that had predicted the median n-gram about 30 times were better than counts of left
# neighbours, and those that had predicted it about 9 times were worse. The paper has about 1,500 occurrences.
MIN_MEDIAN_OCCURRENCES = 130


def large_lexicon_warning(corpus: Corpus) -> str | None:
    """Return a warning if the n-grams of the lexicon occur too rarely in a corpus, or not at all; otherwise None."""
    counts = corpus.unit_counts[corpus.info.num_tokens :]
    if not len(counts) or (median := np.median(counts)) >= MIN_MEDIAN_OCCURRENCES:
        return None
    if not corpus.info.ngram_units:
        return (
            "no n-gram of the lexicon occurs in this text; is it in another language, or are its words separated in "
            "another way (--segmenter of the lexicon)?"
        )
    return (
        f"the lexicon is too large for this text: half of its {corpus.info.num_ngrams:,} n-grams occur at most "
        f"{median:,.0f} times, which should be {MIN_MEDIAN_OCCURRENCES} times or more, so that a model predicts them "
        "often enough to learn them; make one with fewer n-grams (--top, --min_count), or use more text"
    )
