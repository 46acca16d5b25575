"""The forms of benchmarks: JSON of SQuAD (also CMRC 2018, DRCD, DuReader) and CLUE; folders of texts (IMDb, RACE)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    Layout,
    OmittedRow,
    Place,
    Row,
    Wanted,
    cleaned,
    locate,
    nested,
)

CMRC_KEYS = {"context_text": "context", "query_id": "id", "query_text": "question"}


@dataclass(frozen=True)
class Squad(Layout):
    """`data` > entries > `paragraphs` with `context` > `qas` with `question`, `id` and `answers`; a row is a question.

    Version 2.0 adds `is_impossible`; its `plausible_answers` are not read. CMRC 2018's own form is a list of paragraphs
    with other keys (see CMRC_KEYS).
    """

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the JSON path and the ID of each question, and the keys of its paragraph and its own, as in SQuAD."""
        top = read_json(path)
        is_list = isinstance(top, list)
        for number, entry in enumerate([{"paragraphs": top}] if is_list else top["data"]):
            for index, paragraph in enumerate(entry["paragraphs"]):
                for position, question in enumerate(paragraph["qas"]):
                    given = {key: paragraph[key] for key in ("context", "context_text") if key in paragraph} | question
                    values = {CMRC_KEYS.get(key, key): given[key] for key in given}
                    part = f"{'' if is_list else f'data[{number}].paragraphs'}[{index}].qas[{position}]"
                    yield Place(path, part=part + (f" (id {values['id']})" if "id" in values else "")), values

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a question. A user's own ones need no IDs."""
        labelled = "answers" in wanted
        values = {key: record[key] for key in ("context", "question", "id") if key != "id" or labelled or key in record}
        if not labelled:
            return values
        # Files of version 2.0 may leave out the answers of a question without answer.
        impossible = record.get("is_impossible", False)
        return {**values, "is_impossible": impossible, "answers": [] if impossible is True else record["answers"]}


