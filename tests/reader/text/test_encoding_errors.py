"""UTF-16 is recognised by the first bytes of a file."""

from __future__ import annotations

import codecs
import subprocess
from pathlib import Path

import pytest

from reader.text.encoding_errors import utf16_reason


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_the_named_command_converts_the_file(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a file.txt"
    path.write_bytes("a text, 一个\n".encode(encoding))
    reason = utf16_reason(path, path.read_bytes())
    assert reason is not None
    _, command = reason.split("looks like UTF-16; convert it with: ")
    subprocess.run(command.replace("NEW_FILE", "new"), shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "new").read_text("utf-8") == "a text, 一个\n"


def test_a_mark_is_enough_for_chinese() -> None:
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        assert utf16_reason(Path("t"), mark + "文".encode(encoding))


@pytest.mark.parametrize(
    "content", [b"", b"a", b"text", "文".encode(), codecs.BOM_UTF8 + b"a", "文".encode("gb18030"), b"\0\0"]
)
def test_other_files_are_not_utf16(content: bytes) -> None:
    assert utf16_reason(Path("t"), content) is None
