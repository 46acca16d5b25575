"""C3: a JSON list of [lines of a document, questions, ID of the document]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.lines import read_json
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class C3:
    """Questions with `question`, `choice` (2 to 4 texts) and `answer`, which is one of the texts; a row is a question.

    The lines of a document are joined by line feeds. Test files have an `id` in each question.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of each file; raises InputError for a file that is not a list of documents."""
        for path in files:
            documents = read_json(path)
            if not isinstance(documents, list):
                raise InputError(f"{path}: expected a list of [lines, questions, id]; this is not a file of C3")
            for number, document in enumerate(documents):
                yield from _document_rows(path, number, document, wanted.labelled)


def _document_rows(path: Path, number: int, document: Any, labelled: bool) -> Iterator[AnyRow]:
    place = Place(path, part=f"document {number}")
    if not (
        isinstance(document, list)
        and len(document) == 3
        and all(isinstance(part, list) for part in document[:2])
        and all(isinstance(line, str) for line in document[0])
    ):
        yield BadRow(place, "expected [lines, questions, id]")
        return
    lines, questions, document_id = document
    for index, question in enumerate(questions):
        place = Place(path, part=f"document {number} (id {document_id}), question {index}")
        keys = ("question", "choice", *(["answer"] if labelled else []))
        missing = next((key for key in keys if not isinstance(question, dict) or key not in question), None)
        if missing is not None:
            yield BadRow(place, f"no {missing!r}")
            continue
        values = dict(zip(("question", "options", "answer"), (question[key] for key in keys), strict=False))
        # The IDs of documents repeat between the dialogues (d) and the other texts (m).
        row_id = str(question.get("id", f"{path.stem}/{document_id}-{index}"))
        yield Row(place, {**values, "id": row_id, "context": "\n".join(lines)})
