"""Reading text files: lines, segments, digests and errors."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import random
from pathlib import Path

import pytest

from reader.errors import InputError
from reader.text.text_files import TextFiles, text_of, text_size, utf16_reason


def lines(*paths: Path) -> list[str]:
    return list(TextFiles(list(paths)).lines())


def test_all_file_formats_give_the_same_lines_which_only_a_line_feed_ends(tmp_path: Path) -> None:
    text = "first line\nsecond line\n\nnext document\n"
    (tmp_path / "a.txt").write_text(text)
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write(text)
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"text": "first line\nsecond line"}) + "\n" + json.dumps({"text": "next document"}) + "\n"
    )
    expected = ["first line", "second line", "", "next document", ""]
    assert lines(tmp_path / "a.txt") == lines(tmp_path / "b.txt.gz") == expected
    assert lines(tmp_path / "c.jsonl") == expected
    (tmp_path / "a.txt").write_bytes("\ufeffone\u2028still one\x85\r\ntwo \r\n \t\r\nthree".encode())
    assert lines(tmp_path / "a.txt") == ["one\u2028still one\x85", "two ", "", "three", ""]
    # Blank lines in a record do not end the document, and half characters are dropped.
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one\n\n \n\ud83dtwo\n"}) + "\n")
    assert lines(tmp_path / "a.jsonl") == ["one", "two", ""]
    records = [{"doc": {"body": "one"}}, {"doc.body": "two", "doc": {"body": "three"}}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert list(TextFiles([path], "doc.body").lines()) == ["one", "", "two", ""]
    for field in ("doc", "doc.title", "doc.body.more", "body"):
        with pytest.raises(InputError, match=rf"a\.jsonl:1: no text field '{field}'"):
            list(TextFiles([path], field).lines())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\nbad \xff\n", "a.txt:2: not UTF-8"),
        ("a.txt.gz", gzip.compress(b"hello world\n" * 1000, mtime=0)[:-20], "a.txt.gz: damaged or cut short"),
        ("a.txt.gz", b"not gzip", "a.txt.gz: damaged or cut short"),
        ("a.jsonl", b'{"text": "x"}\n{"text"', "a.jsonl:2: not JSON"),
        ("a.jsonl", b'{"text": "x\xff"}\n', "a.jsonl:1: not UTF-8"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: no text field 'text'"),
        ("a.txt", "河水\nx\n".encode("utf-16"), "a.txt: looks like UTF-16"),
        ("a.jsonl", "{}".encode("utf-16-le"), "a.jsonl: looks like UTF-16"),
        ("a.txt.gz", gzip.compress("x\n".encode("utf-16"), mtime=0), "a.txt.gz: looks like UTF-16"),
    ],
)
def test_invalid_text_is_named_by_file_and_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message.replace(".", r"\.")):
        lines(tmp_path / name)


def test_segments_of_any_size_consist_of_whole_lines(tmp_path: Path) -> None:
    content = "".join(f"line {i}\n\n" * (i % 3) for i in range(1000)) + "a long line " * 50
    (tmp_path / "a.txt").write_text(content)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"more\n"))
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": "last"}) + "\n")
    paths = [tmp_path / name for name in ("a.txt", "b.txt.gz", "c.jsonl")]
    digests = set()
    for size in (1, 100, 1 << 20):
        text = TextFiles(paths)
        segments = [*map(text_of, text.segments(size))]
        assert b"".join(segments) == content.encode() + b"\n\nmore\n\nlast\n\n"
        assert all(segment.endswith(b"\n") for segment in segments if segment)
        assert (len(segments) > 100) == (size == 1)
        assert text.position == len(content) + len("more\n") + paths[2].stat().st_size
        digests.add(text.digest)
    assert len(digests) == 1


def test_texts_with_different_documents_have_different_digests(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n")
    (tmp_path / "c.txt").write_text("one\ntwo\n")
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "one", "title": "two"}) + "\n")

    def digest(*names: str, field: str = "text") -> str:
        text = TextFiles([tmp_path / name for name in names], field)
        list(text.lines())
        return text.digest

    found = {digest("a.txt"), digest("b.txt"), digest("a.txt", "b.txt"), digest("b.txt", "a.txt"), digest("c.txt")}
    found |= {digest("d.jsonl"), digest("d.jsonl", field="title")}
    assert len(found) == 7


@pytest.mark.parametrize(
    "content", [b"", b"a", b"text", "文".encode(), codecs.BOM_UTF8 + b"a", "文".encode("gb18030"), b"\0\0"]
)
def test_other_files_are_not_utf16(content: bytes) -> None:
    assert utf16_reason(content) is None


def test_files_that_change_while_they_are_read_empty_compressed_ones_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one line\n" * 100)
    segments = TextFiles([path]).segments(50)
    next(segments)
    with path.open("a") as file:
        file.write("more\n")
    with pytest.raises(InputError, match=r"a\.txt: has changed while it was read; run the command again"):
        list(segments)
    # Also if it keeps its size.
    segments = TextFiles([path]).segments(50)
    next(segments)
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    os.utime(path, ns=(0, 0))  # a clock may be coarse
    with pytest.raises(InputError, match=r"a\.txt: has changed"):
        list(segments)
    # Also before it is opened: finished segments of a resumed job may be of its old content.
    text = TextFiles([path])
    path.write_text("another line\n")
    with pytest.raises(InputError, match=r"a\.txt: has changed"):
        list(text.segments(50))
    (tmp_path / "b.txt.gz").touch()
    with pytest.raises(InputError, match=r"b\.txt\.gz: damaged or cut short"):
        list(TextFiles([path, tmp_path / "b.txt.gz"]).segments(50))
    with pytest.raises(InputError, match=f"^{tmp_path}: cannot be read: Is a directory$"):
        lines(tmp_path)


def test_the_estimated_size_of_a_compressed_text_is_close_to_its_real_size(tmp_path: Path) -> None:
    words = " ".join("".join(random.Random(i).choices("etaoinshr", k=4)) for i in range(20_000)).encode()
    (tmp_path / "a.txt").write_bytes(words)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(words))
    assert text_size(tmp_path / "a.txt") == len(words)
    assert 0.5 < text_size(tmp_path / "a.txt.gz") / len(words) < 2
