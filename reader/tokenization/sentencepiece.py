"""SentencePiece vocabularies, as in ERNIE-Tiny: a `.model` file. A word is split into its most probable pieces.

As in ERNIE-Tiny, text is first split into words, and then each word is split independently. The mark "▁" at the
beginning of a piece means that the piece begins a word. In SentencePiece, the mark stands for white space. Our words do
not record whether white space preceded them ("don't" gives the three words don ' t). Therefore every word is encoded as
if it followed white space, so that a word has the same pieces in every context. As a consequence, readable text has a
space between any two words, as with WordPiece. A model also normalizes characters, usually by NFKC. This happens after
our folding, and words with the same normal form have the same pieces.
"""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from reader.errors import InputError
from reader.tokenization.basic_tokenizer import segmenter, split_words
from reader.tokenization.vocabulary import (
    CLS,
    MASK,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    Vocabulary,
    select_alphabet,
)

WORD_START = "▁"

# The trainer silently ignores long lines, and its time grows with the square of the length of a repetition. Therefore
# it receives lines of at most WORDS_PER_LINE words, and no word of more than MAX_WORD_CHARACTERS characters.
WORDS_PER_LINE, MAX_WORD_CHARACTERS = 64, 100


class SentencePieceVocabulary(Vocabulary):
    """A SentencePiece model and its tokens."""

    kind = "sentencepiece"
    file_name = "spm.model"

    def __init__(self, model: bytes, lowercase: bool = True, source: str = "vocabulary") -> None:
        """Load a serialized model; raise an InputError that names `source` if it is damaged or unsuitable."""
        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            tokens = [self._processor.id_to_piece(i) for i in range(len(self._processor))]
        except (RuntimeError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source}: damaged, or not a SentencePiece model") from error
        # The digest covers the pieces, their scores and the rules of normalization.
        super().__init__(tokens, model, hashlib.sha256(model).hexdigest(), lowercase, source)
        if self._processor.unk_id() != self.unk:
            unknown = tokens[self._processor.unk_id()]
            raise InputError(f"{source}: the token for unknown characters is {unknown}; it must be {UNK}")
        if not self._processor.encode("a", out_type=str)[0].startswith(WORD_START):
            raise InputError(
                f"{source}: its pieces do not mark the beginning of a word; train it with add_dummy_prefix"
            )

    def encode(self, word: str) -> list[int]:
        """Return the token IDs of a word, encoded as if it followed white space.

        Return [UNK] if the model treats the whole word as white space.
        """
        ids: list[int] = self._processor.encode(word)
        return ids or [self.unk]

    def encode_with_spans(self, word: str) -> list[tuple[int, int, int]]:
        """Return the token IDs of a word, each with its half-open span of characters of the word.

        The model splits the normal form of the word. If several tokens come from one character, each has this character
        in its span. The token that only marks the beginning of the word has an empty span.
        """
        ids = self.encode(word)
        pieces: list[str] = self._processor.encode(word, out_type=str)
        if not pieces:
            return [(self.unk, 0, len(word))]
        # starts[j]: position in the word of character j of the normal form, which begins with WORD_START. Characters
        # that come from the same character of the word have the same position.
        normal, starts = self._processor.normalize(word, with_offsets=True)
        ends = [starts[bisect_right(starts, start)] if start < starts[-1] else len(word) for start in starts]
        # A byte token is one byte of a character, so that pieces are measured in bytes of the normal form.
        character_of = [j for j, character in enumerate(normal) for _ in character.encode()]
        spans: list[tuple[int, int, int]] = []
        byte = 0
        for token, piece in zip(ids, pieces, strict=True):
            stop = byte + (1 if self._processor.is_byte(token) else len(piece.encode()))
            first, last = max(1, character_of[byte]), character_of[stop - 1]
            spans.append((token, starts[first], ends[last] if last else starts[first]))
            byte = stop
        return spans

    def spelling(self, token: int) -> tuple[str, bool]:
        """Return the characters that a token adds to a text, and whether they begin a word."""
        piece = self.tokens[token]
        return piece.removeprefix(WORD_START), piece.startswith(WORD_START) or piece in SPECIAL_TOKENS


def train_sentencepiece(lines: Iterable[str], size: int, lowercase: bool, han: str = "char") -> SentencePieceVocabulary:
    """Train a unigram model of at most `size` tokens on lines of text. The same text always gives the same model.

    `han` is the name of the segmenter that splits Han characters into words (see basic_tokenizer.py). No piece is
    longer than a word. Raises InputError if `size` is too small for the special tokens and the alphabet, or if the text
    has no words.
    """
    cut = segmenter(han)
    texts = [text for line in lines for text in _short_lines(split_words(line, lowercase, cut))]
    counts = Counter(character for text in texts for character in text if character != " ")
    if not counts:
        raise InputError("the text for training a vocabulary contains no words")
    coverage = sum(map(counts.__getitem__, select_alphabet(counts, size))) / counts.total()
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size,
            character_coverage=max(0.98, coverage),  # the trainer accepts no smaller value
            hard_vocab_limit=False,  # allow fewer tokens if the text does not contain enough distinct pieces
            pad_id=SPECIAL_TOKENS.index(PAD),
            pad_piece=PAD,
            unk_id=SPECIAL_TOKENS.index(UNK),
            unk_piece=UNK,
            bos_id=SPECIAL_TOKENS.index(CLS),
            bos_piece=CLS,
            eos_id=SPECIAL_TOKENS.index(SEP),
            eos_piece=SEP,
            control_symbols=[MASK],  # control symbols get the first free IDs
            max_sentence_length=WORDS_PER_LINE * (MAX_WORD_CHARACTERS * 4 + 1),  # in bytes
            num_threads=1,  # the number of threads changes the order of additions, and thereby the pieces
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(f"--size {size}: SentencePiece cannot be trained on this text: {error}") from error
    return SentencePieceVocabulary(model.getvalue(), lowercase, "trained vocabulary")


def _short_lines(words: list[str]) -> Iterator[str]:
    """Yield words as lines that are short enough for the trainer. Words that are too long are left out."""
    kept = [word for word in words if len(word) <= MAX_WORD_CHARACTERS]
    for start in range(0, len(kept), WORDS_PER_LINE):
        yield " ".join(kept[start : start + WORDS_PER_LINE])
