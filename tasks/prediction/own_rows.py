"""Rows of a user's texts as the task's own files have them: split into words, or with the marks that the task makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place
from tasks.layouts.chid import BLANK, OTHER_BLANK, Chid, blank_of
from tasks.layouts.cluewsc import CluewscMarked, is_marked
from tasks.layouts.rows import AnyRow, BadRow, Layout, Row
from tasks.reading.checked_values import RowError

# A text that is to be tagged may be given without tokens. English words and punctuation marks are then tokens.
TEXT, TOKENS = "text", "tokens"
WORDS = re.compile(r"\w+|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Return the words and the punctuation marks of a text."""
    return WORDS.findall(text)


@dataclass(frozen=True)
class SplitTexts:
    """Rows of another layout, with the words of a text in place of the text.

    Attributes:
        texts: the texts that were read are put here, by place.
    """

    layout: Layout
    texts: dict[Place, str]

    def rows(self, files: Sequence[Path], labelled: bool) -> Iterator[AnyRow]:
        """Yield the rows of the files."""
        for row in self.layout.rows(files, labelled):
            if isinstance(row, Row) and isinstance(text := row.values.get(TEXT), str):
                self.texts[row.place] = text
                values = {role: value for role, value in row.values.items() if role != TEXT}
                yield Row(row.place, values | {TOKENS: words_of(text)})
            else:
                yield row


@dataclass(frozen=True)
class MarkedTexts:
    """Rows of another layout whose texts must be marked as the task marks its own.

    Attributes:
        check: returns the values of a row with what follows from the marks; raises RowError without the marks.
    """

    layout: Layout
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def rows(self, files: Sequence[Path], labelled: bool) -> Iterator[AnyRow]:
        """Yield the rows of the files."""
        for row in self.layout.rows(files, labelled):
            yield self._checked(row) if isinstance(row, Row) else row

    def _checked(self, row: Row) -> Row | BadRow:
        try:
            return Row(row.place, self.check(row.values))
        except RowError as error:
            return BadRow(row.place, str(error))


def _with_blank(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a question with the blank of its context, which the options fill (ChID)."""
    context = values.get("context")
    blank = blank_of(context) if isinstance(context, str) else None
    if blank is None:
        raise RowError(f"the context must have one blank, marked {BLANK!r}; write {OTHER_BLANK!r} for others")
    return {**values, "blank": blank}


def _with_marks(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a text if its noun phrase and its pronoun are marked (CLUEWSC2020)."""
    text = values.get("text_a")
    if not isinstance(text, str) or not is_marked(text):
        raise RowError("text_a must have its noun phrase and its pronoun marked as '_phrase_' and '[pronoun]'")
    return values


MARKS: dict[type, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {Chid: _with_blank, CluewscMarked: _with_marks}
