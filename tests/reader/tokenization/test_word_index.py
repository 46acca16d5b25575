"""The fast splitting against the rule, on text made to be hostile."""

from __future__ import annotations

import random
from collections.abc import Callable
from pydoc_data.topics import topics

import pytest

from reader.tables.string_table import empty_table, number, packed, strings_of
from reader.tokenization import word_index as splitting
from reader.tokenization.basic_tokenizer import split_words
from reader.tokenization.chinese_segmentation import SEGMENTERS, segmenter
from reader.tokenization.word_index import WordIndex
from reader.tokenization.word_kernel import DOCUMENT_END, LINE_END

# One of every kind: letters that fold and that do not, accents, white space of all sorts, controls, punctuation that
# decomposes, Han characters of every block, Hangul, emoji, characters beyond the first plane.
CHARACTERS = [
    *"abAB09 .,-\t\r$^_\x00\x0b\x1c\x7f\x85\u00a0\u2028\u3000",
    *"éÉıİßΣσς\u1e9e\u037e\u0345\u302e\u0301\u200b\ufeff“—\ufffdﬁ",
    *"中国人民\uf900\u3400가が\U00020000\U0001f600\u0130",
]


def expected(lines: list[str], lowercase: bool, cut: Callable[[str], list[str]]) -> list[str | int]:
    stream: list[str | int] = []
    for line in lines:
        stream += split_words(line, lowercase, cut)
        stream.append(DOCUMENT_END if not line or line.isspace() else LINE_END)
    return stream


def found(index: WordIndex, lines: list[str]) -> list[str | int]:
    stream = index.encode("".join(f"{line}\n" for line in lines).encode())
    words = index.words()
    return [words[i] if i >= 0 else int(i) for i in stream]


@pytest.mark.parametrize("han", SEGMENTERS)
@pytest.mark.parametrize("lowercase", [True, False])
def test_words_are_those_of_the_rule(han: str, lowercase: bool) -> None:
    draw = random.Random(1)
    index, cut = WordIndex(lowercase, han), segmenter(han)
    for _ in range(150):
        lines = ["".join(draw.choices(CHARACTERS, k=draw.randint(0, 40))) for _ in range(20)]
        assert found(index, lines) == expected(lines, lowercase, cut), lines


def test_real_text_and_every_character_of_the_first_plane() -> None:
    lines = [line for text in topics.values() for line in text.split("\n")]
    every = [chr(code) for code in range(1 << 16) if not 0xD800 <= code < 0xE000 and chr(code) != "\n"]
    lines += [f"a{character}b {character} {character}c" for character in every]
    for lowercase in (True, False):
        assert found(WordIndex(lowercase), lines) == expected(lines, lowercase, list)


def test_long_runs_and_many_words_find_room() -> None:
    lines = ["x" * 3_000_000, " ".join(f"word{i}" for i in range(200_000)), "中" * 700_000 + "é" * 100_000, "\r", "end"]
    for han in ("char", "space"):
        index = WordIndex(True, han)
        for _ in range(2):
            assert found(index, lines) == expected(lines, True, segmenter(han))


def test_runs_as_long_as_the_room_and_more_runs_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_ROOM", 64)
    monkeypatch.setattr(splitting, "MAX_RUN_BYTES", 40)
    lines = ["x" * size for size in (62, 63, 64, 65, 127, 128, 129)] + ["a b " + "y" * size for size in (59, 60, 61)]
    lines += [f"café{i % 9} é{i}" for i in range(40)]
    for _ in range(2):
        index = WordIndex(True)
        assert found(index, lines) == expected(lines, True, list)
    for line in lines:
        assert found(WordIndex(True), [line]) == expected([line], True, list)


def test_text_may_come_in_pieces_and_without_a_last_line_feed() -> None:
    index = WordIndex(True)
    assert index.words() == []
    assert index.encode(b"").tolist() == [DOCUMENT_END]
    assert index.encode(b"one two").tolist() == [0, 1, LINE_END]
    assert index.encode(b"two\n\nthree\n").tolist() == [1, LINE_END, DOCUMENT_END, 2, LINE_END]
    assert index.words() == ["one", "two", "three"]
    assert index.words(2) == ["three"]


@pytest.mark.parametrize("bad", [b"a \xff b", b"caf\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf8\x88\x80\x80"])
def test_what_is_not_utf8_is_refused(bad: bytes) -> None:
    index = WordIndex(True)
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            index.encode("good café\n".encode() + bad + b"\n")
        # No trace is left of it.
        assert found(index, ["café éa good"]) == ["cafe", "ea", "good", LINE_END]


def test_a_table_numbers_strings_as_they_come() -> None:
    draw = random.Random(2)
    strings = ["".join(draw.choices("abé中", k=draw.randint(1, 12))) for _ in range(20_000)]
    table, numbers = number(empty_table(4, 8), packed(strings))
    distinct = list(dict.fromkeys(strings))
    assert strings_of(table) == distinct
    assert [distinct[i] for i in numbers] == strings
    _, missing = number(table, packed(["a", "not there", "", "x" * 100, distinct[-1]]), add=False)
    assert missing.tolist()[1:] == [-1, -1, -1, len(distinct) - 1]
