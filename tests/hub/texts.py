"""Texts over which our tokenizer and PaddleNLP's are compared."""

from __future__ import annotations

import unicodedata

from reader.tokenization.basic_tokenizer import fold, split_words
from reader.tokenization.vocabulary import Vocabulary

# One text for each rule that could differ, for a vocabulary of this file's words.
DIFFICULT = (
    "plain words, in lower case",
    "Capitals ÉCOLE naïve coöperate Ångström",
    "punctuation: isn't it? (yes!) a-b-c ... “quotes” — dash",
    "中文和English混合，标点。",
    "control\x00 characters\x07 soft\u00adhyphen zero\u200bwidth no\u00a0break line\u2028end",
    "price 5€ 30°C a→b x≠y c++ $3 ^2 `code` ~1 |",
    "emoji😀inside ©2021 ™ ½ ² º Ø ŋ 〇",
    "a [MASK] and [SEP] or [UNK]",
    "日本語のテキスト 한국어 텍스트 हिन्दी ไทย العربية",
    "w" * 101 + " " + "w" * 100,
    "  spaces  \t tabs \r\n and lines ",
    "",
)
# Characters beside those of category S that PaddleNLP takes for symbols.
MORE_SYMBOLS = "\u00ad\u00b2\u00ba\u3007\u00b5\u00d8\u014b\u01b1"


def token_ids(text: str, vocabulary: Vocabulary) -> list[int]:
    """Return [CLS], our token IDs of a text, [SEP]."""
    words = split_words(text, vocabulary.lowercase)
    return [vocabulary.cls, *(token for word in words for token in vocabulary.encode(word)), vocabulary.sep]


def with_separate_symbols(text: str, lowercase: bool) -> str:
    """Return a text in which the characters that PaddleNLP takes for symbols stand between spaces."""
    folded = fold(text) if lowercase else text
    return "".join(f" {c} " if unicodedata.category(c)[0] == "S" or c in MORE_SYMBOLS else c for c in folded)
