"""Units stand for the tokens of their text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from reader.corpus.memmap import Corpus
from reader.corpus.units import UnitCutter


def tokens_of(corpus: Corpus, units: np.ndarray) -> list[int]:
    """Return the tokens of units, concatenated."""
    tokens: list[int] = []
    for unit in units:
        ngram = int(unit) - corpus.info.num_tokens
        if ngram < 0:
            tokens.append(int(unit))
        else:
            tokens += corpus.ngram_tokens[corpus.ngram_offsets[ngram] : corpus.ngram_offsets[ngram + 1]].tolist()
    return tokens


def test_documents_contain_the_tokens_of_their_text(built: Path, corpus: Corpus) -> None:
    """The tokens of a document's units equal the output of a standard BERT tokenizer."""
    tokenizer = Tokenizer(WordPiece(corpus.vocabulary.ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    documents: list[list[int]] = [[]]
    for line in (built / "train.txt").read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            documents.append([])
        documents[-1] += tokenizer.encode(line, add_special_tokens=False).ids
    expected = [tokens for tokens in documents if tokens]
    assert [tokens_of(corpus, corpus.units[a:b]) for a, b in pairwise(corpus.documents)] == expected
    assert corpus.info.tokens == sum(map(len, expected))
    counts = np.bincount(np.concatenate(expected), minlength=corpus.info.num_tokens)
    assert np.array_equal(corpus.token_counts, counts)
    assert corpus.info.documents == len(expected)
    assert corpus.info.ngram_units == (corpus.units >= corpus.info.num_tokens).sum() > 1000
    assert np.array_equal(corpus.unit_counts, np.bincount(corpus.units, minlength=corpus.num_units))
    assert corpus.units.dtype == np.uint16


def test_words_that_are_forgotten_are_cut_as_before(built: Path, corpus: Corpus) -> None:
    lines = (built / "train.txt").read_bytes().splitlines(keepends=True)
    texts = [b"".join(lines[first : first + 40]) for first in range(0, 400, 40)]
    for lexicon in (None, corpus.lexicon):
        forgetful, usual = (UnitCutter(corpus.vocabulary, lexicon, max_words=number) for number in (3, 1 << 20))
        for text in texts:
            found, expected = forgetful.cut(text), usual.cut(text)
            assert np.array_equal(found.units, expected.units)
            assert np.array_equal(found.documents, expected.documents)
