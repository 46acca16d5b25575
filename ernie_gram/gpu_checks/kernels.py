"""Every operation of every program has a GPU kernel in this package of Paddle.

Paddle runs an operation without one on the CPU, with copies to and fro, and says nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping

# isort: off
from ernie_gram.distributed.world import start_world  # before Paddle: it sets the number of threads

import paddle
# isort: on

from ernie_gram.distributed.device import check_device
from ernie_gram.gpu_checks.lowering import Kernel, kernels_of
from ernie_gram.gpu_checks.outcome import Passed, Setup, require
from ernie_gram.gpu_checks.programs import RUNGS, pretraining_programs
from reader.errors import InputError
from reader.system.installation import child_environment

# In a precision that a task can have.
TASK_PRECISIONS = ("float32", "bfloat16")
PRECISIONS = (*TASK_PRECISIONS, "float16")
GPU_BACKENDS = ("GPU", "GPUDNN")
# Kernels that are for the CPU on purpose: they make small arrays of numbers of the program, such as shapes.
HOST_KERNELS = ("full_int_array",)
MAX_NAMED = 5

Programs = Mapping[str, Iterable[Kernel]]


def precisions() -> tuple[str, ...]:
    """Return the precisions that this GPU has."""

    def has(precision: str) -> bool:
        try:
            return check_device("gpu", precision)
        except InputError:
            return False

    return tuple(precision for precision in PRECISIONS if has(precision))


def kernels(setup: Setup) -> Passed:
    """Check the programs of pre-training, of each objective, and of fine-tuning, of each kind of task.

    A quick check is of two objectives, the first and the last of the ablation.
    """
    chosen, world = precisions(), start_world("gpu")
    rungs = (RUNGS[0], RUNGS[-1]) if setup.quick else RUNGS
    programs: dict[str, Iterable[Kernel]] = {
        f"{name}, {precision}": kernels_of(program.main, world.place)
        for precision in chosen
        for name, program in pretraining_programs(world, precision, rungs)
    }
    programs |= _task_programs([precision for precision in TASK_PRECISIONS if precision in chosen])
    registered = paddle.base.core._get_registered_phi_kernels("function")
    missing = missing_kernels(programs, registered)
    distinct = {kernel for found in programs.values() for kernel in found}
    figures = {
        "programs": len(programs),
        "kernels": len(distinct),
        "precisions": chosen,
        "missing": {f"{kernel.name} {kernel.dtype}": names for kernel, names in missing.items()},
    }
    named = [f"{kernel.name} {kernel.dtype} ({names[0]})" for kernel, names in missing.items()]
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    require(not missing, f"no GPU kernel: {'; '.join(named[:MAX_NAMED])}{more}", figures)
    return Passed(f"{len(distinct)} kernels of {len(programs)} programs are registered ({', '.join(chosen)})", figures)


def missing_kernels(programs: Programs, registered: Mapping[str, Iterable[str]]) -> dict[Kernel, list[str]]:
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


def _task_programs(chosen: list[str]) -> dict[str, Iterable[Kernel]]:
    """Return the kernels of the programs of all kinds of tasks. Another process lists them: this package is below."""
    command = [sys.executable, "-m", "tasks.kernels", *chosen]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    require(done.returncode == 0, f"tasks.kernels ended with status {done.returncode}: {last}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: [Kernel(*kernel) for kernel in listed] for name, listed in found.items()}
