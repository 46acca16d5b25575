"""Sentencepiece vocabularies, such as ERNIE-Tiny's: a `.model`; words are cut into the likeliest pieces.

As in ERNIE-Tiny, text is split into words first, and each word is cut on its own. A piece with the mark "▁" in front
begins a word. In sentencepiece the mark stands for white space, and our words have lost which of them followed some
("don't" is three: don ' t): every word is taken to, so that a word has the same pieces wherever it stands. Text for
people therefore has a space between any two words, as WordPiece's has. A model also has rules of its own for
characters, NFKC as a rule: they are applied after our folding, and words that they make alike have the same pieces.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from reader.errors import InputError
from reader.tokenization.alphabet import alphabet, character_counts
from reader.tokenization.basic_tokenizer import split_words
from reader.tokenization.chinese_segmentation import segmenter
from reader.tokenization.vocabulary import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK, Vocabulary

WORD_START = "▁"

# The trainer passes over long lines in silence, and takes a time that grows with the square of a repetition's length:
# it is given lines of so many words, each of at most so many characters.
WORDS_IN_LINE, LONGEST_WORD = 64, 100


class SentencePieceVocabulary(Vocabulary):
    """A model of sentencepiece, and the tokens in it."""

    kind = "sentencepiece"
    file_name = "spm.model"

    def __init__(self, model: bytes, lowercase: bool = True, source: str = "vocabulary") -> None:
        """Take a serialised model; raises InputError, which names `source`, if it is damaged or does not fit."""
        self._model = model
        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            tokens = [self._processor.id_to_piece(i) for i in range(len(self._processor))]
        except (RuntimeError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source}: damaged, or not a model of sentencepiece") from error
        super().__init__(tokens, lowercase, source)
        if self._processor.unk_id() != self.unk:
            raise InputError(f"{source}: unknown characters become {tokens[self._processor.unk_id()]} in it, not {UNK}")
        if not self._processor.encode("a", out_type=str)[0].startswith(WORD_START):
            raise InputError(f"{source}: its pieces do not mark where a word begins, as add_dummy_prefix has them")

    @classmethod
    def parse(cls, content: bytes, lowercase: bool, source: str) -> SentencePieceVocabulary:
        """The vocabulary in a model's file; raises InputError, which names `source`, if it is damaged or no model."""
        return cls(content, lowercase, source)

    @property
    def content(self) -> bytes:
        """The model as it was given."""
        return self._model

    @property
    def made_of(self) -> object:
        """The model's SHA-256: its pieces, their scores and its rules for characters, all in one."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, word: str) -> list[int]:
        """The token ids of a word, taken to follow white space; [UNK] if the model sees only white space in it."""
        found: list[int] = self._processor.encode(word)
        return found or [self.unk]

    def spelling(self, token: int) -> tuple[str, bool]:
        """The letters that a token adds to a text, and whether they begin a word."""
        piece = self.tokens[token]
        return piece.removeprefix(WORD_START), piece.startswith(WORD_START) or piece in SPECIAL_TOKENS


def train_sentencepiece(lines: Iterable[str], size: int, lowercase: bool, han: str = "char") -> SentencePieceVocabulary:
    """Learn a unigram model of at most `size` tokens from lines of text; the same text gives the same one.

    `han` is the segmenter that finds words of Han characters (see segmenters.py): no piece is longer than a word.
    Raises InputError when `size` leaves no room beside the special tokens and the alphabet, or there are no words.
    """
    cut = segmenter(han)
    texts = [text for line in lines for text in _short_lines(split_words(line, lowercase, cut))]
    counts = character_counts(texts)
    if not counts:
        raise InputError("no words in the text to learn a vocabulary from")
    coverage = sum(map(counts.__getitem__, alphabet(counts, size))) / counts.total()
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size,
            character_coverage=max(0.98, coverage),  # the least it takes
            hard_vocab_limit=False,  # fewer, if the text has not so many
            pad_id=SPECIAL_TOKENS.index(PAD),
            pad_piece=PAD,
            unk_id=SPECIAL_TOKENS.index(UNK),
            unk_piece=UNK,
            bos_id=SPECIAL_TOKENS.index(CLS),
            bos_piece=CLS,
            eos_id=SPECIAL_TOKENS.index(SEP),
            eos_piece=SEP,
            control_symbols=[MASK],  # these take the first ids that are free
            max_sentence_length=WORDS_IN_LINE * (LONGEST_WORD * 4 + 1),  # bytes
            num_threads=1,  # how many there are changes the order of sums, and so the pieces
            minloglevel=2,
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed:
            raise InputError(
                f"--size {size}: too small, special tokens and characters alone take {needed[1]}"
            ) from error
        raise InputError(f"sentencepiece cannot learn from this text: {error}") from error
    return SentencePieceVocabulary(model.getvalue(), lowercase, "trained vocabulary")


def _short_lines(words: list[str]) -> Iterator[str]:
    """Words as lines that the trainer can cope with; too long words are left out."""
    kept = [word for word in words if len(word) <= LONGEST_WORD]
    for start in range(0, len(kept), WORDS_IN_LINE):
        yield " ".join(kept[start : start + WORDS_IN_LINE])
