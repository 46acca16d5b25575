"""Models in ONNX compute what they compute here, without Paddle, and what cannot be written leaves nothing behind."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from ernie_gram.inference import onnx_folder
from ernie_gram.inference.onnx_folder import export_onnx
from reader.errors import InputError
from tests.ernie_gram.inference.test_export import exported
from tests.support.commands import assert_every_file_is_own, python
from tests.support.exported_models import VOCABULARY, random_model, run_exported
from tests.support.onnx_models import run_onnx
from tests.support.small_model import TOKENS

pytest.importorskip("paddle2onnx")
onnxruntime = pytest.importorskip("onnxruntime")


# Imports fail as where these packages are not installed.
WITHOUT_PADDLE = "import sys\nfor name in ('paddle', 'paddle2onnx', 'ernie_gram', 'reader'): sys.modules[name] = None\n"


@pytest.mark.parametrize(
    ("outputs", "changes"),
    [
        ("encoder", {}),
        (
            "encoder",
            {"use_sentence_embedding": True, "use_pooler": True, "use_relative_position": False, "emb_size": 16},
        ),
        ("fill_mask", {}),
    ],
)
def test_a_model_computes_the_same_and_the_lines_of_its_card_run(
    tmp_path: Path, outputs: str, changes: dict[str, Any]
) -> None:
    write, folder = partial(exported, random_model("explicit", **changes), outputs), tmp_path / "onnx"
    program = write(tmp_path / "program")
    export_onnx(folder, write)
    assert {path.name for path in folder.iterdir()} >= {"model.onnx", "onnx.json", "vocab.txt", "checksums.json"}
    assert (folder / "lexicon.tsv").is_file() == (outputs == "fill_mask")
    assert_every_file_is_own(folder, "exported model")
    description = json.loads((program / "inference.json").read_text())
    described = {each["name"]: list(each["shape"]) for each in description["feeds"]}
    inputs = {each.name: each.shape for each in onnxruntime.InferenceSession(folder / "model.onnx").get_inputs()}
    assert inputs == described  # every axis is free
    random = np.random.default_rng(1)
    for lengths in ([5], [9, 3, 60]):
        shape = len(lengths), max(lengths)
        is_real = np.arange(shape[1]) < np.array(lengths)[:, np.newaxis]
        batch = {"input_ids": random.integers(5, TOKENS, shape) * is_real, "lengths": np.array(lengths)}
        batch |= {"sentence_ids": random.integers(0, 2, shape), "slots": np.flatnonzero(is_real)[::3]}
        found, expected = run_onnx(folder, batch), run_exported(program, batch)
        assert list(found) == [each["name"] for each in description["fetches"]]
        if "hidden" in found:
            found["hidden"], expected["hidden"] = (each["hidden"][is_real] for each in (found, expected))
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-4, err_msg=name)
    # The card, on texts of the made-up vocabulary.
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert sum(bool(line) for line in code.splitlines()) == 10
    ids = np.array([[2, VOCABULARY.ids["ba"], 4, 3], [2, 4, 3, 0]])
    texts = [" ".join(VOCABULARY.tokens[i] for i in row if i not in (0, 2, 3)) for row in ids]
    code = re.sub(r"texts = .*", f"texts = {texts}", code).replace("print(", "arrays = (")
    printed = python("-c", f"{WITHOUT_PADDLE}{code}\nprint(arrays[-1].tolist())", cwd=folder).ok().stdout
    batch = {"input_ids": ids, "lengths": np.array([4, 3]), "sentence_ids": 0 * ids, "slots": np.flatnonzero(ids == 4)}
    expected = run_exported(program, batch)
    last = list(expected)[-1]
    np.testing.assert_allclose(np.array(json.loads(printed)), expected[last], atol=1e-4)


def test_what_cannot_be_written_is_refused_in_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target, write = tmp_path / "target", partial(exported, random_model(None), "encoder")
    with patch.object(onnx_folder, "MAX_BYTES", 1000), pytest.raises(InputError, match="2 GB"):
        export_onnx(target, write)
    with patch.object(onnx_folder, "find_spec", return_value=None), pytest.raises(InputError, match=r"\[onnx\]"):
        export_onnx(target, write)
    failure = patch.object(onnx_folder, "lines_of_module", side_effect=InputError("no such operator"))
    with failure, pytest.raises(InputError, match=r"^--to: onnx: .*: no such operator$"):
        export_onnx(target, write)
    assert list(tmp_path.iterdir()) == []
