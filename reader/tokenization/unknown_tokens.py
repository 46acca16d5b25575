"""The share of [UNK] in the tokens of a text. [UNK] stands for every word that a vocabulary cannot spell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reader.tokenization.piece_table import PieceTable
from reader.tokenization.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

# With a larger share, commands warn.
MAX_UNKNOWN_SHARE = 0.03


def unknown_share(token_counts: Int64s, vocabulary: Vocabulary) -> float:
    """Return the share of [UNK] among tokens; [CLS], [SEP] and [PAD], which come from no text, do not count.

    Args:
        token_counts: int64 [F], the number of occurrences of each token.
    """
    added = token_counts[[vocabulary.cls, vocabulary.sep, vocabulary.pad]].sum()
    return float(token_counts[vocabulary.unk] / max(1, token_counts.sum() - added))


def unknown_share_of_words(words: Sequence[str], counts: Int64s, vocabulary: Vocabulary) -> float:
    """Return the share of [UNK] in the tokens of words; `counts`, int64 [n], says how often each word occurs."""
    table = PieceTable(vocabulary)
    table.extend(words)
    token_counts = np.zeros(len(vocabulary), np.int64)
    np.add.at(token_counts, table.pieces, np.repeat(counts, np.diff(table.offsets)))
    return unknown_share(token_counts, vocabulary)


def unknown_warning(share: float, vocabulary: Vocabulary, cure: str) -> str | None:
    """Return a warning if more than MAX_UNKNOWN_SHARE of the tokens of a text are [UNK], otherwise None.

    Args:
        cure: what to do if the vocabulary is one of another language.
    """
    if share <= MAX_UNKNOWN_SHARE:
        return None
    has_capitals = any(token != token.lower() for token in vocabulary.tokens if not token.startswith("["))
    if not vocabulary.lowercase and not has_capitals:
        cure = "the vocabulary has no capital letters; leave out --cased"
    return f"{share:.2%} of the tokens are [UNK], which stands for words that the vocabulary cannot spell: {cure}"
