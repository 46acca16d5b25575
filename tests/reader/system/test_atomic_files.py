"""Files and folders are written atomically, even if earlier processes were killed and left temporary files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError, SystemRefusedError
from reader.system import atomic_files
from reader.system.atomic_files import atomic_file, atomic_folder, check_writable, mapped_array, save_arrays


def test_a_folder_is_replaced_although_a_killed_process_left_temporary_folders(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for number in range(2):
        # An earlier process was killed while it filled the folder; another before it removed the old folder.
        for leftover in (".out.partial", ".out.old"):
            (tmp_path / leftover).mkdir()
            (tmp_path / leftover / "half.npy").write_bytes(b"")
        if not number:
            (tmp_path / ".out.old" / "half.npy").unlink()
        save_arrays(folder, numbers=np.array([number]))
        assert mapped_array(folder, "numbers").tolist() == [number]
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_is_restored_between_and_after_failed_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_arrays(tmp_path / "out", numbers=np.array([1]))
    (tmp_path / "out").rename(tmp_path / ".out.old")
    with suppress(ZeroDivisionError), atomic_folder(tmp_path / "out") as temporary:
        (temporary / "numbers.npy").write_bytes(b"")
        raise ZeroDivisionError
    assert mapped_array(tmp_path / "out", "numbers").tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == ".out.partial":
            raise OSError(errno.EDQUOT, "quota exceeded")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SystemRefusedError, match="quota exceeded"):
        save_arrays(tmp_path / "out", numbers=np.array([2]))
    assert mapped_array(tmp_path / "out", "numbers").tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_in_subfolders_are_flushed_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(atomic_files, "flush_to_disk", lambda path: flushed.append(path.name))
    with atomic_folder(tmp_path / "out") as temporary:
        (temporary / "params").mkdir()
        (temporary / "params" / "weight").touch()
    assert {"params", "weight", ".out.partial"} <= set(flushed)


def write_file(path: Path) -> None:
    with atomic_file(path) as temporary:
        temporary.touch()


@pytest.mark.parametrize("write", [write_file, save_arrays, lock_output])
def test_missing_folders_are_created(tmp_path: Path, write: Callable[[Path], object]) -> None:
    write(tmp_path / "runs" / "more" / "out")
    assert (tmp_path / "runs" / "more" / "out").exists()
    for path in ("~/run", "~user/run", "~"):  # the shell has not replaced it
        with pytest.raises(InputError, match=f"^{path}: "):
            check_writable(Path(path))
