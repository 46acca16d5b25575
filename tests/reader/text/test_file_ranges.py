"""File ranges: read separately, they contain the whole text and give its digest, for any division of the files."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from reader.errors import InputError, SystemRefusedError
from reader.text import file_ranges
from reader.text.digest import BLOCK_BYTES
from reader.text.file_ranges import UNKNOWN_LINE, FileRange, RangeReader, split_into_ranges
from reader.text.text_files import Segment, TextFiles, digest_of


def read(file_range: FileRange, segment_bytes: int = 1 << 20) -> tuple[bytes, list[bytes]]:
    reader = RangeReader(file_range, "text")
    return b"".join(segment.text() for segment in reader.segments(segment_bytes)), reader.block_digests


def read_whole(*paths: Path) -> tuple[bytes, str]:
    text = TextFiles(list(paths))
    return b"".join(segment.text() for segment in text.segments(1 << 20)), text.digest


@pytest.mark.parametrize("content", [b"a\nbc\n\ndef\n", b"a\nbc\n\n\xef\xbb\xbfd", b"no line feed", b"\n\n\n", b"ab\n"])
def test_every_line_is_read_once_for_any_division_of_a_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for cut in range(1, len(content)):
        for other in range(cut, len(content)):
            cuts = [0, cut, *([other] if other > cut else []), len(content)]
            ranges = [FileRange([path], start, stop, stop == len(content)) for start, stop in pairwise(cuts)]
            texts = [read(file_range)[0] for file_range in ranges]
            assert b"".join(texts).rstrip(b"\n") == content.rstrip(b"\n")
            # The last line ends with a line feed, and the document ends after it.
            assert texts[-1].endswith(b"\n")


def test_file_ranges_give_the_digest_of_the_text(tmp_path: Path) -> None:
    line = b"some words in a line, and more of them\n"
    (tmp_path / "a.txt").write_bytes(line * (5 * BLOCK_BYTES // (2 * len(line))))
    (tmp_path / "b.txt").write_bytes(line)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(line * (3 * BLOCK_BYTES // (2 * len(line)))))
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "x"}\n')
    paths = sorted(tmp_path.iterdir())
    ranges = split_into_ranges(paths, BLOCK_BYTES)
    assert [file_range.stop > 0 for file_range in ranges] == [True, True, True, False]
    assert [len(file_range.paths) for file_range in ranges] == [1, 1, 1, 3]
    found, texts = dict.fromkeys(paths, b""), []
    for file_range in ranges:
        text, block_digests = read(file_range)
        texts.append(text)
        for path, digests in zip(file_range.paths, block_digests, strict=True):
            found[path] += digests
    assert (b"".join(texts), digest_of(paths, "text", found.values())) == read_whole(*paths)


def test_an_error_names_the_line_number_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ranges, "CHUNK_BYTES", 7)
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 10 + b"bad \xff\n" + b"good\n")
    reader = RangeReader(FileRange([path], 32, 61), "text")
    (segment,) = reader.segments(1 << 20)
    assert segment.parts[0].first_line == UNKNOWN_LINE
    with pytest.raises(InputError, match=r"a\.txt:11: not UTF-8"):
        reader.run_with_error_location(Segment.decode, segment)


def test_an_operation_that_the_system_refused_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n" * 20)
    reader = RangeReader(FileRange([tmp_path / "a.txt"], 32, 61), "text")
    (segment,) = reader.segments(1 << 20)
    seen: list[Segment] = []

    def refuse(segment: Segment) -> None:
        seen.append(segment)
        raise SystemRefusedError("the disk is full")

    with pytest.raises(SystemRefusedError):
        reader.run_with_error_location(refuse, segment)
    assert seen == [segment]


def test_a_file_that_grows_while_it_is_read_is_rejected(tmp_path: Path) -> None:
    """Otherwise the end of its last document would be missing."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"some words\n" * (2 * BLOCK_BYTES // 11))
    first, last = split_into_ranges([path], BLOCK_BYTES)
    with path.open("ab") as file:
        file.write(b"more\n")
    read(first)
    with pytest.raises(InputError, match="has become longer"):
        read(last)
