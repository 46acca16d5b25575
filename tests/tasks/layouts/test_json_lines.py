"""Files with one JSON object a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.layouts.lines import JsonLines
from tests.support.task_files import read, values, write_lines

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
