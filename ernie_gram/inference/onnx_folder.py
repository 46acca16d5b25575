"""The folder of a model in ONNX.

model.onnx        the network with its parameters
onnx.json         what it reads and computes, and how text becomes token IDs
vocab.txt         the vocabulary, or spm.model of sentencepiece; and further files, as of an exported program
README.md         how to run it
checksums.json    SHA-256 of the files above

An exported program is converted in a process of its own, because paddle2onnx ends it at an operator it lacks:

    python -m ernie_gram.inference.onnx_folder PROGRAM_FOLDER MODEL.onnx

paddle2onnx's own optimisers are not used: one of them installs packages. ONNX Runtime optimises a model itself.
"""

from __future__ import annotations

from reader.console_script import run_command

if __name__ == "__main__":
    run_command("ernie_gram.inference.onnx_folder")

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ernie_gram.config import require
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.model_card import FILE_NAME, rendered
from ernie_gram.formats.parameters import write_settings
from ernie_gram.inference.description import DESCRIPTION, ONNX_DESCRIPTION, PARAMETERS, PROGRAM
from ernie_gram.pretraining.config import prediction_config
from ernie_gram.run.checkpoint import CHECKSUMS, write_checksums
from reader.errors import InputError
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.system.processes import lines_of_module
from reader.system.untrusted_text import read_json

TO, ONNX = "--to", "onnx"
FILE = "model.onnx"
# A file of protobuf is smaller than this.
MAX_BYTES = 2**31
# The first version of ONNX's operators that has LayerNormalization.
OPSET = 17


def export_onnx(folder: Path, write: Callable[[Path], None], predicting: ModelRecord | None = None) -> None:
    """Write a model in ONNX atomically, or nothing.

    Args:
        write: writes the model as an exported program (see description.py) into a new folder.
        predicting: the model, if its prediction heads are written.

    Raises InputError as `write` does, if what converts is not installed, if the folder exists, and if ONNX cannot hold
    the model.
    """
    missing = [name for name in ("paddle2onnx", "onnx") if find_spec(name) is None]
    require(not missing, TO, f"onnx: needs {' and '.join(missing)}: pip install 'ernie-gram[onnx]'")
    if predicting is not None:
        reason = "onnx: a generator's samples cannot be repeated there; use --outputs encoder"
        require(not prediction_config(predicting).objective.has_generator, TO, reason)
    check_new_folder(folder)
    with tempfile.TemporaryDirectory() as parent:
        program = Path(parent) / "program"
        write(program)
        size = (program / PARAMETERS).stat().st_size
        require(size < MAX_BYTES, TO, f"onnx: a file holds less than 2 GB, and the parameters have {size:,} bytes")
        description = read_json(program / DESCRIPTION)
        with atomic_folder(folder) as partial:
            try:
                for _ in lines_of_module(__name__, str(program), str(partial / FILE)):
                    pass  # what paddle2onnx prints
            except InputError as error:
                raise InputError(f"{TO}: onnx: paddle2onnx cannot convert this model: {error}") from error
            for path in program.iterdir():
                if path.name not in (PROGRAM, PARAMETERS, DESCRIPTION, CHECKSUMS):
                    shutil.copyfile(path, partial / path.name)
            write_settings(partial / ONNX_DESCRIPTION, description)
            (partial / FILE_NAME).write_text(rendered("onnx.md", name=folder.name, **description), "utf-8")
            write_checksums(partial)


def name_values(graph: Any, specs: list[dict[str, str]], values: Any) -> None:
    """Give the inputs or the outputs of a graph the names and axes of their specs; H and C are not free."""
    for value, spec in zip(values, specs, strict=True):
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == value.name:
                        names[i] = spec["name"]
        value.name = spec["name"]
        for size, letter in zip(value.type.tensor_type.shape.dim, spec["shape"], strict=True):
            if size.dim_value <= 0:
                size.dim_param = letter


def main() -> None:
    """Convert an exported program; raises InputError."""
    folder, path = map(Path, sys.argv[1:])
    os.environ["POLYGRAPHY_AUTOINSTALL_DEPS"] = "0"
    load_paddle()
    import onnx
    import paddle2onnx

    description = read_json(folder / DESCRIPTION)
    source = str(folder / PROGRAM), str(folder / PARAMETERS)
    paddle2onnx.export(*source, str(path), opset_version=OPSET, optimize_tool="none")
    model = onnx.load(path)
    name_values(model.graph, description["feeds"], model.graph.input)
    name_values(model.graph, description["fetches"], model.graph.output)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
