"""The base class of fine-grained vocabularies V_F, which convert words to tokens and tokens to readable text.

All kinds of vocabulary split text into words by the same rules (basic_tokenizer.py), and each word into tokens
independently of the other words. Therefore the counting, the boundaries and the lexicon only deal with words. The kinds
differ in how they split a word into tokens: see wordpiece.py and sentencepiece.py. vocabulary_file.py determines the
kind of a file.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

from reader.errors import InputError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

CONTINUATION_PREFIX = "##"  # marks a token that continues a word, in readable text if the word itself is not shown


class Vocabulary(ABC):
    """The tokens with their IDs, the folding of text, and the split of a word into tokens.

    Attributes:
        kind: the name of this kind of vocabulary.
        file_name: the name of the file in which a corpus or a run keeps a copy of the vocabulary.
        tokens: the F tokens in the order of their IDs; ids: the ID of each token.
        lowercase: whether text is first converted to lower case and stripped of accents.
        pad, unk, cls, sep, mask: the IDs of the special tokens; special_ids: all of them.
    """

    kind: ClassVar[str]
    file_name: ClassVar[str]

    def __init__(self, tokens: list[str], lowercase: bool, source: str) -> None:
        """Raise an InputError that names `source` if a token occurs twice or a special token is missing."""
        self.tokens = tokens
        self.lowercase = lowercase
        self.ids = {token: i for i, token in enumerate(tokens)}
        if len(self.ids) != len(tokens):
            twice = next(token for i, token in enumerate(tokens) if self.ids[token] != i)
            raise InputError(f"{source}: token {twice!r} occurs twice")
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            names = ", ".join(missing)
            raise InputError(
                f"{source}: special tokens missing: {names}; `ernie-gram vocab` creates a valid vocabulary"
            )
        self.special_ids = [self.ids[token] for token in SPECIAL_TOKENS]
        self.pad, self.unk, self.cls, self.sep, self.mask = self.special_ids

    @classmethod
    @abstractmethod
    def parse(cls, content: bytes, lowercase: bool, source: str) -> Vocabulary:
        """Return the vocabulary in the content of a file; raise an InputError that names `source` if it is invalid."""

    @property
    @abstractmethod
    def content(self) -> bytes:
        """The content of the vocabulary file."""

    @property
    @abstractmethod
    def identity(self) -> object:
        """Everything that determines the token IDs of a word, as a value that JSON can represent."""

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
