"""Names that stand in files cannot leave their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.formats.untrusted.names import safe_child
from reader.errors import InputError


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors", "word_embedding", "词表.txt", "a..b", ".hidden"])
def test_a_name_of_one_level_is_a_file_of_the_folder(tmp_path: Path, name: str) -> None:
    assert safe_child(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "C:x", "a\0b", "a\nb", "\ud800", "x" * 256, 3, None, ["x"]],
)
def test_other_names_are_refused(tmp_path: Path, name: object) -> None:
    with pytest.raises(InputError, match="only files inside the folder are read"):
        safe_child(tmp_path, name)


def test_a_folder_may_itself_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to("model")
    assert safe_child(tmp_path / "link", "x") == tmp_path / "link" / "x"
