"""Fine-grained vocabularies V_F, which convert words to tokens and tokens to readable text; the share of [UNK].

All kinds of vocabulary split text into words by the same rules (basic_tokenizer.py), and each word into tokens
independently of the other words. Therefore the counting, the boundaries and the lexicon only deal with words. The kinds
differ in how they split a word into tokens: see wordpiece.py and sentencepiece.py. vocabulary_file.py determines the
kind of a file.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np

from reader.errors import InputError
from reader.system.arrays import Int64s
from reader.tokenization.basic_tokenizer import is_han

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

CONTINUATION_PREFIX = "##"  # marks a token that continues a word

# Commands warn if the share of [UNK] is larger.
MAX_UNKNOWN_SHARE = 0.03


class Vocabulary(ABC):
    """The tokens with their IDs, the folding of text, and the split of a word into tokens.

    Attributes:
        kind: the name of this kind of vocabulary.
        file_name: the name of the file in which a corpus or a run keeps a copy of the vocabulary.
        tokens: the F tokens in the order of their IDs; ids: the ID of each token, the later one if it has two.
        content: the content of the vocabulary file.
        identity: everything that determines the token IDs of a word, as a value that JSON can represent.
        lowercase: whether text is first converted to lower case and stripped of accents.
        pad, unk, cls, sep, mask: the IDs of the special tokens; special_ids: all of them.
        unicode: the version of Unicode with which it was first used (see vocabulary_file.py).
    """

    kind: ClassVar[str]
    file_name: ClassVar[str]

    def __init__(self, tokens: list[str], content: bytes, identity: object, lowercase: bool, source: str) -> None:
        """Raise an InputError that names `source` if a special token is missing."""
        self.tokens, self.content, self.identity = tokens, content, identity
        self.lowercase = lowercase
        self.unicode = unicodedata.unidata_version
        # Of a token that stands twice, as in the vocabularies of ERNIE 3.0, the later ID counts, as in other software.
        self.ids = {token: i for i, token in enumerate(tokens)}
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            names = ", ".join(missing)
            raise InputError(
                f"{source}: special tokens missing: {names}; `ernie-gram vocab` creates a valid vocabulary"
            )
        self.special_ids = [self.ids[token] for token in SPECIAL_TOKENS]
        self.pad, self.unk, self.cls, self.sep, self.mask = self.special_ids

    @abstractmethod
    def encode(self, word: str) -> list[int]:
        """Return the token IDs of a word, at least one."""

    @abstractmethod
    def encode_with_spans(self, word: str) -> list[tuple[int, int, int]]:
        """Return the token IDs of a word as `encode` does, each with its half-open span of characters of the word.

        Each element is (ID, start, end). Starts and ends are in ascending order.
        """

    @abstractmethod
    def spelling(self, token: int) -> tuple[str, bool]:
        """Return the characters that a token adds to a text, and whether they begin a word."""

    def __len__(self) -> int:
        """Return the number of tokens, F."""
        return len(self.tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that determines the token IDs of a text."""
        return hashlib.sha256(json.dumps([self.kind, self.lowercase, self.identity]).encode()).hexdigest()

    def text(self, parts: Iterable[int | str]) -> str:
        """Return readable text for token IDs. `parts` may also contain finished words such as "[MASK 1]".

        A token that continues a word is appended to the preceding word, or marked by "##" at the beginning of the text.
        """
        words: list[str] = []
        for part in parts:
            letters, begins = (part, True) if isinstance(part, str) else self.spelling(part)
            if begins:
                words.append(letters)
            elif words:
                words[-1] += letters
            else:
                words.append(CONTINUATION_PREFIX + letters)
        return " ".join(word for word in words if word)


def select_alphabet(counts: Counter[str], vocab_size: int) -> list[str]:
    """Return the most frequent characters, in descending order of their counts.

    Their tokens fill at most three quarters of the vocabulary: a Han character, which is always a word, takes one
    token, and any other character takes two. At most vocab_size // 4 are not Han characters. Equally frequent
    characters are either all included or all left out.
    """
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    others = accumulate(not is_han(character) for character in ranked)
    fits = [
        count <= vocab_size // 4 and 4 * (number + count) <= 3 * vocab_size
        for number, count in enumerate(others, start=1)
    ]
    if not all(fits):
        first_excluded = counts[ranked[fits.index(False)]]
        ranked = [character for character in ranked if counts[character] > first_excluded]
    return ranked


class PieceTable:
    """The token IDs of words: those of word i are pieces[offsets[i]:offsets[i + 1]].

    Attributes:
        pieces: int32 [total number of tokens]; offsets: int64 [words + 1].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._encode = vocabulary.encode
        self.pieces = np.zeros(0, np.int32)
        self.offsets = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.offsets) - 1

    def extend(self, words: Sequence[str]) -> None:
        """Append words; the first of them gets the index len(self)."""
        ends, pieces = array("q"), array("i")
        for word in words:
            pieces.extend(self._encode(word))
            ends.append(len(pieces))
        self.offsets = np.concatenate([self.offsets, self.offsets[-1] + np.asarray(ends, np.int64)])
        self.pieces = np.concatenate([self.pieces, np.asarray(pieces, np.int32)])

    def truncate(self, num_words: int) -> None:
        """Remove all words except the first `num_words`."""
        self.offsets = self.offsets[: num_words + 1].copy()
        self.pieces = self.pieces[: self.offsets[-1]].copy()


def unknown_share(token_counts: Int64s, vocabulary: Vocabulary) -> float:
    """Return the share of [UNK] among tokens; [CLS], [SEP] and [PAD], which come from no text, do not count.

    Args:
        token_counts: int64 [F], the number of occurrences of each token.
    """
    added = token_counts[[vocabulary.cls, vocabulary.sep, vocabulary.pad]].sum()
    return float(token_counts[vocabulary.unk] / max(1, token_counts.sum() - added))


def unknown_warning(share: float, advice: str) -> str | None:
    """Return a warning, with `advice`, if more than MAX_UNKNOWN_SHARE of the tokens of a text are [UNK], or None."""
    if share <= MAX_UNKNOWN_SHARE:
        return None
    return f"{share:.2%} of the tokens are [UNK], which stands for words that the vocabulary cannot spell: {advice}"
