"""Words of a sentence that may be masked as examples."""

from __future__ import annotations

import pytest

from ernie_gram.reporting.examples import _is_word
from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

WORDPIECE = WordPieceVocabulary([*SPECIAL_TOKENS, "walk", "##i", "."])
SENTENCEPIECE = train_sentencepiece(["walk home .", "walking home.", "home walking .", "talking walk."] * 50, 30, True)


@pytest.mark.parametrize("vocabulary", [WORDPIECE, SENTENCEPIECE], ids=["wordpiece", "sentencepiece"])
def test_a_part_of_a_word_is_no_word(vocabulary: Vocabulary) -> None:
    tokens = {vocabulary.spelling(token): token for token in range(len(vocabulary))}
    walk, part = tokens["walk", True], tokens["i", False]
    stop = tokens.get((".", False), tokens[".", True])
    ngram = len(vocabulary)
    found = {
        after: _is_word([walk, after], 0, vocabulary, num_tokens=len(vocabulary)) for after in (walk, part, stop, ngram)
    }
    assert found == {walk: True, part: False, stop: True, ngram: True}
    assert not any(_is_word([unit, walk], 0, vocabulary, len(vocabulary)) for unit in (part, stop, ngram))
