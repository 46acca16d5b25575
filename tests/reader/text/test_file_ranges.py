"""Units of text: read one by one, wherever they are cut, they are the text, and their digests the text's."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from reader.errors import InputError, SystemRefusedError
from reader.text import file_ranges as text_units
from reader.text.digest import BLOCK_BYTES
from reader.text.file_ranges import NOT_COUNTED, Unit, UnitReader, units_of
from reader.text.text_files import Segment, TextDigest, TextFiles
from tests.support.commands import digest_of


def read(unit: Unit, size: int = 1 << 20) -> tuple[bytes, list[bytes]]:
    reader = UnitReader(unit, "text")
    return b"".join(segment.text() for segment in reader.segments(size)), reader.blocks


def whole(*paths: Path) -> tuple[bytes, str]:
    text = TextFiles(list(paths))
    return b"".join(segment.text() for segment in text.segments(1 << 20)), digest_of(text)


@pytest.mark.parametrize("content", [b"a\nbc\n\ndef\n", b"a\nbc\n\n\xef\xbb\xbfd", b"no line feed", b"\n\n\n", b"ab\n"])
def test_wherever_a_file_is_cut_every_line_is_read_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for cut in range(1, len(content)):
        for other in range(cut, len(content)):
            cuts = [0, cut, *([other] if other > cut else []), len(content)]
            units = [Unit([path], start, stop, stop == len(content)) for start, stop in pairwise(cuts)]
            pieces = [read(unit)[0] for unit in units]
            assert b"".join(pieces).rstrip(b"\n") == content.rstrip(b"\n")
            # A line of its own each, and a document's end behind the last.
            assert pieces[-1].endswith(b"\n")


def test_units_have_the_digest_of_the_text(tmp_path: Path) -> None:
    line = b"some words in a line, and more of them\n"
    (tmp_path / "a.txt").write_bytes(line * (5 * BLOCK_BYTES // (2 * len(line))))
    (tmp_path / "b.txt").write_bytes(line)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(line * (3 * BLOCK_BYTES // (2 * len(line)))))
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "x"}\n')
    paths = sorted(tmp_path.iterdir())
    units = units_of(paths, BLOCK_BYTES)
    assert [unit.stop > 0 for unit in units] == [True, True, True, False]
    assert [len(unit.paths) for unit in units] == [1, 1, 1, 3]
    digest = TextDigest(paths, "text")
    texts = []
    for unit in units:
        text, blocks = read(unit)
        texts.append(text)
        digest.add(unit.paths, blocks)
    assert (b"".join(texts), digest.result()) == whole(*paths)


def test_an_error_is_named_with_its_line_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_units, "CHUNK_BYTES", 7)
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 10 + b"bad \xff\n" + b"good\n")
    reader = UnitReader(Unit([path], 32, 61), "text")
    (segment,) = reader.segments(1 << 20)
    assert segment.parts[0].line == NOT_COUNTED
    with pytest.raises(InputError, match=r"a\.txt:11: not UTF-8"):
        reader.checked(Segment.decoded, segment)


def test_what_the_system_refuses_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n" * 20)
    reader = UnitReader(Unit([tmp_path / "a.txt"], 32, 61), "text")
    (segment,) = reader.segments(1 << 20)
    seen: list[Segment] = []

    def refused(segment: Segment) -> None:
        seen.append(segment)
        raise SystemRefusedError("the disk is full")

    with pytest.raises(SystemRefusedError):
        reader.checked(refused, segment)
    assert seen == [segment]


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Otherwise its last document would have no end."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"some words\n" * (2 * BLOCK_BYTES // 11))
    first, last = units_of([path], BLOCK_BYTES)
    with path.open("ab") as file:
        file.write(b"more\n")
    read(first)
    with pytest.raises(InputError, match="has become longer"):
        read(last)
