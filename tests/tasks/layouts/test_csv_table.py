"""Comma-separated files, and the texts of AG News."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.layouts.columns import br_to_space, repair_entities
from tasks.layouts.rows import BadRow, Row
from tasks.layouts.tables import Csv
from tests.support.task_files import read, values, write

AG_NEWS = Csv({"label": 1, "text_a": (2, 3)}, header="no")


def test_quoted_fields_hold_commas_line_breaks_and_quotation_marks(tmp_path: Path) -> None:
    path = write(tmp_path / "t", '"3","A, B","say ""x""\nand\u2028more"\n"1","","only a description"\n')
    rows = read(AG_NEWS, path)
    assert [row.values for row in rows if isinstance(row, Row)] == [
        {"label": "3", "text_a": 'A, B say "x"\nand\u2028more'},
        {"label": "1", "text_a": "only a description"},
    ]
    assert [row.place.line for row in rows] == [1, 3]


def test_columns_have_names_if_there_is_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "t", b"\xef\xbb\xbftext,label\r\nx,1\r\n")
    assert values(Csv({"text_a": "text", "label": "label"}), path) == [{"text_a": "x", "label": "1"}]
    with pytest.raises(InputError, match=r"t:1: no column 'txt'.*did you mean text"):
        read(Csv({"text_a": "txt"}), path)
    with pytest.raises(InputError, match=r"e: is empty"):
        read(Csv({"text_a": "text"}), write(tmp_path / "e", ""))


def test_broken_rows_are_bad_and_the_next_ones_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t", '"1","a"x","b"\n"2","c"\n\n"4","d","e"\n')
    quotes, few, blank, good = read(AG_NEWS, path)
    assert isinstance(quotes, BadRow)
    assert (quotes.place.line, quotes.reason[:8]) == (1, "not CSV:")
    assert isinstance(few, BadRow)
    assert (few.place.line, few.reason) == (2, "too few fields: 2 instead of at least 3")
    assert isinstance(blank, BadRow)
    assert isinstance(good, Row)
    assert good.place.line == 4


def test_a_quotation_mark_that_is_never_closed_is_a_bad_row(tmp_path: Path) -> None:
    good, bad = read(AG_NEWS, write(tmp_path / "t", '"1","a","b"\n"2","c","d\n"3","e","f"'))
    assert isinstance(good, Row)
    assert isinstance(bad, BadRow)
    assert bad.place.line == 2


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (r"A second\team for the  #36;10 million", "A second team for the $10 million"),
        ("Sophos #39;s, Sophos&#39;s", "Sophos's, Sophos's"),
        (" quot;x quot; &lt;b&gt; AT&amp;T lt;i gt;", '"x" <b> AT&T<i>'),
        ("#1; C#; salt; a#b", "#1; C#; salt; a#b"),
    ],
)
def test_broken_entities_are_repaired(text: str, repaired: str) -> None:
    assert repair_entities(text) == repaired


def test_html_line_breaks_become_spaces() -> None:
    assert br_to_space("a<br /><br/>b<BR>c") == "a  b c"
