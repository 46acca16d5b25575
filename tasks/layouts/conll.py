"""Files with one token a line and a blank line after each sentence (CoNLL-2003)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tasks.data.examples import Place
from tasks.layouts.lines import read_lines
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted

DOCUMENT_START = "-DOCSTART-"


@dataclass(frozen=True)
class Conll:
    """Lines of fields between spaces or tabs; a row is a sentence. Document marks (-DOCSTART-) are no sentences.

    Attributes:
        token_column, tag_column: numbers counted from 1; negative ones count from the last column.
    """

    token_column: int = 1
    tag_column: int = -1

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the sentences of each file."""
        for path in files:
            for is_sentence, lines in groupby(read_lines(path), key=lambda placed: _is_of_sentence(placed[1])):
                if is_sentence:
                    yield self._row(list(lines), wanted.labelled)

    def _row(self, sentence: Sequence[tuple[Place, str | BadRow]], labelled: bool) -> AnyRow:
        first = sentence[0][0]
        columns = [self.token_column, *([self.tag_column] if labelled else [])]
        needed = max(max(column, -column) for column in columns)
        if labelled and self.tag_column < 0:
            # The tag comes after the token.
            needed = max(needed, self.token_column - self.tag_column)
        tokens: list[list[str]] = []
        for place, line in sentence:
            if isinstance(line, BadRow):
                return BadRow(first, f"a sentence with a bad line {place.line}: {line.reason}")
            # Not str.split(): a token may be an ideographic space.
            fields = re.split("[ \t]+", line.strip(" \t"))
            if len(fields) < needed:
                reason = f"too few fields in {line[:40]!r}: {len(fields)} instead of at least {needed}"
                return BadRow(first, f"a sentence with a bad line {place.line}: {reason}")
            tokens.append([fields[column - (column > 0)] for column in columns])
        return Row(first, dict(zip(("tokens", "tags"), map(list, zip(*tokens, strict=True)), strict=False)))


def _is_of_sentence(line: str | BadRow) -> bool:
    return isinstance(line, BadRow) or (bool(line.strip(" \t")) and not line.startswith(DOCUMENT_START))
