"""CLUEWSC2020's marked texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.layouts.clue import CluewscMarked
from tasks.layouts.rows import BadRow
from tests.support.task_files import read, values, write_lines


def record(text: str, span1: tuple[str, int], span2: tuple[str, int], **fields: Any) -> dict[str, Any]:
    target = {"span1_text": span1[0], "span1_index": span1[1], "span2_text": span2[0], "span2_index": span2[1]}
    return {"text": text, "target": target, "idx": 0, "label": "true", **fields}


@pytest.mark.parametrize(
    ("text", "span1", "span2", "marked"),
    [
        ("像树叶飘入，他走", ("树叶", 1), ("他", 6), "像_树叶_飘入，[他]走"),
        ("他看见树叶", ("树叶", 3), ("他", 0), "[他]看见_树叶_"),
        ("树叶他", ("树叶", 0), ("他", 2), "_树叶_[他]"),
        ("他树叶", ("树叶", 1), ("他", 0), "[他]_树叶_"),
        ("他说他走", ("说", 1), ("他", 2), "他_说_[他]走"),
        # A wrong index: the nearest occurrence is marked.
        ("他说完他走", ("说", 0), ("他", 4), "他_说_完[他]走"),
        # The phrase holds the pronoun.
        ("见他的书", ("他的书", 1), ("他", 1), "见_[他]的书_"),
    ],
)
def test_both_spans_are_marked_in_the_text(
    tmp_path: Path, text: str, span1: tuple[str, int], span2: tuple[str, int], marked: str
) -> None:
    [row] = values(CluewscMarked(), write_lines(tmp_path / "t", record(text, span1, span2)))
    assert row == {"text_a": marked, "label": "true"}


def test_a_span_that_is_not_in_the_text_is_a_bad_row(tmp_path: Path) -> None:
    missing = record("他说", ("我", 0), ("他", 0))
    no_index = record("他说", ("说", 1), ("他", 0))
    del no_index["target"]["span2_index"]
    no_label = record("他说", ("说", 1), ("他", 0))
    del no_label["label"]
    path = write_lines(tmp_path / "t", missing, no_index, {"text": "x"})
    assert [row.reason[:13] for row in read(CluewscMarked(), path) if isinstance(row, BadRow)] == [
        "span1_text '我",
        "no span2_text",
        "no 'text' or ",
    ]
    unlabelled = values(CluewscMarked(), write_lines(tmp_path / "u", no_label | {"id": 4}), labelled=False)
    assert unlabelled == [{"text_a": "[他]_说_", "id": 4}]
