"""Files with one JSON object a line (CLUE)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import similar
from reader.text.text_files import value_at
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, Cleaner, Columns, RowError, Wanted, cleaned, rows_of, single_columns

MISSING = object()


class ObjectLines(ABC):
    """Files with one JSON object a line, each of which makes a row."""

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the rows of each file."""
        for path in files:
            yield from rows_of(json_objects(path), lambda record: self.values(record, wanted))

    @abstractmethod
    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of an object by name; raises RowError or OmittedError."""


@dataclass(frozen=True)
class JsonLines(ObjectLines):
    """JSON objects, one a line.

    Attributes:
        columns: the key of each value; `doc.body` is the key `body` of the object under `doc`. A list of texts under
            the key of a text is joined by spaces (CSL's keywords).
        clean: a change of the texts, see rows.CLEANERS.
    """

    columns: Columns
    clean: Cleaner | None = None

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values under the keys."""
        values: dict[str, Any] = {}
        for name, column in self.columns.items():
            role = wanted.role(name)
            if role.is_gold and not wanted.labelled:
                continue
            keys = [str(key) for key in single_columns(column)]
            found = [value_at(record, key, MISSING) for key in keys]
            missing = next((key for key, value in zip(keys, found, strict=True) if value is MISSING), None)
            if missing is None:
                is_whole = len(found) == 1 and (role.is_list or role.is_gold)
                values[name] = found[0] if is_whole else found if role.is_list else _joined(found)
            elif not role.may_lack:
                raise RowError(f"no key {missing!r} in the object{similar(missing, list(record))}")
        return cleaned(values, self.clean)


def _joined(found: list[Any]) -> Any:
    """Return a single value as it is, and several texts, or a list of texts, as one text."""
    texts = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if len(texts) == 1 and texts is found:
        return found[0]
    return " ".join(text for text in texts if text) if all(isinstance(text, str) for text in texts) else texts


@dataclass(frozen=True)
class TextOrTokens(ObjectLines):
    """JSON objects of a user, each with the list `tokens` or with a `text` without tokens; no gold values are read."""

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the tokens or the text."""
        if ("tokens" in record) == ("text" in record):
            raise RowError("expected either the key 'tokens' or the key 'text' in the object")
        return {key: record[key] for key in ("id", "tokens", "text") if key in record}
