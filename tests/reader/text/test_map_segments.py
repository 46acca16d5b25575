"""Processing a text segment by segment: the warm-up before processes are forked, and the work in each process."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reader.text.map_segments import (
    BASE_MEMORY_BYTES,
    MIN_SEGMENT_BYTES,
    PROCESSING_BYTES_PER_TEXT_BYTE,
    QUEUED_BYTES_PER_TEXT_BYTE,
    WARM_UP_TEXT,
    Resources,
    map_segments,
    max_workers,
)
from reader.text.text_files import Segment, TextFiles, text_of


def save(segment: Segment, folder: Path) -> None:
    folder.mkdir()
    (folder / "text").write_bytes(text_of(segment))


@pytest.mark.parametrize("workers", [1, 2])
def test_several_processes_are_warmed_up_before_they_are_forked(tmp_path: Path, workers: int) -> None:
    records = [f"word {i} of a text, \u4e2d\u6587" for i in range(60_000)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": record}) + "\n" for record in records))
    warm_up_texts: list[bytes] = []
    text = TextFiles([path])
    resources = Resources(1 << 30, workers)
    folders = map_segments(save, text, tmp_path / "work", resources, "saving", warm_up_texts.append)
    whole = "".join(f"{record}\n\n" for record in records).encode()
    assert b"".join((folder / "text").read_bytes() for folder in folders).rstrip() == whole.rstrip()
    # One process needs no warm-up.
    assert warm_up_texts == [WARM_UP_TEXT] * (workers - 1)
    assert {"caf\u00e9", "\u4e2d\u6587"} == {*WARM_UP_TEXT.decode().split()}


@pytest.mark.parametrize("workers", [1, 2, 7, 40, None])
@pytest.mark.parametrize("memory", [1 << 29, 1 << 32, 1 << 36])
def test_segments_in_work_and_in_the_queue_fit_the_memory(memory: int, workers: int | None) -> None:
    """With the largest number of processes (None) too."""
    number = min(workers or max_workers(memory), max_workers(memory))
    text: Any = SimpleNamespace(text_size=1 << 50)
    size = Resources(memory, number).segment_bytes(text)
    # While each process works on a segment, as many and three more wait.
    used = number * PROCESSING_BYTES_PER_TEXT_BYTE + (number + 3) * QUEUED_BYTES_PER_TEXT_BYTE
    assert size >= MIN_SEGMENT_BYTES
    assert BASE_MEMORY_BYTES + used * size <= memory
