"""Convert a user's texts to sequences of token IDs, sequences to batches, and probabilities to ranked units.

Shape letters: B sequences, L slots (the maximum over the batch), M masked slots, H hidden, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reader.batches import fields
from reader.batches.fields import Batch
from reader.corpus.units import UnitNames
from reader.errors import InputError, quoted
from reader.system.arrays import Float32s, Int64s
from reader.tokenization.given_texts import check_text
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import MASK, Vocabulary

Text = str | tuple[str, str]


@dataclass(frozen=True)
class EncodedText:
    """A text or a pair of texts as tokens, [CLS] and [SEP] included.

    Attributes:
        ids: int64 [n], token IDs.
        sentence_ids: int64 [n], 1 for slots of the second text, else 0.
        offsets: the half-open span of characters of each token in its text (see Encoding); None for [CLS] and [SEP].
    """

    ids: Int64s
    sentence_ids: Int64s
    offsets: list[tuple[int, int] | None]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Vectors:
    """The encoder's output for a text or a pair of texts of n tokens, [CLS] and [SEP] among them.

    Attributes:
        tokens: n tokens of the vocabulary.
        offsets: the half-open span of characters of each token in its text; None for [CLS] and [SEP].
        sentence_ids: int64 [n], 1 for the tokens of the second text, else 0.
        hidden: float32 [n, H], the encoder's output for each token.
        pooled: float32 [H], the pooler's output; None if the model has no pooler.
    """

    tokens: list[str]
    offsets: list[tuple[int, int] | None]
    sentence_ids: Int64s
    hidden: Float32s
    pooled: Float32s | None


@dataclass(frozen=True)
class TextAttention:
    """The attention weights of a text or a pair of texts of n tokens, [CLS] and [SEP] among them.

    Attributes:
        tokens, offsets: as in `Vectors`.
        weights: float32 [layers, heads, n, n]; [.., q, k] is how much token q attends to token k. The weights of each q
            add up to 1.
    """

    tokens: list[str]
    offsets: list[tuple[int, int] | None]
    weights: Float32s


@dataclass(frozen=True)
class Guess:
    """A unit and its probability."""

    unit: str
    probability: float


# The outputs that are one vector for a text.
VECTORS = ("mean", "cls", "pooled")
DRAWS = 8  # default number of a generator's samples to average over
LINES_PER_BATCH = 16  # default number of texts per batch


def parts_of(text: Text) -> tuple[str, ...]:
    """Return the parts of a text or of a pair of texts; raises InputError for anything else."""
    if isinstance(text, tuple | list) and len(text) == 2:
        return tuple(text)
    if not isinstance(text, str):
        raise InputError(f"expected a text or a pair of texts, not {quoted(text)}")
    return (text,)


class TextEncoder:
    """Converts texts to token IDs, for one vocabulary and one segmenter of Han characters.

    Attributes:
        vocabulary: as given.
        max_tokens: maximum number of tokens of a sequence, [CLS] and [SEP] included.
        tokenizer: gives single tokens (no n-grams), but with the word segmenter of the training corpus.
    """

    def __init__(self, vocabulary: Vocabulary, segmenter: str, max_tokens: int) -> None:
        self.vocabulary, self.max_tokens = vocabulary, max_tokens
        self.tokenizer = Tokenizer(vocabulary, segmenter)

    def encode(self, texts: tuple[str, ...], truncate: bool = False) -> EncodedText:
        """Return [CLS] a [SEP] for one text, [CLS] a [SEP] b [SEP] for two.

        Args:
            truncate: cut off the end of a text that is too long; of two texts, the end of the longer one.

        Raises InputError for what is not a text or is empty, and without `truncate` for too many tokens.
        """
        for text, name in zip(texts, ("text",) if len(texts) == 1 else ("text_a", "text_b"), strict=True):
            check_text(text, name)
        parts = self.tokenizer.encode_batch(texts)
        room, lengths = self.max_tokens - 1 - len(parts), [len(part) for part in parts]
        if truncate and len(parts) == 1:
            lengths = [min(lengths[0], room)]
        elif truncate and sum(lengths) > room:
            first = min(lengths[0], max(room - lengths[1], -(-room // 2)))
            lengths = [first, min(lengths[1], room - first)]
        ids, offsets = [self.vocabulary.cls], list[tuple[int, int] | None]([None])
        for part, stop in zip(parts, lengths, strict=True):
            ids += [*part.ids[:stop].tolist(), self.vocabulary.sep]
            offsets += [*zip(part.starts[:stop].tolist(), part.ends[:stop].tolist(), strict=True), None]
        self._check_length(len(ids))
        sentence_ids = (np.arange(len(ids)) >= lengths[0] + 2).astype(np.int64)
        return EncodedText(np.array(ids, np.int64), sentence_ids, offsets)

    def encode_masked(self, text: str) -> Int64s:
        """Return the token IDs of a text with [MASK]s, [CLS] and [SEP] included.

        Raises InputError for what is not a text or has no mask, and for too many tokens.
        """
        check_text(text, "text")
        parts = text.split(MASK)
        if len(parts) == 1:
            raise InputError(f"no {MASK} in it")
        special = self.vocabulary
        first, *others = (part.ids.tolist() for part in self.tokenizer.encode_batch(parts))
        ids = [special.cls, *first]
        for part in others:
            ids += [special.mask, *part]
        ids.append(special.sep)
        self._check_length(len(ids))
        return np.array(ids, np.int64)

    def masked_batch(self, rows: list[Int64s]) -> Batch:
        """Return texts with masks, given as their token IDs, as a batch: input_ids, lengths and slots."""
        batch = self.batch(rows)
        masks = batch[fields.INPUT_IDS.name] == self.vocabulary.mask
        return batch | {fields.SLOTS.name: np.flatnonzero(masks).astype(np.int64)}

    def batch(self, rows: list[Int64s]) -> Batch:
        """Return sequences of token IDs as a batch: input_ids and lengths."""
        lengths = np.array([len(row) for row in rows], np.int64)
        return {
            fields.INPUT_IDS.name: padded(rows, self.vocabulary.pad),
            fields.LENGTHS.name: lengths,
        }

    def _check_length(self, num_tokens: int) -> None:
        if num_tokens > self.max_tokens:
            raise InputError(f"{num_tokens} tokens, but the model was trained on at most {self.max_tokens}")


def padded(rows: list[Int64s], padding: int) -> Int64s:
    """Return rows of different lengths as int64 [B, L], filled up with `padding` at the end."""
    filled = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    for target, row in zip(filled, rows, strict=True):
        target[: len(row)] = row
    return filled


def best_units(units: UnitNames, probabilities_C: Float32s, limit: int, ngrams_only: bool = False) -> list[Guess]:
    """Return the `limit` units with the highest probability in one slot, best first. Special tokens are left out.

    Probabilities are not normalised again, so without the special tokens they do not add up to 1.
    """
    first = len(units.vocabulary) if ngrams_only else 0
    special = units.vocabulary.special_ids
    best = first + np.argsort(-probabilities_C[first:], kind="stable")[: limit + len(special)]
    ranked = best[~np.isin(best, special)][:limit]
    return [Guess(units.text(int(unit)), float(probabilities_C[unit])) for unit in ranked]


def guesses_by_row(
    units: UnitNames, batch: Batch, probabilities_MC: Float32s, limit: int, ngrams_only: bool = False
) -> list[list[list[Guess]]]:
    """Return the `limit` best units for every masked slot of every sequence of a batch."""
    num_rows, length = batch[fields.INPUT_IDS.name].shape
    guesses: list[list[list[Guess]]] = [[] for _ in range(num_rows)]
    for slot, probabilities_C in zip(batch[fields.SLOTS.name], probabilities_MC, strict=True):
        guesses[slot // length].append(best_units(units, probabilities_C, limit, ngrams_only))
    return guesses
