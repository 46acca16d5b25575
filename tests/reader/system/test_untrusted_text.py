"""Files of unknown origin: limits, and errors that name the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reader.errors import MAX_MESSAGE, InputError, print_error, print_note, print_warning
from reader.system.untrusted_text import (
    FILE_NAME,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_YAML_BYTES,
    json_value,
    limited_text,
    read_json,
    read_yaml,
    record_of,
    yaml_value,
)


def nested(levels: int) -> str:
    """Return lists in lists, which are JSON and YAML."""
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("value_of", [json_value, yaml_value])
def test_nesting_and_numbers_are_read_up_to_the_limit(value_of: Any) -> None:
    assert value_of(nested(MAX_DEPTH)) is not None
    for levels in (MAX_DEPTH + 1, 400, 20_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            value_of(nested(levels))
    # Many values side by side are not deep, and brackets in texts are no nesting.
    assert len(value_of(f"[{', '.join(['[1]'] * 300)}]")) == 300
    assert value_of(f'["{nested(300)}"]') == [nested(300)]
    assert value_of("9" * MAX_DIGITS) == int("9" * MAX_DIGITS)
    with pytest.raises(ValueError, match="at most"):
        value_of("9" * (MAX_DIGITS + 1))
    assert value_of('"' + "9" * 5000 + '"') == "9" * 5000


def test_values_that_aliases_repeat_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reader.system.untrusted_text.MAX_VALUES", 1000)
    assert yaml_value("a: &x [1, 2]\nb: *x\nc: [*x, *x]") == {"a": [1, 2], "b": [1, 2], "c": [[1, 2], [1, 2]]}
    wide = f"a: &x [{'1, ' * 40}]\n"
    assert len(yaml_value(f"{wide}b: [{'*x, ' * 20}]")["b"]) == 20
    for text in (
        f"{wide}b: [{'*x, ' * 30}]",
        f"{wide}b: &y [{'*x, ' * 7}]\nc: [*y, *y, *y]",
        "a: &x [*x]",
        f"[{'1, ' * 1000}]",
    ):
        with pytest.raises(ValueError, match="as often as aliases repeat them"):
            yaml_value(text)


@pytest.mark.parametrize(
    ("read", "content"),
    [
        *((read_yaml, f"a: {value}".encode()) for value in (nested(2000), "2020-13-01")),
        *(
            (read_json, b'{"a": %s}' % value)
            for value in (nested(2000).encode(), b'{"b": 1, "b": 2}', b"NaN", b'"\xff"')
        ),
        *((read_json, content) for content in (b'{"a": 1} x', b"[1]")),
    ],
)
def test_errors_name_the_file(tmp_path: Path, read: Any, content: bytes) -> None:
    """JSON has to be one plain object."""
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_larger_files_than_the_limit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("#" + "x" * MAX_YAML_BYTES)
    with pytest.raises(InputError, match=f"^{path}: larger than"):
        read_yaml(path)
    path.write_text("#" + "x" * (MAX_YAML_BYTES - 1))
    assert read_yaml(path) == {}
    path.write_bytes(b"\xef\xbb\xbf[]")
    with pytest.raises(InputError, match=f"^{path}: larger than"):
        read_json(path, 4)
    assert limited_text(path) == "[]"


def test_names_that_are_paths_are_no_names_of_files() -> None:
    assert all(map(FILE_NAME.fullmatch, ("dev", "dev.2", "dev set", "测试", "..a")))
    assert not any(map(FILE_NAME.fullmatch, ("", ".", "..", "a/b", "a\\b", "a\nb", "..\n", "a\0", "x" * 300)))


def test_messages_are_cut_in_the_middle(capsys: pytest.CaptureFixture[str]) -> None:
    message = f"file: {json.dumps('x' * 1_000_000)}: restore it"
    for print_it in (print_error, print_note, print_warning):
        print_it(message)
    for line in (str(InputError(message)), *capsys.readouterr().err.splitlines()):
        assert len(line) < MAX_MESSAGE + 20
        assert "file: " in line
        assert line.endswith(": restore it")


@dataclass(frozen=True)
class Made:
    """A record with a value of each kind."""

    name: str
    count: int
    sizes: dict[str, int]
    is_new: bool = True


def test_a_record_has_the_keys_and_the_types_of_its_class() -> None:
    given = {"name": "a", "count": 2, "sizes": {"b": 1}}
    assert record_of(Made, given, "file") == Made("a", 2, {"b": 1})
    for key, wrong in (("name", 1), ("count", True), ("count", -1), ("count", 1.0), ("sizes", []), ("more", 1)):
        with pytest.raises(InputError, match=rf"^file: .*{key}"):
            record_of(Made, given | {key: wrong}, "file")
    for key in given:
        with pytest.raises(InputError, match=rf"^file: .*{key}"):
            record_of(Made, {each: given[each] for each in given if each != key}, "file")
    for other in ([], None, "name"):
        with pytest.raises(InputError, match=r"^file: "):
            record_of(Made, other, "file")
