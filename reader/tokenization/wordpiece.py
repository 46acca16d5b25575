"""WordPiece vocabularies, as in BERT: a `vocab.txt` file. The longest matching token is taken first (greedy)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, repeat

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from reader.errors import InputError, quoted
from reader.tokenization.basic_tokenizer import is_han, split_words
from reader.tokenization.vocabulary import (
    CONTINUATION_PREFIX,
    SPECIAL_TOKENS,
    UNK,
    Vocabulary,
    select_alphabet,
)

# The maximum length of a word that is split into tokens, as in BERT. A longer word becomes [UNK].
MAX_WORD_CHARACTERS = 100
# The maximum number of times that a word is repeated in a text for the trainer.
MAX_REPEATED = 4096


class WordPieceVocabulary(Vocabulary):
    """A WordPiece vocabulary. The prefix "##" marks tokens that continue a word."""

    kind = "wordpiece"
    file_name = "vocab.txt"

    def __init__(self, tokens: list[str], lowercase: bool = True, source: str = "vocabulary") -> None:
        content = "".join(f"{token}\n" for token in tokens).encode()
        super().__init__(tokens, content, tokens, lowercase, source)
        self._model = WordPiece(
            self.ids,
            unk_token=UNK,
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
            continuing_subword_prefix=CONTINUATION_PREFIX,
        )

    @classmethod
    def parse(cls, content: bytes, lowercase: bool, source: str) -> WordPieceVocabulary:
        """Parse one token per line, or `token<TAB>id` per line as in upstream's Chinese vocabulary.

        Raises InputError if an ID is not the number of its line, counted from 0, or if a special token is missing.
        """
        try:
            lines = content.decode("utf-8-sig").rstrip("\r\n").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{source}: not UTF-8 ({error.reason} at byte {error.start})") from error
        tokens: list[str] = []
        for index, line in enumerate(lines):
            token, tab, id_text = line.strip("\r\n ").partition("\t")
            if tab and id_text.strip() != str(index):
                raise InputError(f"{source}:{index + 1}: expected token<TAB>{index}, found {quoted(line)}")
            tokens.append(token)
        return cls(tokens, lowercase, source)

    def encode(self, word: str) -> list[int]:
        """Return the token IDs of a word. As in upstream, each Han character of a segmented word is one token."""
        if is_han(word[0]):
            return [self.ids.get(character, self.unk) for character in word]
        return [token.id for token in self._model.tokenize(word)]

    def encode_with_spans(self, word: str) -> list[tuple[int, int, int]]:
        """Return the token IDs of a word, each with its half-open span of characters. [UNK] replaces the whole word."""
        ids = self.encode(word)
        if ids == [self.unk]:
            return [(self.unk, 0, len(word))]
        # Otherwise only a Han character, one character, becomes [UNK].
        ends = [*accumulate(1 if token == self.unk else len(self.spelling(token)[0]) for token in ids)]
        return [*zip(ids, [0, *ends], ends, strict=False)]

    def spelling(self, token: int) -> tuple[str, bool]:
        """Return the characters that a token adds to a text, and whether they begin a word."""
        text = self.tokens[token]
        return text.removeprefix(CONTINUATION_PREFIX), not text.startswith(CONTINUATION_PREFIX)


def count_words(lines: Iterable[str], lowercase: bool) -> Counter[str]:
    """Return the number of occurrences of each word in lines of text."""
    return Counter(word for line in lines for word in split_words(line, lowercase))


def train_wordpiece(words: Counter[str], size: int, lowercase: bool) -> WordPieceVocabulary:
    """Train a vocabulary of at most `size` tokens. The same words always give the same vocabulary.

    Args:
        words: the number of occurrences of each word of the text.

    Raises InputError if `size` is too small for the special tokens and the alphabet, or if there are no words.
    """
    if not words:
        raise InputError("the text for training a vocabulary contains no words")
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    characters = select_alphabet(counts, size)
    continuing = [f"{CONTINUATION_PREFIX}{character}" for character in characters if not is_han(character)]
    fixed = [*SPECIAL_TOKENS, *characters, *continuing]
    if len(fixed) >= size:
        raise InputError(f"--size {size}: too small; special tokens and characters need {len(fixed)}, words at least 1")
    tokenizer = Tokenizer(WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # The trainer assigns IDs to characters in hash order, and breaks ties between merges by ID. To make the result
    # reproducible, the characters are passed as "special" tokens, which fixes their IDs.
    trainer = WordPieceTrainer(
        vocab_size=size, special_tokens=fixed, limit_alphabet=len(characters), show_progress=False
    )
    # The trainer only counts words, but takes text.
    repeated = (f"{word} " * count for word, total in words.items() for count in _parts(total))
    tokenizer.train_from_iterator(repeated, trainer)
    ids: dict[str, int] = tokenizer.get_vocab()
    return WordPieceVocabulary(sorted(ids, key=ids.__getitem__), lowercase, "trained vocabulary")


def _parts(total: int) -> Iterator[int]:
    """Yield numbers that add up to `total`, small enough for texts that repeat a word so often."""
    yield from repeat(MAX_REPEATED, total // MAX_REPEATED)
    yield total % MAX_REPEATED
