"""WordPiece vocabularies, BERT's: a `vocab.txt`; words are cut greedily, longest match first."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from reader.errors import InputError
from reader.tokenization.alphabet import alphabet, character_counts
from reader.tokenization.basic_tokenizer import is_han, split_words
from reader.tokenization.vocabulary import CONTINUES, SPECIAL_TOKENS, UNK, Vocabulary

# The longest word that is cut into pieces, in characters; a longer one is [UNK]. BERT's number.
MAX_WORD_CHARACTERS = 100


class WordPieceVocabulary(Vocabulary):
    """Tokens of which "##" marks those that continue a word."""

    kind = "wordpiece"
    file_name = "vocab.txt"

    def __init__(self, tokens: list[str], lowercase: bool = True, source: str = "vocabulary") -> None:
        super().__init__(tokens, lowercase, source)
        self._model = WordPiece(
            self.ids, unk_token=UNK, max_input_chars_per_word=MAX_WORD_CHARACTERS, continuing_subword_prefix=CONTINUES
        )

    @classmethod
    def parse(cls, content: bytes, lowercase: bool, source: str) -> WordPieceVocabulary:
        """Read one token a line, or `token<TAB>id` as in upstream's Chinese vocabulary.

        Raises InputError if an id is missing or repeated, or a special token is absent.
        """
        try:
            lines = content.decode("utf-8-sig").rstrip("\r\n").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{source}: not UTF-8 ({error.reason} at byte {error.start})") from error
        by_id: dict[int, str] = {}
        for number, line in enumerate(lines):
            token, tab, given = line.strip("\r\n ").partition("\t")
            if tab and not given.strip().isdecimal():
                raise InputError(f"{source}:{number + 1}: expected token<TAB>id, found {line!r}")
            index = int(given) if tab else number
            if index in by_id:
                raise InputError(f"{source}:{number + 1}: id {index} occurs twice")
            by_id[index] = token
        if sorted(by_id) != list(range(len(by_id))):
            gap = next(i for i in range(len(by_id)) if i not in by_id)
            raise InputError(f"{source}: id {gap} is missing")
        return cls([by_id[i] for i in range(len(by_id))], lowercase, source)

    @property
    def content(self) -> bytes:
        """One token a line."""
        return "".join(f"{token}\n" for token in self.tokens).encode("utf-8")

    @property
    def made_of(self) -> object:
        """The tokens."""
        return self.tokens

    def encode(self, word: str) -> list[int]:
        """The token ids of a word. Of a segmenter's word of several Han characters each is cut apart, as upstream."""
        if is_han(word[0]):
            return [self.ids.get(character, self.unk) for character in word]
        return [token.id for token in self._model.tokenize(word)]

    def spelling(self, token: int) -> tuple[str, bool]:
        """The letters that a token adds to a text, and whether they begin a word."""
        text = self.tokens[token]
        return text.removeprefix(CONTINUES), not text.startswith(CONTINUES)


def train_wordpiece(lines: Iterable[str], size: int, lowercase: bool) -> WordPieceVocabulary:
    """Learn a vocabulary of at most `size` tokens from lines of text; the same text gives the same one.

    Raises InputError when `size` leaves no room beside the special tokens and the alphabet, or there are no words.
    """
    # The words reach the trainer already split by the rule, so white space is all that parts them.
    texts = [" ".join(split_words(line, lowercase)) for line in lines]
    if not any(texts):
        raise InputError("no words in the text to learn a vocabulary from")
    characters = alphabet(character_counts(texts), size)
    fixed = [*SPECIAL_TOKENS, *characters, *(f"{CONTINUES}{character}" for character in characters)]
    if len(fixed) >= size:
        raise InputError(f"--size {size}: too small, special tokens and characters alone take {len(fixed)}")
    tokenizer = Tokenizer(WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # The trainer numbers characters in hash order and breaks ties between merges by number. Handing it the
    # characters as "special" tokens fixes their numbers, and with them the result.
    trainer = WordPieceTrainer(
        vocab_size=size, special_tokens=fixed, limit_alphabet=len(characters), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    learned: dict[str, int] = tokenizer.get_vocab()
    return WordPieceVocabulary(sorted(learned, key=learned.__getitem__), lowercase, "trained vocabulary")
