"""Paddle's operation `fused_adam_`, which updates many parameters at once, for static programs.

Paddle 3.3.1 has the operation and its kernels, but no Python function that adds it to a program. Programs in Paddle's
file format may contain it, so a program with this one operation is read from such a file, and the operation is copied.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import paddle

from ernie_gram.paddle_private import IrMapping, clone, combine, merged_adam_, read_program, write_program

# Numbers that a block of a GPU updates at a time: the value in Paddle's own tests of the operation.
CHUNK_SIZE = 1 << 16


def fused_adam_(
    parameters: list[paddle.Tensor],
    gradients: list[paddle.Tensor],
    learning_rate: paddle.Tensor,
    moments1: list[paddle.Tensor],
    moments2: list[paddle.Tensor],
    beta_powers: list[paddle.Tensor],
    skip: paddle.Tensor | None,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
) -> None:
    """Add an operation to the current program that updates parameters and moments in place, as AdamW does.

    All tensors are float32, the rate too (later versions of Paddle than 3.3 read it as float64); parameters, gradients
    and moments have the same shapes.

    Args:
        learning_rate: [1].
        beta_powers: beta1^t and beta2^t at the t-th update, [1] each; they are not changed.
        skip: bool [1] on the host, whether to change nothing; None for never.
        weight_decay: decoupled decay, a factor of learning_rate x parameter.
    """
    count = len(parameters)
    inputs = [
        *(combine(parameters), combine(gradients), learning_rate, combine(moments1), combine(moments2), None),
        *(combine([power] * count) for power in beta_powers),
        *(None, skip),
    ]
    attributes = {"beta1": betas[0], "beta2": betas[1], "epsilon": epsilon, "weight_decay": weight_decay}
    shapes = [list(parameter.shape) for parameter in parameters]
    # The program is held until the operation has been copied.
    program = _program(shapes, skip is not None, attributes)
    (template,) = (op for op in program.global_block().ops if op.name() == "pd_op.fused_adam_")
    mapping = IrMapping()
    for source, value in zip(template.operands_source(), inputs, strict=True):
        if value is not None:
            mapping.add(source, value)
    clone(template, mapping)


def _program(shapes: list[list[int]], can_skip: bool, attributes: dict[str, float]) -> paddle.static.Program:
    """Return a program with one operation fused_adam_, for parameters of these shapes."""
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        one = paddle.static.data("one", [1], "float32")
        paddle.static.data("skip", [1], "bool")
        # Tensors of the same shape may be one: only their types matter.
        made = {str(shape): paddle.static.data(str(shape), shape, "float32") for shape in shapes}
        tensors, ones = [made[str(shape)] for shape in shapes], [one] * len(shapes)
        # The same tensors in another operation, which has such a function.
        merged_adam_(tensors, tensors, ones, tensors, tensors, ones)
    operations = program.global_block().ops
    ids = {op.attrs()["name"]: index for index, op in enumerate(operations, 1) if op.name() == "pd_op.data"}
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "program.json")
        write_program(program, path)
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        block = content["program"]["regions"][0]["blocks"][0]
        (node,) = (operation for operation in block["ops"] if operation["#"] == "1.merged_adam_")
        node["#"] = "1.fused_adam_"
        # The first nine inputs are the same, but the rate is one tensor; the numbers are attributes instead of inputs.
        node["I"] = [*node["I"][:9], {"%": ids["skip"] if can_skip else 0}]
        node["I"][2] = {"%": ids["one"]}
        node["A"] += [
            *(_attribute(name, "0.a_f64", attributes[name]) for name in ("beta1", "beta2", "epsilon")),
            _attribute("chunk_size", "0.a_i32", CHUNK_SIZE),
            _attribute("weight_decay", "0.a_f32", attributes["weight_decay"]),
            _attribute("use_adamw", "0.a_bool", True),
        ]
        Path(path).write_text(json.dumps(content), encoding="utf-8")
        return read_program(path)


def _attribute(name: str, kind: str, value: object) -> dict[str, Any]:
    return {"AT": {"#": kind, "D": value}, "N": name}
