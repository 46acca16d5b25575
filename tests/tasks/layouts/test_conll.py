"""Files with one token a line."""

from __future__ import annotations

from pathlib import Path

from tasks.layouts.conll import Conll
from tasks.layouts.rows import BadRow, Row
from tests.support.task_files import read, values, write

TEXT = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

-DOCSTART- -X- O O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER"""


def test_blank_lines_end_sentences_and_document_marks_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "t", TEXT)
    rows = read(Conll(), path)
    assert [row.values for row in rows if isinstance(row, Row)] == [
        {"tokens": ["EU", "rejects"], "tags": ["I-ORG", "O"]},
        {"tokens": ["Peter", "Blackburn"], "tags": ["I-PER", "I-PER"]},
    ]
    assert [row.place.line for row in rows] == [3, 8]


def test_other_columns_tabs_and_several_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "1\tEU\tB-ORG\t_\r\n \t\r\n\r\n2\t\u3000\tO\t_\r\n")
    layout = Conll(token_column=2, tag_column=3)
    assert values(layout, path) == [{"tokens": ["EU"], "tags": ["B-ORG"]}, {"tokens": ["\u3000"], "tags": ["O"]}]
    assert values(Conll(), write(tmp_path / "u", "EU\nUN\n"), labelled=False) == [{"tokens": ["EU", "UN"]}]


def test_a_line_with_too_few_fields_makes_its_sentence_bad(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "EU I-ORG\nrejects\n\nPeter I-PER\n")
    bad, good = read(Conll(), path)
    assert isinstance(bad, BadRow)
    assert bad.place.line == 1
    assert "bad line 2: too few fields in 'rejects': 1 instead of at least 2" in bad.reason
    assert isinstance(good, Row)
    # The last field but one is the tag: the token must come before it.
    bad, good = read(Conll(tag_column=-2), write(tmp_path / "u", "EU I-ORG\n\nPeter I-PER _\n"))
    assert "'EU I-ORG': 2 instead of at least 3" in bad.reason
    assert good.values == {"tokens": ["Peter"], "tags": ["I-PER"]}


def test_a_line_that_is_not_utf8_makes_its_sentence_bad(tmp_path: Path) -> None:
    bad, good = read(Conll(), write(tmp_path / "t", b"EU I-ORG\n\xff O\n\nPeter I-PER\n"))
    assert "bad line 2: not UTF-8" in bad.reason
    assert isinstance(good, Row)
