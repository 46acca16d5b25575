"""What a layout yields: rows of values that are not yet checked, and rows that it could not read.

The names of the values are the same for all layouts of a kind of task:

- classification: text_a, text_b, label; regression: text_a, text_b, score;
- multiple_choice: context, question, options, answer (an index, or the text or letter of an option), group, blank;
- span: context, question, answers (texts, or dicts with `text` and `answer_start`), is_impossible;
- tagging: tokens and tags, or text and entities (lists of type, first character, end (exclusive), surface); or a
  sentence, of which words and punctuation marks are the tokens, in place of tokens without tags;
- each of them: id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tasks.data.examples import Place


@dataclass(frozen=True)
class Row:
    """Values that should make one example, and their place."""

    place: Place
    values: Mapping[str, Any]


@dataclass(frozen=True)
class BadRow:
    """A row that is not as the layout requires. The reason is a clause that continues `file:line: `."""

    place: Place
    reason: str


@dataclass(frozen=True)
class OmittedRow:
    """A row of valid form that the task leaves out on purpose, as the official baselines do."""

    place: Place
    reason: str


AnyRow: TypeAlias = Row | BadRow | OmittedRow


class Layout(Protocol):
    """A form of files."""

    def rows(self, files: Sequence[Path], labelled: bool) -> Iterator[AnyRow]:
        """Yield every row of the files, in order.

        Args:
            files: files or folders, as the layout requires.
            labelled: whether the files have gold values; without them no gold value is read.

        Raises InputError if a file as a whole is not as the layout requires.
        """
        ...
