"""Tab-separated and comma-separated files, and the texts of AG News."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.layouts.columns import br_to_space, repair_entities
from tasks.layouts.rows import BadRow, OmittedRow, Row
from tasks.layouts.tables import Csv, Tsv
from tests.support.task_files import read, values, write

PAIR = {"text_a": "a", "text_b": "b", "label": "label"}


def test_columns_are_found_by_name_wherever_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "id\tlabel\tb\tlabel1\ta\n7\tyes\tsecond\tno\tfirst\n")
    assert values(Tsv(PAIR), path) == [{"text_a": "first", "text_b": "second", "label": "yes"}]


def test_quotation_marks_have_no_meaning(tmp_path: Path) -> None:
    path = write(tmp_path / "t", 'a\tb\tlabel\n"open\tan ""inch""\t1\n"x"\t"\t0\n')
    assert values(Tsv(PAIR), path) == [
        {"text_a": '"open', "text_b": 'an ""inch""', "label": "1"},
        {"text_a": '"x"', "text_b": '"', "label": "0"},
    ]


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    path = write(tmp_path / "t", b"\xef\xbb\xbfQuality\t#1 String\n1\tx\n")
    assert values(Tsv({"label": "Quality", "text_a": "#1 String"}), path) == [{"label": "1", "text_a": "x"}]


def test_the_first_line_of_a_file_without_header_is_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "gj04\t1\t\tfirst\ngj04\t0\t*\tsecond")
    by_name = Tsv({"text_a": "sentence", "label": "y"}, header="no", names=("source", "y", "mark", "sentence"))
    by_number = Tsv({"text_a": 4, "label": 2}, header="no")
    expected = [{"text_a": "first", "label": "1"}, {"text_a": "second", "label": "0"}]
    assert values(by_name, path) == values(by_number, path) == expected


def test_a_header_is_found_if_the_file_has_one(tmp_path: Path) -> None:
    layout = Tsv(PAIR, header="auto", names=("a", "b", "label"))
    plain, headed = write(tmp_path / "p", "x\ty\t1\n"), write(tmp_path / "h", "label\ta\tb\n1\tx\ty\n")
    assert values(layout, plain) == values(layout, headed) == [{"text_a": "x", "text_b": "y", "label": "1"}]
    test = write(tmp_path / "test", "a\tb\nx\ty\n")
    assert values(layout, test, labelled=False) == [{"text_a": "x", "text_b": "y"}]


def test_gold_columns_are_not_needed_without_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "index\ta\tb\n0\tx\ty\n")
    assert values(Tsv({**PAIR, "id": "index"}), path, labelled=False) == [{"text_a": "x", "text_b": "y", "id": "0"}]
    with pytest.raises(InputError, match=r"t:1: no column 'label' in the header; it has: index, a, b"):
        read(Tsv(PAIR), path)


def test_an_id_column_may_be_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "a\tlabel\nx\t1\n")
    assert values(Tsv({"text_a": "a", "label": "label", "id": "index"}), path) == [{"text_a": "x", "label": "1"}]


def test_a_missing_column_is_named_with_the_most_similar_one(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "sentence_1\tsentence_2\tlabel\n")
    with pytest.raises(InputError, match=r"no column 'sentence1' .*did you mean sentence_1"):
        read(Tsv({"text_a": "sentence1", "label": "label"}), path)
    with pytest.raises(InputError, match="no header; give its number"):
        read(Tsv({"text_a": "sentence1"}, header="no"), path)
    with pytest.raises(InputError, match="e: is empty"):
        read(Tsv(PAIR), write(tmp_path / "e", ""))


def test_rows_with_too_few_or_too_many_fields_are_bad(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "a\tb\tlabel\nx\ty\n\nx\ty\t1\nx\ty\tz\t1\n")
    few, blank, good, many = read(Tsv(PAIR), path)
    assert (few.place.line, few.reason) == (2, "too few fields: 2 instead of at least 3")
    assert blank.reason == "a blank line"
    assert isinstance(good, Row)
    assert "tab inside a text" in many.reason


def test_short_rows_can_be_omitted(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "a\tb\tlabel\nx\ty\nx\ty\t1\n")
    short, good = read(Tsv(PAIR, omit_short_rows=True), path)
    assert isinstance(short, OmittedRow)
    assert isinstance(good, Row)


def test_rows_of_other_languages_are_omitted(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "language\ta\tlabel\nen\tx\t1\nzh\ty\t0\n")
    english, chinese = read(Tsv({"text_a": "a", "label": "label"}, where={"language": "zh"}), path)
    assert english.reason == "column language is not zh"
    assert chinese.values == {"text_a": "y", "label": "0"}
    by_number = Tsv({"text_a": 2, "label": 3}, header="no", where={1: "zh"})
    first, english, chinese = read(by_number, path)
    assert (first.reason, english.reason) == ("column 1 is not zh", "column 1 is not zh")
    assert chinese.values == {"text_a": "y", "label": "0"}


def test_list_values_are_split_at_their_separator(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "text_a\tlabel\n上\x02\u3000\x02海\tB-LOC\x02O\x02O\n")
    layout = Tsv({"tokens": "text_a", "tags": "label"}, list_separator="\x02")
    assert values(layout, path) == [{"tokens": ["上", "\u3000", "海"], "tags": ["B-LOC", "O", "O"]}]
    # Only the kind of task knows whether a single value is enough.
    without = Tsv({"tokens": "text_a", "tags": "label"})
    assert values(without, path) == [{"tokens": "上\x02\u3000\x02海", "tags": "B-LOC\x02O\x02O"}]


def test_several_columns_make_a_list_or_one_text(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "p\tq\tr\nx\t\tz\n")
    assert values(Tsv({"text_a": ("p", "q", "r"), "options": ("p", "r")}), path) == [
        {"text_a": "x z", "options": ["x", "z"]}
    ]


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ("x\ty\t", ["x", "y"]),
        ("x\t\t", ["x"]),
        ("x\t\t ", ["x", "", " "]),
        ("x\t\ty", ["x", "", "y"]),
        ("\t\t", [""]),
        ("\ty\t", ["", "y"]),
    ],
)
def test_a_list_of_several_columns_ends_with_the_last_field_that_is_not_empty(
    fields: str, options: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "t", f"text_a\tp\tq\tr\nb\t{fields}\n")
    layout = Tsv({"text_a": "text_a", "options": ("p", "q", "r")})
    assert values(layout, path) == [{"text_a": "b", "options": options}]


def test_a_line_that_is_not_utf8_is_a_bad_row_but_as_a_header_it_is_refused(tmp_path: Path) -> None:
    bad, good = read(Tsv({"text_a": "a"}), write(tmp_path / "t", b"a\n\xff\nx\n"))
    assert isinstance(bad, BadRow)
    assert bad.place.line == 2
    assert isinstance(good, Row)
    with pytest.raises(InputError, match="u:1: not UTF-8"):
        read(Tsv({"text_a": "a"}), write(tmp_path / "u", b"a\xff\nx\n"))


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
    with pytest.raises(InputError, match=r"d:1: the header has the column 'label' more than once; give its number"):
        read(Csv({"text_a": "text", "label": "label"}), write(tmp_path / "d", "text,label,label\nx,1,2\n"))
    with pytest.raises(InputError, match=r"e: is empty"):
        read(Csv({"text_a": "text"}), write(tmp_path / "e", ""))


def test_broken_rows_are_bad_and_the_next_ones_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t", '"1","a"x","b"\n"2","c"\n\n"4","d","e"\n')
    quotes, few, blank, good = read(AG_NEWS, path)
    assert (quotes.place.line, quotes.reason[:8]) == (1, "not CSV:")
    assert (few.place.line, few.reason) == (2, "too few fields: 2 instead of at least 3")
    assert isinstance(blank, BadRow)
    assert isinstance(good, Row)
    assert good.place.line == 4


def test_a_wrong_record_of_several_lines_is_refused(tmp_path: Path) -> None:
    """Where the next record begins is not known, so neither lost rows nor rows that are none may follow it."""
    for end in ('\n"3","e","f"', "\ne,f", '\nhas a "quoted" word"\n"3","e","f"'):
        with pytest.raises(InputError, match=r"t:2: not CSV: .*is a quotation mark not closed\?"):
            read(AG_NEWS, write(tmp_path / "t", f'"1","a","b"\n"2","c","d{end}'))
    good, bad = read(AG_NEWS, write(tmp_path / "t", '"1","a","b"\n"2","c","d'))
    assert isinstance(good, Row)
    assert isinstance(bad, BadRow)


def test_a_field_may_be_longer_than_the_limit_of_pythons_csv(tmp_path: Path) -> None:
    long = "word " * 40_000
    [row] = read(AG_NEWS, write(tmp_path / "t", f'"1","a","{long}"\n'))
    assert isinstance(row, Row)
    assert len(str(row.values["text_a"])) > 131_072


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (r"A second\team for the  #36;10 million", "A second team for the $10 million"),
        ("Sophos #39;s, Sophos&#39;s", "Sophos's, Sophos's"),
        (" quot;x quot; &lt;b&gt; AT&amp;T lt;i gt;", '"x" <b> AT&T<i>'),
        ("#1; C#; salt; a#b", "#1; C#; salt; a#b"),
        ("the world #151;almost, Maryland #146;s &#55555;", "the world—almost, Maryland’s\ufffd"),
    ],
)
def test_broken_entities_are_repaired(text: str, repaired: str) -> None:
    assert repair_entities(text) == repaired


def test_html_line_breaks_become_spaces() -> None:
    assert br_to_space("a<br /><br/>b<BR>c") == "a  b c"
