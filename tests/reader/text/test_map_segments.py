"""What is done with a text segment by segment, before any process is forked and in each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reader.text.map_segments import Resources, over_segments
from reader.text.text_files import Segment, TextFiles


def save(segment: Segment, folder: Path) -> None:
    folder.mkdir()
    (folder / "text").write_bytes(segment.text())


@pytest.mark.parametrize("workers", [1, 2])
def test_the_processes_rehearse_with_the_text_itself(tmp_path: Path, workers: int) -> None:
    records = [f"word {i} of a text, \u4e2d\u6587" for i in range(60_000)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": record}) + "\n" for record in records))
    rehearsed: list[bytes] = []
    text = TextFiles([path])
    folders, _ = over_segments(save, text, tmp_path / "work", Resources(1 << 30, workers), "saving", rehearsed.append)
    whole = "".join(f"{record}\n\n" for record in records).encode()
    assert b"".join((folder / "text").read_bytes() for folder in folders).rstrip() == whole.rstrip()
    # One process needs no rehearsal; what several share is what the text's own words make them load.
    assert len(rehearsed) == workers - 1
    for beginning in rehearsed:
        assert whole.startswith(beginning.rstrip())
        assert 1000 < len(beginning) < 1 << 17
