"""The forms of benchmarks: JSON of SQuAD (also CMRC 2018, DRCD, DuReader) and CLUE; folders of texts (IMDb, RACE)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tasks.layouts.lines import ObjectLines, json_objects, read_json, read_text
from tasks.layouts.rows import (
    FORM_ERRORS,
    AnyRow,
    BadRow,
    CharSpan,
    Cleaner,
    OmittedRow,
    Place,
    Row,
    Wanted,
    cleaned,
    locate,
    rows_of,
)

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
        yield BadRow(f"no list {keys[0]!r}", Place(path, part=name))
        return
    for index, item in enumerate(found):
        yield from _questions(path, item, keys[1:], f"{name}{'.' * bool(name)}{keys[0]}[{index}]", value)


def _row(path: Path, name: str, paragraph: dict[str, Any], question: Any, labelled: bool) -> AnyRow:
    if not isinstance(question, dict):
        return BadRow("expected an object with `question` and `id`", Place(path, part=name))
    paragraph, question = ({CMRC_KEYS.get(key, key): value[key] for key in value} for value in (paragraph, question))
    place = Place(path, part=f"{name} (id {question['id']})" if "id" in question else name)
    gold = ("answers", "is_impossible") if labelled else ()
    values = {key: question[key] for key in ("id", "question", *gold) if key in question}
    needed = ("id", "question", "answers") if labelled else ("question",)
    missing = next((key for key in needed if key not in values), None)
    # Files of version 2.0 may leave out the answers of a question without answer.
    if missing is not None and not (missing == "answers" and values.get("is_impossible") is True):
        return BadRow(f"no {missing!r}", place)
    return Row(place, {"context": paragraph.get("context"), **({"answers": []} if labelled else {}), **values})


@dataclass(frozen=True)
class DuReaderDocuments(ObjectLines):
    """The preprocessed files of DuReader 2.0: a question with several documents in each line.

    A span of `answer_spans` is a pair of token numbers, both inclusive, in `most_related_para` of the document. Only
    this paragraph is read, without the spaces between its tokens.
    """

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a question. Questions without a span are omitted, as by the official baseline."""
        values = {"id": str(record["question_id"]), "question": record["question"]}
        if wanted.labelled and not (record.get("answer_spans") and record.get("answer_docs")):
            raise OmittedRow("no annotated span")
        document = record["documents"][record["answer_docs"][0] if wanted.labelled else 0]
        tokens = document["segmented_paragraphs"][document["most_related_para"]]
        values |= {"context": "".join(tokens)}
        if not wanted.labelled:
            return values
        first, last = record["answer_spans"][0]
        if not 0 <= first <= last < len(tokens):
            raise BadRow(f"the span [{first}, {last}] is outside of the paragraph's {len(tokens)} tokens")
        start = len("".join(tokens[:first]))
        return {**values, "answers": [{"text": "".join(tokens[first : last + 1]), "answer_start": start}]}


# The marks of CLUEWSC's spans.
MARKS = {"span1": ("_", "_"), "span2": ("[", "]")}
TAG = re.compile(r"#idiom\d+#")
# The texts that replace the blank to fill, and the other blanks of the passage, in the context of an example of ChID.
BLANK = "____"
OTHER_BLANK = "……"


@dataclass(frozen=True)
class Cluener(ObjectLines):
    """Objects with `text`, and `label`: type > surface > list of [first, last] characters, **last inclusive**."""

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the text and its entities."""
        values = {key: record[key] for key in ("text", "id") if key == "text" or key in record}
        return {**values, "entities": entities_in(record.get("label"))} if wanted.labelled else values


def entities_in(label: Any) -> list[tuple[str, int, int, str]]:
    """Return the entities of a text: type, first character, end (exclusive), surface; raises BadRow."""
    try:
        return [
            (entity_type, int(first), int(last) + 1, surface)
            for entity_type, surfaces in label.items()
            for surface, spans in surfaces.items()
            for first, last in spans
        ]
    except FORM_ERRORS as error:
        raise BadRow("'label' is not of the form {type: {text: [[first, last], ...]}}") from error


@dataclass(frozen=True)
class CluewscMarked(ObjectLines):
    """Objects with `text`, `target` (`span1_text`, `span1_index`, `span2_...`) and `label`: a noun phrase, a pronoun.

    As in CLUE's baseline the two spans are marked in the text, which makes it a classification of a single text: the
    noun phrase becomes `_phrase_` and the pronoun `[pronoun]`. The indices count characters. Where the text at an index
    is not the span, the nearest occurrence is marked.
    """

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the text with marked spans."""
        text, target = record["text"], record["target"]
        insertions: list[tuple[int, int, str]] = []
        for order, (name, (before, after)) in enumerate(MARKS.items()):
            surface = target[f"{name}_text"]
            start = locate(surface, text, target[f"{name}_index"])
            if start is None or not surface:
                raise BadRow(f"{name}_text {surface!r} is not in the text")
            insertions += [(start, order, before), (start + len(surface), -order, after)]
        for position, _, mark in sorted(insertions, reverse=True):
            text = text[:position] + mark + text[position:]
        return {"text_a": text, **{key: record[key] for key in ("id", "label")[: 1 + wanted.labelled] if key in record}}


