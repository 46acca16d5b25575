"""Answer requests with a model, in batches of texts of similar length.

Shape letters: B sequences, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from ernie_gram.api import Model
from ernie_gram.inference.requests import Line, Request, RequestParser
from ernie_gram.inference.texts import EncodedText, Int64s
from reader.errors import InputError, print_error

# Texts are sorted by length within this number of batches, so that a batch has little padding.
BATCHES_PER_WINDOW = 16

Answer = dict[str, Any]


class Answerer(Protocol):
    """The code for one kind of outputs."""

    @property
    def is_independent(self) -> bool:
        """Whether the answer to a text depends on this text only, so that batches may be sorted by length."""

    def encode(self, texts: tuple[str, ...]) -> Any:
        """Return a request's texts as a sequence of tokens, whose `len` is its length; raises InputError."""

    def answer(self, encoded: list[Any]) -> list[Answer]:
        """Return one answer for each of some encoded requests: values for JSON, or arrays."""


@dataclass
class EncoderAnswers:
    """Answers with one vector for each text or pair of texts.

    Attributes:
        vector: name of the output, with shape [B, H].
        truncate: whether to cut off the end of texts that are too long.
    """

    model: Model
    vector: str
    truncate: bool = False
    is_independent = True

    def encode(self, texts: tuple[str, ...]) -> EncodedText:
        """Return a text or a pair of texts as one sequence; raises InputError."""
        return self.model.texts.encode(texts, self.truncate)

    def answer(self, encoded: list[EncodedText]) -> list[Answer]:
        """Return {"vector": float32 [H]} for each sequence."""
        return [{"vector": row} for row in self.model.outputs(encoded, [self.vector])[self.vector]]


@dataclass
class FillMaskAnswers:
    """Answers with the most probable units for every [MASK] of a text, as `ernie-gram fill-mask` does.

    Attributes:
        limit, ngrams_only, draws: see Model.fill_mask.
    """

    model: Model
    limit: int
    ngrams_only: bool
    draws: int

    @property
    def is_independent(self) -> bool:
        """Whether there are no samples: they depend on the position in the batch."""
        return not self.model.has_generator

    def encode(self, texts: tuple[str, ...]) -> Int64s:
        """Return the token IDs of a text with masks; raises InputError."""
        if len(texts) > 1:
            raise InputError("a pair of texts, but masks are filled in single texts")
        return self.model.texts.encode_masked(texts[0])

    def answer(self, encoded: list[Int64s]) -> list[Answer]:
        """Return {"masks": for each mask its units with their probabilities} for each text."""
        rows = self.model.fill(encoded, self.limit, self.ngrams_only, self.draws)
        return [{"masks": [[asdict(guess) for guess in mask] for mask in masks]} for masks in rows]


@dataclass
class Answers:
    """The answers to the valid ones of some lines. The others are reported on standard error, one line each.

    Attributes:
        lines: name and content of each line.
        parse: how a line becomes a request.
        batch_size: number of texts per batch; with 1, each line is answered before the next one is read.
        invalid: number of lines reported so far.
    """

    lines: Iterable[Line]
    parse: RequestParser
    answerer: Answerer
    batch_size: int
    invalid: int = 0

    def __iter__(self) -> Iterator[tuple[Request, Answer]]:
        """Yield each valid request with its answer, in the order of the lines."""
        sorts = self.answerer.is_independent and self.batch_size > 1
        valid = self._encoded()
        while window := list(islice(valid, self.batch_size * (BATCHES_PER_WINDOW if sorts else 1))):
            lengths = [len(encoded) for _, encoded in window]
            order = np.argsort(lengths, kind="stable").tolist() if sorts else range(len(window))
            answers: dict[int, Answer] = {}
            for first in range(0, len(window), self.batch_size):
                batch = order[first : first + self.batch_size]
                answers.update(zip(batch, self.answerer.answer([window[i][1] for i in batch]), strict=True))
            yield from ((window[i][0], answers[i]) for i in range(len(window)))

    def _encoded(self) -> Iterator[tuple[Request, Any]]:
        for name, line in self.lines:
            try:
                request = self.parse(name, line)
                encoded = self.answerer.encode(request.texts)
            except InputError as error:
                print_error(f"{name}: {error}")
                self.invalid += 1
            else:
                yield request, encoded
