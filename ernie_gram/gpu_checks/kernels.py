"""Check that every operation of every program has a GPU kernel in the installed Paddle.

Without one, Paddle runs the operation on the CPU, with copies in both directions and without a message. It chooses
kernels when it prepares a program for a device, and shows the choice only as text: with FLAGS_print_ir it prints the
program before and after. Afterwards each operation has an attribute such as
`kernel_key:<backend:GPU|layout:NCHW|dtype:float32>,kernel_name:"matmul"`.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

import paddle

from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks.check import Setup, require
from ernie_gram.gpu_checks.programs import LAST_RUNG, MODES, PRECISIONS, RUNGS, other_cases, pretraining_cases
from reader.errors import InputError

GPU_BACKENDS = ("GPU", "GPUDNN")
# Kernels that run on the CPU on purpose: they make small arrays from constants of the program, such as shapes.
HOST_KERNELS = ("full_int_array",)
MAX_NAMED = 5
STDOUT, STDERR = 1, 2
_KERNEL = re.compile(r'kernel_key:<backend:(\w+)\|layout:[^|]*\|dtype:(\w+)>,kernel_name:"(\w+)"')
# The backend of operations that run no kernel, such as those that name parameters and feeds.
_NO_KERNEL = "Undefined"


class Kernel(NamedTuple):
    """A kernel: its name and the type of its numbers, such as ("matmul", "float32")."""

    name: str
    dtype: str


def precisions() -> tuple[str, ...]:
    """Return the precisions that this GPU has."""
    found = []
    for precision in PRECISIONS:
        with suppress(InputError):
            check_device("gpu", precision)
            found.append(precision)
    return tuple(found)


def kernels(setup: Setup) -> str:
    """Check the programs of pre-training with each objective, and of fine-tuning on each kind of task.

    A quick check takes only the first and the last objective of the ablation.
    """
    chosen, place = precisions(), start_world("gpu").place
    rungs = (RUNGS[0], LAST_RUNG) if setup.quick else RUNGS
    programs: dict[str, Iterable[Kernel]] = {}
    for precision in chosen:
        for rung in rungs:
            # The operations that other modes add are float32 in every precision.
            modes = MODES if (rung, precision) == (LAST_RUNG, "float32") else MODES[:1]
            for case in pretraining_cases(rung, precision, place, modes):
                if case.is_step:
                    programs[case.name] = kernels_of(case.program, place)
    programs |= {case.name: kernels_of(case.program, place) for case in other_cases(rungs)}
    # Named by a string: `tasks` imports this package.
    for case in import_module("tasks.kernels").all_cases(chosen, place):
        programs[case.name] = kernels_of(case.program, place)
    missing = missing_kernels(programs, paddle.base.core._get_registered_phi_kernels("function"))
    distinct = {kernel for found in programs.values() for kernel in found}
    named = {f"{kernel.name} {kernel.dtype}": names for kernel, names in missing.items()}
    setup.numbers.update(programs=len(programs), kernels=len(distinct), precisions=chosen, missing=named)
    shown = [f"{kernel} ({names[0]})" for kernel, names in named.items()]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    require(not missing, f"no GPU kernel: {'; '.join(shown[:MAX_NAMED])}{more}")
    return f"{len(distinct)} kernels of {len(programs)} programs are registered ({', '.join(chosen)})"


def missing_kernels(
    programs: Mapping[str, Iterable[Kernel]], registered: Mapping[str, Iterable[str]]
) -> dict[Kernel, list[str]]:
    """Return the kernels that are not registered for GPUs, each with the names of the programs that need it.

    Args:
        programs: name -> kernels.
        registered: name of a kernel -> its variants, such as "(GPU, Undefined(AnyLayout), float32)".
    """
    missing: dict[Kernel, list[str]] = {}
    for name, found in programs.items():
        for kernel in found:
            if kernel.name not in HOST_KERNELS and not _is_on_gpu(kernel, registered.get(kernel.name, ())):
                missing.setdefault(kernel, []).append(name)
    return missing


def _is_on_gpu(kernel: Kernel, variants: Iterable[str]) -> bool:
    ends = [variant.strip("()").split(", ") for variant in variants]
    return any(end[0] in GPU_BACKENDS and end[-1] == kernel.dtype for end in ends)


def kernels_of(program: paddle.static.Program, place: paddle.base.core.Place) -> set[Kernel]:
    """Return the kernels that Paddle chooses for a program on a device, without running it."""
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
    """Return the kernels in what Paddle prints; raises ValueError if none are found, for example in another format."""
    lowered = text.partition("IR after lowering")[2]
    found = {Kernel(name, dtype) for backend, dtype, name in _KERNEL.findall(lowered) if backend != _NO_KERNEL}
    if not found:
        raise ValueError(f"Paddle {paddle.__version__} prints no kernels with FLAGS_print_ir")
    return found


def written_to(descriptor: int, action: Callable[[], object]) -> str:
    """Return what this process, with its C++ code, writes to STDOUT or STDERR during an action."""
    libc = ctypes.CDLL(None)

    def flush() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        libc.fflush(None)

    with tempfile.TemporaryFile() as file:
        original = os.dup(descriptor)
        flush()
        os.dup2(file.fileno(), descriptor)
        try:
            action()
        finally:
            flush()
            os.dup2(original, descriptor)
            os.close(original)
        file.seek(0)
        return file.read().decode(errors="replace")
