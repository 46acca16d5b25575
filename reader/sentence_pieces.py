"""Sentencepiece vocabularies, such as ERNIE-Tiny's: a `.model`; words are cut into the likeliest pieces.

As in ERNIE-Tiny, text is split into words first, and each word is cut on its own. A piece with the mark "▁" in front
begins a word. In sentencepiece the mark stands for white space, and our words have lost which of them followed some
("don't" is three: don ' t): every word is taken to, so that a word has the same pieces wherever it stands. Text for
people therefore has a space between any two words, as WordPiece's has.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from reader.errors import InputError
from reader.segmenters import segmenter
from reader.tokenization import split_words
from reader.vocabulary import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK, Vocabulary

WORD_START = "▁"


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
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=(" ".join(split_words(line, lowercase, cut)) for line in lines),
            model_writer=model,
            vocab_size=size,
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
            max_sentence_length=1 << 30,  # longer lines would be passed over in silence
            num_threads=1,  # how many there are changes the order of sums, and so the pieces
            minloglevel=2,
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed:
            raise InputError(
                f"--size {size}: too small, special tokens and characters alone take {needed[1]}"
            ) from error
        raise InputError(f"sentencepiece finds nothing to learn from in this text ({error})") from error
    return SentencePieceVocabulary(model.getvalue(), lowercase, "trained vocabulary")