@dataclass(frozen=True)
class C3:
    """A JSON list of [lines of a document, questions, ID of the document]; a row is a question.

    Questions have `question`, `choice` (2 to 4 texts) and `answer`, which is one of the texts; those of test files have
    an `id`. The lines of a document are joined by line feeds.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of each file; raises InputError for a file that is not a list of documents."""
        for path in files:
            documents = read_json(path)
            if not isinstance(documents, list):
                raise InputError(f"{path}: expected a list of [lines, questions, id]; this is not a file of C3")
            for number, document in enumerate(documents, start=1):
                questions = _questions_of(path, number, document)
                yield from rows_of(questions, lambda each: _question(*each, wanted.labelled))


def _questions_of(path: Path, number: int, document: Any) -> Iterator[tuple[Place, tuple[Any, str, str] | BadRow]]:
    """Yield the place of each question, the question, its ID and the document; or one bad row for another form."""
    is_whole = isinstance(document, list) and [isinstance(part, list) for part in document] == [True, True, False]
    if not (is_whole and all(isinstance(line, str) for line in document[0])):
        place = Place(path, part=f"document {number}")
        yield place, BadRow("expected [lines, questions, id]", place)
        return
    lines, questions, document_id = document
    for index, question in enumerate(questions):
        place = Place(path, part=f"document {number} (id {document_id}), question {index + 1}")
        # The IDs of documents repeat between the dialogues (d) and the other texts (m).
        yield place, (question, f"{path.stem}/{document_id}-{index}", "\n".join(lines))


def _question(question: Mapping[str, Any], default_id: str, context: str, labelled: bool) -> Mapping[str, Any]:
    options = question["choice"]
    values = {"context": context, "question": question["question"], "options": options}
    if labelled:
        # The first of equal options; there are a few.
        answer = question["answer"]
        values["answer"] = options.index(answer) if answer in options else answer
    return {"id": str(question.get("id", default_id)), **values}


@dataclass(frozen=True)
class Chid:
    """Lines with `content` (passages) and `candidates`; a row is a blank, whose ID is its tag `#idiomNNNNNN#`.

    All blanks of a line share its candidates: they have the same `group`. The answers, tag to index, are in the second
    file of a pair.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the blanks of each file; with labels, `files` holds pairs of a file of passages and one of answers.

        Raises InputError if a file of answers is missing, or is not a JSON object.
        """
        labelled = wanted.labelled
        if labelled and len(files) % 2:
            raise InputError(f"{files[-1]}: has no file of answers; give pairs of a file of passages and its answers")
        for path, answers_path in zip(files[::2], files[1::2], strict=True) if labelled else ((p, p) for p in files):
            answers = read_json(answers_path) if labelled else None
            if labelled and not isinstance(answers, dict):
                raise InputError(f"{answers_path}: expected an object of tags and indices, ChID's answers")
            seen: set[str] = set()
            for place, record in json_objects(path):
                for row in [record] if isinstance(record, BadRow) else _line_rows(place, record, answers):
                    seen |= {row.values["id"]} if isinstance(row, Row) else set(TAG.findall(str(row.place)))
                    yield row
            for tag in sorted((answers or {}).keys() - seen):
                yield BadRow(f"an answer for a blank that is not in {path.name}", Place(answers_path, part=tag))


