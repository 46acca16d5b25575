"""An example of a multiple choice, and how a row of a file becomes one."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.data.examples import CharSpan, Place
from tasks.kinds.checked_values import Reading, RowError, choice_of, id_of, text_of, texts_of
from tasks.layouts.rows import Row


@dataclass(frozen=True)
class MultipleChoiceExample:
    """A context, a question and at least two options, of which one is right.

    Attributes:
        question: may be empty, for example if the question is a blank in the context. In RACE a `_` in the question
            is a gap that the option fills.
        answer: the index of the right option.
        group: examples of one group share their options, and each option is the answer of at most one of them (ChID
            with several blanks). None if the example stands alone.
        blank: the characters of the context that the option fills; a context longer than the model's input is to be
            cut around it. None if no option is to be inserted.
    """

    id: str
    context: str
    question: str
    options: tuple[str, ...]
    answer: int | None
    place: Place
    group: str | None = None
    blank: CharSpan | None = None


def read_example(row: Row, default_id: str, reading: Reading) -> MultipleChoiceExample:
    """Return an example of a multiple choice; raises RowError."""
    values = row.values
    options = texts_of(values.get("options"), "options", may_be_empty=True)
    if len(options) < 2:
        raise RowError(f"{len(options)} options; at least two are needed")
    if len({*options}) < len(options):
        reading.notes["questions with equal options"] += 1
    if not all(option.strip() for option in options):
        reading.notes["questions with an empty option"] += 1
    return MultipleChoiceExample(
        id=id_of(values, default_id),
        context=text_of(values.get("context"), "context"),
        question=text_of(values.get("question", ""), "question", may_be_empty=True),
        options=options,
        answer=choice_of(values.get("answer"), options) if reading.labelled else None,
        place=row.place,
        group=values.get("group"),
        blank=values.get("blank"),
    )
