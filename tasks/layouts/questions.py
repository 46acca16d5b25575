"""Questions on texts: SQuAD's JSON (also used by CMRC 2018, DRCD and DuReader-robust), and DuReader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tasks.layouts.lines import ObjectLines, read_json
from tasks.layouts.rows import AnyRow, BadRow, OmittedError, Place, Row, RowError, Wanted

CMRC_KEYS = {"context_text": "context", "query_id": "id", "query_text": "question"}


@dataclass(frozen=True)
class Squad:
    """`data` > entries > `paragraphs` with `context` > `qas` with `question`, `id` and `answers`; a row is a question.

    Version 2.0 adds `is_impossible`; its `plausible_answers` are not read. CMRC 2018's own form is a list of paragraphs
    with other keys (see CMRC_KEYS).
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of each file; raises InputError for a file without `data`.

        An entry without paragraphs, and a paragraph without questions, is one bad row.
        """
        for path in files:
            top = read_json(path)
            keys: Sequence[str] = ("data", "paragraphs", "qas")
            if top and isinstance(top, list):
                top, keys = {"": top}, ("", "qas")
            if not isinstance(top, dict) or not isinstance(top.get(keys[0]), list):
                raise InputError(f"{path}: no list 'data'; this is not a file in SQuAD's format")
            for found in _questions(path, top, keys, "", {}):
                yield found if isinstance(found, BadRow) else _row(path, *found, wanted.labelled)


def _questions(
    path: Path, value: Any, keys: Sequence[str], name: str, paragraph: Any
) -> Iterator[tuple[str, Any, Any] | BadRow]:
    """Yield the JSON path of each question, its paragraph and itself; or one bad row for an object without a list."""
    if not keys:
        yield name, paragraph, value
        return
    found = value.get(keys[0]) if isinstance(value, dict) else None
    if not isinstance(found, list):
        yield BadRow(Place(path, part=name), f"no list {keys[0]!r}")
        return
    for index, item in enumerate(found):
        yield from _questions(path, item, keys[1:], f"{name}{'.' * bool(name)}{keys[0]}[{index}]", value)


def _row(path: Path, name: str, paragraph: dict[str, Any], question: Any, labelled: bool) -> AnyRow:
    if not isinstance(question, dict):
        return BadRow(Place(path, part=name), "expected an object with `question` and `id`")
    paragraph, question = ({CMRC_KEYS.get(key, key): value[key] for key in value} for value in (paragraph, question))
    place = Place(path, part=f"{name} (id {question['id']})" if "id" in question else name)
    gold = ("answers", "is_impossible") if labelled else ()
    values = {key: question[key] for key in ("id", "question", *gold) if key in question}
    needed = ("id", "question", "answers") if labelled else ("question",)
    missing = next((key for key in needed if key not in values), None)
    # Files of version 2.0 may leave out the answers of a question without answer.
    if missing is not None and not (missing == "answers" and values.get("is_impossible") is True):
        return BadRow(place, f"no {missing!r}")
    return Row(place, {"context": paragraph.get("context"), **({"answers": []} if labelled else {}), **values})


@dataclass(frozen=True)
class DuReaderDocuments(ObjectLines):
    """The preprocessed files of DuReader 2.0: a question with several documents in each line.

    Objects have `question_id`, `question`, `documents`, `answer_docs` and `answer_spans`. A document has
    `segmented_paragraphs` and `most_related_para`; a span is a pair of token numbers, both inclusive, in that
    paragraph. For each question, only the paragraph with the annotated span is read (the single-document form). The
    context is this paragraph without the spaces between its tokens.
    """

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a question. Questions without a span are omitted, as by the official baseline."""
        try:
            return _single_document(record, wanted.labelled)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            reason = f"not an object of DuReader's preprocessed files: {type(error).__name__} {error}"
            raise RowError(reason) from error


def _single_document(record: Mapping[str, Any], labelled: bool) -> Mapping[str, Any]:
    values = {"id": str(record["question_id"]), "question": record["question"]}
    if not labelled:
        return {**values, "context": "".join(_tokens(record["documents"][0]))}
    if not record.get("answer_spans") or not record.get("answer_docs"):
        raise OmittedError("no annotated span")
    tokens = _tokens(record["documents"][record["answer_docs"][0]])
    first, last = record["answer_spans"][0]
    if not 0 <= first <= last < len(tokens):
        raise RowError(f"the span [{first}, {last}] is outside of the paragraph's {len(tokens)} tokens")
    answer = {"text": "".join(tokens[first : last + 1]), "answer_start": len("".join(tokens[:first]))}
    return {**values, "context": "".join(tokens), "answers": [answer]}


def _tokens(document: Mapping[str, Any]) -> list[str]:
    return [str(token) for token in document["segmented_paragraphs"][document["most_related_para"]]]
