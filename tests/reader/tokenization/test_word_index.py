"""The fast word splitting gives the same words as the plain implementation, also for adversarial text."""

from __future__ import annotations

import random
from collections.abc import Callable
from pydoc_data.topics import topics

import pytest

from reader.system.hash_tables import empty_table, find_or_add_strings, find_strings, pack_strings, unpack_strings
from reader.tokenization import word_index
from reader.tokenization.basic_tokenizer import SEGMENTERS, segmenter, split_words
from reader.tokenization.word_index import WordIndex
from reader.tokenization.word_kernel import DOCUMENT_END, LINE_END

# Examples of every kind: letters with and without an effect of folding, accents, all kinds of white space, control
# characters, punctuation that decomposes, Han characters of every block, Hangul, emoji, and characters outside the
# Basic Multilingual Plane.
CHARACTERS = [
    *"abAZaz@[`{09 .,-\t\r$^_\x00\x0b\x1c\x7f\x85\u00a0\u2028\u3000",
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
def test_words_equal_those_of_the_plain_implementation(han: str, lowercase: bool) -> None:
    draw = random.Random(1)
    index, cut = WordIndex(lowercase, han), segmenter(han)
    for _ in range(150):
        lines = ["".join(draw.choices(CHARACTERS, k=draw.randint(0, 40))) for _ in range(20)]
        assert found(index, lines) == expected(lines, lowercase, cut), lines


def test_real_text_and_every_basic_multilingual_plane_character_are_split_correctly() -> None:
    lines = [line for text in topics.values() for line in text.split("\n")]
    every = [chr(code) for code in range(1 << 16) if not 0xD800 <= code < 0xE000 and chr(code) != "\n"]
    lines += [f"a{character}b {character} {character}c" for character in every]
    for lowercase in (True, False):
        assert found(WordIndex(lowercase), lines) == expected(lines, lowercase, list)


def test_runs_may_fill_the_buffers_and_exceed_the_cache_and_long_ones_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_index, "_BUFFER_BYTES", 64)
    monkeypatch.setattr(word_index, "MAX_CACHED_RUNS", 10)
    lines = ["x" * size for size in (62, 63, 64, 65, 127, 128, 129)] + ["a b " + "y" * size for size in (59, 60, 61)]
    # A block may end behind a space at the end of a line.
    lines += ["z" * size + "  " for size in range(50, 70)]
    lines += [f"café{i % 9} é{i}" for i in range(40)] + ["中" * 100 + "é" * 90]
    for han in SEGMENTERS:
        index = WordIndex(True, han)
        for _ in range(2):
            assert found(index, lines) == expected(lines, True, segmenter(han))
    for line in lines:
        assert found(WordIndex(True), [line]) == expected([line], True, list)
    # Lines without spaces in other scripts are runs of any length; kept, they would fill the memory.
    split: list[str] = []
    real = word_index.split_run
    monkeypatch.setattr(word_index, "split_run", lambda run, **settings: split.append(run) or real(run, **settings))
    index = WordIndex(lowercase=True)
    short, long = "が" * word_index.MAX_CACHED_CHARACTERS, "が" * (word_index.MAX_CACHED_CHARACTERS + 1)
    for _ in range(3):
        index.encode(f"{short}\n{long}\n".encode())
    assert (split.count(short), split.count(long)) == (1, 3)


def test_text_may_be_encoded_in_several_calls_and_ids_are_in_order_of_first_occurrence() -> None:
    index = WordIndex(True)
    assert index.words() == []
    assert index.encode(b"").tolist() == [DOCUMENT_END]
    assert index.encode(b"one two").tolist() == [0, 1, LINE_END]
    assert index.encode(b"two\n\nthree\n").tolist() == [1, LINE_END, DOCUMENT_END, 2, LINE_END]
    assert index.words() == ["one", "two", "three"]
    assert index.words(2) == ["three"]
    draw = random.Random(2)
    strings = ["".join(draw.choices("abé中", k=draw.randint(1, 12))) for _ in range(20_000)]
    table, ids = find_or_add_strings(empty_table(4, 8), pack_strings(strings))
    distinct = list(dict.fromkeys(strings))
    assert unpack_strings(table.strings) == distinct
    assert [distinct[i] for i in ids] == strings
    found_ids = find_strings(table, pack_strings(["a", "not there", "", "x" * 100, distinct[-1]]))
    assert found_ids.tolist()[1:] == [-1, -1, -1, len(distinct) - 1]


@pytest.mark.parametrize("bad", [b"a \xff b", b"caf\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf8\x88\x80\x80"])
def test_invalid_utf8_is_rejected(bad: bytes) -> None:
    index = WordIndex(True)
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            index.encode("good café\n".encode() + bad + b"\n")
        # The rejected text does not affect later calls.
        assert found(index, ["café éa good"]) == ["cafe", "ea", "good", LINE_END]
