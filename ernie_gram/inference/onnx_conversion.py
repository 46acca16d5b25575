"""Convert an exported program to ONNX: a process of its own, because paddle2onnx ends it at an operator it lacks.

    python -m ernie_gram.inference.onnx_conversion PROGRAM_FOLDER MODEL.onnx

Inputs, outputs and free axes get the names of the description. paddle2onnx's own optimisers are not used: one of them
installs packages. ONNX Runtime optimises a model when it loads it.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.inference.onnx_conversion")

import os
import sys
from pathlib import Path
from typing import Any

from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.description import PARAMETERS, PROGRAM, ArraySpec, load_description
from reader.errors import InputError

# The first version of ONNX's operators that has LayerNormalization.
OPSET = 17


def name_values(graph: Any, specs: tuple[ArraySpec, ...], values: Any) -> None:
    """Give the inputs or the outputs of a graph the names and axes of their specs; H and C are not free."""
    for value, spec in zip(values, specs, strict=True):
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == value.name:
                        names[i] = spec.name
        value.name = spec.name
        for size, letter in zip(value.type.tensor_type.shape.dim, spec.shape, strict=True):
            if size.dim_value <= 0:
                size.dim_param = letter


def main() -> None:
    """Run the command line."""
    folder, path = map(Path, sys.argv[1:])
    os.environ["POLYGRAPHY_AUTOINSTALL_DEPS"] = "0"
    load_paddle()
    import onnx
    import paddle2onnx

    description = load_description(folder)
    source = str(folder / PROGRAM), str(folder / PARAMETERS)
    paddle2onnx.export(*source, str(path), opset_version=OPSET, optimize_tool="none")
    if not path.is_file():
        raise InputError("paddle2onnx wrote no file")
    model = onnx.load(path)
    name_values(model.graph, description.feeds, model.graph.input)
    name_values(model.graph, description.fetches, model.graph.output)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
