"""The fine-grained vocabulary V_F, whatever its kind: words -> pieces, and pieces -> text for people.

Text is split into words by one rule (tokenization.py), and each word is cut into pieces on its own, so counting,
boundaries and the lexicon know words only. How a word is cut is what the kinds differ in: see wordpiece.py and
sentence_pieces.py; which kind a file holds: vocabulary_file.py.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from reader.errors import InputError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

CONTINUES = "##"  # in front of a token that continues a word, where that word is not shown


class Vocabulary(ABC):
    """Tokens by id, ids by token, how text is folded for them, and how a word is cut into them.

    Attributes:
        kind: what this kind of vocabulary is called.
        file_name: what the copy of one is called that a corpus or a run keeps.
        tokens: token of every id, F in all; ids: the other way round.
        lowercase: whether text is lower-cased and stripped of accents first.
        pad, unk, cls, sep, mask: ids of the special tokens.
    """

    kind: ClassVar[str]
    file_name: ClassVar[str]

    def __init__(self, tokens: list[str], lowercase: bool, source: str) -> None:
        """Raises InputError, which names `source`, if a token occurs twice or a special one is absent."""
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
                f"{source}: no {names} among its tokens; `python -m reader.build vocab` makes ones that fit"
            )
        self.pad, self.unk, self.cls, self.sep, self.mask = (self.ids[token] for token in SPECIAL_TOKENS)

    @classmethod
    @abstractmethod
    def parse(cls, content: bytes, lowercase: bool, source: str) -> Vocabulary:
        """The vocabulary in a file's content; raises InputError, which names `source`, if it holds none."""

    @property
    @abstractmethod
    def content(self) -> bytes:
        """What a file of it holds."""

    @property
    @abstractmethod
    def made_of(self) -> object:
        """What decides how a word becomes ids, in JSON's types."""

    @abstractmethod
    def encode(self, word: str) -> list[int]:
        """The token ids of a word, at least one."""

    @abstractmethod
    def spelling(self, token: int) -> tuple[str, bool]:
        """The letters that a token adds to a text, and whether they begin a word."""

    def __len__(self) -> int:
        """F."""
        return len(self.tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides how text becomes ids."""
        return hashlib.sha256(json.dumps([self.kind, self.lowercase, self.made_of]).encode()).hexdigest()

    def text(self, parts: Iterable[int | str]) -> str:
        """Token ids, and ready words such as "[MASK 1]" between them, as a person would write them.

        A token that continues a word is joined to what stands before it, and marked by "##" where nothing does.
        """
        words: list[str] = []
        for part in parts:
            letters, begins = (part, True) if isinstance(part, str) else self.spelling(part)
            if begins:
                words.append(letters)
            elif words:
                words[-1] += letters
            else:
                words.append(CONTINUES + letters)
        return " ".join(word for word in words if word)


class PieceTable:
    """The pieces of numbered words: `pieces[offsets[i]:offsets[i + 1]]` are the token ids of word i.

    Attributes:
        pieces: int32; offsets: int64 [words + 1].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._encode = vocabulary.encode
        self.pieces = np.zeros(0, np.int32)
        self.offsets = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """How many words it knows."""
        return len(self.offsets) - 1

    def extend(self, words: Sequence[str]) -> None:
        """Cut the words numbered from len(self) on."""
        if not words:
            return
        ends, pieces = array("q"), array("i")
        for word in words:
            pieces.extend(self._encode(word))
            ends.append(len(pieces))
        self.offsets = np.concatenate([self.offsets, self.offsets[-1] + np.asarray(ends, np.int64)])
        self.pieces = np.concatenate([self.pieces, np.asarray(pieces, np.int32)])

    def keep(self, words: int) -> None:
        """Forget all but the first `words` words."""
        self.offsets = self.offsets[: words + 1].copy()
        self.pieces = self.pieces[: self.offsets[-1]].copy()
