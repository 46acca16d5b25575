"""Texts that a caller gives: what is no text is refused in every door, and never read as something else."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from reader.tokenization.basic_tokenizer import has_words, split_words
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.data_frames import FRAMES

TOKENIZER = Tokenizer(WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"], True, "v"))
NO_LISTS: list[Any] = ["a b", b"a", bytearray(b"a"), {"a": "b"}, Path("a"), 3, None, *(f({"a": ["b"]}) for f in FRAMES)]


@pytest.mark.parametrize("given", NO_LISTS, ids=lambda given: type(given).__name__)
def test_what_is_no_list_or_no_text_is_refused_and_counted_from_0(given: Any) -> None:
    for name, encode in (("texts", TOKENIZER.encode_batch), ("sentences", TOKENIZER.encode_words_batch)):
        with pytest.raises(InputError, match=rf"^{name}: "):
            encode(given)
    with pytest.raises(InputError, match=r"^sentences\[1\]: "):
        TOKENIZER.encode_words_batch([["a"], given])
    if not isinstance(given, str):
        with pytest.raises(InputError, match=r"^texts\[1\] is "):
            TOKENIZER.encode_batch(["a", given])
        with pytest.raises(InputError, match=r"^sentences\[0\]\[1\] is "):
            TOKENIZER.encode_words_batch([["a", given]])


def test_lists_of_any_type_are_read() -> None:
    for texts in (["a", "b"], ("a", "b"), np.array(["a", "b"]), (text for text in "ab"), {"a": 1, "b": 2}.keys()):
        assert [each.ids.tolist() for each in TOKENIZER.encode_batch(texts)] == [[5], [6]]  # type: ignore[arg-type]
    assert len(TOKENIZER.encode("")) == 0


def test_a_text_has_words_if_tokenizers_of_every_vocabulary_find_one() -> None:
    for code in (*range(0xD800), *range(0xE000, sys.maxunicode + 1, 7)):
        character = chr(code)
        found = bool(split_words(character, lowercase=True))
        assert has_words(character) == has_words(f"\u200b {character}\u0301") == found, hex(code)
        assert unicodedata.category(character) == "Mn" or bool(split_words(character, lowercase=False)) == found
