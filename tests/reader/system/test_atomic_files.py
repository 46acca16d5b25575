"""Files and folders are written atomically, even if earlier processes were killed and left temporary files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from reader.system.atomic_files import atomic_folder, load_array, save_arrays


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
        assert load_array(folder, "numbers").tolist() == [number]
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_is_restored_if_a_process_was_killed_between_the_renames(tmp_path: Path) -> None:
    save_arrays(tmp_path / "out", numbers=np.array([1]))
    (tmp_path / "out").rename(tmp_path / ".out.old")
    with suppress(ZeroDivisionError), atomic_folder(tmp_path / "out") as partial:
        (partial / "numbers.npy").write_bytes(b"")
        raise ZeroDivisionError
    assert load_array(tmp_path / "out", "numbers").tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
