"""ChID: passages with blanks for idioms, and the right idioms in a second file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tasks.data.examples import CharSpan, Place
from tasks.layouts.lines import json_objects, read_json
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted

TAG = re.compile(r"#idiom\d+#")
# In the context of an example the blank that is asked for reads so, and the other blanks of the passage as OTHER_BLANK.
BLANK = "____"
OTHER_BLANK = "……"


@dataclass(frozen=True)
class Chid:
    """Lines with `content` (passages) and `candidates`; a row is a blank, whose ID is its tag `#idiomNNNNNN#`.

    All blanks of a line share its candidates: they have the same `group`. The answers, tag to index, are in the second
    file of a pair.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the blanks of each file; with labels, `files` holds pairs of a file of passages and one of answers.

        Raises InputError if a file of answers is not a JSON object.
        """
        labelled = wanted.labelled
        for path, answers_path in zip(files[::2], files[1::2], strict=True) if labelled else ((p, None) for p in files):
            answers = None if answers_path is None else _answers(answers_path)
            seen: set[str] = set()
            for place, record in json_objects(path):
                for row in [record] if isinstance(record, BadRow) else _line_rows(place, record, answers):
                    seen |= {row.values["id"]} if isinstance(row, Row) else set(TAG.findall(row.place.part))
                    yield row
            for tag in sorted((answers or {}).keys() - seen):
                yield BadRow(Place(answers_path or path, part=tag), f"an answer for a blank that is not in {path.name}")


def _answers(path: Path) -> Mapping[str, Any]:
    answers = read_json(path)
    if not isinstance(answers, dict):
        raise InputError(f"{path}: expected an object of tags and indices; this is not an answer file of ChID")
    return answers


def _line_rows(place: Place, record: Mapping[str, Any], answers: Mapping[str, Any] | None) -> Iterator[AnyRow]:
    passages, candidates = record.get("content"), record.get("candidates")
    if not isinstance(passages, list) or not all(isinstance(passage, str) for passage in passages):
        yield BadRow(place, "no list 'content' of passages")
        return
    for passage in passages:
        blanks = list(TAG.finditer(passage))
        if not blanks:
            yield BadRow(place, f"a passage without a blank #idiom...#: {passage[:20]!r}")
        for blank in blanks:
            yield _blank_row(place._replace(part=blank[0]), passage, blank, candidates, answers)


def _blank_row(
    place: Place, passage: str, blank: re.Match[str], candidates: Any, answers: Mapping[str, Any] | None
) -> AnyRow:
    before = TAG.sub(OTHER_BLANK, passage[: blank.start()])
    values = {
        "id": blank[0],
        "context": before + BLANK + TAG.sub(OTHER_BLANK, passage[blank.end() :]),
        "question": "",
        "options": candidates,
        "group": str(place.line),
        "blank": CharSpan(len(before), len(before) + len(BLANK)),
    }
    if answers is None:
        return Row(place, values)
    if blank[0] not in answers:
        return BadRow(place, "no answer for this blank in the file of answers")
    return Row(place, {**values, "answer": answers[blank[0]]})
