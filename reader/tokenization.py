"""Words and WordPieces, by BERT's rules for characters, which upstream ERNIE shares.

Text -> words (white space, every Han character and every punctuation mark apart; lower case without accents
where the vocabulary is uncased) -> pieces (greedy, longest match first). Natural text repeats itself, so each
distinct run without white space is split once, and each distinct word is cut into pieces once.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from reader.errors import InputError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)

# The longest word that is cut into pieces, in characters; a longer one is [UNK]. BERT's number.
MAX_WORD_CHARACTERS = 100

# Control characters that str.split() would take for white space; BERT drops them and joins what they parted.
_NOT_SPACE = {ord(c): None for c in "\x0b\x0c\x1c\x1d\x1e\x1f\x85"}

_HAN_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def is_han(character: str) -> bool:
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in _HAN_RANGES)


def is_dropped(character: str) -> bool:
    """Control, format, private and unassigned characters, and the replacement character."""
    return character == "\ufffd" or unicodedata.category(character)[0] == "C"


def is_punctuation(character: str) -> bool:
    """Unicode punctuation, and every ASCII character that is neither letter nor digit, such as $ or ^."""
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"


def fold(text: str) -> str:
    """Lower case without accents."""
    folded = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in folded if unicodedata.category(character) != "Mn")


def split_words(text: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Split a text into words, as BERT's basic tokenizer does."""
    return [word for run in text.translate(_NOT_SPACE).split() for word in split_run(run, lowercase, cut_han)]


def split_run(run: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Split a text without white space into words; `cut_han` gives those of Han characters in a row."""
    if run.isascii() and run.isalnum():
        return [run.lower() if lowercase else run]
    words: list[str] = []
    # Upstream's order: Han characters are set apart before folding, punctuation after it.
    for in_han, group in groupby((c for c in run if not is_dropped(c)), key=is_han):
        part = "".join(group)
        part = fold(part) if lowercase else part
        if in_han:
            words.extend(cut_han(part))
        else:
            words.extend("".join(f" {c} " if is_punctuation(c) else c for c in part).split())
    return words


def holds_text(word: str) -> bool:
    """Whether a word holds a letter, a digit or a Han character; other words end an n-gram."""
    return word.isalnum() or any(character.isalnum() for character in word)


class Vocabulary:
    """The fine-grained vocabulary V_F: tokens by id, ids by token, and how text is folded for it.

    Attributes:
        tokens: token of every id, F in all.
        lowercase: whether text is lower-cased and stripped of accents first.
        pad, unk, cls, sep, mask: ids of the special tokens.
    """

    def __init__(self, tokens: list[str], lowercase: bool = True, source: str = "vocabulary") -> None:
        self.tokens = tokens
        self.lowercase = lowercase
        self.ids = {token: i for i, token in enumerate(tokens)}
        if len(self.ids) != len(tokens):
            twice = next(token for i, token in enumerate(tokens) if self.ids[token] != i)
            raise InputError(f"{source}: token {twice!r} occurs twice")
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            raise InputError(f"{source}: no {', '.join(missing)}: not a BERT-format vocabulary")
        self.pad, self.unk, self.cls, self.sep, self.mask = (self.ids[token] for token in SPECIAL_TOKENS)

    @classmethod
    def load(cls, path: Path, lowercase: bool = True) -> Vocabulary:
        """Read `vocab.txt`: one token a line, or `token<TAB>id` as in upstream's Chinese one.

        Raises InputError if it cannot be read, an id is missing or repeated, or a special token is absent.
        """
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
        except OSError as error:
            raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
        by_id: dict[int, str] = {}
        for number, line in enumerate(lines):
            token, tab, given = line.strip("\r\n ").partition("\t")
            if not token and number == len(lines) - 1:
                continue
            if tab and not given.strip().isdecimal():
                raise InputError(f"{path}:{number + 1}: expected token<TAB>id, found {line!r}")
            index = int(given) if tab else number
            if index in by_id:
                raise InputError(f"{path}:{number + 1}: id {index} occurs twice")
            by_id[index] = token
        if sorted(by_id) != list(range(len(by_id))):
            gap = next(i for i in range(len(by_id)) if i not in by_id)
            raise InputError(f"{path}: id {gap} is missing")
        return cls([by_id[i] for i in range(len(by_id))], lowercase, str(path))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides how text becomes ids."""
        return hashlib.sha256(json.dumps(["wordpiece", self.lowercase, self.tokens]).encode()).hexdigest()


class PieceTable:
    """The pieces of numbered words: `pieces[offsets[i]:offsets[i + 1]]` are the token ids of word i.

    Attributes:
        pieces: int32; offsets: int64 [words + 1].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._model = WordPiece(
            vocabulary.ids, unk_token=UNK, max_input_chars_per_word=MAX_WORD_CHARACTERS, continuing_subword_prefix="##"
        )
        self.pieces = np.zeros(0, np.int32)
        self.offsets = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """How many words it knows."""
        return len(self.offsets) - 1

    def extend(self, words: list[str]) -> None:
        """Cut the words numbered from len(self) on."""
        if not words:
            return
        ends, pieces = array("q"), array("i")
        for word in words:
            # A segmenter's word of several Han characters: each is a token, as in text that is not segmented.
            for part in word if is_han(word[0]) else (word,):
                pieces.extend(token.id for token in self._model.tokenize(part))
            ends.append(len(pieces))
        self.offsets = np.concatenate([self.offsets, self.offsets[-1] + np.asarray(ends, np.int64)])
        self.pieces = np.concatenate([self.pieces, np.asarray(pieces, np.int32)])

    def keep(self, words: int) -> None:
        """Forget all but the first `words` words."""
        self.offsets = self.offsets[: words + 1].copy()
        self.pieces = self.pieces[: self.offsets[-1]].copy()


def train_vocabulary(lines: list[str], size: int, lowercase: bool) -> Vocabulary:
    """Learn a WordPiece vocabulary of at most `size` tokens from lines of text; the same text gives the same one.

    Raises InputError when `size` leaves no room beside the special tokens and the alphabet.
    """
    # The words reach the trainer already split by the rules above, so white space is all that parts them.
    texts = [" ".join(split_words(line, lowercase)) for line in lines]
    alphabet = _frequent_characters(texts, most=size // 4)
    fixed = [*SPECIAL_TOKENS, *alphabet, *(f"##{character}" for character in alphabet)]
    if len(fixed) >= size:
        raise InputError(f"--size {size}: too small, special tokens and characters alone take {len(fixed)}")
    tokenizer = Tokenizer(WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # The trainer numbers characters in hash order and breaks ties between merges by number. Handing it the
    # characters as "special" tokens fixes their numbers, and with them the result.
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=fixed, limit_alphabet=len(alphabet), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    learned: dict[str, int] = tokenizer.get_vocab()
    return Vocabulary(sorted(learned, key=learned.__getitem__), lowercase, "trained vocabulary")


def _frequent_characters(texts: list[str], most: int) -> list[str]:
    """At most `most` characters, the frequent ones, in a fixed order; equally frequent ones stay or go together."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    del counts[" "]
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    if len(ranked) > most:
        bound = counts[ranked[most]]
        ranked = [character for character in ranked if counts[character] > bound]
    return ranked
