"""Messages about a lexicon and a corpus: a summary of the command's result, and warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reader.corpus.memmap import Corpus
from reader.errors import counted, print_warning
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary import unknown_warning

ADVICE = (
    "give a --vocab of the text's language, or a larger one (`ernie-gram vocab --size` makes one from the text); with "
    "--cased, it needs capital letters"
)
# A model can only learn what it sees often enough. With 130 occurrences and 15 % masked units, the identity of an
# n-gram is predicted about 20 times in an epoch. In our study of lexicon sizes, models that had predicted the median
# n-gram about 30 times were better than counts of left neighbours, and those that had predicted it about 9 times were
# worse. The paper has about 1,500 occurrences.
MIN_MEDIAN_OCCURRENCES = 130


def print_lexicon_summary(path: Path, lexicon: Lexicon) -> None:
    """Print the size of a lexicon."""
    info, orders = lexicon.info, lexicon.ngrams.orders
    sizes = ", ".join(f"{(orders == order).sum():,} of {counted(order, 'word')}" for order in map(int, info.top))
    print(f"{path}: {counted(len(lexicon), 'n-gram')} ({sizes}); {counted(info.totals['1'], 'word')} counted")
    left_out = counted(info.left_out, "n-gram")
    print(f"left out: {left_out} with a single sub-word token, with more than {info.max_ngram_tokens}, or with [UNK]")


def print_corpus_summary(path: Path) -> None:
    """Print the size of a corpus, its share of [UNK] and its most frequent n-grams."""
    corpus = Corpus(path)
    info = corpus.info
    print(
        f"{path}: {counted(info.documents, 'document')}, {counted(info.tokens, 'token')}, "
        f"{counted(info.units, 'unit')}; {counted(info.ngram_units, 'n-gram')} with "
        f"{1 - (info.units - info.ngram_units) / info.tokens:.1%} of all tokens; "
        f"{corpus.unknown_share:.2%} of all tokens are [UNK]"
    )
    if info.ngram_units:
        frequent = np.argsort(-corpus.unit_counts[info.num_tokens :], kind="stable")[:10] + info.num_tokens
        frequent = frequent[corpus.unit_counts[frequent] > 0]
        shown = (f"{corpus.names.text(int(unit))} ({corpus.unit_counts[unit]:,})" for unit in frequent)
        print(f"most frequent n-grams: {', '.join(shown)}")
    if warning := unknown_warning(corpus.unknown_share, ADVICE):
        print_warning(f"{path}: {warning}")
    # Only for the text from which the lexicon was made: other text, such as held-out text, may be small.
    is_its_text = corpus.lexicon is not None and corpus.lexicon.info.text == info.text
    if (is_its_text or not info.ngram_units) and (warning := large_lexicon_warning(corpus)):
        print_warning(f"{path}: {warning}")


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