def _line_rows(place: Place, record: Mapping[str, Any], answers: Mapping[str, Any] | None) -> Iterator[AnyRow]:
    passages = record.get("content")
    if not isinstance(passages, list) or not all(isinstance(passage, str) for passage in passages):
        yield BadRow("no list 'content' of passages", place)
        return
    for passage in passages:
        blanks = list(TAG.finditer(passage))
        if not blanks:
            yield BadRow(f"a passage without a blank #idiom...#: {passage[:20]!r}", place)
        for blank in blanks:
            at, before = place._replace(part=blank[0]), TAG.sub(OTHER_BLANK, passage[: blank.start()])
            if answers is not None and blank[0] not in answers:
                yield BadRow("no answer for this blank in the file of answers", at)
                continue
            values = {
                "id": blank[0],
                "context": before + BLANK + TAG.sub(OTHER_BLANK, passage[blank.end() :]),
                "question": "",
                "options": record.get("candidates"),
                "group": f"{place.file}:{place.line}",
                "blank": CharSpan(len(before), len(before) + len(BLANK)),
            }
            yield Row(at, values if answers is None else {**values, "answer": answers[blank[0]]})


@dataclass(frozen=True)
class TextFolders:
    """Folders that hold one folder of .txt files for each class.

    Attributes:
        classes: the names of the folders of the classes, which are the labels. Other folders are not read (IMDb's
            `unsup`).
        clean: a change of the texts, see rows.CLEANERS.
    """

    classes: tuple[str, ...]
    clean: Cleaner | None = None

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the texts of each class, files by name; raises InputError if the folder of a class is missing.

        Without labels the .txt files of the folder itself are read.
        """
        for number, folder in enumerate(files):
            # Names of files may repeat in other folders.
            prefix = f"{number}/" if len(files) > 1 else ""
            for name in self.classes if wanted.labelled else [""]:
                items = ((Place(path), path) for path in text_files_in(folder / name))
                yield from rows_of(items, partial(self._values, label=name, prefix=prefix))

    def _values(self, path: Path, label: str, prefix: str) -> Mapping[str, Any]:
        gold = {"id": f"{prefix}{label}/{path.stem}", "label": label} if label else {"id": f"{prefix}{path.stem}"}
        return cleaned({**gold, "text_a": read_text(path)}, self.clean)


@dataclass(frozen=True)
class Race:
    """Folders of .txt files with `article`, and the lists `questions`, `options` and `answers` (letters).

    A row is a question, in which each `_` is a gap that the option fills. Its ID has the names of folder and file and
    the number of the question, because file names repeat between high and middle; and the folder's if theirs repeat.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of the files in each folder, files by name; raises InputError for an empty folder."""
        names = [folder.name for folder in files]
        for number, folder in enumerate(files):
            ending = f"-{number}" if names.count(folder.name) > 1 else ""
            for path in text_files_in(folder):
                yield from _article_rows(path, wanted.labelled, ending)


def _article_rows(path: Path, labelled: bool, ending: str) -> Iterator[AnyRow]:
    keys = ("questions", "options", *(["answers"] if labelled else []))
    try:
        record = read_json(path)
        # Raises TypeError for values other than lists: texts, too, could be read one by one.
        questions = list(zip(*(list.__iter__(record[key]) for key in keys), strict=True))
    except BadRow as error:
        yield error
        return
    except (KeyError, *FORM_ERRORS):
        yield BadRow(f"expected an object with the lists {', '.join(keys)}, equally long", Place(path))
        return
    for number, values in enumerate(questions):
        place = Place(path, part=f"question {number + 1}")
        row: dict[str, Any] = dict(zip(("question", "options", "answer"), values, strict=False))
        letter = row.get("answer", "A")
        if letter not in [*string.ascii_uppercase]:
            yield BadRow(f"the answer {str(letter)[:60]!r} is not a letter A, B, C ...", place)
            continue
        if labelled:
            row["answer"] = string.ascii_uppercase.index(letter)
        identity = f"{path.parent.name}/{path.stem}-{number}{ending}"
        yield Row(place, {**row, "id": identity, "context": record.get("article")})


def text_files_in(folder: Path) -> list[Path]:
    """Return the .txt files of a folder, sorted; raises InputError if there are none."""
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        reason = "no files *.txt in this folder" if folder.is_dir() else "not a folder of files *.txt"
        raise InputError(f"{folder}: {reason}")
    return paths