@dataclass(frozen=True)
class DuReaderDocuments(ObjectLines):
    """The preprocessed files of DuReader 2.0: a question with several documents in each line.

    A span of `answer_spans` is a pair of token numbers, both inclusive, in `most_related_para` of the document. Only
    this paragraph is read, without the spaces between its tokens.
    """

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a question. Questions without a span are omitted, as by the official baseline."""
        values = {"id": str(record["question_id"]), "question": record["question"]}
        if "answers" in wanted and not (record.get("answer_spans") and record.get("answer_docs")):
            raise OmittedRow("no annotated span")
        document = record["documents"][record["answer_docs"][0] if "answers" in wanted else 0]
        tokens = document["segmented_paragraphs"][document["most_related_para"]]
        values |= {"context": "".join(tokens)}
        if "answers" not in wanted:
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
        return {**values, "entities": entities_in(record.get("label"))} if "tags" in wanted else values


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
        return {"text_a": text, **{key: record[key] for key in ("id", "label") if key in wanted and key in record}}


@dataclass(frozen=True)
class C3(Layout):
    """A JSON list of [lines of a document, questions, ID of the document]; a row is a question.

    Questions have `question`, `choice` (2 to 4 texts) and `answer`, which is one of the texts; those of test files have
    an `id`. The lines of a document are joined by line feeds.
    """

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the place of each question, the question, its ID and the document."""
        for number, (lines, questions, document_id) in enumerate(read_json(path), start=1):
            for index, question in enumerate(questions):
                place = Place(path, part=f"document {number} (id {document_id}), question {index + 1}")
                # The IDs of documents repeat between the dialogues (d) and the other texts (m).
                yield place, (question, f"{path.stem}/{document_id}-{index}", "\n".join(lines))

    def values(self, record: tuple[Any, str, str], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a question. Of equal options the first one is right; there are a few."""
        question, default_id, context = record
        options = question["choice"]
        values = {"context": context, "question": question["question"], "options": options}
        if "answer" in wanted:
            answer = question["answer"]
            values["answer"] = options.index(answer) if answer in options else answer
        return {"id": str(question.get("id", default_id)), **values}


@dataclass(frozen=True)
class Chid(Layout):
    """Lines with `content` (passages) and `candidates`; a row is a blank, whose ID is its tag `#idiomNNNNNN#`.

    All blanks of a line share its candidates: they have the same `group`. The answers, tag to index, are in the second
    file of a pair.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the blanks of each file; with labels, `files` holds pairs of a file of passages and one of answers.

        Raises InputError if a file of answers is missing, or is not a JSON object.
        """
        if "answer" not in wanted:
            yield from super().rows(files, wanted)
            return
        if len(files) % 2:
            raise InputError(f"{files[-1]}: has no file of answers; give pairs of a file of passages and its answers")
        for path, answers_path in zip(files[::2], files[1::2], strict=True):
            answers = read_json(answers_path)
            if not isinstance(answers, dict):
                raise InputError(f"{answers_path}: expected an object of tags and indices, ChID's answers")
            seen: set[str] = set()
            for row in super().rows([path], wanted):
                tag = row.place.part if row.place else ""
                seen.add(tag)
                if isinstance(row, Row) and tag in answers:
                    yield Row(row.place, {**row.values, "answer": answers[tag]})
                elif isinstance(row, Row):
                    yield BadRow("no answer for this blank in the file of answers", row.place)
                else:
                    yield row
            for tag in sorted(answers.keys() - seen):
                yield BadRow(f"an answer for a blank that is not in {path.name}", Place(answers_path, part=tag))

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the place of each blank, the group and the candidates of its line, and its match in a passage."""
        for place, record in json_objects(path):
            if isinstance(record, BadRow):
                yield place, record
                continue
            for passage in record["content"]:
                blanks = list(TAG.finditer(passage))
                if not blanks:
                    yield place, BadRow(f"a passage without a blank #idiom...#: {passage[:20]!r}", place)
                for blank in blanks:
                    yield place._replace(part=blank[0]), (record, str(place), blank)

    def values(self, record: tuple[Mapping[str, Any], str, re.Match[str]], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a blank, without its answer."""
        line, group, blank = record
        parts = (blank.string[: blank.start()], blank.string[blank.end() :])
        before, after = (TAG.sub(OTHER_BLANK, text) for text in parts)
        return {
            "id": blank[0],
            "context": before + BLANK + after,
            "question": "",
            "options": line["candidates"],
            "group": group,
            "blank": CharSpan(len(before), len(before) + len(BLANK)),
        }


@dataclass(frozen=True)
class TextFolders(Layout):
    """Folders that hold one folder of .txt files for each class. Without labels, their own .txt files are read.

    Attributes:
        classes: the names of the folders of the classes, which are the labels. Other folders are not read (IMDb's
            `unsup`).
        clean: a change of the texts, see rows.CLEANERS.
    """

    classes: tuple[str, ...]
    clean: Cleaner | None = None

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the files of each class, by name; raises InputError if the folder of a class is missing."""
        for name in self.classes if "label" in wanted else [""]:
            yield from ((Place(file), (file, name)) for file in text_files_in(path / name))

    def values(self, record: tuple[Path, str], wanted: Wanted) -> Mapping[str, Any]:
        """Return the text of a file, and its label."""
        path, label = record
        gold = {"id": f"{label}/{path.stem}", "label": label} if label else {"id": path.stem}
        return cleaned({**gold, "text_a": read_text(path)}, self.clean)


@dataclass(frozen=True)
class Race(Layout):
    """Folders of .txt files with `article`, and the lists `questions`, `options` and `answers` (letters).

    A row is a question, in which each `_` is a gap that the option fills. Its ID has the names of folder and file and
    the number of the question, because file names repeat between high and middle.
    """

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the values of the questions of the files, by name; raises InputError for an empty folder."""
        for file in text_files_in(path):
            yield from nested(file, _article_questions(file, "answer" in wanted))

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values with the index of the answer in place of its letter."""
        return {**record, "answer": [*string.ascii_uppercase].index(record["answer"])} if "answer" in record else record


def _article_questions(path: Path, labelled: bool) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the place and the values of each question of a file."""
    record = read_json(path)
    lists = [record[key] for key in ("questions", "options", *(["answers"] if labelled else []))]
    for number, values in enumerate(zip(*lists, strict=True)):
        row = dict(zip(("question", "options", "answer"), values, strict=False))
        identity = f"{path.parent.name}/{path.stem}-{number}"
        yield Place(path, part=f"question {number + 1}"), {**row, "id": identity, "context": record["article"]}


def text_files_in(folder: Path) -> list[Path]:
    """Return the .txt files of a folder, sorted; raises InputError if there are none."""
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        reason = "no files *.txt in this folder" if folder.is_dir() else "not a folder of files *.txt"
        raise InputError(f"{folder}: {reason}")
    return paths
