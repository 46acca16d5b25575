"""Convert text to token IDs, with the span of every token in the original text. Fine-tuning uses this.

The IDs are equal to those of a corpus without n-grams (reader.corpus.units.UnitCutter) for the same vocabulary and the
same segmenter; the words are those of basic_tokenizer.py. Truncation, pairs of texts, [CLS] and [SEP] are not added
here.

Most pieces of a text repeat: words between white space, and single Han characters. Each distinct piece is converted to
tokens once, in Python. The tokens of a text are then gathered from arrays.

Segmenter: the IDs of a WordPiece vocabulary do not depend on it, because every Han character is a token. The IDs of a
SentencePiece vocabulary do, because every word is encoded as if it followed white space. A model with such a vocabulary
must be fine-tuned with the segmenter of its corpus: `Tokenizer(vocabulary, segmenter_of(lexicon))`, where the lexicon
is that of the model (see reader.lexicon.lexicon_file).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from numbers import Integral

import numpy as np

from reader.errors import InputError, quoted
from reader.system.arrays import Int32s, Int64s, offsets_of, range_indices
from reader.tokenization.basic_tokenizer import segmenter, split_run_with_spans
from reader.tokenization.given_texts import listed, listed_strings
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import note_other_unicode
from reader.tokenization.wordpiece import WordPieceVocabulary

# So many texts are converted at a time, which bounds the memory.
GROUP = 64
# The characters that separate words: those for which str.isspace() is true, without the control characters that
# basic_tokenizer.py drops.
WHITE_SPACE = " \t\n\r\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
# Han characters that can be pieces of their own. The other Han characters need no fast path. Some code points of their
# ranges are unassigned, and unassigned characters are dropped without splitting a word.
COMMON_HAN = "\u3400-\u4db5\u4e00-\u9fa5"

# The cache of pieces is cleared when its pieces have more characters than this. Together with their tokens they need
# about 100 MB.
MAX_CACHED_CHARACTERS = 1 << 21
# With a segmenter, pieces are longer and seldom repeat, but their words do.
MAX_CACHED_WORDS = 1 << 16


@dataclass(frozen=True, eq=False, slots=True)
class Encoding:
    """The tokens of one text.

    Attributes:
        ids: int32 [n], token IDs.
        starts, ends: int32 [n], the half-open span of each token in the text, as indices of a Python string. Both are
            in ascending order. The spans of two tokens are disjoint, unless they come from the same character, such as
            the two letters of "ﬁ" in SentencePiece; then both spans contain the character. (Tokens of accents that
            folding keeps but reorders have each other's spans, which occurs in hardly any text.) A span does not begin
            or end with white space or with dropped characters. It contains the accents that folding removes from its
            letters. The span of [UNK] is what it replaces. Only the token "▁", which marks the beginning of a word, and
            the [UNK] of an empty word (see `Tokenizer.encode_words_batch`) may have an empty span.
        word_ids: int32 [n], the index of the word of each token (see `encode` and `encode_words_batch` of Tokenizer).
    """

    ids: Int32s
    starts: Int32s
    ends: Int32s
    word_ids: Int32s

    def __len__(self) -> int:
        """Return the number of tokens, n."""
        return len(self.ids)

    def tokens_in(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open range of the tokens that overlap the characters [start, end).

        The range is empty if there is none, for example because the characters are white space.
        """
        first = int(np.searchsorted(self.ends, start, "right"))
        return first, max(first, int(np.searchsorted(self.starts, end, "left")))

    def characters_of(self, first: int, stop: int) -> tuple[int, int]:
        """Return the half-open span, in characters, of the tokens [first, stop). Raises ValueError for an empty range.

        For an answer that begins and ends at the edges of tokens, this is the inverse of `tokens_in`.
        """
        if not 0 <= first < stop <= len(self):
            raise ValueError(f"tokens [{first}, {stop}): not a range of the {len(self)} tokens")
        return int(self.starts[first]), int(self.ends[stop - 1])


class TextPieces(dict[str, int]):
    """The pieces of text seen so far, numbered; the tokens of piece i are token_offsets[i] to token_offsets[i + 1].

    A token is a row of four numbers: its ID, where it begins and ends in the piece, and 1 if it is the first of a word.
    """

    def __init__(self, vocabulary: Vocabulary, segmenter_name: str) -> None:
        self._lowercase = vocabulary.lowercase
        self._encode_word = lru_cache(MAX_CACHED_WORDS)(vocabulary.encode_with_spans)
        self._cut_han = segmenter(segmenter_name)
        # A segmenter needs all consecutive Han characters in one piece.
        han = COMMON_HAN if segmenter_name == "char" else ""
        other = f"[^{WHITE_SPACE}{han}]"
        # What follows a Han character is in its piece, because accents belong to its span.
        run = f"[{han}]{other}*|{other}+" if han else f"{other}+"
        # A piece includes the white space before it, so that the lengths of pieces add up to positions in the text.
        self._pattern = re.compile(f"[{WHITE_SPACE}]*(?:{run})")
        self.cached_characters = 0
        self._tokens, self._token_offsets = array("i"), array("q", [0])

    def encode(self, text: str) -> Int32s:
        """Return the tokens of a text, int32 [n, 4], with the places and the numbers of words in the text."""
        if self.cached_characters > MAX_CACHED_CHARACTERS:
            self.clear()
            self.cached_characters = 0
            self._tokens, self._token_offsets = array("i"), array("q", [0])
        pieces = self._pattern.findall(text)
        piece_ids = np.fromiter(map(self.__getitem__, pieces), np.int64, len(pieces))
        lengths = np.fromiter(map(len, pieces), np.int32, len(pieces))
        token_offsets = np.asarray(self._token_offsets)
        first_tokens = token_offsets[piece_ids]
        num_tokens = token_offsets[piece_ids + 1] - first_tokens
        tokens = np.asarray(self._tokens).reshape(-1, 4)[range_indices(first_tokens, num_tokens)]
        tokens[:, 1:3] += np.repeat(np.cumsum(lengths) - lengths, num_tokens)[:, np.newaxis]
        tokens[:, 3] = np.cumsum(tokens[:, 3]) - 1
        return tokens

    def __missing__(self, piece: str) -> int:
        """Append the tokens of a piece, and return its number."""
        run = piece.lstrip(WHITE_SPACE)
        for word, starts, ends in split_run_with_spans(run, self._lowercase, self._cut_han, len(piece) - len(run)):
            for i, (token, first, stop) in enumerate(self._encode_word(word)):
                # A token without characters is at the beginning of the character that follows it.
                end = ends[stop - 1] if first < stop else starts[first]
                self._tokens.extend((token, starts[first], end, i == 0))
        self._token_offsets.append(len(self._tokens) // 4)
        self.cached_characters += len(piece)
        self[piece] = number = len(self)
        return number


class Tokenizer:
    """Converts text to token IDs with spans. Remembers words of earlier texts, and is not safe to share among threads.

    The name of a special token in a text is ordinary text: "[MASK]" is the three words [ MASK ].

    Args:
        vocabulary: WordPiece or SentencePiece.
        segmenter: how Han characters are split into words for a SentencePiece vocabulary (see above and
            basic_tokenizer.py). A WordPiece vocabulary always uses "char", which gives the same IDs.
    """

    def __init__(self, vocabulary: Vocabulary, segmenter: str = "char") -> None:
        self.vocabulary = vocabulary
        note_other_unicode(vocabulary.unicode)
        self.segmenter = "char" if isinstance(vocabulary, WordPieceVocabulary) else segmenter
        self._pieces = TextPieces(vocabulary, self.segmenter)

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a text: none if it is empty. Lone surrogates are dropped as in a corpus.

        `word_ids` refers to the words of basic_tokenizer.py: they are separated by white space; each punctuation mark
        and each Han character is a word (or the segmenter forms words of Han characters). Every word has at least one
        token. Raises InputError for anything but a string.
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the tokens of each text, as `encode` does. Many texts in one call take less time."""
        given = listed_strings(texts, "texts")
        groups = (given[first : first + GROUP] for first in range(0, len(given), GROUP))
        return [encoding for group in groups for encoding in self._encode_texts(group)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text for token IDs, with a space between words; raises InputError for what is no ID."""
        tokens = listed(ids, "ids")
        for i, token in enumerate(tokens):
            if not isinstance(token, Integral) or not 0 <= int(token) < len(self.vocabulary):
                raise InputError(f"ids[{i}]: {quoted(token)}: give numbers from 0 to {len(self.vocabulary) - 1}")
        return self.vocabulary.text(map(int, tokens))

    def encode_words_batch(self, sentences: Sequence[Sequence[str]]) -> list[Encoding]:
        """Return the tokens of texts that are already split into words, such as sentences with one tag per word.

        Each word is converted independently: "1", "9" are two tokens even if the vocabulary contains "19". `word_ids`
        has indices into the words of a sentence. A word without tokens (an empty string, white space or control
        characters) becomes one [UNK], so that every word has at least one token and no tag is lost. Spans are positions
        in `" ".join(words)`. Without such [UNK]s, the IDs are those of `encode(" ".join(words))`.
        """
        given = [listed_strings(words, f"sentences[{i}]") for i, words in enumerate(listed(sentences, "sentences"))]
        groups = (given[first : first + GROUP] for first in range(0, len(given), GROUP))
        return [encoding for group in groups for encoding in self._encode_sentences(group)]

    def _encode_texts(self, texts: Sequence[str]) -> Iterator[Encoding]:
        """Yield the tokens of each text."""
        tokens, text_starts = self._encode_joined(texts)
        bounds = np.searchsorted(tokens[:, 1], text_starts)
        for start, (first, last) in zip(text_starts.tolist(), pairwise(bounds.tolist()), strict=False):
            ids, starts, ends, words = tokens[first:last].T.copy()
            yield Encoding(ids, starts - start, ends - start, words - words[:1])

    def _encode_sentences(self, sentences: Sequence[Sequence[str]]) -> Iterator[Encoding]:
        """Yield the tokens of each sentence."""
        words = [*chain.from_iterable(sentences)]
        tokens, word_starts = self._encode_joined(words)
        tokens[:, 3] = np.searchsorted(word_starts, tokens[:, 1], "right") - 1
        empty = np.setdiff1d(np.arange(len(words)), tokens[:, 3])
        unknown = np.full_like(empty, self.vocabulary.unk)
        rows = np.column_stack([unknown, word_starts[empty], word_starts[empty + 1] - 1, empty])
        tokens = np.insert(tokens, np.searchsorted(tokens[:, 3], empty), rows, axis=0)
        first_words = np.cumsum([0, *map(len, sentences)])
        bounds = np.searchsorted(tokens[:, 3], first_words)
        for word, (first, last) in zip(first_words.tolist(), pairwise(bounds.tolist()), strict=False):
            ids, starts, ends, word_ids = tokens[first:last].T.copy()
            start = int(word_starts[word])
            yield Encoding(ids, starts - start, ends - start, word_ids - word)

    def _encode_joined(self, texts: Sequence[str]) -> tuple[Int32s, Int64s]:
        """Return the tokens of texts joined by line feeds, and int64 [texts + 1], where each text begins.

        The last number is where one more text would begin. The line feeds ensure that no word spans two texts.
        """
        text_starts = offsets_of(np.array([len(text) + 1 for text in texts], np.int64))
        return self._pieces.encode("\n".join(texts)), text_starts
