"""Lines that the system refuses are dropped, and those that follow are written."""

from __future__ import annotations

import pytest

from tests.support.commands import python

CODE = """
import os, sys
from reader.errors import write_or_drop

kept = os.dup(1)
os.dup2({}, 1)
write_or_drop(sys.stdout, "lost\\n")
os.dup2(kept, 1)
write_or_drop(sys.stdout, "written\\n")
write_or_drop(None, "without a stream\\n")
os.dup2({}, 1)
write_or_drop(sys.stdout, "lost, and not tried again at the end\\n")
"""
FULL = "os.open('/dev/full', os.O_WRONLY)"
UNREAD = "next(writer for reader, writer in [os.pipe()] if not os.close(reader))"


@pytest.mark.parametrize("console", [FULL, UNREAD], ids=["full", "unread"])
def test_only_refused_lines_are_lost(console: str) -> None:
    done = python("-c", CODE.format(console, console))
    assert (done.returncode, done.stdout, done.stderr) == (0, "written\n", "")
