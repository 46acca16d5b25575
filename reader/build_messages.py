"""Messages of the reader's commands: a summary of the result, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reader.corpus.memmap import Corpus
from reader.corpus.occurrences import large_lexicon_warning
from reader.errors import counted, print_warning
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary import Vocabulary, unknown_warning

ADVICE = "give a --vocab of the text's language, or a larger one; `ernie-gram vocab --size` makes one from the text"


def print_lexicon_summary(path: Path, lexicon: Lexicon, orders: Sequence[int], unknown: float) -> None:
    """Print the size of a lexicon, and the share of [UNK] in the tokens of the words."""
    info = lexicon.info
    sizes = ", ".join(f"{(lexicon.ngrams.orders == order).sum():,} of {counted(order, 'word')}" for order in orders)
    print(
        f"{path}: {counted(len(lexicon), 'n-gram')} ({sizes}); {counted(info.totals['1'], 'word')} counted; "
        f"{unknown:.2%} of the tokens of frequent words are [UNK]"
    )
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
    warn_of_unknown_tokens(str(path), corpus.unknown_share, corpus.vocabulary)
    # Only for the text from which the lexicon was made: other text, such as held-out text, may be small.
    is_its_text = corpus.lexicon is not None and corpus.lexicon.info.text == info.text
    if (is_its_text or not info.ngram_units) and (warning := large_lexicon_warning(corpus)):
        print_warning(f"{path}: {warning}")


def warn_of_unknown_tokens(source: str, share: float, vocabulary: Vocabulary) -> None:
    """Print a warning on standard error if too many tokens of a text are [UNK]."""
    if warning := unknown_warning(share, vocabulary, ADVICE):
        print_warning(f"{source}: {warning}")
