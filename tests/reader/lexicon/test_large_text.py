"""Counting a large text respects --memory.

LARGE_TEXT is the path of the text, LARGE_VOCAB the path of a vocab.txt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from reader.lexicon.lexicon_file import Lexicon
from reader.text.text_files import TextFiles
from tests.support.commands import ROOT

TEXT, VOCAB = os.environ.get("LARGE_TEXT", ""), os.environ.get("LARGE_VOCAB", "")
MEMORY = "500MB"

pytestmark = pytest.mark.needs("LARGE_TEXT", "LARGE_VOCAB")


def memory_of(group: int) -> int:
    """Return the memory of a process group in bytes; shared memory counts once."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            if os.getpgid(int(folder.name)) == group:
                rows = (folder / "smaps_rollup").read_text().splitlines()
                total += next(1024 * int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        except (OSError, StopIteration):
            continue  # the process has ended
    return total


def peaks_of(arguments: list[str], folder: Path) -> tuple[int, int]:
    """Run a command of the reader; return its peak memory, and the peak size of `folder` on disk, in bytes."""
    process = subprocess.Popen([sys.executable, "-m", "reader.build", *arguments], cwd=ROOT, start_new_session=True)
    memory = disk = 0
    while process.poll() is None:
        memory = max(memory, memory_of(process.pid))
        disk = max(
            disk,
            int(subprocess.run(["du", "-sb", folder], capture_output=True, text=True, check=False).stdout.split()[0]),
        )
        time.sleep(0.02)
    assert process.returncode == 0
    return memory, disk


def test_memory_limit_holds_for_texts_of_any_size(tmp_path: Path) -> None:
    found = []
    (tmp_path / "once.txt").write_bytes(
        b"".join(segment.text() for segment in TextFiles([Path(TEXT)]).segments(1 << 24))
    )
    (tmp_path / "four.txt").write_bytes((tmp_path / "once.txt").read_bytes() * 4)
    for name in ("once", "four"):
        text, output = tmp_path / f"{name}.txt", tmp_path / name / "l.tsv"
        output.parent.mkdir()
        options = ["--vocab", VOCAB, "--output", str(output), "--memory", MEMORY, "--processes", "2"]
        memory, disk = peaks_of(["lexicon", "--input", str(text), *options], output.parent)
        print(f"{text.stat().st_size:,} bytes of text: memory {memory:,}, disk {disk:,}")
        assert memory <= 1.2 * 500e6
        assert disk <= 2.2 * text.stat().st_size
        found.append(Lexicon.load(output).ngrams)
    once, four = found
    assert once.texts() == four.texts()
    assert np.array_equal(4 * once.counts, four.counts)
    # Four copies of the text multiply t by sqrt(4) = 2, up to rounding.
    assert np.allclose(2 * once.t, four.t, rtol=1e-12)
