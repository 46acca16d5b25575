"""JSON of unknown origin: objects are read, everything else is one line with the position."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.formats.untrusted.json_file import read_json
from reader.errors import InputError


def test_an_object_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(
        b'\xef\xbb\xbf{"hidden_size": 768, "label": {"0": "\xe8\xaf\x8d"}, "max": 1000000000000000019884624}'
    )
    assert read_json(path) == {"hidden_size": 768, "label": {"0": "词"}, "max": 1000000000000000019884624}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7"),
        (b"", "line 1, column 1"),
        (b'{"a": 1} x', "line 1, column 10"),
        (b"[1]", "holds a list"),
        (b'{"a": "\xff"}', "byte 7 is not valid UTF-8"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "integer"),
    ],
)
def test_anything_else_is_refused_with_its_position(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"config\.json") as caught:
        read_json(path)
    assert message in str(caught.value)


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'{"a": 1}' + b" " * 100)
    assert read_json(path, max_bytes=108) == {"a": 1}
    with pytest.raises(InputError, match="larger than 107 bytes"):
        read_json(path, max_bytes=107)
    with pytest.raises(InputError, match="no such file"):
        read_json(tmp_path / "missing.json")
