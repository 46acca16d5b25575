"""Messages of the commands of the reader: what to know about the result, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reader.corpus.memmap import Corpus
from reader.errors import print_warning
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo
from reader.plurals import counted
from reader.tokenization.vocabulary import Vocabulary, unknown_warning

# N-grams that occur at most RARE_COUNT times are called rare. They are reported if they are more than RARE_SHARE of a
# lexicon.
RARE_COUNT, RARE_SHARE = 2, 0.2
CURE = "give a --vocab of the text's language, or a larger one; `ernie-gram vocab --size` makes one from the text"


def explain_empty_lexicon(info: LexiconInfo, order: int) -> str:
    """Return why the lexicon is empty; `order` is the lowest order of --top."""
    if info.left_out:
        return (
            f"every n-gram ({info.left_out:,}) has a single sub-word token, or more than {info.max_ngram_tokens} "
            "(--max_ngram_tokens)"
        )
    if info.min_count > 1 and info.totals[str(order)]:
        return f"no n-gram of {counted(order, 'word')} occurs {info.min_count:,} times (--min_count)"
    return "no words of several Han characters" if order == 1 else f"too little text for an n-gram of {order} words"


def rare_ngrams_note(lexicon: Lexicon) -> str | None:
    """Return how many n-grams occur once or twice, and which options leave them out; None if they are few."""
    ngrams = lexicon.ngrams
    is_rare = ngrams.counts <= RARE_COUNT
    num_rare, size = int(is_rare.sum()), len(lexicon)
    if num_rare <= RARE_SHARE * size:
        return None
    # The n-grams of each order are sorted by t, and t of a rare n-gram is low: it is at most about the square root of
    # its count. So a smaller --top leaves out rare n-grams first.
    orders, sizes = np.unique(ngrams.orders, return_counts=True)
    halves = -(-sizes // 2)
    rare_in_half = sum(
        int(is_rare[ngrams.orders == order][:half].sum()) for order, half in zip(orders, halves, strict=True)
    )
    top = ",".join(f"{order}:{half}" for order, half in zip(orders, halves, strict=True))
    return (
        f"{num_rare:,} of {counted(size, 'n-gram')} ({num_rare / size:.0%}) occur only once or twice: "
        f"--min_count {RARE_COUNT + 1} would keep the other {size - num_rare:,}; "
        f"--top {top} would keep the better half, with {rare_in_half:,} such n-grams"
    )


def print_lexicon_summary(path: Path, lexicon: Lexicon, orders: Sequence[int], unknown: float) -> None:
    """Print the size of a lexicon, the share of [UNK] in the tokens of the words, and a note about rare n-grams."""
    info = lexicon.info
    sizes = ", ".join(f"{(lexicon.ngrams.orders == order).sum():,} of {counted(order, 'word')}" for order in orders)
    print(
        f"{path}: {counted(len(lexicon), 'n-gram')} ({sizes}); {counted(info.totals['1'], 'word')} counted; "
        f"{unknown:.2%} of the tokens of frequent words are [UNK]"
    )
    print(f"left out with more than {info.max_ngram_tokens} sub-word tokens, or with a single one: {info.left_out:,}")
    if note := rare_ngrams_note(lexicon):
        print(note)


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


def warn_of_unknown_tokens(source: str, share: float, vocabulary: Vocabulary) -> None:
    """Print a warning on standard error if too many tokens of a text are [UNK]."""
    if warning := unknown_warning(share, vocabulary, CURE):
        print_warning(f"{source}: {warning}")
