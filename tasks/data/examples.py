"""The examples of the five kinds of tasks. A reader of files makes them; encoders, decoders and scorers use them.

All offsets count characters (Unicode code points), and all ends are exclusive. A field that holds the gold value is
None in a file without labels, such as the test files of GLUE and CLUE.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias


class Place(NamedTuple):
    """Where a row is, for errors: a file, a line counted from 1 if the file has lines, and a part of the file."""

    file: Path
    line: int | None = None
    part: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}{', ' * bool(self.part)}{self.part}"


@dataclass(frozen=True)
class ClassificationExample:
    """One or two texts and a label.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        text_b: None if the task has single texts.
        label: in the official spelling; one of the task's labels.
        place: the file and line.
    """

    id: str
    text_a: str
    text_b: str | None
    label: str | None
    place: Place


@dataclass(frozen=True)
class RegressionExample:
    """One or two texts and a score. The attributes are those of ClassificationExample."""

    id: str
    text_a: str
    text_b: str | None
    score: float | None
    place: Place


class CharSpan(NamedTuple):
    """The characters [start, end) of a text."""

    start: int
    end: int


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


class Entity(NamedTuple):
    """The tokens [start, end) and their type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class TaggingExample:
    """Tokens, each with a tag.

    Attributes:
        tokens: words (CoNLL) or characters (MSRA, CLUENER). A token may be a space, which a tokenizer drops.
        separator: what stands between two tokens in a text: " " for words, "" for characters.
        tags: one for each token, in the scheme IOB2: `B-TYPE` at the first token of an entity, `I-TYPE` inside, `O`.
        entities: all gold entities by start. They are those of `tags`, and those inside others (CLUENER has a few),
            which tags cannot express.
        given_text: the text that was split into the tokens; None if the file has tokens.
    """

    id: str
    tokens: tuple[str, ...]
    separator: str
    tags: tuple[str, ...] | None
    entities: tuple[Entity, ...] | None
    place: Place
    given_text: str | None = None

    @property
    def text(self) -> str:
        return self.separator.join(self.tokens) if self.given_text is None else self.given_text

    def token_spans(self) -> list[CharSpan]:
        """Return the characters of each token in `text`."""
        text, spans, end = self.text, list[CharSpan](), 0
        for token in self.tokens:
            start = text.index(token, end)
            end = start + len(token)
            spans.append(CharSpan(start, end))
        return spans


Example: TypeAlias = ClassificationExample | RegressionExample | MultipleChoiceExample | SpanExample | TaggingExample
