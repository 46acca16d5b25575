"""The best answers in a context: an exact search over all spans.

Shape letters: W tokens of a window, P tokens that belong to it, K maximum length of an answer in tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from reader.system.arrays import Float32s
from tasks.kinds.span.example import SpanExample
from tasks.kinds.windows import Windows

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding


class Candidate(NamedTuple):
    """A possible answer: its text, its first character in the context, and its score."""

    text: str
    start: int
    score: float


def answer_tokens(example: SpanExample, context: Encoding) -> tuple[int, int]:
    """Return the tokens [first, stop) of the first answer that has a span; (0, 0) if there is none or it has no token.

    `context` is the encoding of the example's context.
    """
    span = next((answer.span for answer in example.answers or () if answer.span is not None), None)
    if span is None:
        return 0, 0
    first, stop = context.tokens_in(*span)
    return (first, stop) if first < stop else (0, 0)


def best_spans(
    windows: Windows,
    scores: Sequence[Float32s],
    text: str,
    context: Encoding,
    limit: int,
    max_length: int,
    by_characters: bool,
) -> list[Candidate]:
    """Return the answers with the highest scores, in descending order of score, at most `limit`, with distinct texts.

    An answer begins with a token that belongs to a window and ends in the same window. Of equal scores the one that
    begins first is the better one, then the shorter one.

    Args:
        windows: of the context.
        scores: for each window, float32 [W, 2], the logits of its tokens as the first and the last one of the answer.
        text: the context; context: its encoding.
        max_length: maximum length of an answer in tokens, or in characters if `by_characters`.
    """
    places = list(zip(windows.starts, windows.own_starts, windows.own_stops, strict=True))
    grids = [
        _span_scores(logits, *place, context, max_length, by_characters)
        for logits, place in zip(scores, places, strict=True)
    ]
    all_scores = np.concatenate([grid.ravel() for grid in grids])
    firsts = np.concatenate([np.arange(own_start, own_stop) for _, own_start, own_stop in places])
    width = grids[0].shape[1]
    found: dict[str, Candidate] = {}
    for index in _descending(all_scores, 2 * limit):
        if len(found) == limit:
            break
        first = int(firsts[index // width])
        start, end = context.characters_of(first, first + index % width + 1)
        if start < end:
            found.setdefault(text[start:end], Candidate(text[start:end], start, float(all_scores[index])))
    return list(found.values())


def _span_scores(
    logits: Float32s, start: int, own_start: int, own_stop: int, context: Encoding, max_length: int, by_characters: bool
) -> npt.NDArray[np.float64]:
    """Return the scores of the spans of 1..K tokens that begin with each own token; -inf if there is no such span.

    float64 [P, K]. The sum of two float32 numbers is exact in it, or very nearly.
    """
    own = slice(own_start - start, own_stop - start)
    # A token has at least one character, except in rare cases, so K tokens are enough in both units.
    padded = np.concatenate([logits[:, 1].astype(np.float64), np.full(max_length, -np.inf)])
    scores: npt.NDArray[np.float64] = logits[own, :1] + sliding_window_view(padded, max_length)[own]
    if by_characters:
        ends = np.concatenate([context.ends[start : start + len(logits)], np.zeros(max_length, np.int32)])
        lengths = sliding_window_view(ends, max_length)[own] - context.starts[own_start:own_stop, np.newaxis]
        scores[lengths > max_length] = -np.inf
    return scores


def _descending(scores: npt.NDArray[np.float64], few: int) -> Iterator[int]:
    """Yield the indices of the finite scores in descending order, the first index first of equal ones.

    The `few` highest scores, which mostly suffice, are sorted first: sorting all takes much longer.
    """
    rest = np.flatnonzero(np.isfinite(scores))
    if len(rest) > few:
        is_high = scores[rest] >= np.partition(scores[rest], -few)[-few]
        high, rest = rest[is_high], rest[~is_high]
        yield from high[np.argsort(-scores[high], kind="stable")].tolist()
    yield from rest[np.argsort(-scores[rest], kind="stable")].tolist()
