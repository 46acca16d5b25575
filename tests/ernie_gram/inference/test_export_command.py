"""`python -m ernie_gram.export_inference` exports a run; `fill_mask` then gives what it gives for the run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ernie_gram import export_inference, fill_mask
from reader.system.lock_files import locked_name
from tests.support.commands import assert_every_file_is_own, assert_one_line_error, call
from tests.support.static_programs import fresh_scope


def test_the_default_is_the_encoder_and_what_cannot_be_exported_is_refused(finished: Path, tmp_path: Path) -> None:
    with fresh_scope():
        done = call(export_inference.main, str(finished), str(tmp_path / "encoder")).ok()
        assert_every_file_is_own(tmp_path / "encoder", "exported model")
        done = call(fill_mask.main, str(tmp_path / "encoder"), "a [MASK]")
        assert_one_line_error(done, f"{tmp_path / 'encoder'}: ")
        description = json.loads((tmp_path / "encoder" / "inference.json").read_text())
        assert [spec["name"] for spec in description["fetches"]] == ["hidden", "cls", "mean"]
        assert description["text"] == {
            "max_tokens": 32,
            "vocabulary": "vocab.txt",
            "lowercase": True,
            "segmenter": "jieba",
        }
        with locked_name(tmp_path / "new", f"{tmp_path / 'new'}: is being written"):
            done = call(export_inference.main, str(finished), str(tmp_path / "new"))
        assert_one_line_error(done, f"{tmp_path / 'new'}: is being written by process {os.getpid()} on ", 1)
        for arguments, key in (
            ([finished, tmp_path / "encoder"], f"{tmp_path / 'encoder'}: "),
            ([finished, "/nowhere/at/all"], "/nowhere"),
            ([tmp_path / "nowhere", tmp_path / "new"], f"{tmp_path / 'nowhere'}: "),
            ([finished, tmp_path / "new", "--outputs", "vectors"], "argument --outputs"),
        ):
            assert_one_line_error(call(export_inference.main, *map(str, arguments)), key)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder"]
