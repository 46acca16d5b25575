"""A question with its context and its answers, and how a row of a file becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from reader.tokenization.basic_tokenizer import has_words
from reader.tokenization.given_texts import shown
from tasks.data.examples import CharSpan, Place, locate
from tasks.kinds.checked_values import Reading, flag_of, id_of, text_of
from tasks.layouts.rows import Row, RowError


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
    """Return an example of a span task; raises RowError.

    An answer that is not in the context can be scored, because official scorers compare texts, but not trained on. In a
    training file a question therefore needs at least one answer in the context; in other files such answers are noted.
    So are empty answers, of which DuReader-robust's dev file has one. If questions may have no answer, an empty answer
    means that there is none: a table has no other way to say so.
    """
    values = row.values
    context = text_of(values.get("context"), "context")
    question = text_of(values.get("question"), "question", may_be_empty=not reading.own)
    row_id = id_of(values, default_id)
    if not has_words(question):
        reading.notes["empty questions"] += 1
    if not reading.labelled:
        return SpanExample(row_id, context, question, None, None, row.place)
    impossible = flag_of(values.get("is_impossible", False), "is_impossible")
    given = [] if impossible else _answer_list(values.get("answers"))
    if reading.task.unanswerable and all(_is_empty(answer) for answer in given):
        given = []
    impossible = not given
    if impossible and not reading.task.unanswerable:
        raise RowError("no answer, and the task has no questions without answer")
    answers = tuple(_answer(answer, context, reading) for answer in given)
    if reading.training and answers and not any(answer.span for answer in answers):
        raise RowError(f"the answer {shown(answers[0].text)} is not in the context")
    return SpanExample(row_id, context, question, answers, impossible, row.place)


def _is_empty(answer: Any) -> bool:
    text = answer.get("text") if isinstance(answer, dict) else answer
    return isinstance(text, str) and not text.strip()


def _answer_list(value: Any) -> list[Any]:
    """Return a list of answers; that of Hugging Face's datasets is an object of two lists."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        starts = value.get("answer_start")
        if not isinstance(starts, list) or len(starts) != len(value["text"]):
            raise RowError("answers do not have as many values of answer_start as of text")
        return [{"text": text, "answer_start": start} for text, start in zip(value["text"], starts, strict=True)]
    return value if isinstance(value, list) else [] if value is None else [value]


def _answer(value: Any, context: str, reading: Reading) -> Answer:
    """Return an answer that is a text or a dict with `text` and `answer_start`."""
    given = value if isinstance(value, dict) else {"text": value}
    text, start = text_of(given.get("text"), "the answer", may_be_empty=True), given.get("answer_start")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise RowError(f"answer_start is {shown(start)}, not a whole number")
    found = locate(text, context, -1 if start is None else start) if text.strip() else None
    if found is None:
        reading.notes["answers that are not in the context" if text.strip() else "empty answers"] += 1
        return Answer(text, None)
    if start is not None and found != start:
        reading.notes["answers at another position than answer_start"] += 1
    if reading.training and (start is None or start < 0) and context.find(text, found + 1) >= 0:
        reading.notes["answers without answer_start that occur more than once: the first place counts"] += 1
    return Answer(text, CharSpan(found, found + len(text)))
