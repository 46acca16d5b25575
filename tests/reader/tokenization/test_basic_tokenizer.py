"""Our words and pieces equal those of Hugging Face's BERT tokenizer.

Both use the same implementation of WordPiece; the other code is independent.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from reader.errors import InputError
from reader.tokenization.basic_tokenizer import holds_text, split_words
from reader.tokenization.vocabulary import SPECIAL_TOKENS, select_alphabet
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.wordpiece import MAX_REPEATED, WordPieceVocabulary, count_words, train_wordpiece

MIXED = [
    "Ceci n'est pas une pipe — naïve café, Ærøskøbing… ÀÉÎÕÜ",
    "中文和English混排，价格是￥3.50！「引号」",
    "x=1; don't_stop $5^2 <tag> ~`|",
    "tabs\tand\u00a0odd\u2003spaces \u3000 here",
    "control\x00led\x07 zero\u200bwidth joi\u200dner \ufeffbom \ufffdreplaced",
    "split\x0bby\x1fcontrols\x85here",
    "Σίσυφος ß ﬁ Ⅷ ①",
    "emoji 😀👩\u200d👩 combining e\u0301a\u0300",
    "a" * 101 + " " + "b" * 100,
    "",
    "   ",
]


def reference_words(text: str, lowercase: bool) -> list[str]:
    normalizer = BertNormalizer(lowercase=lowercase, strip_accents=lowercase)
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))]


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_equal_those_of_berts_tokenizer(lowercase: bool) -> None:
    lines = [line for text in [*topics.values()][::3] for line in text.split("\n")] + MIXED
    for line in lines:
        assert split_words(line, lowercase) == reference_words(line, lowercase), repr(line)


def test_what_berts_tokenizer_does_not_show() -> None:
    assert split_words("a\ud800b c", True) == ["ab", "c"]
    # Python, which upstream uses, considers the end of the word. Hugging Face's Rust code converts each character
    # independently.
    assert split_words("ΑΣ", True) == ["ας"]
    assert all(map(holds_text, ["word", "3", "中", "½", "a-b"]))
    assert not any(map(holds_text, ["-", "...", "$", "_", "—"]))


def test_both_vocabulary_formats_give_the_same_vocabulary_and_the_later_of_equal_tokens_counts(tmp_path: Path) -> None:
    tokens = [*SPECIAL_TOKENS, "a", "##b"]
    (tmp_path / "plain.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "tabbed.txt").write_text("".join(f"{token}\t{i}\n" for i, token in enumerate(tokens)))
    plain, tabbed = load_vocabulary(tmp_path / "plain.txt"), load_vocabulary(tmp_path / "tabbed.txt")
    assert plain.tokens == tabbed.tokens == tokens
    assert plain.fingerprint == tabbed.fingerprint != WordPieceVocabulary(tokens, lowercase=False).fingerprint
    assert (plain.pad, plain.mask) == (0, 4)
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n$\na\n##a\n$\n##a\n")
    vocabulary = load_vocabulary(path)
    assert len(vocabulary) == 10
    assert [vocabulary.encode(word) for word in ("$", "aa")] == [[8], [6, 9]]
    assert [vocabulary.text([token]) for token in (5, 8)] == ["$", "$"]
    assert vocabulary.content == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", r"special tokens missing: \[MASK\]"),
        (b"[PAD]\t0\n[UNK]\t2\n", "v.txt:2: expected token<TAB>1"),
        (b"[PAD]\tzero\n", "v.txt:1: expected token<TAB>0"),
        (b"\xff\n", "not UTF-8"),
    ],
)
def test_invalid_vocabularies_are_rejected(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_vocabulary(tmp_path / "v.txt")


def test_training_a_vocabulary_is_reproducible_its_han_characters_are_words_and_counts_are_whole(built: Path) -> None:
    lines = (built / "train.txt").read_text(encoding="utf-8").split("\n")
    first, second = (train_wordpiece(count_words(lines, True), 1000, True) for _ in range(2))
    assert first.tokens == second.tokens == load_vocabulary(built / "vocab.txt").tokens
    assert len(first) == 1000
    assert first.tokens[:5] == list(SPECIAL_TOKENS)
    assert {"the", "python"} & set(first.tokens)
    with pytest.raises(InputError, match="--size 6: too small"):
        train_wordpiece(count_words(lines, True), 6, True)
    text = "".join(chr(0x4E00 + i) * (60 - i) for i in range(50))
    tokens = train_wordpiece(count_words([text, "word words wordy swords"], True), 100, True).tokens
    assert sum(0x4E00 <= ord(token[0]) < 0x4E00 + 50 for token in tokens) == 50
    assert [token for token in tokens if token.startswith("##") and ord(token[2]) >= 0x4E00] == []
    # The trainer gets a frequent word as several texts: of these two words, there is room for one only.
    for total, expected in ((MAX_REPEATED + 4, "ab"), (40, "cd")):
        tokens = train_wordpiece(Counter({"ab": total, "cd": 50}), len(SPECIAL_TOKENS) + 9, True).tokens
        assert [token for token in tokens if token in ("ab", "cd")] == [expected]


@pytest.mark.parametrize(
    ("counts", "kept"),
    [
        ({chr(0x4E00 + i): 200 - i for i in range(100)}, 75),  # one token each, of three quarters of 100
        ({chr(0x3B1 + i): 200 - i for i in range(60)}, 25),  # a quarter; with ## each takes two tokens
        ({chr(0x4E00 + i): 9 for i in range(76)}, 0),  # equally frequent
        ({chr(0x4E00 + i): 9 for i in range(75)}, 75),
        # 20 others take 40 tokens, which leaves 35.
        ({chr(0x3B1 + i): 500 - i for i in range(20)} | {chr(0x4E00 + i): 200 - i for i in range(100)}, 20 + 35),
        # A Han character that is more frequent than the other that does not fit is kept, those after it are not.
        ({chr(0x3B1 + i): 500 - i for i in range(26)} | {"中": 490, "国": 1}, 25 + 1),
    ],
)
def test_the_alphabet_is_the_most_frequent_characters_that_fit(counts: dict[str, int], kept: int) -> None:
    assert select_alphabet(Counter(counts), 100) == sorted(counts, key=lambda each: (-counts[each], each))[:kept]
