"""Answers of questions: those of a file, the tokens that they have, and an exact search for the best ones.

Shape letters: W tokens of a window, P tokens that belong to it, K maximum length of an answer in tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from reader.errors import quoted
from reader.system.arrays import Float32s
from tasks.kinds.checked_values import Reading, flag_of, id_of, text_of
from tasks.kinds.features import Window
from tasks.layouts.rows import BadRow, CharSpan, Place, Row, locate

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding


class Answer(NamedTuple):
    """A gold answer.

    text: as in the file, for scorers; span: its characters in the context, None if the text is not in the context (then
    it can be scored but not trained on).
    """

    text: str
    span: CharSpan | None


@dataclass(frozen=True)
class SpanExample:
    """A question whose answers are spans of the context.

    Attributes:
        id: the official ID of the question; scorers and submissions use it.
        question: may be empty: two questions of CMRC's trial file are.
        answers: all gold answers, in the order of the file; empty if the question has none; None without labels. In a
            training split at least one has a span, unless `is_impossible`.
        is_impossible: whether the context does not answer the question (SQuAD 2.0); None without labels.
    """

    id: str
    context: str
    question: str
    answers: tuple[Answer, ...] | None
    is_impossible: bool | None
    place: Place


def read_example(row: Row, default_id: str, reading: Reading) -> SpanExample:
    """Return an example of a span task; raises BadRow.

    An answer that is not in the context can be scored, because official scorers compare texts, but not trained on. In a
    training file a question therefore needs at least one answer in the context. DuReader-robust's dev file has an empty
    answer. If questions may have no answer, an empty answer means that there is none: a table has no other way to say
    so.
    """
    values = row.values
    context = text_of(values.get("context"), "context")
    question = text_of(values.get("question"), "question", may_be_empty=not reading.own)
    row_id = id_of(values, default_id)
    if not reading.labelled:
        return SpanExample(row_id, context, question, None, None, row.place)
    impossible = flag_of(values.get("is_impossible", False), "is_impossible")
    given = [] if impossible else _answer_list(values.get("answers"))
    texts = (answer.get("text") if isinstance(answer, dict) else answer for answer in given)
    if reading.task.unanswerable and all(isinstance(text, str) and not text.strip() for text in texts):
        given = []
    if not given and not reading.task.unanswerable:
        raise BadRow("no answer, and the task has no questions without answer")
    answers = tuple(_answer(answer, context, reading) for answer in given)
    if reading.training and answers and not any(answer.span for answer in answers):
        raise BadRow(f"the answer {quoted(answers[0].text)} is not in the context")
    return SpanExample(row_id, context, question, answers, not given, row.place)


def _answer_list(value: Any) -> list[Any]:
    """Return a list of answers; that of Hugging Face's datasets is an object of two lists."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        starts = value.get("answer_start")
        if not isinstance(starts, list) or len(starts) != len(value["text"]):
            raise BadRow("answers do not have as many values of answer_start as of text")
        return [{"text": text, "answer_start": start} for text, start in zip(value["text"], starts, strict=True)]
    return value if isinstance(value, list) else [] if value is None else [value]


def _answer(value: Any, context: str, reading: Reading) -> Answer:
    """Return an answer that is a text or a dict with `text` and `answer_start`."""
    given = value if isinstance(value, dict) else {"text": value}
    text, start = text_of(given.get("text"), "the answer", may_be_empty=True), given.get("answer_start")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise BadRow(f"answer_start is {quoted(start)}, not a whole number")
    found = locate(text, context, -1 if start is None else start) if text.strip() else None
    if found is None:
        return Answer(text, None)
    if start is not None and found != start:
        reading.notes["answers at another position than answer_start"] += 1
    if reading.training and (start is None or start < 0) and context.find(text, found + 1) >= 0:
        reading.notes["answers without answer_start that occur more than once: the first place counts"] += 1
    return Answer(text, CharSpan(found, found + len(text)))


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
    windows: Sequence[Window],
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
    grids = [
        _span_scores(logits, window, context, max_length, by_characters)
        for logits, window in zip(scores, windows, strict=True)
    ]
    all_scores = np.concatenate([grid.ravel() for grid in grids])
    firsts = np.concatenate([np.arange(window.own_start, window.own_stop) for window in windows])
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
    logits: Float32s, window: Window, context: Encoding, max_length: int, by_characters: bool
) -> npt.NDArray[np.float64]:
    """Return the scores of the spans of 1..K tokens that begin with each own token; -inf if there is no such span.

    float64 [P, K]. The sum of two float32 numbers is exact in it, or very nearly.
    """
    start, _, own_start, own_stop = window
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
