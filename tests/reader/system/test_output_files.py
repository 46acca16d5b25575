"""Which files and folders a command may write: none of a run, corpus or model, and an existing one only on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from reader.system.output_files import (
    MARKERS,
    check_new_folder,
    check_output_folder,
    check_output_path,
    kind_of,
)


def marked(folder: Path, marker: str) -> Path:
    """Return a folder with the file by which a kind of folder is known."""
    path = folder / marker.replace("*", "4")
    path.parent.mkdir(parents=True)
    path.touch()
    return folder


@pytest.mark.parametrize(("kind", "marker"), [(kind, marker) for kind in MARKERS for marker in MARKERS[kind]])
def test_existing_files_of_runs_corpora_and_models_are_never_replaced(tmp_path: Path, kind: str, marker: str) -> None:
    folder = marked(tmp_path / "folder", marker)
    assert kind_of(folder) == kind
    (folder / "community").mkdir()
    (folder / "community" / "readme").touch()
    (tmp_path / "link").symlink_to(folder / "community")
    for path in (folder / marker.replace("*", "4"), folder / "community" / "readme", tmp_path / "link" / "readme"):
        for overwrite in (False, True):
            with pytest.raises(InputError, match=rf"^--to: {path} belongs to the \w+( \w+)? in {folder}"):
                check_output_path("--to", path, overwrite)
    check_output_path("--to", folder / "answers.jsonl", False)


def test_an_existing_file_is_replaced_on_request_only_and_an_input_or_no_file_never(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "dangling"
    path.touch()
    link.symlink_to("nowhere")
    for existing in (path, link):
        with pytest.raises(InputError, match=f"^{existing}: already exists; choose another --to or pass --overwrite$"):
            check_output_path("--to", existing, False)
        check_output_path("--to", existing, True)
    (tmp_path / "again").hardlink_to(path)
    for read in (path, tmp_path / "again"):
        with pytest.raises(InputError, match=f"^--to: {path} is also an input; choose another --to$"):
            check_output_path("--to", path, True, [tmp_path / "missing", read])
    for path in (tmp_path, Path("/dev/null"), Path("."), Path("/proc/out")):
        with pytest.raises(InputError, match=str(path.parent if path.name == "out" else path)):
            check_output_path("--to", path, True)


def test_a_folder_of_runs_is_no_corpus_no_model_and_no_file_and_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder, message in (
        (marked(tmp_path / "corpus", "corpus.json"), "corpus is the folder of a corpus"),
        (marked(tmp_path / "model", "pytorch_model.bin"), "model is the folder of a model"),
        (file, f"{file} is a file"),
        (Path("/proc/run"), "nothing can be written in /proc"),
    ):
        with pytest.raises(InputError, match=message):
            check_output_folder("paths.output", folder)
    for folder in (marked(tmp_path / "run", "log.jsonl"), tmp_path / "new", tmp_path / "run" / "again"):
        check_output_folder("paths.output", folder)
    assert not (tmp_path / "new").exists()


def test_a_new_folder_does_not_exist_and_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    for folder in (tmp_path, tmp_path / "dangling", Path()):
        with pytest.raises(InputError, match="exists already"):
            check_new_folder(folder)
    with pytest.raises(InputError, match=r"^/proc: nothing can be written in /proc"):
        check_new_folder(Path("/proc/target"))
    check_new_folder(tmp_path / "more" / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["dangling"]
