"""The tokenizer's IDs equal those of the corpus builder, and its spans those of a slow, plain reference."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from reader.corpus.units import UnitCutter
from reader.errors import InputError
from reader.tokenization import tokenizer
from reader.tokenization.basic_tokenizer import fold, is_dropped, is_han
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.tokenizer import WHITE_SPACE, TextPieces, Tokenizer
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.reader.tokenization.test_basic_tokenizer import MIXED
from tests.reader.tokenization.test_sentencepiece import OURS, trained
from tests.support.reference_tokenizer import assert_spans_are_sound, corpus_ids, reference, tokens_of

LETTERS = [*"abAB09éÉıİßΣσςæØﬁǅΐ…①㎏ｱﾞＡ１", "\u1e9e", "\u0958", "\u09cb", "\u1100", "\u1161", "\u11a8"]
MARKS = [*"\u0301\u0308\u0327\u0344\u0345\u0e31\u302e\ufe0f", "\U000e0100"]
SPACES = [*" \t\n\r\u00a0\u2003\u2028\u3000"]
DROPPED = [*"\x00\x0b\x1c\x85\u200b\u200d\ufeff\ufffd\ue000\u0378", "\ud800", "\udfff", "\ufa6e", "\U0002a6df"]
OTHERS = [
    *".,-$^_[]—“”\u037e、。！￥中国人民大学\uf900\u3400",
    *"가각힣กิ่ไ▁☃😀👩🏽\U0001f1e6",
    "\U00020000",
    "\U0002f800",
]
STRINGS = ["[MASK]", "[UNK]", "##", "e\u0301", "中\u0301", "ΑΣ", "e\u302e\u0327", "👩\u200d👩\u200d👧", "x" * 101]
ALPHABET = [*LETTERS, *MARKS, *SPACES, *DROPPED, *OTHERS, *STRINGS]


def random_texts(count: int, alphabet: list[str]) -> list[str]:
    draw = random.Random(14)
    return ["".join(draw.choices(alphabet, k=draw.randint(0, 30))) for _ in range(count)]


def all_characters_vocabulary(lowercase: bool) -> WordPieceVocabulary:
    """A vocabulary with most characters of ALPHABET, folded and not, so that few words become [UNK]."""
    characters = {c for text in ALPHABET for c in [*text, *fold(text), *text.lower()] if not "\ud800" <= c <= "\udfff"}
    # Some characters are left out, and some pairs are added.
    tokens = [c for c in sorted(characters) if c not in {"b", "国", "\ufeff", "\x85"} | set(WHITE_SPACE)]
    pairs = [a + b for a in tokens[::7] for b in tokens[::5]]
    return WordPieceVocabulary(
        [*SPECIAL_TOKENS, *dict.fromkeys([*tokens, *pairs, *(f"##{token}" for token in [*tokens, *pairs])])], lowercase
    )


@pytest.fixture(scope="module")
def sentencepiece() -> SentencePieceVocabulary:
    lines = [line for text in [*topics.values()][:12] for line in text.split("\n")]
    chinese = ["中国人民大学在北京。人民大学的中国研究很重要！大学在国中", "finé ﬁne kg Σσς aß 中国 e\u302e ..."] * 30
    return train_sentencepiece(lines + chinese, 400, True, "jieba")


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_tokens_equal_the_reference_and_the_corpus(lowercase: bool, built: Path) -> None:
    texts = random_texts(1500, ALPHABET) + MIXED + random_texts(300, [*"abAB é.\u0301İ中"])
    texts += [f"a{chr(code)}b é{chr(code)}\u0301 中{chr(code)}" for code in range(0x21, 0x1_FFFF, 11)]
    for vocabulary in (all_characters_vocabulary(lowercase), load_vocabulary(built / "vocab.txt", lowercase)):
        cutter = UnitCutter(vocabulary, None)
        # Segmenters are for SentencePiece only.
        for text, encoding in zip(texts, Tokenizer(vocabulary, "jieba").encode_batch(texts), strict=True):
            assert encoding.ids.tolist() == corpus_ids(cutter, text), repr(text)
            assert tokens_of(encoding) == reference(text, vocabulary), repr(text)
            arrays = (encoding.ids, encoding.starts, encoding.ends, encoding.word_ids)
            assert {values.dtype.name for values in arrays} == {"int32"}


@pytest.mark.parametrize("cut_han", ["char", "jieba", "space"])
def test_sentencepiece_tokens_equal_those_of_the_corpus(
    cut_han: str, sentencepiece: SentencePieceVocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reader.corpus.units.segmenter_of", lambda lexicon: cut_han)
    # SentencePiece treats its own mark as white space; see the next test.
    alphabet = [c for c in [*ALPHABET, *"fin中国人民大学"] if c != "▁"]
    texts = random_texts(700, alphabet)
    cutter = UnitCutter(sentencepiece, None)
    for text, encoding in zip(texts, Tokenizer(sentencepiece, cut_han).encode_batch(texts), strict=True):
        assert encoding.ids.tolist() == corpus_ids(cutter, text), repr(text)
        assert tokens_of(encoding) == reference(text, sentencepiece, cut_han), repr(text)


def test_the_mark_of_sentencepiece_keeps_spans_in_order_and_bytes_of_a_character_share_its_span(
    sentencepiece: SentencePieceVocabulary,
) -> None:
    tokenizer, cutter = Tokenizer(sentencepiece), UnitCutter(sentencepiece, None)
    for text in ["▁", "a▁b", "▁▁a", "a▁", "ab▁▁cd ▁", *random_texts(300, [*"a▁b \u0301中"])]:
        encoding = tokenizer.encode(text)
        assert encoding.ids.tolist() == corpus_ids(cutter, text), repr(text)
        assert_spans_are_sound(text, encoding, sentencepiece)
    tokenizer = Tokenizer(SentencePieceVocabulary(trained(**OURS, byte_fallback=True, vocab_size=300)))
    encoding = tokenizer.encode("s☃\u0301s ﬁ")
    tokens = [tokenizer.vocabulary.tokens[token] for token in encoding.ids]
    spans = [*zip(encoding.starts.tolist(), encoding.ends.tolist(), strict=True)]
    assert tokens == ["▁", "s", "<0xE2>", "<0x98>", "<0x83>", "s", "▁", "f", "<0x69>"]
    assert spans == [(0, 0), (0, 1), (1, 3), (1, 3), (1, 3), (3, 4), (5, 5), (5, 6), (5, 6)]


def test_the_constants_of_the_pattern_agree_with_the_basic_tokenizer() -> None:
    every = [*map(chr, range(sys.maxunicode + 1))]
    assert {c for c in every if c.isspace() and not is_dropped(c)} | set("\t\n\r") == set(WHITE_SPACE)
    common = re.findall(f"[{tokenizer.COMMON_HAN}]", "".join(every))
    assert len(common) > 27_000
    assert all(is_han(c) and not is_dropped(c) and fold(c) == c for c in common)


def test_groups_of_texts_and_a_full_cache_do_not_change_the_tokens_and_it_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vocabulary = all_characters_vocabulary(True)
    texts = random_texts(200, ALPHABET)
    expected = [tokens_of(Tokenizer(vocabulary).encode(text)) for text in texts]
    monkeypatch.setattr(tokenizer, "GROUP", 7)
    monkeypatch.setattr(tokenizer, "MAX_CACHED_CHARACTERS", 500)
    shared = Tokenizer(vocabulary)
    assert [tokens_of(encoding) for encoding in shared.encode_batch(texts)] == expected
    assert [tokens_of(encoding) for encoding in shared.encode_batch(texts)] == expected
    sentences = [text.split("a") for text in texts]
    assert [tokens_of(encoding) for encoding in shared.encode_words_batch(sentences)] == [
        tokens_of(Tokenizer(vocabulary).encode_words_batch([sentence])[0]) for sentence in sentences
    ]
    assert shared.encode_batch([]) == shared.encode_words_batch([]) == []
    monkeypatch.setattr(tokenizer, "MAX_CACHED_CHARACTERS", 100)
    pieces = TextPieces(all_characters_vocabulary(True), "char")
    held = []
    for i in range(200):
        pieces.encode(f"word{i} again")
        held.append(sum(map(len, pieces)))
        assert pieces.cached_characters == held[-1]
    assert 100 < max(held) <= 100 + len("word100 again")


@pytest.mark.parametrize("lowercase", [True, False])
def test_each_word_of_a_sentence_is_converted_independently(lowercase: bool) -> None:
    vocabulary = all_characters_vocabulary(lowercase)
    sentences = [text.split("A") for text in random_texts(300, ALPHABET)] + [[], [""], ["", "\x00", "a b", "\u0301"]]
    converter = Tokenizer(vocabulary)
    for words, encoding in zip(sentences, converter.encode_words_batch(sentences), strict=True):
        expected, start = [], 0
        for number, word in enumerate(words):
            tokens = tokens_of(converter.encode(word)) or [(vocabulary.unk, 0, len(word), 0)]
            expected += [(token, start + first, start + end, number) for token, first, end, _ in tokens]
            start += len(word) + 1
        assert tokens_of(encoding) == expected, words
        assert set(encoding.word_ids) == set(range(len(words)))
    assert converter.encode_words_batch([["aA", "中0"]])[0].ids.tolist() == converter.encode("aA 中0").ids.tolist()


def test_ranges_of_tokens_and_characters_are_inverse() -> None:
    vocabulary = all_characters_vocabulary(True)
    # Without accents whose order folding changes.
    texts = random_texts(300, [string for string in ALPHABET if "\u302e" not in string])
    for text, encoding in zip(texts, Tokenizer(vocabulary).encode_batch(texts), strict=True):
        starts, ends, n = encoding.starts.tolist(), encoding.ends.tolist(), len(encoding)
        for start in range(len(text)):
            for end in (start + 1, start + 4, len(text)):
                overlapping = [i for i in range(n) if starts[i] < end and start < ends[i]]
                first, stop = encoding.tokens_in(start, end)
                assert [*range(first, stop)] == overlapping, repr(text)
        for first in range(n):
            stop = min(n, first + 3)
            start, end = encoding.characters_of(first, stop)
            assert (start, end) == (starts[first], ends[stop - 1])
            # Tokens that share a character with the range are included.
            again = encoding.tokens_in(start, end)
            assert again[0] <= first < stop <= again[1]
    encoding = Tokenizer(vocabulary).encode("a  b")
    assert encoding.tokens_in(1, 3) == (1, 1)
    for empty in ((1, 1), (0, 3), (-1, 1)):
        with pytest.raises(ValueError, match="not a range of the 2 tokens"):
            encoding.characters_of(*empty)


def test_tokens_become_readable_text(sentencepiece: SentencePieceVocabulary) -> None:
    for each in (Tokenizer(WordPieceVocabulary([*SPECIAL_TOKENS, "the", "ca", "##t"])), Tokenizer(sentencepiece)):
        ids = each.encode("the cat").ids
        assert each.decode(ids) == each.decode(ids.tolist()) == each.decode(iter(ids)) == "the cat"
        assert each.decode([]) == ""
        for wrong in (-1, len(each.vocabulary), 1.0, "the", None, [1]):
            with pytest.raises(InputError, match=r"^ids\[1\]: "):
                each.decode([ids[0], wrong])  # type: ignore[list-item]
        for given in ("the cat", 3, None):
            with pytest.raises(InputError, match=r"^ids"):
                each.decode(given)  # type: ignore[arg-type]
