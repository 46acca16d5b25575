"""Cut text into pieces that are converted to tokens independently, and remember the tokens of every piece.

Most pieces of a text repeat: words between white space, and single Han characters. Each distinct piece is converted to
tokens once, in Python. The tokens of a text are then gathered from arrays.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reader.system.arrays import Int32s, Int64s, range_indices
from reader.tokenization.basic_tokenizer import split_run_with_spans
from reader.tokenization.chinese_segmentation import segmenter
from reader.tokenization.vocabulary import Vocabulary

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


class SpannedTokens(NamedTuple):
    """The tokens of a text. All arrays have one element per token.

    ids: int32, token IDs; starts, ends: int64, the half-open span of the token in the text, in characters; words:
    int64, the number of the word that the token belongs to.
    """

    ids: Int32s
    starts: Int64s
    ends: Int64s
    words: Int64s


class TextPieces:
    """The pieces of text seen so far, with their tokens.

    Piece i has the tokens token_offsets[i] to token_offsets[i + 1]; spans are relative to the beginning of the piece.
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
        self._clear()

    def encode(self, text: str) -> SpannedTokens:
        """Return the tokens of a text."""
        if self.cached_characters > MAX_CACHED_CHARACTERS:
            self._clear()
        pieces = self._pattern.findall(text)
        for piece in dict.fromkeys(pieces):
            if piece not in self._index:
                self._add(piece)
        piece_ids = np.fromiter(map(self._index.__getitem__, pieces), np.int64, len(pieces))
        token_offsets, num_words = np.asarray(self._token_offsets), np.asarray(self._num_words)[piece_ids]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        piece_starts = np.cumsum(lengths) - lengths
        first_tokens = token_offsets[piece_ids]
        num_tokens = token_offsets[piece_ids + 1] - first_tokens
        tokens = range_indices(first_tokens, num_tokens)
        offsets = np.repeat(piece_starts, num_tokens)
        return SpannedTokens(
            ids=np.asarray(self._ids)[tokens],
            starts=np.asarray(self._starts)[tokens] + offsets,
            ends=np.asarray(self._ends)[tokens] + offsets,
            words=np.asarray(self._words)[tokens] + np.repeat(np.cumsum(num_words) - num_words, num_tokens),
        )

    def _clear(self) -> None:
        """Forget all pieces."""
        self._index: dict[str, int] = {}
        self.cached_characters = 0
        self._ids, self._starts, self._ends, self._words = (array("i") for _ in range(4))
        self._token_offsets = array("q", [0])
        self._num_words = array("i")

    def _add(self, piece: str) -> None:
        """Append the tokens of a piece."""
        run = piece.lstrip(WHITE_SPACE)
        start = len(piece) - len(run)
        words = split_run_with_spans(run, self._lowercase, self._cut_han, start)
        for number, word in enumerate(words):
            for token, first, stop in self._encode_word(word.text):
                self._ids.append(token)
                self._starts.append(word.starts[first])
                # A token without characters is at the beginning of the character that follows it.
                self._ends.append(word.ends[stop - 1] if first < stop else word.starts[first])
                self._words.append(number)
        self._token_offsets.append(len(self._ids))
        self._num_words.append(len(words))
        self._index[piece] = len(self._index)
        self.cached_characters += len(piece)
