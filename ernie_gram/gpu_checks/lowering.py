"""Which kernels a program runs: what Paddle chooses for each operation when it prepares the program for a device.

Paddle shows the choice only as text: with FLAGS_print_ir it prints a program before and after the choice. Then each
operation has an attribute such as `kernel_key:<backend:GPU|layout:NCHW|dtype:float32>,kernel_name:"matmul"`.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import paddle

_KERNEL = re.compile(r'kernel_key:<backend:(\w+)\|layout:[^|]*\|dtype:(\w+)>,kernel_name:"(\w+)"')
STDOUT, STDERR = 1, 2
_AFTER = "IR after lowering"
# The data of operations with this backend are only named: parameters and feeds.
_NO_KERNEL = "Undefined"


class Kernel(NamedTuple):
    """A kernel: its name and the type of its numbers, such as ("matmul", "float32")."""

    name: str
    dtype: str


def kernels_of(program: paddle.static.Program, place: paddle.base.core.Place) -> set[Kernel]:
    """Return the kernels that a program runs on a device; it is not run."""
    core = paddle.base.core
    plan = core.Plan([core.Job("default")], {"default": program})
    device, scope = core.Place(), core.Scope()
    device.set_place(place)
    for parameter in program.global_block().all_parameters():
        scope.var(parameter.name)
    paddle.set_flags({"FLAGS_print_ir": True})
    try:
        text = written_to(STDOUT, lambda: core.StandaloneExecutor(device, plan, scope))
    finally:
        paddle.set_flags({"FLAGS_print_ir": False})
    return kernels_in(text)


def kernels_in(text: str) -> set[Kernel]:
    """Return the kernels in what Paddle prints; raises ValueError if there are none, as with another format."""
    found = {
        Kernel(name, dtype)
        for backend, dtype, name in _KERNEL.findall(text.partition(_AFTER)[2])
        if backend != _NO_KERNEL
    }
    if not found:
        raise ValueError(f"Paddle {paddle.__version__} prints no kernels with FLAGS_print_ir")
    return found


def written_to(descriptor: int, action: Callable[[], object]) -> str:
    """Return what this process, with its C++ code, writes to STDOUT or STDERR during an action."""
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file:
        kept = os.dup(descriptor)
        _flush(libc)
        os.dup2(file.fileno(), descriptor)
        try:
            action()
        finally:
            _flush(libc)
            os.dup2(kept, descriptor)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def _flush(libc: ctypes.CDLL) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    libc.fflush(None)
