"""Files and folders that are whole or not there: what a kill may have left is no hindrance."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from reader.system.atomic_files import atomic_folder, load_array, save_arrays


def test_a_folder_is_replaced_whatever_a_kill_has_left(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for number in range(2):
        # Killed while it was filled, and before the folder that had stepped aside was removed.
        for left in (".out.partial", ".out.old"):
            (tmp_path / left).mkdir()
            (tmp_path / left / "half.npy").write_bytes(b"")
        if not number:
            (tmp_path / ".out.old" / "half.npy").unlink()
        save_arrays(folder, numbers=np.array([number]))
        assert load_array(folder, "numbers").tolist() == [number]
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_had_stepped_aside_comes_back(tmp_path: Path) -> None:
    save_arrays(tmp_path / "out", numbers=np.array([1]))
    (tmp_path / "out").rename(tmp_path / ".out.old")
    with suppress(ZeroDivisionError), atomic_folder(tmp_path / "out") as partial:
        (partial / "numbers.npy").write_bytes(b"")
        raise ZeroDivisionError
    assert load_array(tmp_path / "out", "numbers").tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
