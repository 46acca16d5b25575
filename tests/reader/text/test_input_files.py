"""The text files that files, folders and glob patterns on the command line refer to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reader.corpus.memmap import DOCUMENTS, KEPT, UNITS
from reader.errors import InputError
from reader.text.input_files import find_files


def test_inputs_may_be_files_folders_and_globs_and_errors_name_them(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    files = [tmp_path / "a.txt", tmp_path / "b.jsonl", tmp_path / "deep" / "c.txt"]
    for file in files:
        file.write_text("x\n")
    (tmp_path / "notes.md").write_text("not text for us")
    assert find_files([str(tmp_path)]) == files
    assert find_files([str(tmp_path / "*.txt"), str(files[0])]) == files[:1]
    assert find_files([str(tmp_path / "**" / "*.txt")]) == [files[0], files[2]]
    # Folders that match a pattern, and folders behind a symbolic link.
    assert find_files([str(tmp_path / "*ee*")]) == files[2:]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to(tmp_path / "deep")
    (tmp_path / "deep" / "round").symlink_to(tmp_path / "other")
    assert [path.resolve() for path in find_files([str(tmp_path / "other")])] == files[2:]
    assert find_files([str(tmp_path)], [files[0]]) == files[1:]
    assert find_files([str(tmp_path), str(files[0])], [files[0]]) == files
    (tmp_path / "empty").mkdir()
    for name in ("missing.txt", "nothing*.txt", "notes.md", "empty"):
        with pytest.raises(InputError, match=name.replace("*", r"\*").replace(".", r"\.")):
            find_files([str(tmp_path / name)])
    (tmp_path / "again.txt").symlink_to(files[0])
    assert len(find_files([str(tmp_path)])) == len(files)


@pytest.mark.parametrize("name", ["link.txt", "folder"])
def test_a_link_without_a_target_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / ".hidden.txt").symlink_to(tmp_path / "removed")
    (tmp_path / "text.txt").write_text("x\n")
    assert find_files([str(tmp_path)]) == [tmp_path / "text.txt"]
    (tmp_path / name).symlink_to(tmp_path / "removed")
    for given in (tmp_path, tmp_path / "*", tmp_path / name):
        with pytest.raises(InputError, match=f"{name}: the target of this symbolic link is missing"):
            find_files([str(given)])


def test_vocabularies_of_models_and_files_of_corpora_are_no_text(tmp_path: Path) -> None:
    own = {
        "corpus": (*KEPT, UNITS, DOCUMENTS, "corpus.json"),
        ".hidden": ("a.txt",),
        "text": ("log.jsonl", "config.yaml", "BOOK.TXT", "a.txt"),
    }
    for folder, names in own.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text("x\n")
    expected = [tmp_path / "text" / name for name in ("BOOK.TXT", "a.txt", "log.jsonl")]
    assert find_files([str(tmp_path)]) == expected
    vocabulary = tmp_path / "corpus" / "vocab.txt"
    assert find_files([str(vocabulary)]) == [vocabulary]
    with pytest.raises(InputError, match="refers to no text file"):
        find_files([str(tmp_path / "**" / "vocab.txt")])


def test_input_that_would_be_read_twice_or_in_part_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "a.txt.GZ"):
        (tmp_path / name).write_text("x\n")
    for given in (tmp_path, tmp_path / "*"):
        with pytest.raises(InputError, match=r"a\.txt: is there as \.gz too"):
            find_files([str(given)])
    assert len(find_files([str(tmp_path / "a.txt"), str(tmp_path / "a.txt.GZ")])) == 2
    with pytest.raises(InputError, match="an input is empty"):
        find_files([""])
    (tmp_path / "a.txt.GZ").unlink()
    (tmp_path / "locked").mkdir()

    def refuse(folder: str) -> object:
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="locked: cannot be read: Permission denied"):
        find_files([str(tmp_path)])
