"""Units and text: cutting text into unit identities, and naming the unit that an identity stands for."""

from __future__ import annotations

from dataclasses import dataclass

from reader.corpus.boundaries import Units, build_trie, cut_lines
from reader.errors import InputError
from reader.lexicon.lexicon_file import NO_NGRAMS, Lexicon, index_words, segmenter_of, spell
from reader.tokenization.vocabulary import PieceTable, Vocabulary
from reader.tokenization.word_index import WordIndex

# A UnitCutter remembers words, because most words of a text occur again; beyond a number of words it starts afresh, so
# that its memory is bounded.
MAX_REMEMBERED_WORDS = 1 << 20
# The slots of a word in a hash table, its characters and its tokens.
BYTES_PER_WORD = 110


def words_to_remember(memory_bytes: int) -> int:
    """Return the number of words that fill an eighth of the memory of a process, at most MAX_REMEMBERED_WORDS."""
    return min(MAX_REMEMBERED_WORDS, memory_bytes // (8 * BYTES_PER_WORD))


class UnitCutter:
    """Cuts text into units, for one vocabulary and one lexicon.

    Attributes:
        vocabulary, lexicon: as given.
        num_tokens: F.
        ngram_tokens: int32, token IDs of all n-grams; ngram_offsets: int64 [N + 1]. The tokens of n-gram i are
            ngram_tokens[ngram_offsets[i]:ngram_offsets[i + 1]].
    """

    def __init__(self, vocabulary: Vocabulary, lexicon: Lexicon | None, max_words: int = MAX_REMEMBERED_WORDS) -> None:
        """Prepare to cut text.

        Args:
            lexicon: the n-grams that become units, made with this vocabulary; with None, every unit is a token.
            max_words: number of words to remember, besides those of the lexicon.
        """
        self.vocabulary, self.lexicon, self.num_tokens = vocabulary, lexicon, len(vocabulary)
        self._segmenter = segmenter_of(lexicon)
        ngrams = lexicon.ngrams if lexicon else NO_NGRAMS
        words, word_ids, offsets = index_words(ngrams.texts)
        self._lexicon_words, self._max_words = words, max_words
        self._pieces = PieceTable(vocabulary)
        self._reset_words()
        self._trie = build_trie(word_ids, offsets, len(words))
        spelled = spell(words, word_ids, offsets, self._pieces, vocabulary.unk)
        self.ngram_tokens, self.ngram_offsets, self._is_unit = spelled

    def check_ngrams(self) -> None:
        """Raise InputError, with the line, for an n-gram of one token or with a word that the vocabulary cannot spell.

        Models that were trained with such n-grams are still used.
        """
        if self.lexicon is not None and not self._is_unit.all():
            i = int(self._is_unit.argmin())
            raise InputError(
                f"{self.lexicon.path}: line {i + 2}: {self.lexicon.ngrams.texts[i]!r} is a single token, or the "
                "vocabulary cannot spell it ([UNK]); make the lexicon again, or remove such lines"
            )

    def cut(self, text: bytes) -> Units:
        """Cut UTF-8 text into units. Raises UnicodeDecodeError if it is not UTF-8."""
        if len(self._words) > self._max_words + len(self._lexicon_words):
            self._reset_words()
        stream = self._words.encode(text)
        self._pieces.extend(self._words.words(len(self._pieces)))
        return cut_lines(stream, self._trie, self._pieces.offsets, self._pieces.pieces, self.num_tokens)

    def _reset_words(self) -> None:
        """Forget all words except those of the lexicon.

        The lexicon's words have the lowest IDs, so any higher ID belongs to a word that is in no n-gram.
        """
        self._words = WordIndex(self.vocabulary.lowercase, self._segmenter)
        self._words.add(self._lexicon_words)
        self._pieces.truncate(min(len(self._pieces), len(self._lexicon_words)))


@dataclass(frozen=True)
class UnitNames:
    """Text of identities: 0..F-1 are the tokens of a vocabulary, F..F+N-1 the n-grams of a lexicon."""

    vocabulary: Vocabulary
    lexicon: Lexicon | None

    def text(self, identity: int) -> str:
        """Return the unit as readable text."""
        if identity < len(self.vocabulary):
            # A token that only marks the start of a word has no text: show the token itself.
            return self.vocabulary.text([identity]) or self.vocabulary.tokens[identity]
        assert self.lexicon is not None
        return self.lexicon.ngrams.texts[identity - len(self.vocabulary)]
