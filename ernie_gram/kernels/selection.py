"""Choose the kernels of a finished program for a CPU."""

from __future__ import annotations

from collections.abc import Iterable

import paddle

from ernie_gram.distributed.device import cpu_kernels, on_cpu
from ernie_gram.kernels import blas
from ernie_gram.kernels.onednn import use_onednn
from ernie_gram.kernels.rewriting import use_compiled
from ernie_gram.paddle_private import Value
from reader.errors import InputError


def use_kernels(program: paddle.static.Program, precision: str, fetched: Iterable[Value]) -> None:
    """Let a program use the kernels that are fastest on this processor; on a GPU, do nothing.

    Args:
        precision: of matrix products, "float32" or "bfloat16"; the program itself is float32.
        fetched: values of the program that must stay.

    Raises InputError if bfloat16 is asked for and not possible.
    """
    if not on_cpu():
        return
    kernels, rounds, kept = cpu_kernels(), precision == "bfloat16", {value.id for value in fetched}
    if rounds and kernels.no_bfloat16:
        raise InputError(f"no products in bfloat16 on this CPU: {kernels.no_bfloat16}; use float32")
    use_compiled(program, kept)
    use_onednn(program, kernels.operations, rounds, kept)


def can_fuse_attention() -> bool:
    """Return whether programs may be built with the compiled attention of operations.py."""
    return on_cpu() and blas.is_available()
