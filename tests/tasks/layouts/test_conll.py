"""Files with one token a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.layouts.rows import BadRow, Row
from tasks.layouts.tables import Conll
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


@pytest.mark.parametrize(
    ("layout", "content", "reason"),
    [
        (Conll(), b"EU I-ORG\nrejects\n\nPeter I-PER\n", "bad line 2: too few fields in 'rejects'"),
        # The last field but one is the tag: the token must come before it.
        (Conll(tag_column=-2), b"EU I-ORG\n\nPeter I-PER _\n", "'EU I-ORG': 2 instead of at least 3"),
        (Conll(), b"EU I-ORG\n\xff O\n\nPeter I-PER\n", "bad line 2: not UTF-8"),
    ],
)
def test_a_bad_line_makes_its_sentence_bad(layout: Conll, content: bytes, reason: str, tmp_path: Path) -> None:
    bad, good = read(layout, write(tmp_path / "t", content))
    assert isinstance(bad, BadRow)
    assert bad.place.line == 1
    assert reason in bad.reason
    assert good.values == {"tokens": ["Peter"], "tags": ["I-PER"]}
