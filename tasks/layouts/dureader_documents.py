"""The preprocessed files of DuReader 2.0: one JSON object a line, a question with several documents.

Of each question the document and paragraph are read that hold the annotated span, which makes the single-document form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, BadRow, OmittedRow, Row, Wanted


@dataclass(frozen=True)
class DuReaderDocuments:
    """Objects with `question_id`, `question`, `documents`, `answer_docs` and `answer_spans`.

    A document has `segmented_paragraphs` and `most_related_para`; a span is a pair of token numbers, both inclusive, in
    that paragraph. The context is the paragraph without the spaces between its tokens.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of each file. Questions without a span are omitted, as by the official baseline."""
        for path in files:
            for place, record in json_objects(path):
                if isinstance(record, BadRow):
                    yield record
                    continue
                try:
                    yield _row(place, record, wanted.labelled)
                except (KeyError, IndexError, TypeError, ValueError) as error:
                    yield BadRow(
                        place, f"not an object of DuReader's preprocessed files: {type(error).__name__} {error}"
                    )


def _row(place: Place, record: Mapping[str, Any], labelled: bool) -> AnyRow:
    values = {"id": str(record["question_id"]), "question": record["question"]}
    if not labelled:
        return Row(place, {**values, "context": "".join(_tokens(record["documents"][0]))})
    if not record.get("answer_spans") or not record.get("answer_docs"):
        return OmittedRow(place, "no annotated span")
    tokens = _tokens(record["documents"][record["answer_docs"][0]])
    first, last = record["answer_spans"][0]
    if not 0 <= first <= last < len(tokens):
        return BadRow(place, f"the span [{first}, {last}] is outside of the paragraph's {len(tokens)} tokens")
    answer = {"text": "".join(tokens[first : last + 1]), "answer_start": len("".join(tokens[:first]))}
    return Row(place, {**values, "context": "".join(tokens), "answers": [answer]})


def _tokens(document: Mapping[str, Any]) -> list[str]:
    return [str(token) for token in document["segmented_paragraphs"][document["most_related_para"]]]
