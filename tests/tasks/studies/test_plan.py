"""What the digest of a fine-tuning of a study depends on."""

from __future__ import annotations

import shutil
from pathlib import Path

from tasks.studies.plan import _files


def test_the_digests_include_the_definition_of_a_custom_task(tiny_task: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(tiny_task / "data", tmp_path / "data"))
    task = data / "task.yaml"
    before = _files(str(task), data)
    assert set(before) >= {"train", "dev", "task"}
    task.write_text(task.read_text() + "# another definition\n")
    _files.cache_clear()
    after = _files(str(task), data)
    assert {key for key in before if before[key] != after[key]} == {"task"}


def test_the_digest_depends_on_the_folder_of_a_text_which_is_its_label(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            (tmp_path / split / label).mkdir(parents=True)
            (tmp_path / split / label / "1_1.txt").write_text(f"a {label} text of {split}")
    (tmp_path / "train" / "neg" / "2_1.txt").write_text("a text that moves")
    before = _files("imdb", tmp_path)
    # It is still the second one of all texts.
    (tmp_path / "train" / "neg" / "2_1.txt").rename(tmp_path / "train" / "pos" / "0_1.txt")
    _files.cache_clear()
    after = _files("imdb", tmp_path)
    assert {key for key in before if before[key] != after[key]} == {"train"}
