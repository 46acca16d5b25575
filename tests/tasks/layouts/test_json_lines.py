"""Files with one JSON object a line."""

from __future__ import annotations

from pathlib import Path

from tasks.layouts.json_lines import JsonLines
from tests.support.task_files import read, values, write_lines

LAYOUT = JsonLines({"id": "id", "text_a": "keyword", "text_b": "abst", "label": "label"})


def test_values_are_found_by_key_and_lists_of_texts_are_joined(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"keyword": ["a", "", "b"], "abst": "c", "label": "1", "label0": None})
    assert values(LAYOUT, path) == [{"text_a": "a b", "text_b": "c", "label": "1"}]


def test_a_list_of_labels_is_not_joined(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"keyword": "a", "abst": "c", "label": ["x", "y"]})
    assert values(LAYOUT, path) == [{"text_a": "a", "text_b": "c", "label": ["x", "y"]}]


def test_files_without_labels_have_ids(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"id": 3, "keyword": ["a"], "abst": "c"})
    assert values(LAYOUT, path, labelled=False) == [{"id": 3, "text_a": "a", "text_b": "c"}]


def test_a_missing_key_is_a_bad_row(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"keywords": "a", "abst": "c", "label": "1"}, {"keyword": "a", "abst": "c"})
    keyword, label = read(LAYOUT, path)
    assert keyword.reason == "no key 'keyword' in the object; did you mean keywords?"
    assert label.reason == "no key 'label' in the object"


def test_list_values_keep_their_elements(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"o1": "x", "o2": "y", "all": ["x", "y"], "right": 1})
    for column in ("all", ("o1", "o2")):
        assert values(JsonLines({"options": column, "answer": "right"}), path) == [{"options": ["x", "y"], "answer": 1}]


def test_values_may_be_in_objects_inside_the_object(tmp_path: Path) -> None:
    layout = JsonLines({"text_a": "doc.title", "text_b": "doc.body.text", "label": "label.name"})
    good = {"doc": {"title": "a", "body": {"text": "b"}}, "label.name": "1"}
    bad = {"doc": {"title": "a", "body": "text"}, "label": {"name": "1"}}
    first, second = read(layout, write_lines(tmp_path / "t", good, bad))
    assert first.values == {"text_a": "a", "text_b": "b", "label": "1"}
    assert second.reason == "no key 'doc.body.text' in the object"
