"""Tab-separated and comma-separated files, the texts of AG News, and files with one token a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.layouts.rows import BadRow, Layout, OmittedRow, Row, repair_entities
from tasks.layouts.tables import Conll, Csv, Tsv
from tests.support.task_files import read, values, write

PAIR = {"text_a": "a", "text_b": "b", "label": "label"}
NAMED = Tsv(PAIR, header="auto", names=("a", "b", "label"))
LISTS = {"tokens": "text_a", "tags": "label"}
AG_NEWS = Csv({"label": 1, "text_a": (2, 3)}, header="no")


@pytest.mark.parametrize(
    ("layout", "content", "expected"),
    [
        # Columns are found by name, wherever they are; gold columns and an ID may be missing without labels.
        (Tsv(PAIR), "id\tlabel\tb\tlabel1\ta\n7\tyes\ty\tno\tx\n", [("x", "y", "yes")]),
        (Tsv({**PAIR, "id": "index"}), "a\tb\tlabel\nx\ty\t1\n", [("x", "y", "1")]),
        # Without a header, by name and by number; a header is found if the file has one.
        (
            Tsv({"text_a": "text", "label": "y"}, "no", ("from", "y", "text")),
            "gj\t1\tx\ngj\t0\ty",
            [("x", "1"), ("y", "0")],
        ),
        (Tsv({"text_a": 3, "label": 2}, "no"), "gj\t1\tx\ngj\t0\ty", [("x", "1"), ("y", "0")]),
        (NAMED, "x\ty\t1\n", [("x", "y", "1")]),
        (NAMED, "label\ta\tb\n1\tx\ty\n", [("x", "y", "1")]),
        (Tsv(LISTS), "text_a\tlabel\n上|海\tB|O\n", [("上|海", "B|O")]),
        # Several columns make one text or a list, which ends with the last field that is not empty.
        (Tsv({"text_a": ("p", "q", "r"), "options": ("p", "r")}), "p\tq\tr\nx\t\tz\n", [("x z", ["x", "z"])]),
        *(
            (Tsv({"text_a": "t", "options": ("p", "q", "r")}), f"t\tp\tq\tr\nb\t{fields}\n", [("b", options)])
            for fields, options in {
                "x\ty\t": ["x", "y"],
                "x\t\t": ["x"],
                "x\t\t ": ["x", "", " "],
                "x\t\ty": ["x", "", "y"],
                "\t\t": [""],
                "\ty\t": ["", "y"],
            }.items()
        ),
        # Quoted fields hold commas, line breaks and quotation marks, and are of any length.
        (AG_NEWS, '"3","A, B","say ""x""\nand\u2028more"\n', [("3", 'A, B say "x"\nand\u2028more')]),
        (AG_NEWS, f'"1","a","{"word " * 40_000}"\n', [("1", f"a {'word ' * 40_000}")]),
        (Csv({"text_a": "text", "label": "label"}), b"\xef\xbb\xbftext,label\r\nx,1\r\n", [("x", "1")]),
    ],
)
def test_rows_have_the_values_of_their_columns(
    layout: Layout, content: str | bytes, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    assert [tuple(row.values()) for row in values(layout, write(tmp_path / "t", content))] == expected


TEXT = {"text_a": "text", "label": "label"}


@pytest.mark.parametrize(
    ("layout", "content", "message"),
    [
        (Tsv(PAIR), "index\ta\tb\n0\tx\ty\n", ":1: no column 'label'"),
        (Tsv({"text_a": "sentence1"}), "sentence_1\tlabel\n", ":1: no column 'sentence1' .*did you mean sentence_1"),
        (Tsv({"text_a": "sentence1"}, header="no"), "x\n", "no header; give its number"),
        (Tsv({"text_a": 1, "id": "key"}, header="no"), "x\t7\n", "'key' has a name, but .* no header; give its number"),
        (Tsv(PAIR), "", ": is empty"),
        (Tsv({"text_a": "a"}), b"a\xff\nx\n", ":1: not UTF-8"),
        (Csv({"text_a": "txt"}), "text,label\nx,1\n", ":1: no column 'txt' .*did you mean text"),
        (Csv(TEXT), "text,label,label\nx,1,2\n", ":1: .* 'label' more than once"),
        (Csv(TEXT), "", ": is empty"),
        # Where the next record begins is not known, so neither lost rows nor rows that are none may follow it.
        *(
            (AG_NEWS, f'"1","a","b"\n"2","c","d{end}', ":2: not CSV: ")
            for end in ('\n"3","e","f"', "\ne,f", '\nhas a "quoted" word"\n"3","e","f"', '"x"\n')
        ),
    ],
)
def test_a_file_that_is_unfit_is_refused(layout: Layout, content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(layout, write(tmp_path / "t", content))


def test_broken_rows_are_bad_those_of_other_languages_omitted_and_the_next_ones_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t", b"a\tb\tlabel\nx\ty\n\nx\ty\t1\nx\ty\tz\t1\n\xff\ty\t1\n")
    few, blank, good, many, no_utf8 = read(Tsv(PAIR), path)
    assert isinstance(good, Row)
    assert [bad.place.line for bad in (few, blank, many, no_utf8) if isinstance(bad, BadRow)] == [2, 3, 5, 6]
    omitted, *_ = read(Tsv(PAIR, omit_short_rows=True), path)
    assert isinstance(omitted, OmittedRow)
    path = write(tmp_path / "t", "language\ta\tlabel\nen\tx\t1\nzh\ty\t0\n")
    by_name = Tsv({"text_a": "a", "label": "label"}, where={"language": "zh"})
    by_number = Tsv({"text_a": 2, "label": 3}, header="no", where={1: "zh"})
    for layout in (by_name, by_number):
        *english, chinese = read(layout, path)
        assert all(isinstance(row, OmittedRow) for row in english)
        assert chinese.values == {"text_a": "y", "label": "0"}
    path = write(tmp_path / "t", '"2","c"\n\n"4","d","e\nf"\n"5","g","h"\n')
    found = [(isinstance(row, BadRow), row.place.line) for row in read(AG_NEWS, path)]
    assert found == [(True, 1), (True, 2), (False, 3), (False, 5)]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (r"A second\team for the  #36;10 million", "A second team for the $10 million"),
        ("Sophos #39;s, Sophos&#39;s", "Sophos's, Sophos's"),
        (" quot;x quot; &lt;b&gt; AT&amp;T lt;i gt;", '"x" <b> AT&T<i>'),
        ("a&nbsp;b nbsp;c", "a b c"),
        ("#1; C#; salt; a#b", "#1; C#; salt; a#b"),
        ("the world #151;almost, Maryland #146;s &#55555;", "the world—almost, Maryland’s\ufffd"),
    ],
)
def test_broken_entities_are_repaired(text: str, repaired: str) -> None:
    assert repair_entities(text) == repaired


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
    path = write(tmp_path / "t", "EU\t_\tB-ORG\r\n \t\r\n\r\n\u3000\t_\tO\r\n")
    assert values(Conll(), path) == [{"tokens": ["EU"], "tags": ["B-ORG"]}, {"tokens": ["\u3000"], "tags": ["O"]}]
    assert values(Conll(), write(tmp_path / "u", "EU\nUN\n"), labelled=False) == [{"tokens": ["EU", "UN"]}]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"EU I-ORG\nrejects\n\nPeter I-PER\n", "bad line 2: no tag in 'rejects'"),
        (b"EU I-ORG\n\xff O\n\nPeter I-PER\n", "bad line 2: not UTF-8"),
    ],
)
def test_a_bad_line_makes_its_sentence_bad(content: bytes, reason: str, tmp_path: Path) -> None:
    bad, good = read(Conll(), write(tmp_path / "t", content))
    assert isinstance(bad, BadRow)
    assert bad.place.line == 1
    assert reason in bad.reason
    assert good.values == {"tokens": ["Peter"], "tags": ["I-PER"]}


@pytest.mark.parametrize("make", [lambda: Tsv({"text_a": 0}), lambda: Csv({"text_a": (1, -1)})])
def test_columns_are_counted_from_1(make: Callable[[], Layout]) -> None:
    with pytest.raises(InputError, match=r"column.*counted from 1"):
        make()
