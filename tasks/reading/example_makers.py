"""From a row of a file to an example: one function for each kind of task. All checks of a row's values are here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tasks.data.examples import (
    Answer,
    CharSpan,
    ClassificationExample,
    Entity,
    Example,
    MultipleChoiceExample,
    RegressionExample,
    SpanExample,
    TaggingExample,
)
from tasks.data.locating import locate
from tasks.data.tag_schemes import entities_of, tags_of, to_iob2
from tasks.layouts.rows import Row
from tasks.reading.checked_values import (
    RowError,
    check_label,
    choice_of,
    flag_of,
    id_of,
    label_of,
    score_of,
    shown,
    text_of,
    texts_of,
)
from tasks.registry.task import Kind, Task

# The words and the punctuation marks of a text.
WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass
class Reading:
    """What the makers need to know of the file that is read, and what they count.

    Attributes:
        task: the task; labelled: whether the file has gold values; training: whether a model is trained on the file, so
            that every answer must have a position.
        notes: what was unusual in rows that became examples nevertheless -> number of occurrences.
    """

    task: Task
    labelled: bool
    training: bool
    notes: Counter[str] = field(default_factory=Counter)


def make_classification(row: Row, default_id: str, reading: Reading) -> ClassificationExample:
    """Return an example of a classification; raises RowError or OmittedError."""
    # The label first: a row without a gold label is left out, whatever its texts are.
    label = label_of(row.values.get("label"), reading.task) if reading.labelled else None
    return ClassificationExample(id_of(row.values, default_id), *_texts(row, reading), label, row.place)


def make_regression(row: Row, default_id: str, reading: Reading) -> RegressionExample:
    """Return an example of a regression; raises RowError."""
    score = score_of(row.values.get("score"), reading.task) if reading.labelled else None
    return RegressionExample(id_of(row.values, default_id), *_texts(row, reading), score, row.place)


def _texts(row: Row, reading: Reading) -> tuple[str, str | None]:
    """Return one or two texts. Every row of a file without labels needs a prediction, also one with an empty text."""
    may_be_empty = reading.task.empty_texts or not reading.labelled
    text_a = text_of(row.values.get("text_a"), "text_a", may_be_empty)
    text_b = text_of(row.values["text_b"], "text_b", may_be_empty) if "text_b" in row.values else None
    if not text_a.strip() or (text_b is not None and not text_b.strip()):
        reading.notes["rows with an empty text"] += 1
    return text_a, text_b


def make_multiple_choice(row: Row, default_id: str, reading: Reading) -> MultipleChoiceExample:
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


def make_span(row: Row, default_id: str, reading: Reading) -> SpanExample:
    """Return an example of a span task; raises RowError.

    An answer that is not in the context can be scored, because official scorers compare texts, but not trained on. In a
    training file a question therefore needs at least one answer in the context; in other files such answers are noted.
    So are empty answers, of which DuReader-robust's dev file has one. If questions may have no answer, an empty answer
    means that there is none: a table has no other way to say so.
    """
    values = row.values
    context = text_of(values.get("context"), "context")
    question = text_of(values.get("question"), "question", may_be_empty=True)
    row_id = id_of(values, default_id)
    if not question.strip():
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
    answers = tuple(_answer(answer, context, reading.notes) for answer in given)
    if reading.training and answers and not any(answer.span for answer in answers):
        raise RowError(f"the answer {shown(answers[0].text)} is not in the context")
    return SpanExample(row_id, context, question, answers, impossible, row.place)


def _is_empty(answer: Any) -> bool:
    text = answer.get("text") if isinstance(answer, dict) else answer
    return isinstance(text, str) and not text.strip()


def _answer_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _answer(value: Any, context: str, notes: Counter[str]) -> Answer:
    """Return an answer that is a text or a dict with `text` and `answer_start`."""
    given = value if isinstance(value, dict) else {"text": value}
    text, start = text_of(given.get("text"), "the answer", may_be_empty=True), given.get("answer_start")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise RowError(f"answer_start is {shown(start)}, not a whole number")
    found = locate(text, context, -1 if start is None else start) if text.strip() else None
    if found is None:
        notes["answers that are not in the context" if text.strip() else "empty answers"] += 1
        return Answer(text, None)
    if start is not None and found != start:
        notes["answers at another position than answer_start"] += 1
    return Answer(text, CharSpan(found, found + len(text)))


def make_tagging(row: Row, default_id: str, reading: Reading) -> TaggingExample:
    """Return an example of tagging; raises RowError. Words are joined by spaces unless the language is Chinese."""
    separator = "" if reading.task.language == "zh" else " "
    given = text_of(row.values["sentence"], "text") if "sentence" in row.values else None
    if given is not None:
        tokens = tuple(WORDS.findall(given))
    elif "text" in row.values:
        tokens = tuple(text_of(row.values["text"], "text"))
        separator = ""
    else:
        tokens = _tokens(row.values.get("tokens"))
    row_id = id_of(row.values, default_id)
    if not reading.labelled:
        return TaggingExample(row_id, tokens, separator, None, None, row.place, given)
    if "entities" in row.values:
        entities = _entities(row.values["entities"], "".join(tokens), reading.notes)
        tags = tags_of(entities, len(tokens))
        if entities_of(tags) != entities:
            reading.notes["texts with overlapping entities"] += 1
    else:
        tags, entities = _tags(row.values.get("tags"), len(tokens))
    for entity in entities:
        check_label(entity.type, reading.task, "type of entity")
    return TaggingExample(row_id, tokens, separator, tags, entities, row.place)


def _tokens(value: Any) -> tuple[str, ...]:
    """Return tokens; a token may be a space, because characters are tokens in Chinese, but it may not be empty."""
    if not isinstance(value, (list, tuple)):
        raise RowError("tokens are missing" if value is None else f"tokens are not a list of texts: {shown(value)}")
    tokens = tuple(text_of(token, f"token {index}", may_be_empty=True) for index, token in enumerate(value))
    if "" in tokens:
        raise RowError(f"token {tokens.index('')} is empty")
    if not "".join(tokens).strip():
        raise RowError("the text is empty")
    return tokens


def _tags(value: Any, num_tokens: int) -> tuple[tuple[str, ...], tuple[Entity, ...]]:
    tags = texts_of(value, "tags")
    if len(tags) != num_tokens:
        raise RowError(f"{num_tokens} tokens but {len(tags)} tags")
    try:
        tags = to_iob2(tags)
    except ValueError as error:
        raise RowError(str(error)) from error
    return tags, entities_of(tags)


def _entities(value: Any, text: str, notes: Counter[str]) -> tuple[Entity, ...]:
    """Return entities by start. Where the text is not the surface of the entity, the nearest occurrence is taken."""
    entities = []
    for entity_type, start, end, surface in value:
        found = locate(text_of(surface, "the text of an entity"), text, start)
        if found is None:
            raise RowError(f"the entity {shown(surface)} is not in the text")
        if (found, found + len(surface)) != (start, end):
            notes["entities at another position than given"] += 1
        entities.append(Entity(entity_type, found, found + len(surface)))
    return tuple(sorted(entities, key=lambda entity: (entity.start, entity.end, entity.type)))


Maker = Callable[[Row, str, Reading], Example]
MAKERS: dict[Kind, Maker] = {
    "classification": make_classification,
    "regression": make_regression,
    "multiple_choice": make_multiple_choice,
    "span": make_span,
    "tagging": make_tagging,
}
