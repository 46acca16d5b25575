"""Lines and JSON values of files, and files with one JSON object a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.layouts.lines import JsonLines, json_objects, read_json, read_lines, read_text
from tasks.layouts.rows import BadRow
from tests.support.task_files import read, values, write, write_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        # Only a line feed ends a line; a byte order mark and a carriage return at the end are no text.
        ("a\u2028b\u0085c\x0bd\x0ce\x1cf\rg\nnext".encode(), ["a\u2028b\u0085c\x0bd\x0ce\x1cf\rg", "next"]),
        (b"\xef\xbb\xbfa\r\nb\xef\xbb\xbf\r\n", ["a", "b\ufeff"]),
        # Blank lines are dropped at the end only.
        (b"a\n\n\nb\nc\n\nd\n\n\n", ["a", "", "", "b", "c", "", "d"]),
    ],
)
def test_lines_have_their_number_and_text(content: bytes, lines: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "t", content)
    assert [(place.line, line) for place, line in read_lines(path)] == [*enumerate(lines, 1)]
    assert read_text(path) == content.decode("utf-8-sig")


def test_other_encodings_and_broken_json_are_refused_with_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "好\n".encode() + "好\n".encode("gb18030") + b"x")
    (_, first), (place, second), (_, third) = read_lines(path)
    assert (first, third) == ("好", "x")
    assert f"{place}: {second.reason}".startswith(f"{path}:2: not UTF-8 (")
    with pytest.raises(InputError, match=r"t:2: not UTF-8 .*convert"):
        read_text(path)
    with pytest.raises(InputError, match=r"missing: cannot be read"):
        list(read_lines(tmp_path / "missing"))
    path = write(tmp_path / "t", "review\tstars\n".encode("utf-16"))
    for read_all in (read_text, lambda path: list(read_lines(path))):
        with pytest.raises(InputError, match=rf"^{path}: looks like UTF-16"):
            read_all(path)
    with pytest.raises(InputError, match=r"t\.json:3: not JSON: .* at column \d"):
        read_json(write(tmp_path / "t.json", '{"a":\n 1,\n b}'))
    with pytest.raises(InputError, match=r"deep\.json: not JSON"):
        read_json(write(tmp_path / "deep.json", "[" * 100_000))
    path = write(tmp_path / "t", '{"a": 1}\n{"a": \n[1]\n\n{"a": 2}\n')
    records = [record for _, record in json_objects(path)]
    bad = [record for record in records if isinstance(record, BadRow)]
    assert [record for record in records if not isinstance(record, BadRow)] == [{"a": 1}, {"a": 2}]
    assert [(row.place.line, row.reason[:8]) for row in bad] == [(2, "not JSON"), (3, "expected"), (4, "not JSON")]


LAYOUT = JsonLines({"id": "id", "text_a": "keyword", "text_b": "abst", "label": "label"})
NESTED = JsonLines({"text_a": "doc.title", "text_b": "doc.body.text", "label": "label.name"})


@pytest.mark.parametrize(
    ("layout", "line", "expected"),
    [
        # Lists of texts are joined, a list of labels is not, and list values keep their elements.
        (LAYOUT, {"id": 3, "keyword": ["a", "", "b"], "abst": "c", "label": "1", "label0": None}, (3, "a b", "c", "1")),
        (LAYOUT, {"id": 3, "keyword": "a", "abst": "c", "label": ["x", "y"]}, (3, "a", "c", ["x", "y"])),
        (JsonLines({"options": "all"}), {"all": ["x", "y"]}, (["x", "y"],)),
        (JsonLines({"options": ("o1", "o2")}), {"o1": "x", "o2": "y"}, (["x", "y"],)),
        # Values may be in objects inside the object.
        (NESTED, {"doc": {"title": "a", "body": {"text": "b"}}, "label.name": "1"}, ("a", "b", "1")),
    ],
)
def test_values_are_found_by_key(layout: JsonLines, line: Any, expected: tuple[Any, ...], tmp_path: Path) -> None:
    [found] = values(layout, write_lines(tmp_path / "t", line))
    assert tuple(found.values()) == expected


def test_a_missing_key_is_a_bad_row(tmp_path: Path) -> None:
    for layout, line, key in (
        (LAYOUT, {"keywords": "a", "abst": "c", "label": "1"}, "'keyword' in the object; did you mean keywords?"),
        (LAYOUT, {"keyword": "a", "abst": "c"}, "'label'"),
        (NESTED, {"doc": {"title": "a", "body": "text"}, "label": {"name": "1"}}, "'doc.body.text'"),
    ):
        [bad] = read(layout, write_lines(tmp_path / "t", line))
        assert bad.reason.startswith(f"no key {key}")
